"""Linking running text: which words are mentions, where they stand, and how sure it is."""

import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kbtools.answering import context
from kbtools.answering.answerer import Answerer
from kbtools.answering.context import ContextRanker
from kbtools.answering.entity_reader import EntityReader
from kbtools.answering.running_text import LONGEST_SENTENCE, THRESHOLD, TextLinker, split_sentences
from kbtools.errors import BadArgument
from kbtools.text.common_words import FUNCTION, UNKNOWN, VERY_COMMON
from tests.conftest import World

SENTENCES = Path(__file__).with_name("running_text.txt").read_text(encoding="utf-8").splitlines()
"""Thirty sentences over the sample, their mentions in square brackets; the threshold was chosen on them."""


def unbracketed(sentence: str) -> tuple[str, set[tuple[int, int]]]:
    """Take the brackets out of a sentence; give the spans that they enclosed."""
    spans = {
        (match.start() - 2 * before, match.end() - 2 * before - 2)
        for before, match in enumerate(re.finditer(r"\[.*?\]", sentence))
    }
    return re.sub(r"[\[\]]", "", sentence), spans


def texts(answerer: Answerer, text: str, **options: Any) -> list[str]:
    return [mention.text for mention in answerer.link(text, **options).mentions]


@pytest.mark.parametrize("sentence", SENTENCES)
def test_mentions_of_thirty_sentences_are_found_and_little_else(sample_memory: Answerer, sentence: str) -> None:
    text, spans = unbracketed(sentence)
    mentions = {(mention.start, mention.end) for mention in sample_memory.link(text).mentions}
    assert mentions == spans


def test_the_longest_name_wins_over_those_inside_it(sample: Answerer) -> None:
    assert texts(sample, "He works for the Los Angeles Lakers.") == ["Los Angeles Lakers"]
    assert texts(sample, "A symphony from New York City, heard in York") == ["New York City"]


def test_mentions_never_share_a_character(make_kb: Callable[[str, World], Any], new_world: type[World]) -> None:
    names = (("a", "Wham!!!"), ("b", "!!!"), ("c", "Wham"), ("d", "Oh Wham"))
    answerer = Answerer(make_kb("memory", new_world((), names)))

    mentions = answerer.link("Then Wham!!! and !!! again, Oh Wham!!!", threshold=0.0).mentions

    assert [(before.end <= after.start) for before, after in pairwise(mentions)] == [True] * (len(mentions) - 1)


def test_a_quotation_mark_before_the_first_word_makes_it_no_name(sample: Answerer) -> None:
    plain, quoted = (sample.link(f"{mark}Yesterday we came", threshold=0.1).mentions for mark in ("", '"'))

    assert [mention.score for mention in plain] == [mention.score for mention in quoted]


def test_titles_of_function_words_do_not_flood(sample: Answerer) -> None:
    assert texts(sample, "It is them. Who? The one. THEM! It was It. You and I, M or them.") == []


def test_a_full_stop_inside_a_name_ends_no_sentence(sample: Answerer) -> None:
    assert texts(sample, "Ask J. R. R. Tolkien or Dr. Marie Curie.") == ["J. R. R. Tolkien", "Marie Curie"]


def test_no_mention_goes_over_the_end_of_a_sentence(sample: Answerer) -> None:
    assert texts(sample, "They went to New York. City life was hard.") == ["New York"]


@pytest.mark.parametrize(
    "before", ["\U0001f600\U0001f3fd. ", "e\u0301te\u0301: ", "\u202bשלום\u202c ", "ﬁnd ", "\t\r\n  "]
)
def test_offsets_are_characters_of_the_text_as_given(sample: Answerer, before: str) -> None:
    text = f"{before}Then Sasha Vujačić met Björk\U0001f600."
    for mention in sample.link(text).mentions:
        assert text[mention.start : mention.end] == mention.text
    assert texts(sample, text) == ["Sasha Vujačić", "Björk"]


def test_names_in_any_script_are_found(sample: Answerer) -> None:
    assert texts(sample, "В 2001 году 七人の侍 и Россия") == ["七人の侍", "Россия"]


def test_a_text_without_capitals_is_linked_by_rarity(sample: Answerer) -> None:
    assert texts(sample, "i think j. k. rowling lives in edinburgh") == ["j. k. rowling", "edinburgh"]


def test_a_stray_capital_tells_nothing_of_the_case_of_names(sample: Answerer) -> None:
    words = "and so we went on and on and none of us could say what it was or would be in the end then "
    assert texts(sample, f"I saw stephen king in edinburgh {words * 2}") == ["stephen king", "edinburgh"]


def test_a_text_in_capitals_is_linked(sample: Answerer) -> None:
    assert texts(sample, "STEPHEN KING SEEN IN EDINBURGH") == ["STEPHEN KING", "EDINBURGH"]


def test_an_ambiguous_name_is_left_out_and_none_inside_it_takes_its_place(
    make_kb: Callable[[str, World], Any], new_world: type[World]
) -> None:
    names = (*((f"e{number}", "Mary Stone") for number in range(9)), ("x", "Mary"))
    answerer = Answerer(make_kb("embedded", new_world((("x", "r", "y"),), names)))
    assert texts(answerer, "There was Mary Stone with others") == []
    assert texts(answerer, "There was Mary Stone with others", threshold=0.01) == ["Mary Stone"]


def test_names_without_facts_are_linked(make_kb: Callable[[str, World], Any], new_world: type[World]) -> None:
    answerer = Answerer(make_kb("memory", new_world((), (("a", "Quinoa Bay"), ("b", "Elm Street")))))
    assert texts(answerer, "We sailed to Quinoa Bay") == ["Quinoa Bay"]


def test_candidates_are_those_of_a_look_up(sample: Answerer) -> None:
    (mention,) = sample.link("We saw Paris again", limit=2).mentions
    assert mention.candidates == sample.lookup("Paris", limit=2).matches


def test_scores_are_shares_and_a_higher_threshold_links_less(sample_memory: Answerer) -> None:
    text = " ".join(unbracketed(sentence)[0] for sentence in SENTENCES)
    before = None
    for threshold in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0):
        scores = [mention.score for mention in sample_memory.link(text, threshold=threshold).mentions]
        assert all(threshold <= score <= 1 for score in scores)
        assert before is None or len(scores) <= before
        before = len(scores)
    assert before == 0


@pytest.mark.parametrize("text", ["", " \n\n ", "...", "zqxjkv", "?!"])
def test_a_text_without_names_has_no_mentions(sample: Answerer, text: str) -> None:
    assert sample.link(text).mentions == ()


def test_a_long_text_without_an_end_of_sentence_is_linked_to_its_end(sample_memory: Answerer) -> None:
    text = "we went on and on " * 2_000 + "until Stephen King came"
    (mention,) = sample_memory.link(text).mentions
    assert text[mention.start : mention.end] == "Stephen King"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "One. Two! Three? Four",
        "a" * 3 * LONGEST_SENTENCE,
        "x y " * LONGEST_SENTENCE,
        "\n\n",
        "." * 200_000,
        "\n " * 50_000,
    ],
)
def test_sentences_cover_a_text_without_overlap(text: str) -> None:
    spans = list(split_sentences(text))
    assert "".join(text[start:end] for start, end in spans) == text
    assert all(end - start <= LONGEST_SENTENCE for start, end in spans)


def test_many_sentences_give_what_each_gives_alone(sample_memory: Answerer) -> None:
    sentences = [unbracketed(sentence)[0] for sentence in SENTENCES]
    alone = [text for sentence in sentences for text in texts(sample_memory, sentence)]
    assert texts(sample_memory, "\n\n".join(sentences)) == alone


@pytest.mark.parametrize(
    "options", [{"threshold": -0.1}, {"threshold": 1.5}, {"threshold": float("nan")}, {"limit": -1}]
)
def test_what_is_no_threshold_or_limit_is_refused(sample_memory: Answerer, options: dict[str, Any]) -> None:
    with pytest.raises(BadArgument):
        sample_memory.link("Paris", **options)
    assert 0 < THRESHOLD < 1


Linker = Callable[[str], list[tuple[str, str]]]

PLAIN = {
    "rest": "REST", "go": "Go", "capital": "Capital", "film": "Night of the Copper Heron", "club": "Ferris Herons",
    "engine": "Search Engine", "paper": "Newspaper", "ng": "Al Ng", "road": "Route 66", "plant": "Orthan Hypolex",
    "hall": "Carnegie Hall", "who": "The Who",
}  # fmt: skip
ALIASES = (("club", "Herons"), ("oregon", "OR"))


@pytest.fixture
def linked(make_kb: Callable[[str, World], Any], new_world: type[World]) -> Linker:
    """Link a text over a dozen names, to mentions with the id of the first candidate."""
    answerer = Answerer(make_kb("memory", new_world((("rest", "r", "y"),), (*PLAIN.items(), *ALIASES))))
    return lambda text: [(mention.text, mention.candidates[0].id) for mention in answerer.link(text).mentions]


@pytest.mark.parametrize(
    "text",
    ["we took a rest day", "Let us go home, said Ada Venn.", "they raised venture capital", "Go home!", "GO HOME"],
)
def test_words_of_the_language_are_no_names_even_among_few(linked: Linker, text: str) -> None:
    assert linked(text) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("call the REST endpoint", [("REST", "rest")]),
        ("a server written in Go", [("Go", "go")]),
        ("She lives in Portland, OR.", [("OR", "oregon")]),
        ("We Went to Carnegie Hall and Took a Rest", [("Carnegie Hall", "hall")]),
        ("The Who played there.", [("The Who", "who")]),
        ("Orthan hypolex, ORTHAN HYPOLEX or orthan hypolex", [("Orthan hypolex", "plant"), ("ORTHAN HYPOLEX", "plant"),
                                                              ("orthan hypolex", "plant")]),
    ],
)  # fmt: skip
def test_capitals_tell_names_except_in_headlines(linked: Linker, text: str, expected: list[tuple[str, str]]) -> None:
    assert linked(text) == expected


def test_a_slip_in_a_long_name_links_it_and_no_name_inside_it(linked: Linker) -> None:
    assert linked("We saw Night of the Coppper Heron again") == [("Night of the Coppper Heron", "film")]
    assert linked("we saw nihgt of the copper heron again") == [("nihgt of the copper heron", "film")]
    assert linked("The Herons won") == [("Herons", "club")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I read a news paper about the searchengine", [("news paper", "paper"), ("searchengine", "engine")]),
        ("we met #AlNg there", [("AlNg", "ng")]),
        ("on route66 we drove", [("route66", "road")]),
    ],
)
def test_words_written_together_or_apart_are_found(linked: Linker, text: str, expected: list[tuple[str, str]]) -> None:
    assert linked(text) == expected


def test_the_text_around_a_name_chooses_between_its_bearers(
    make_kb: Callable[[str, World], Any], new_world: type[World]
) -> None:
    facts = (("river", "river_flows_through", "v"), ("band", "band_records_album", "a"), ("band", "plays_music", "m"))
    names = (
        ("river", "Tarn Vell"),
        ("band", "Tarn Vell"),
        ("v", "Water Valley"),
        ("a", "Loud Songs"),
        ("m", "Rock Music"),
    )
    answerer = Answerer(make_kb("memory", new_world(facts, names)))

    def first(text: str, *, context: bool = False) -> tuple[str, float]:
        (mention,) = answerer.link(text, context=context).mentions
        return mention.candidates[0].id, mention.candidates[0].prior

    assert first("We swam in the water of the Tarn Vell.", context=True)[0] == "river"
    assert first("The new album of Tarn Vell has loud songs.", context=True)[0] == "band"
    alone = first("The new album of Tarn Vell has loud songs.")
    assert alone[0] == "band"
    assert first("The new album of Tarn Vell has loud songs.", context=True)[1] > alone[1]


def test_an_entity_is_described_by_its_last_words_of_types_and_first_facts(
    make_kb: Callable[[str, World], Any], new_world: type[World], monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = (("a", "music.artist.first.genre", "g"), ("a", "music.artist.label", "h"), ("b", "music.artist.label", "g"))
    names = (("a", "Ann"), ("g", "Rock"), ("b", "Ben"))
    world = new_world(facts, names, (("a", "music.recording.solo_artist"),), descriptions=(("a", "a singer"),))
    kb = make_kb("memory", world)
    ranker = ContextRanker(EntityReader(kb))
    rows = np.array(kb.rows(["a", "b", "g"]), dtype=np.uint32)

    assert ranker.texts(rows) == [
        "a singer solo artist artist first genre Rock music artist label ", "  music artist label Rock", "  ",
    ]  # fmt: skip
    monkeypatch.setattr(context, "_FACTS", 1)
    assert ranker.texts(rows)[0] == "a singer solo artist artist first genre Rock"
    monkeypatch.setattr(context, "_MOST_FACTS", 1)
    assert ranker.fact_texts(rows) == ["", "music artist label Rock", ""]
    assert ranker.vectors_of(rows).shape[0] == len(ranker.vectors) == 3
    monkeypatch.setattr(context, "_REMEMBERED", 3)
    assert ranker.vectors_of(rows[:2]).shape[0] == 2
    assert len(ranker.vectors) == 3


def test_words_are_as_common_as_the_language_of_questions_says(
    make_kb: Callable[[str, World], Any], new_world: type[World]
) -> None:
    world = new_world((("a", "r", "b"),), (), spoken=(("a", "Elm", "de"),), language="de")
    linker = TextLinker(EntityReader(make_kb("memory", world)))
    english = TextLinker(EntityReader(make_kb("memory", new_world((("a", "r", "b"),), (("a", "Elm"),)))))

    assert [linker.level(word) for word in ("und", "der", "zephyranthes")] == [FUNCTION, FUNCTION, UNKNOWN]
    hinting = next(word for word in sorted(linker.hinting_words) if word not in linker.function_words)
    assert linker.level(hinting) == VERY_COMMON
    assert english.level("und") != FUNCTION == english.level("the")
