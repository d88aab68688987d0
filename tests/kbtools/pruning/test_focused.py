"""Focused pruners follow their tagger, and fall back where its first choice links to nothing."""

from collections.abc import Sequence

import numpy as np
import pytest

from kbtools.indexers.folder.memory import MemoryKB
from kbtools.kb.contract import KnowledgeBase, NameMatch, SimilarName
from kbtools.kb.manifest import Manifest
from kbtools.linking.links import Link
from kbtools.pruning import focused, n_gram
from kbtools.pruning.focused import IMPROBABLE, RARITY, Focused, FocusedIdf, FocusedK, FocusedKB
from kbtools.pruning.n_gram import NGramIdf
from kbtools.pruning.pruners import words_of
from kbtools.scorers.taggers.tagger import BITS, Gazetteer
from kbtools.text.question import Question
from kbtools.text.rungs import Form, Rung


class Oracle:
    """A tagger that gives named n-grams a log-probability, all others one out of sight."""

    def __init__(self, **weights: float) -> None:
        self.weights = {name.replace("_", " "): weight for name, weight in weights.items()}

    def spans(self, questions: Sequence[Question]) -> list[np.ndarray]:
        tables = []
        for question in questions:
            words = words_of(question)
            spans = np.full((len(words), len(words)), -np.inf)
            for first in range(len(words)):
                for last in range(first, len(words)):
                    spans[first, last] = self.weights.get(" ".join(words[first : last + 1]), -50.0)
            tables.append(spans)
        return tables


class Counting(Oracle):
    """An oracle that remembers how many questions it was asked about at a time."""

    def __init__(self, **weights: float) -> None:
        super().__init__(**weights)
        self.asked: list[int] = []

    def spans(self, questions: Sequence[Question]) -> list[np.ndarray]:
        self.asked.append(len(questions))
        return super().spans(questions)


def mentions(links: list[Link]) -> set[str]:
    return {link.ngram.form for link in links}


QUESTION = Question.read("is texas in france or paris")


def test_focused_keeps_the_most_probable_ngram(tiny_memory: KnowledgeBase) -> None:
    links = Focused(tiny_memory, Oracle(texas=-1.0, paris=-0.5)).links([QUESTION])[0]

    assert mentions(links) == {"paris"}
    assert {link.weight for link in links} == {-0.5}


def test_focused_is_fuzzy_only_where_nothing_links_strictly(tiny_memory: KnowledgeBase) -> None:
    links = Focused(tiny_memory, Oracle(atlantiss=-0.1)).links([Question.read("where is atlantiss")])[0]

    assert {link.rung for link in links} == {Rung.FUZZY}
    assert {link.name for link in links} == {"Atlantis"}


@pytest.mark.parametrize("pruner", [Focused, FocusedK, FocusedIdf])
def test_questions_that_come_together_are_tagged_together(tiny_memory: KnowledgeBase, pruner: type[Focused]) -> None:
    questions = [QUESTION, Question.read("where is texas")]
    alone = [pruner(tiny_memory, Oracle(texas=-1.0, paris=-0.5)).links([question])[0] for question in questions]
    tagger = Counting(texas=-1.0, paris=-0.5)
    together = pruner(tiny_memory, tagger)

    links = together.links(questions)

    assert tagger.asked == [2]
    assert [list(map(str, own)) for own in links] == [list(map(str, own)) for own in alone]


class Crowd:
    """A knowledge base where the fuzzy names of a mention have many bearers, the later the more facts.

    `unlike` are mentions that no name resembles.
    """

    relations: tuple[str, ...] = ()
    relation_names: tuple[str | None, ...] = ()
    manifest = Manifest("", {}, (), (1, 2), {"forms": 9})

    def __init__(self, *bearers: list[int], unlike: Sequence[str] = ()) -> None:
        self.names = {f"name {place}": np.array(rows, dtype=np.uint32) for place, rows in enumerate(bearers)}
        self.unlike = unlike

    def similar(self, forms: Sequence[str]) -> list[list[SimilarName]]:
        similar = [SimilarName(name, 99.0 - at) for at, name in enumerate(self.names)]
        return [[] if form in self.unlike else similar for form in forms]

    def likely_runs(self, words: Sequence[str], lengths: frozenset[int]) -> list[tuple[int, int]]:
        return []

    def name_frequency(self, words: Sequence[str]) -> list[int]:
        return [1] * len(words)

    def lookup(self, forms: Sequence[str]) -> dict[str, list[NameMatch]]:
        return {form: [NameMatch(form, Form.NORMAL, self.names[form])] for form in forms if form in self.names}

    def fact_counts(self, entities: np.ndarray) -> np.ndarray:
        return entities.copy()


def test_focused_keeps_twenty_entities_of_the_nearest_names() -> None:
    kb = Crowd([7], [7, *range(100, 112)], list(range(200, 230)), [300])

    links = Focused(kb, Oracle(atlantiss=-0.1)).links([Question.read("where is atlantiss")])[0]  # type: ignore[arg-type]

    entities = [link.entities.tolist() for link in links]
    assert entities == [[7], list(range(100, 112)), list(range(223, 230))]
    assert {link.weight for link in links} == {-0.1}


def test_focused_k_keeps_five_of_the_names_like_its_first_choice() -> None:
    kb = Crowd(*[[row] for row in range(9)])

    links = FocusedK(kb, Oracle(atlantiss=-0.1, where=-0.2)).links([Question.read("where is atlantiss")])[0]  # type: ignore[arg-type]

    assert [link.entities.tolist() for link in links] == [[0], [1], [2], [3], [4]]
    assert mentions(links) == {"atlantiss"}


def test_focused_k_keeps_five_of_the_names_like_a_misspelt_mention() -> None:
    near = [f"Frankensti{letter}n" for letter in "acdfghk"]
    names = [("a", "Elm"), *((f"b{place}", name) for place, name in enumerate(near))]
    kb = MemoryKB([(entity, "writer", "c") for entity, _ in names], names)

    links = FocusedK(kb, Oracle(elm=-0.1)).links([Question.read("elm or frankenstien")])[0]

    assert links[0].name == "Elm"
    assert len({link.name for link in links} & set(near)) == 5


def test_focused_k_looks_no_second_choice_up_fuzzily() -> None:
    kb = Crowd([1], unlike=["atlantiss"])

    links = FocusedK(kb, Oracle(atlantiss=-0.1, where=-0.2)).links([Question.read("where is atlantiss")])[0]  # type: ignore[arg-type]

    assert links == []


@pytest.mark.parametrize(("unlike", "kept"), [("", {"a"}), ("ab", {"c"}), ("abc", {"d"}), ("abcd", set())])
def test_focused_kb_looks_four_choices_up_fuzzily(unlike: str, kept: set[str]) -> None:
    kb, oracle = Crowd([1], unlike=list(unlike)), Oracle(a=-0.1, b=-0.2, c=-0.3, d=-0.4, e=-0.5)

    links = FocusedKB(kb, oracle).links([Question.read("a b c d e")])[0]  # type: ignore[arg-type]

    assert mentions(links) == kept


def test_focused_k_keeps_three_mentions(tiny_memory: KnowledgeBase) -> None:
    oracle = Oracle(texas=-0.1, paris=-0.2, france=-0.3, atlantis=-0.4)

    links = FocusedK(tiny_memory, oracle).links([Question.read("is texas in france or paris or atlantis")])[0]

    assert mentions(links) == {"texas", "paris", "france"}


def test_focused_has_no_second_choice(tiny_memory: KnowledgeBase) -> None:
    links = Focused(tiny_memory, Oracle(**{"is texas in": -0.1}, texas=-0.5)).links([QUESTION])[0]

    assert "texas" not in mentions([link for link in links if link.rung < Rung.FUZZY])


def test_focused_kb_keeps_the_most_probable_that_links(tiny_memory: KnowledgeBase) -> None:
    links = FocusedKB(tiny_memory, Oracle(is_texas=-0.1, texas=-0.5, paris=-0.7)).links([QUESTION])[0]

    assert mentions(links) == {"texas"}


@pytest.mark.parametrize(("probable", "weight"), [(-2.0, -2.0), (-50.0, -8.5)])
def test_focused_k_weighs_a_misspelt_mention_no_less_than_the_margin_below_the_best(
    tiny_memory: KnowledgeBase, probable: float, weight: float
) -> None:
    oracle = Oracle(texas=-0.5, polland=probable)

    links = FocusedK(tiny_memory, oracle).links([Question.read("is texas near polland")])[0]

    assert {link.name: link.weight for link in links} == {"Texas": -0.5, "Poland": weight}


def test_focused_k_keeps_those_within_the_margin(tiny_memory: KnowledgeBase) -> None:
    oracle = Oracle(texas=-0.1, paris=-8.09, france=-8.11)

    links = FocusedK(tiny_memory, oracle).links([QUESTION])[0]

    assert mentions(links) == {"texas", "paris"}


@pytest.mark.parametrize("pruner", [Focused, FocusedKB, FocusedK])
@pytest.mark.parametrize("text", ["", "?", "!!!"])
def test_a_question_without_words_has_no_mention(tiny_memory: KnowledgeBase, pruner: type[Focused], text: str) -> None:
    assert pruner(tiny_memory, Oracle()).links([Question.read(text)])[0] == []


@pytest.mark.parametrize("pruner", [Focused, FocusedKB, FocusedK])
def test_a_question_of_five_thousand_words_is_read_from_its_start(
    tiny_memory: KnowledgeBase, pruner: type[Focused]
) -> None:
    question = Question.read("texas " + "and so on " * 2_000)

    assert mentions(pruner(tiny_memory, Oracle(texas=-0.1)).links([question])[0]) == {"texas"}


def test_the_gazetteer_marks_where_names_begin_and_end(tiny_memory: KnowledgeBase) -> None:
    bits = Gazetteer(tiny_memory).bits(Question.read("is paris, texas in david bowie"))

    assert bits.shape == (6, BITS)
    assert bits[:, 0].tolist() == [0, 1, 0, 0, 1, 0]
    assert bits[:, 1].tolist() == [0, 1, 1, 0, 1, 1]
    assert bits[:, 2].tolist() == [0, 0, 1, 0, 0, 1]
    assert bits[:, 3:].any(axis=1).sum() == 2


def test_focused_idf_weighs_the_links_of_n_gram_idf_by_the_tagger_too(tiny_memory: KnowledgeBase) -> None:
    rare = NGramIdf(tiny_memory).links([QUESTION])[0]

    links = FocusedIdf(tiny_memory, Oracle(texas=-1.0)).links([QUESTION])[0]

    probable = {"texas": -1.0}
    expected = [RARITY * link.weight + probable.get(link.ngram.form, IMPROBABLE) for link in rare]
    assert mentions(rare) == {"texas", "paris"}
    assert [link.weight for link in links] == pytest.approx(expected)
    assert [(one.ngram, one.name, one.rung) for one in links] == [(one.ngram, one.name, one.rung) for one in rare]


def test_focused_idf_takes_a_misspelt_mention_for_as_probable_as_can_be(tiny_memory: KnowledgeBase) -> None:
    misspelt = Question.read("is texxas in france or paris")

    links = FocusedIdf(tiny_memory, Oracle(paris=-0.1)).links([misspelt])[0]

    rare = {link.ngram.form: link.weight for link in NGramIdf(tiny_memory).links([misspelt])[0]}
    weights = {link.ngram.form: link.weight for link in links}
    assert weights["texxas"] == pytest.approx(RARITY * rare["texxas"])
    assert weights["paris"] == pytest.approx(RARITY * rare["paris"] - 0.1)


def test_focused_idf_links_words_beyond_what_a_tagger_reads(tiny_memory: KnowledgeBase) -> None:
    links = FocusedIdf(tiny_memory, Oracle(texas=-1.0)).links([Question.read("is it " * 60 + "texas")])[0]

    assert {link.weight <= IMPROBABLE for link in links if link.ngram.form == "texas"} == {True}


def test_the_weights_of_mentions_are_those_that_were_measured() -> None:
    assert (focused.RARITY, focused.IMPROBABLE, focused.MARGIN) == (0.5, -20.0, 8.0)
    assert (Focused.version, FocusedIdf.version) == (2, 2)
    assert (n_gram.PART_WEIGHT, n_gram.TEMPERATURE, n_gram.RELATION_WORD, n_gram.STOP_WORD) == (-2.0, 1.0, 0.5, 0.1)
