"""A comparison counts weights as queries do."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from evaluation import expected_accuracy

from kbtools.answering import Answerer
from kbtools.comparison.experiment import Request, compare
from kbtools.comparison.grid import Cell, Grid
from kbtools.questions import read_annotated
from kbtools.ranking.weights import WITH_SUBJECT, Weights, ranking_key

WEIGHTS = {
    "cold": Weights(relation=4.0, mention=0.2),
    "flat": Weights(relation=0.1, rung=0.0, similarity=3.0, popularity=0.0),
    "subject": replace(WITH_SUBJECT, subject=1.5, sharpness=2.0, alpha=3.0),
    "both": Weights(subject=0.5, sharpness=0.5, alpha=0.0, popularity=0.3),
}


@pytest.mark.parametrize("pruning", ["n-gram", "n-gram-idf"])
@pytest.mark.parametrize(
    ("weights", "subject"), [("cold", None), ("flat", None), ("subject", "fact-count"), ("both", "type-count")]
)
def test_chosen_weights_count_as_in_queries(
    sample_memory: Answerer, request_for: Callable[..., Request], weights: str, subject: str | None, pruning: str
) -> None:
    answerer = Answerer(sample_memory.kb)
    answerer.weights_by_key = {ranking_key(pruning=pruning, scorer="lexical", subject=subject): WEIGHTS[weights]}
    request = request_for(grid=Grid((pruning,)))
    gold = list(read_annotated(request.questions))

    run = compare(answerer, request)

    results = [answerer.query(one.text, pruning=pruning, subject=subject, top=None) for one in gold]
    outcomes = run.cells[Cell(pruning, "lexical", subject or "popularity")]
    assert outcomes["strict"].mean() == pytest.approx(expected_accuracy(results, gold))
    assert outcomes["tied"].tolist() == [one.tied for one in results]


def test_new_weights_join_the_cell_again(sample_memory: Answerer, request_for: Callable[..., Request]) -> None:
    answerer, cell = Answerer(sample_memory.kb), Cell("n-gram", "lexical", "popularity")
    before = compare(answerer, request_for(grid=Grid(("n-gram",)))).cells[cell].fingerprint
    answerer.weights_by_key = {ranking_key(pruning="n-gram", scorer="lexical", subject=None): WEIGHTS["flat"]}

    after = compare(answerer, request_for(grid=Grid(("n-gram",)))).cells[cell].fingerprint

    assert after != before


def test_namesakes_are_not_told_apart_without_a_subject_scorer(
    sample_memory: Answerer, request_for: Callable[..., Request], tmp_path: Path
) -> None:
    path = tmp_path / "springfield.txt"
    path.write_text(
        "m.0ftxc\tlocation.location.containedby\tm.03v0t\twhat is springfield contained by", encoding="utf-8"
    )

    run = compare(sample_memory, request_for(questions=path))

    outcomes = run.cells[Cell("n-gram-idf", "lexical", "none")]
    assert outcomes["tied"].tolist() == [2]
    assert outcomes["bound"].tolist() == [0.5]
