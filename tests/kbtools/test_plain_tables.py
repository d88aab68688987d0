"""Questions to a small table of one's own: ids in questions, parts of names, and cells that are empty."""

from pathlib import Path

import pytest

import kbtools
from kbtools.answering.answerer import Answerer
from kbtools.answering.explaining import verdict

HARBOUR = """Number,Title,Maker,Price,pH
S-01,Anchor of the Mary,Ida Holt,40,6.5
S-02,Red Hill,Rex Amin,,
0003,Blue Sea,Ida Holt,12,7.1
"""


@pytest.fixture(scope="module")
def harbour(tmp_path_factory: pytest.TempPathFactory) -> Answerer:
    folder: Path = tmp_path_factory.mktemp("harbour")
    (folder / "harbour.csv").write_text(HARBOUR)
    return kbtools.index(table=folder / "harbour.csv", out=folder / "harbour.kb")


@pytest.mark.parametrize(
    ("question", "answer"), [("who is the maker of S-02?", "Rex Amin"), ("what is the price of 0003", "12")]
)
def test_an_id_in_a_question_is_its_entity(harbour: Answerer, question: str, answer: str) -> None:
    assert [found.name for found in harbour.query(question).answers] == [answer]


def test_a_name_goes_before_an_id(harbour: Answerer) -> None:
    result = harbour.query("is S-02 the maker of blue sea")
    assert {candidate.subject for candidate in result.candidates} == {"0003"}


@pytest.mark.parametrize("question", ["where is the anchor", "where are the anchors"])
def test_names_with_a_word_of_the_question_are_suggested(harbour: Answerer, question: str) -> None:
    result = harbour.query(question)
    assert (result.candidates, result.suggestions) == ((), (kbtools.Named("S-01", "Anchor of the Mary"),))
    assert verdict(result).endswith("; did you mean Anchor of the Mary (S-01)?")


def test_a_question_of_no_word_of_a_name_suggests_nothing(harbour: Answerer) -> None:
    result = harbour.query("how many objects are there")
    assert (result.suggestions, "did you mean" in verdict(result)) == (None, False)


def test_a_relation_without_a_fact_of_the_entity_makes_other_answers_doubtful(harbour: Answerer) -> None:
    missing, there = harbour.query_many(["what is the price of red hill", "what is the price of blue sea"])
    assert missing.doubtful
    assert f"confidence {missing.confidence:.2f}, the question names a relation that" in verdict(missing)
    assert (there.doubtful, there.doubt, verdict(there)) == (False, None, f"confidence {there.confidence:.2f}")


def test_a_question_about_the_relation_that_wins_is_as_sure_as_before(harbour: Answerer) -> None:
    assert not harbour.query("who is the maker of red hill and its price").doubtful
