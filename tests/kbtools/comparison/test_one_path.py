"""Queries, comparisons, tuning and the fit of rankers take the steps of one opened system."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import kbtools
from kbtools.answering.answerer import Answerer
from kbtools.answering.questions import read_gold
from kbtools.comparison.system_training import train_ranker
from kbtools.comparison.weight_search import tune_weights
from kbtools.errors import BadArgument
from kbtools.ranking import opened_system
from kbtools.ranking.opened_system import OpenedSystem
from kbtools.ranking.system import System
from kbtools.ranking.weights import Weights
from tests.kbtools.ranking.test_learned import BY_WORDS

STEPS = ("gather", "evidence", "rate")
QUESTION = ("m.078ffw", "book.written_work.author", "m.042xh", "who wrote harry potter")


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Counter[tuple[int, str]]:
    """Count the steps that opened systems take, each system by its identity."""
    taken: Counter[tuple[int, str]] = Counter()

    def count(name: str) -> None:
        step = getattr(OpenedSystem, name)

        def counted(self: OpenedSystem, *arguments: Any, **options: Any) -> Any:
            taken[id(self), name] += 1
            return step(self, *arguments, **options)

        monkeypatch.setattr(OpenedSystem, name, counted)

    for name in STEPS:
        count(name)
    return taken


def test_a_cell_of_a_comparison_takes_the_steps_of_a_query(
    sample_memory: Answerer, sample_questions: Path, steps: Counter[tuple[int, str]]
) -> None:
    answerer = Answerer(sample_memory.kb)
    system = answerer.system(pruning="n-gram", scorer="lexical", subject="fact-count")
    opened = answerer.opened(system)

    answerer.query("who wrote dune", system=system, inverse=False)
    by_query = dict(steps)
    kbtools.compare(answerer, sample_questions, systems=[system])

    assert by_query == {(id(opened), name): 1 for name in STEPS}
    assert steps.keys() == by_query.keys()
    assert all(steps[step] > count for step, count in by_query.items())


def test_tuning_and_fitting_gather_and_score_as_a_query_does(
    sample_memory: Answerer, examples: Path, tmp_path: Path, steps: Counter[tuple[int, str]]
) -> None:
    answerer = Answerer(sample_memory.kb, models=tmp_path, trust_plugins=True)
    questions = read_gold(examples / "sample.valid.txt", answerer.kb)
    system = answerer.system(pruning="n-gram", scorer="lexical", subject="fact-count")

    tuned = tune_weights(answerer, questions, system).system
    train_ranker(answerer, questions, tuned, ranker=BY_WORDS)

    usual, fitted = id(answerer.opened(system)), id(answerer.opened(tuned))
    assert {step for step in steps if step[1] == "evidence"} == {(usual, "evidence"), (fitted, "evidence")}


def test_scores_and_pools_are_made_nowhere_else() -> None:
    room = Path(opened_system.__file__).parents[1]
    steps = ("gather_pool(", "score_relations(", "score_subjects(", "prune(")

    using = {
        path.stem
        for folder in ("answering", "tuning", "comparison", "ranking")
        for path in (room / folder).rglob("*.py")
        if any(step in line and not line.startswith("def ") for line in path.read_text().split("\n") for step in steps)
    }

    assert using == {"opened_system"}


def test_a_comparison_from_python_has_tables_pictures_and_a_calibrated_system(
    sample_memory: Answerer, examples: Path
) -> None:
    pytest.importorskip("pandas")
    systems = [sample_memory.system(pruning=pruning, scorer="lexical") for pruning in ("n-gram", "n-gram-idf")]
    files = examples / "sample.test.txt", examples / "sample.valid.txt"

    compared = kbtools.compare(sample_memory, files[0], systems=systems, valid=files[1], tune=True)

    frame = compared.to_frame()
    assert frame["pruning"].tolist() == ["n-gram", "n-gram-idf"]
    assert frame["accuracy"].max() == compared.report.best.figures["accuracy"].value
    assert compared.best.weighted(systems[0].weights) in systems
    assert "n = 36" in str(compared)
    calibrated = compared.calibrated()
    assert calibrated.calibration
    assert sample_memory.query("who wrote it", system=calibrated, abstain=0.0).confidence is not None
    with pytest.raises(BadArgument, match="name is one of recall"):
        compared.plot("nothing")


def test_rows_may_be_compared(sample_memory: Answerer) -> None:
    compared = kbtools.compare(sample_memory, [QUESTION], limit=1)

    assert compared.best == sample_memory.system()
    with pytest.raises(BadArgument, match="a question is subject, relation, object and text"):
        kbtools.compare(sample_memory, [QUESTION[:3]])


def test_two_systems_of_the_same_names_are_not_compared(sample_memory: Answerer) -> None:
    system = sample_memory.system()
    other = system.weighted(Weights(rung=0.7))

    with pytest.raises(BadArgument, match="whose parts have different names"):
        kbtools.compare(sample_memory, [QUESTION], systems=[system, other])


def test_a_system_is_a_value(sample_memory: Answerer) -> None:
    system = sample_memory.system(pruning="n-gram", scorer="lexical", subject="fact-count")

    assert system == Answerer(sample_memory.kb).system(pruning="n-gram", scorer="lexical", subject="fact-count")
    assert len({system, system.weighted(system.weights)}) == 1
    assert str(system) == "n-gram / lexical / fact-count / weighted-sum"
    assert isinstance(system, System)
