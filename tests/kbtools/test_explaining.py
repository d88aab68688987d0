"""Explanations: every candidate says its mention, its rung and every part of its score."""

from dataclasses import replace

import pytest

from kbtools.answering.answerer import Answerer
from kbtools.answering.explaining import MATCHES, explain_candidate, explain_result, table_lines
from kbtools.indexers.folder.memory import MemoryKB
from kbtools.text.rungs import Rung


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Machine Learning", "'Machine Learning' (characters 0 to 16) is exactly the name 'Machine Learning'"),
        ("is harry potter", "'harry potter' (characters 3 to 15) is the name 'Harry Potter' in different case"),
        ("nizke tatry", "'nizke tatry' (characters 0 to 11) is the name 'Nízke Tatry' with different accents"),
        ("2001 a space odyssey", "is the name '2001: A Space Odyssey' with different punctuation"),
        ("red clouds war", 'is the name "Red Cloud\'s War" with a different apostrophe'),
        ("whats the story morning glory", " with a different apostrophe"),
        ("frankenstien", "'frankenstien' (characters 0 to 12) resembles the name 'Frankenstein'"),
    ],
)
def test_a_candidate_says_how_its_mention_matched(sample: Answerer, text: str, words: str) -> None:
    assert words in explain_candidate(sample.query(text, pruning="n-gram+").candidates[0]).splitlines()[0]


def test_a_variant_is_called_one(sample: Answerer) -> None:
    found = next(one for one in sample.query("who is the artist of who").candidates if one.rung == "variant")
    assert "'who'" in explain_candidate(found)
    assert "is a variant of the name 'The Who'" in explain_candidate(found)


def test_every_part_has_its_line_and_they_sum_to_the_last(sample: Answerer) -> None:
    for found in sample.query("Who directed Pirates of the Carribean").candidates:
        lines = explain_candidate(found).splitlines()[1:]
        assert [line.split()[1].rstrip(":") for line in lines] == [*found.parts, "score"]
        *parts, score = [float(line.split()[0]) for line in lines]
        assert score == pytest.approx(sum(parts), abs=5e-4)


def test_a_part_that_a_plugin_adds_is_shown_by_its_name(sample: Answerer) -> None:
    (found, *_) = sample.query("harry potter").candidates
    more = replace(found, parts={**found.parts, "novelty": 0.25})
    assert "+0.2500  novelty: novelty" in explain_candidate(more)


def test_every_rung_has_its_words() -> None:
    assert list(MATCHES) == [rung.label for rung in sorted(Rung)]


def test_a_result_says_how_it_was_pruned_and_scored(sample: Answerer) -> None:
    result = sample.query("harry potter", pruning="n-gram+")
    assert explain_result(result).splitlines()[0] == "pruned by n-gram+, relations scored by lexical"


def test_namesakes_and_ties_are_explicit(sample: Answerer) -> None:
    text = explain_result(sample.query("where is springfield", pruning="n-gram+"))
    assert "namesakes: 'Springfield' is borne by m.0ftxc, m.0mzvm" in text
    assert "2 candidates share the first place; they are ordered by id" in text


def test_namesakes_with_the_same_answers_are_no_readings() -> None:
    facts, names = [("a", "area", "c"), ("b", "area", "c")], [("a", "Oak"), ("b", "Oak")]
    text = explain_result(Answerer(MemoryKB(facts, names)).query("area of oak"))
    assert "2 candidates share the first place and have the same answers; they are ordered by id" in text


def test_a_reading_tells_its_subject_by_the_description_or_the_types() -> None:
    facts, names = [("a", "area", "c"), ("b", "area", "d")], [("a", "Oak"), ("b", "Oak")]
    types = [(entity, f"kind{number}") for entity in "ab" for number in range(4)]
    kb = MemoryKB(facts, names, types, descriptions=[("a", "a tree")])
    readings = [reading.text for reading in Answerer(kb).query("area of oak").readings]
    assert readings == ["the area of Oak (a; a tree)", "the area of Oak (b; kind0, kind1, kind2)"]


def test_a_table_shows_the_direction_of_each_candidate_and_the_answers() -> None:
    answerer = Answerer(MemoryKB([("f", "directed by", "p")], [("f", "Jaws"), ("p", "Ida Holt")]))
    forwards, backwards = (answerer.query(text) for text in ("who directed jaws", "what did ida holt direct"))

    assert "  Jaws (f)  directed by  [case: jaws]" in table_lines(forwards)[1]
    assert "  Ida Holt (p)  inverse of directed by  [case: ida holt]" in table_lines(backwards)[1]
    assert [table_lines(result)[-1] for result in (forwards, backwards)] == [
        "  answers: Ida Holt (p)",
        "  answers: Jaws (f)",
    ]


def test_a_subject_alone_under_its_name_has_no_namesakes(sample: Answerer) -> None:
    text = explain_result(sample.query("where is nizke tatry"))
    assert "namesakes" not in text
    assert "share" not in text


def test_a_result_without_candidates_explains_its_pruning_alone(sample: Answerer) -> None:
    assert len(explain_result(sample.query("zebra")).splitlines()) == 1
