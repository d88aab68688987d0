"""A join over columns gives what a query gives, question by question."""

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from evaluation import expected_accuracy, pruning_figures

from kbtools.answering.answerer import Answerer
from kbtools.answering.questions import AnnotatedQuestion, read_annotated
from kbtools.answering.results import Candidate, Result
from kbtools.comparison.experiment import Request, compare
from kbtools.comparison.grid import Cell, Grid
from kbtools.comparison.run_folder import Run
from kbtools.indexers.folder.memory import MemoryKB
from kbtools.linking.links import Link
from kbtools.text.ngrams import Ngram
from kbtools.text.question import Question
from kbtools.text.rungs import Rung

SAME = ("strict", "object", "tied", "recalled", "subject_kept", "pool", "bound", "given_subject", "first", "last")
"""Outcomes that do not hang on the order of fuzzy links, which is a backend's own."""

NOBODY = np.empty(0, dtype=np.uint32)

PRUNERS = ["n-gram", "n-gram+", "n-gram-idf"]


@pytest.fixture(scope="module")
def gold(sample_questions: Path) -> list[AnnotatedQuestion]:
    return list(read_annotated(sample_questions))


@pytest.fixture(scope="module", params=PRUNERS)
def pruning(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module", params=["popularity", "type-count", "fact-count"])
def subject(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def results(sample_memory: Answerer, gold: list[AnnotatedQuestion], pruning: str, subject: str) -> list[Result]:
    """Answer with the whole pool, as `kbtools query` ranks it."""
    scorer = None if subject == "popularity" else subject
    return [sample_memory.query(one.text, pruning=pruning, subject=scorer, top=None) for one in gold]


@pytest.fixture(scope="module")
def outcomes(sample_run: Run, pruning: str, subject: str) -> dict[str, np.ndarray]:
    return dict(sample_run.cells[Cell(pruning, "lexical", subject)].arrays)


def is_gold(found: Candidate, one: AnnotatedQuestion) -> bool:
    return (found.subject, found.relation) == (one.subject, one.relation)


def tied(result: Result) -> tuple[Candidate, ...]:
    return result.candidates[: result.tied]


def test_accuracy_is_that_of_queries(
    outcomes: dict[str, np.ndarray], results: list[Result], gold: list[AnnotatedQuestion]
) -> None:
    assert outcomes["strict"].mean() == pytest.approx(expected_accuracy(results, gold))


def test_recall_and_pool_sizes_are_those_of_the_pruner(
    outcomes: dict[str, np.ndarray], sample_memory: Answerer, gold: list[AnnotatedQuestion], pruning: str
) -> None:
    figures = pruning_figures(sample_memory, gold, pruning=pruning)

    assert outcomes["recalled"].sum() == figures.recalled
    assert outcomes["pool"].mean() == pytest.approx(figures.mean_pool)


def test_ties_are_those_of_queries(outcomes: dict[str, np.ndarray], results: list[Result]) -> None:
    assert outcomes["tied"].tolist() == [result.tied for result in results]


def test_right_relations_are_counted_among_the_tied(
    outcomes: dict[str, np.ndarray], results: list[Result], gold: list[AnnotatedQuestion]
) -> None:
    expected = [
        sum(found.relation == one.relation for found in tied(result)) for result, one in zip(results, gold, strict=True)
    ]

    assert outcomes["right_relations"].tolist() == expected


def test_ties_are_broken_by_id_at_both_ends(
    outcomes: dict[str, np.ndarray], results: list[Result], gold: list[AnnotatedQuestion]
) -> None:
    pairs = list(zip(results, gold, strict=True))

    assert outcomes["first"].tolist() == [int(is_gold(tied(result)[0], one)) for result, one in pairs]
    assert outcomes["last"].tolist() == [int(is_gold(tied(result)[-1], one)) for result, one in pairs]


def link_confidence_in(answerer: Answerer, result: Result, candidates: Sequence[Candidate]) -> float:
    """The mean confidence in the links of some candidates, one by one."""
    question = Question.read(result.question)
    places = [
        Link(Ngram("", 0, 0, 0, 0), one.mention.start, one.mention.end, "", Rung[one.rung.upper()], NOBODY)
        for one in candidates
    ]
    return float(np.mean([answerer.link_confidence.of(question, [place])[0] for place in places]))


def test_confidence_is_the_share_of_the_winner_in_the_pool_times_the_confidence_in_its_link(
    outcomes: dict[str, np.ndarray], results: list[Result], sample_memory: Answerer
) -> None:
    expected = [
        link_confidence_in(sample_memory, result, tied(result))
        / math.fsum(math.exp(found.score - result.candidates[0].score) for found in result.candidates)
        for result in results
    ]

    assert outcomes["confidence"] == pytest.approx(expected, abs=1e-4)


def test_confidence_without_the_subject_is_that_of_the_others(
    outcomes: dict[str, np.ndarray], results: list[Result], gold: list[AnnotatedQuestion], sample_memory: Answerer
) -> None:
    expected = []
    for result, one in zip(results, gold, strict=True):
        others = [found for found in result.candidates if found.subject != one.subject]
        best = max((found.score for found in others), default=0.0)
        total = math.fsum(math.exp(found.score - best) for found in others)
        first = [found for found in others if found.score == best]
        expected.append(link_confidence_in(sample_memory, result, first) / total if others else 0.0)

    assert outcomes["confidence_without"] == pytest.approx(expected, abs=1e-4)


def test_an_object_counts_where_the_winners_lead_to_it(
    outcomes: dict[str, np.ndarray], results: list[Result], gold: list[AnnotatedQuestion], sample_memory: Answerer
) -> None:
    assert isinstance(sample_memory.kb, MemoryKB)
    facts = sample_memory.kb.facts
    expected = [
        np.mean([one.object in facts[found.subject][found.relation] for found in tied(result)])
        for result, one in zip(results, gold, strict=True)
    ]

    assert outcomes["object"] == pytest.approx(expected)


def test_the_bound_counts_the_namesakes_of_the_winners(outcomes: dict[str, np.ndarray], results: list[Result]) -> None:
    def alike(found: Candidate) -> tuple[object, ...]:
        mention = found.mention
        return (mention.start, mention.end, found.rung, found.parts["similarity"], found.relation)

    counts = [Counter(map(alike, result.candidates)) for result in results]
    expected = [
        np.mean([1 / count[alike(found)] for found in tied(result)])
        for result, count in zip(results, counts, strict=True)
    ]

    assert outcomes["bound"] == pytest.approx(expected)


def test_the_relation_given_the_subject_is_ranked_among_its_own(
    outcomes: dict[str, np.ndarray], results: list[Result], gold: list[AnnotatedQuestion]
) -> None:
    def given(result: Result, one: AnnotatedQuestion) -> float:
        own = {found.relation: found.parts["relation"] for found in result.candidates if found.subject == one.subject}
        best = [relation for relation, score in own.items() if score == max(own.values())]
        return (one.relation in best) / len(best) if best else 0.0

    expected = [given(result, one) for result, one in zip(results, gold, strict=True)]

    assert outcomes["given_subject"] == pytest.approx(expected)


def test_the_oracle_is_never_beaten_where_subjects_are_not_scored(sample_run: Run) -> None:
    cell = sample_run.cells[Cell("n-gram-idf", "lexical", "none")]

    assert (cell["strict"] <= cell["oracle"] + 1e-9).all()


def test_every_backend_gives_the_same_outcomes(
    sample: Answerer, sample_run: Run, sample_questions: Path, tmp_path: Path
) -> None:
    run = compare(sample, Request(sample_questions, tmp_path / "run", Grid(("n-gram", "n-gram+")), Path("sample.kb")))

    outcomes = {cell: [columns[name].tolist() for name in SAME] for cell, columns in run.cells.items()}
    assert outcomes == {cell: [columns[name].tolist() for name in SAME] for cell, columns in sample_run.cells.items()}
