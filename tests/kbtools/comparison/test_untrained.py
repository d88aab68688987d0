"""What was trained is kept only where it is better than what needs no training, and the measure says so."""

from pathlib import Path

import numpy as np
import pytest

from kbtools.answering.answerer import Answerer, open_kb
from kbtools.answering.gold import GoldScores, find_gold, score_gold
from kbtools.answering.questions import AnnotatedQuestion, read_gold
from kbtools.answering.resampling import mean_interval
from kbtools.answering.teaching import expect
from kbtools.comparison import untrained
from kbtools.comparison.untrained import measure_untrained
from kbtools.comparison.weight_search import choose_system
from kbtools.ranking import models
from kbtools.ranking.taught import TaughtQuestion, read_taught


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


def test_the_better_of_both_is_compared_with_what_was_trained(
    kb: Answerer, valid: list[AnnotatedQuestion], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(untrained, "_MOST_LEARNED", 12)
    plain = expect(kb.opened(kb.system()), valid)
    taught = read_taught(kb.kb, [TaughtQuestion(gold.text, gold.subject, gold.relation) for gold in valid[:12]])
    head = expect(kb.open_system(kb.system(), taught), valid)
    trained = np.resize([0.0, 1.0], len(valid))

    measured = measure_untrained(kb, trained, learn=valid, valid=valid)

    assert measured.questions == len(valid)
    shares = measured.trained, measured.untrained, measured.head
    assert shares == (trained.mean(), plain.mean(), head.mean())
    best = max(plain, head, key=lambda right: right.mean())
    assert (measured.low, measured.high) == mean_interval(best - trained)
    assert (
        untrained.Untrained(kb.system(), 1, *shares, 0.1, 0.2)
        .lines()[0]
        .count(f"head of kbtools teach {head.mean():.1%}")
    )


def test_questions_that_teach_nothing_leave_the_head_as_it_was(kb: Answerer, valid: list[AnnotatedQuestion]) -> None:
    measured = measure_untrained(kb, np.zeros(len(valid)), learn=[], valid=valid)

    assert measured.head == measured.untrained


def test_ten_thousand_questions_are_learned() -> None:
    assert untrained._MOST_LEARNED == 10_000


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
