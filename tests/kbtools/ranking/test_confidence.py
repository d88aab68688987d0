"""Confidence in the first candidate of each pool, and its calibration, by plain loops."""

import math
from itertools import pairwise
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbtools.answering.answerer import Answerer
from kbtools.indexers.folder.memory import MemoryKB
from kbtools.linking.strict import link_strictly
from kbtools.ranking import score
from kbtools.ranking.cascade import CascadeScoring
from kbtools.ranking.confidence import Calibration, fit_calibration, winner_confidence
from kbtools.ranking.evidence import Evidence
from kbtools.ranking.pools import Pools, gather_pool
from kbtools.ranking.rankers import Rating, _Stage
from kbtools.ranking.score import AT_ONCE, MICRO
from kbtools.text.question import Question

TEXTS = ["who wrote it", "no name here", "harry potter poter character created by", "where is springfield"]


@pytest.fixture(scope="module")
def pools(sample_memory: Answerer) -> Pools:
    opened = sample_memory.opened(sample_memory.system(scorer="lexical"))
    together = opened.gather_pools([*map(Question.read, TEXTS)])
    assert len(set(together.link_confidence.tolist())) > 1
    return together


@pytest.mark.parametrize("of_links", [True, False])
@pytest.mark.parametrize("share", [1.0, 0.6, 0.0], ids=["all", "some", "none"])
@pytest.mark.parametrize("levels", [2, 9], ids=["ties", "few ties"])
def test_confidence_is_the_winners_share_times_that_in_its_link(
    pools: Pools, of_links: bool, share: float, levels: int
) -> None:
    chance = np.random.default_rng(5)
    scores = chance.integers(-levels, 0, pools.pairs) * (MICRO // 4)
    among = chance.random(pools.pairs) < share
    expected = []
    for question in range(len(pools)):
        own = [pair for pair in range(pools.pairs) if pools.question_of_pair[pair] == question and among[pair]]
        best = [pair for pair in own if scores[pair] == max(scores[own])]
        links = [pools.link_confidence[pools.link_of_pair[pair]] if of_links else 1.0 for pair in best]
        total = sum(math.exp((int(scores[pair]) - int(scores[best[0]])) / MICRO) for pair in own)
        expected.append(sum(links) / len(best) / total if own else 0.0)

    confidence = winner_confidence(pools, scores, of_links=of_links, among=None if share == 1 else among)

    assert confidence.tolist() == pytest.approx(expected)
    assert confidence[TEXTS.index("no name here")] == 0


ANSWERS = st.lists(st.tuples(st.sampled_from([0.0, 0.1, 0.2, 0.5, 0.7, 1.0]), st.booleans()), max_size=12)


def steps_of(answers: list[tuple[float, bool]]) -> list[tuple[float, float]]:
    """Merge steps that do not rise, from the left, again and again."""
    steps = [
        [answer for answer in answers if answer[0] == level] for level in sorted({one for one, _ in answers if one})
    ]
    while falls := [at for at, (one, other) in enumerate(pairwise(map(share, steps))) if one >= other]:
        steps[falls[0] : falls[0] + 2] = [steps[falls[0]] + steps[falls[0] + 1]]
    return [(sum(level for level, _ in step) / len(step), share(step)) for step in steps]


def share(step: list[tuple[float, bool]]) -> float:
    return sum(right for _, right in step) / len(step)


@given(ANSWERS)
def test_a_calibration_is_the_ascending_share_of_right_answers(answers: list[tuple[float, bool]]) -> None:
    fitted = fit_calibration(
        np.array([level for level, _ in answers]), np.array([float(right) for _, right in answers])
    )

    expected = steps_of(answers) or [(0.0, 0.0), (1.0, 0.0)]
    assert list(zip(fitted.confidence, fitted.correct, strict=True)) == [pytest.approx(step) for step in expected]


def test_a_calibration_is_linear_between_its_points_and_level_beyond() -> None:
    calibrated = Calibration((0.2, 0.6), (0.1, 0.9)).apply(np.array([0.0, 0.1, 0.2, 0.4, 0.6, 0.8]))

    assert calibrated.tolist() == pytest.approx([0.0, 0.1, 0.1, 0.5, 0.9, 0.9])


@pytest.mark.parametrize(
    ("late", "calibrated"), [(None, [0.1, 0.3]), ([False, True], [0.1, 0.6]), ([True, False], [0.2, 0.3])]
)
def test_each_question_is_calibrated_by_the_stage_that_ranked_it(late: Any, calibrated: list[float]) -> None:
    stages = (_Stage(("one",), Calibration((0.0, 1.0), (0.0, 0.5))), _Stage(("one", "two")))
    marks = None if late is None else np.array(late)
    rating = Rating(np.zeros(2, dtype=np.int64), lambda pairs: {}, stages, marks)

    assert rating.calibrate(np.array([0.2, 0.6])).tolist() == pytest.approx(calibrated)
    assert [rating.stage_of(at).scorers for at in (0, 1)] == [
        ("one", "two") if late and late[at] else ("one",) for at in (0, 1)
    ]


@pytest.mark.parametrize(
    ("learned", "threshold", "late"), [(True, 0.6, True), (True, 0.5, False), (False, 0.6, False), (False, 1.0, False)]
)
def test_a_learned_ranker_doubts_namesakes_and_a_share_at_the_threshold_is_enough(
    learned: bool, threshold: float, late: bool
) -> None:
    kb = MemoryKB([("a", "pilot", "p"), ("b", "pilot", "q")], [("a", "Kite"), ("b", "Kite")])
    pools = gather_pool(kb, link_strictly(kb, Question.read("kite")))
    system = Mock(
        ranker=Mock() if learned else None, cascade=Mock(threshold=threshold, margin=2.0), deferred=(), scorers=("one",)
    )
    first = Mock(rate=lambda evidence: Rating(np.zeros(2, dtype=np.int64), lambda pairs: {}, (_Stage(("one",)),)))
    last = Mock(rate=lambda evidence: Rating(np.ones(2, dtype=np.int64), lambda pairs: {}, (_Stage(("two",)),)))

    rating = CascadeScoring(system, first, lambda: last).rate(Evidence(pools, {"one": np.zeros(1)}))

    assert (rating.late is not None and rating.late.tolist(), rating.scores.tolist()) == ([late], [int(late)] * 2)
    assert rating.stage_of(0).scorers == (("two",) if late else ("one",))


def test_mentions_are_scored_in_calls_of_bounded_size(sample_memory: Answerer, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = sample_memory.opened(sample_memory.system(scorer="lexical"))
    questions = [*map(Question.read, TEXTS)] * 2
    pools = opened.gather_pools(questions)
    mentions: list[int] = pools.counts["mention"].tolist()
    sizes: list[int] = []
    done: list[int] = []

    class Sized:
        def score(self, marked: Any) -> np.ndarray[Any, Any]:
            sizes.append(len(marked))
            return np.zeros((len(marked), len(sample_memory.kb.relations)))

    monkeypatch.setattr(score, "AT_ONCE", 4)
    score.score_relations(sample_memory.kb, pools, questions, Sized(), done.append)

    assert (AT_ONCE, sum(sizes)) == (1_024, sum(mentions))
    assert all(size <= max(4, *mentions) for size in sizes)
    assert len(sizes) > 1
    assert done == sorted(done)
    assert done[-1] == len(questions)
