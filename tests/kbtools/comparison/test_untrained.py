"""What was trained is kept only where it is better than what needs no training, and the measure says so."""

from pathlib import Path

import numpy as np
import pytest

from kbtools.answering.answerer import Answerer, open_kb
from kbtools.answering.gold import GoldScores, find_gold, score_gold
from kbtools.answering.questions import AnnotatedQuestion, read_gold
from kbtools.comparison.untrained import measure_untrained
from kbtools.comparison.weight_search import choose_system
from kbtools.ranking import models


@pytest.fixture
def kb(sample_path: Path, monkeypatch: pytest.MonkeyPatch) -> Answerer:
    monkeypatch.setenv(models.VARIABLE, models.STATIC)
    return open_kb(sample_path)


@pytest.fixture
def valid(kb: Answerer, examples: Path) -> list[AnnotatedQuestion]:
    return read_gold(examples / "sample.valid.txt", kb.kb)


def test_a_training_that_learned_nothing_loses_to_the_head(kb: Answerer, valid: list[AnnotatedQuestion]) -> None:
    measured = measure_untrained(kb, np.zeros(len(valid)), learn=valid, valid=valid)

    assert measured.head is not None
    assert measured.head >= measured.untrained > 0
    assert measured.best == "head"
    assert "kbtools teach KB FILE" in "\n".join(measured.lines())
    assert "are too few for a choice" in "\n".join(measured.lines())


def test_a_training_that_is_right_is_kept(kb: Answerer, valid: list[AnnotatedQuestion]) -> None:
    measured = measure_untrained(kb, np.ones(len(valid)), learn=[], valid=valid)

    assert measured.best == "trained"
    assert measured.trained == 1
    assert "the untrained system answers" not in "\n".join(measured.lines())


def test_a_scorer_without_vectors_has_no_head(
    kb: Answerer, valid: list[AnnotatedQuestion], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(models.VARIABLE, models.LEXICAL)

    measured = measure_untrained(kb, np.zeros(len(valid)), learn=valid, valid=valid)

    assert measured.head is None
    assert measured.best == "untrained"


def test_weights_stay_where_their_gain_is_chance(kb: Answerer, valid: list[AnnotatedQuestion]) -> None:
    system = kb.system(pruning="n-gram", scorer="lexical")
    scores = score_gold(kb.opened(system), find_gold(kb.kb, valid[:3]))
    # All candidates are gold but those of the first question, whose gain may be chance.
    lucky = GoldScores(scores.evidence, np.ones_like(scores.gold))

    assert choose_system(system, lucky).weights == system.weights
