"""Outcomes, faults and choices are those of plain loops over single questions, whatever the scores are."""

import math
from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbtools.answering.answerer import Answerer
from kbtools.answering.gold import find_gold
from kbtools.answering.questions import AnnotatedQuestion
from kbtools.comparison import gold_pools
from kbtools.comparison.gold_pools import (
    GoldPools,
    ObjectCheck,
    find_linkable,
    find_outcomes,
    gather_gold_pools,
    mark_mentions,
)
from kbtools.comparison.untrained import Untrained
from kbtools.comparison.weight_search import GRID, choose_system, choose_weights
from kbtools.indexers.folder.memory import MemoryKB
from kbtools.kb.contract import ABSENT
from kbtools.pruning.pruners import word_places
from kbtools.ranking.rankers import WeightedSum
from kbtools.ranking.system import System
from kbtools.ranking.weights import DEFAULT, OF_SUBJECTS, WITH_SUBJECT, Weights
from kbtools.text.question import Question

few = settings(max_examples=60, deadline=None)

# Ids and relations whose order is not that of their rows; a name of three, an unnamed subject, an unstated fact.
FACTS = (
    *(("z", "year", "y1"), ("z", "author", "o1"), ("a", "author", "o1"), ("m", "year", "y1"), ("m", "author", "o2")),
    *(
        ("k", "author", "o2"),
        ("k", "area", "o3"),
        ("k", "year", "y3"),
        ("u", "year", "y1"),
        ("o1", "area", "o3"),
        ("o2", "area", "o3"),
        ("o2", "author", "o1"),
    ),
)
NAMES = (("z", "Moon"), ("a", "Moon"), ("m", "Moon"), ("k", "Kite"), ("o1", "Violet"), ("o2", "Moon Kite"))
ROWS = (
    *(
        ("z", "author", "o1", "who wrote moon"),
        ("m", "year", "y1", "when was moon or kite"),
        ("k", "year", "y9", "kite"),
    ),
    *(("a", "year", "y1", "when was moon"), ("u", "year", "y1", "when was it"), ("x", "year", "y1", "when was moon")),
    *(("k", "colour", "y1", "what colour has kite"), ("a", "author", "o1", "nothing"), ("k", "author", "o2", "moon")),
    *(
        ("o2", "area", "o3", "moon kite is where"),
        ("o1", "area", "o3", "where is violet"),
        ("u", "area", "o3", "where is it"),
        ("k", "area", "o3", "kite of moon"),
    ),
)
KB = MemoryKB(FACTS, NAMES)
GOLD = find_gold(KB, [AnnotatedQuestion(*row) for row in ROWS])
ANSWERER = Answerer(KB)
OPENED = ANSWERER.opened(ANSWERER.system(pruning="n-gram", scorer="lexical"))
RELATION_IDS = ["c", "b", "a"]
"""Ids of the relations whose order is not that of their rows."""


@cache
def gathered() -> GoldPools:
    return gather_gold_pools(OPENED, GOLD, progress=lambda done: None)


def draw(seed: int) -> list[int]:
    """Draw scores of all candidates, many of them equal."""
    return np.random.default_rng(seed).choice([-1_500_000, -400_000, 0], size=gathered().pools.pairs).tolist()


def plain_outcomes(scores: Sequence[int], relation: Sequence[int], question: int) -> dict[str, float]:
    """Find the outcomes of one question, of its candidates one by one."""
    gold, pools = GOLD.questions[question], gathered().pools
    own = np.flatnonzero(pools.question_of_pair == question).tolist()
    ids = {at: (KB.ids(pools.subject_of_pair[[at]])[0], KB.relations[pools.relation_of_pair[at]]) for at in own}
    links = {at: pools.link_of_pair[at] for at in own}
    how = {
        at: (
            pools.link_start[link],
            pools.link_end[link],
            pools.link_rung[link],
            pools.link_similarity[link],
            ids[at][1],
        )
        for at, link in links.items()
    }
    best = [at for at in own if scores[at] == max(scores[at] for at in own)]
    by_id = sorted(best, key=lambda at: (ids[at][0], RELATION_IDS[pools.relation_of_pair[at]]))
    right = [at for at in own if ids[at] == (gold.subject, gold.relation)]
    same = {at: [other for other in own if how[other] == how[at]] for at in own}
    subject = [at for at in own if ids[at][0] == gold.subject]
    leading = [at for at in subject if relation[at] == max(relation[at] for at in subject)]
    share = 1 / max(len(best), 1)
    others = [at for at in own if at not in subject]
    return {
        "strict": share * len(set(best) & set(right)),
        "first": float(by_id[:1] == right != []),
        "last": float(by_id[-1:] == right != []),
        "tied": len(best),
        "winner": by_id[0] if by_id else ABSENT,
        "object": share * sum((*ids[at], gold.object) in FACTS for at in best),
        "bound": share * sum(1 / len(same[at]) for at in best),
        "right_relations": sum(ids[at][1] == gold.relation for at in best),
        "recalled": len(right),
        "oracle": sum(1 / len(same[at]) for at in right),
        "subject_kept": float(bool(subject)),
        "subjects": len({ids[at][0] for at in own}),
        "pool": len(own),
        "given_subject": len(set(leading) & set(right)) / len(leading) if leading else 0.0,
        "confidence": plain_confidence(scores, own),
        "confidence_without": plain_confidence(scores, others),
    }


def plain_confidence(scores: Sequence[int], own: Sequence[int]) -> float:
    best = [at for at in own if scores[at] == max(scores[at] for at in own)]
    total = math.fsum(math.exp((scores[at] - scores[best[0]]) / 1e6) for at in own)
    return float(np.mean(gathered().pools.link_confidence[gathered().pools.link_of_pair[best]])) / total if own else 0.0


@given(seed=st.integers(0, 10_000))
@few
def test_outcomes_are_those_of_a_plain_loop_over_candidates(seed: int) -> None:
    scores, relation = draw(seed), draw(seed + 1)
    outcomes = find_outcomes(
        gathered(),
        GOLD,
        score=np.array(scores),
        relation=np.array(relation),
        objects=ObjectCheck(KB, gathered().pools, GOLD),
        relation_ids=RELATION_IDS,
    )

    expected = [plain_outcomes(scores, relation, question) for question in range(len(GOLD))]
    assert outcomes.keys() == expected[0].keys()
    for name, values in outcomes.items():
        assert values.tolist() == pytest.approx([own[name] for own in expected], abs=1e-9), name


def test_an_object_is_looked_up_once_for_all_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int]] = []
    objects_of = KB.objects_of
    monkeypatch.setattr(KB, "objects_of", lambda facts: asked.extend(facts) or objects_of(facts))  # type: ignore[func-returns-value]
    check, pairs = ObjectCheck(KB, gathered().pools, GOLD), np.arange(gathered().pools.pairs)

    alone = [check.check(pairs[at : at + 1])[at] for at in range(len(pairs))]
    once = len(asked)

    assert check.check(pairs).tolist() == alone
    assert len(asked) == once


class OneWord:
    """A tagger that marks the word at a place."""

    def __init__(self, place: int) -> None:
        self.place = place

    def spans(self, questions: Sequence[Question]) -> list[np.ndarray]:
        tables = [np.full((len(word_places(question)),) * 2, -9.0) for question in questions]
        for table in tables:
            table[self.place, self.place] = 0.0
        return tables


@pytest.mark.parametrize("together", [1, 5, 512])
@pytest.mark.parametrize("place", [0, -1])
def test_mentions_are_marked_question_by_question(monkeypatch: pytest.MonkeyPatch, together: int, place: int) -> None:
    monkeypatch.setattr(gold_pools, "_TAGGED_AT_ONCE", together)
    monkeypatch.setattr(gold_pools, "TOGETHER", together)
    done: list[int] = []
    named = [dict(NAMES).get(gold.subject, "?").lower() for gold in GOLD.questions]

    marks = mark_mentions(KB, OneWord(place), GOLD, done.append)

    known = [name in text.text for name, text in zip(named, GOLD.texts, strict=True)]
    assert marks["labelled"].tolist() == known
    assert marks["right"].tolist() == [
        one and text.text.split(" ")[place] == name for one, name, text in zip(known, named, GOLD.texts, strict=True)
    ]
    assert done == [min(at + together, len(GOLD)) for at in range(0, len(GOLD), together)]
    assert find_linkable(KB, GOLD).tolist() == known


# Choices


@given(st.fixed_dictionaries({name: st.sampled_from(values) for name, values in GRID.items()}))
def test_weights_that_count_for_themselves_are_all_found(best: dict[str, float]) -> None:
    def accuracy(weights: Weights) -> float:
        return -sum(abs(getattr(weights, name) - value) for name, value in best.items())

    without = {name: value for name, value in best.items() if name not in OF_SUBJECTS}
    assert choose_weights(accuracy, subject=True) == Weights(**best)
    assert choose_weights(accuracy, subject=False) == Weights(**without)


def test_weights_that_count_alike_are_left_and_tried_once() -> None:
    tried: list[Weights] = []

    chosen = choose_weights(lambda weights: tried.append(weights) or 0.5, subject=True)  # type: ignore[func-returns-value]

    assert chosen == WITH_SUBJECT
    assert len(tried) == 1 + sum(map(len, GRID.values()))


@pytest.mark.parametrize(("chain", "found"), [(2, True), (3, False)])
def test_a_second_round_finds_what_rests_on_a_later_weight_and_there_is_no_third(chain: int, found: bool) -> None:
    """Each weight counts only beside a weight that stands behind it in the grid."""
    best = {"popularity": 0.3, "similarity": 8.0, "rung": 0.4}
    names = list(best)[:chain]

    def accuracy(weights: Weights) -> float:
        hits = [getattr(weights, name) == best[name] for name in names]
        return float(sum(all(hits[: at + 1]) for at in range(chain)))

    assert (accuracy(choose_weights(accuracy, subject=True)) == chain) == found


def test_values_that_are_tried_ascend_and_hold_the_default() -> None:
    for name, values in GRID.items():
        assert list(values) == sorted(set(values))
        assert getattr(WITH_SUBJECT if name in OF_SUBJECTS else DEFAULT, name) in values


class Gained:
    """Questions of which some are right with the usual weights, and others with any other temperature."""

    def __init__(self, gains: Sequence[float]) -> None:
        self.gains = np.array(gains)

    def expected(self, scoring: WeightedSum) -> np.ndarray:
        return np.where(scoring.weights.relation == DEFAULT.relation, 1.0, 1.0 + self.gains)

    def accuracy(self, scoring: WeightedSum) -> float:
        return float(self.expected(scoring).mean())


@pytest.mark.parametrize(
    ("gains", "moved"),
    [
        pytest.param([1, 0, 0, 0], True, id="one of four"),
        pytest.param([1, 1, -1, 0], False, id="two won and one lost of four"),
        pytest.param([1] * 5 + [-1] + [0] * 6, True, id="five won and one lost of twelve"),
        pytest.param([0.5, 0.5, 0.5, -1] + [0] * 20, False, id="less than the standard error"),
        pytest.param([0, 0], False, id="nothing"),
    ],
)
def test_weights_move_where_the_gain_exceeds_its_standard_error(gains: list[float], moved: bool) -> None:
    system = System("n-gram", ("lexical",), "popularity", None, DEFAULT)

    chosen = choose_system(system, Gained(gains))  # type: ignore[arg-type]

    assert (chosen.weights != DEFAULT) == moved


@pytest.mark.parametrize(
    ("shares", "low", "best", "taught", "answers"),
    [
        ((0.5, 0.6, 0.7), 0.1, "head", True, True),
        ((0.5, 0.6, 0.6), 0.1, "head", False, True),
        ((0.5, 0.6, 0.4), 0.1, "untrained", False, True),
        ((0.5, 0.6, None), 0.1, "untrained", False, True),
        ((0.5, 0.6, 0.7), 0.0, "trained", True, False),
        ((0.8, 0.6, 0.7), -0.2, "trained", False, False),
    ],
)
@pytest.mark.parametrize(("questions", "scarce"), [(299, True), (300, False)])
def test_what_was_trained_gives_way_to_what_is_better_beyond_chance(
    shares: tuple[float, float, float | None],
    low: float,
    best: str,
    taught: bool,
    answers: bool,
    questions: int,
    scarce: bool,
) -> None:
    measured = Untrained(ANSWERER.system(), questions, *shares, low, 0.2)
    text = "\n".join(measured.lines())

    assert measured.best == best
    assert ("teach the training questions" in text, "untrained system answers" in text) == (taught, answers)
    assert ("too few for a choice" in text) == scarce
    assert f"ahead by {100 * low:+.1f} to +20.0 points" in text
