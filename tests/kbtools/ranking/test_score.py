"""The joint score is the paper's factorisation over the pool; weights are chosen and kept."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbtools.answering.answerer import Answerer
from kbtools.answering.gold import GoldScores, find_gold, score_gold
from kbtools.answering.questions import read_annotated
from kbtools.comparison.weight_search import choose_weights, tune_weights
from kbtools.errors import ModelUnusable
from kbtools.kb.contract import KnowledgeBase
from kbtools.linking.strict import link_strictly
from kbtools.ranking.evidence import Evidence
from kbtools.ranking.pools import Pools, concatenate_pools, distinct, gather_pool, order_links
from kbtools.ranking.rankers import WeightedSum
from kbtools.ranking.score import add_parts, no_constant, score_parts, score_relations, score_subjects
from kbtools.ranking.system import System
from kbtools.ranking.trained import FILE, TrainedSystems, read_systems
from kbtools.ranking.weights import DEFAULT, WITH_SUBJECT, Weights
from kbtools.scorers.relations.lexical import LexicalScorer
from kbtools.scorers.relations.static import StaticScorer
from kbtools.scorers.subjects.subject import FactCount, TypeCount
from kbtools.text.question import MarkedQuestion, Question


class Known:
    """A subject scorer with one score for each entity row."""

    def __init__(self, scores: dict[int, float]) -> None:
        self.scores = scores

    def score(self, questions: Sequence[MarkedQuestion], *, which: np.ndarray, subjects: np.ndarray) -> np.ndarray:
        return np.array([self.scores[int(row)] for row in subjects])


QUESTION = Question.read("what is in the time zone of paris")


@pytest.fixture
def pool(tiny_memory: KnowledgeBase) -> Pools:
    """Give a pool of two subjects: both are contained by something, one of them has a time zone as well."""
    return gather_pool(tiny_memory, order_links(link_strictly(tiny_memory, QUESTION)))


def parts_of(
    kb: KnowledgeBase, pool: Pools, u: tuple[float, float], weights: Weights = WITH_SUBJECT
) -> dict[str, np.ndarray]:
    """Score a pool with u of its two subjects."""
    subject = Known(dict(zip(pool.subject.tolist(), u, strict=True)))
    v = score_relations(kb, pool, [QUESTION], LexicalScorer(kb.relations))
    return score_parts(pool, weights, v=v, u=score_subjects(pool, [QUESTION], subject))


def parts_alone(
    kb: KnowledgeBase, question: Question, pool: Pools, *, scorer: Any, subject: Any = None
) -> dict[str, np.ndarray]:
    """Score one pool; none of its parts has a value where it has no candidate."""
    if not pool.pairs:
        return {}
    u = score_subjects(pool, [question], subject) if subject else None
    return score_parts(pool, DEFAULT, v=score_relations(kb, pool, [question], scorer), u=u)


def test_a_subject_is_normalised_over_the_pool(tiny_memory: KnowledgeBase, pool: Pools) -> None:
    parts = parts_of(tiny_memory, pool, (math.log(3), 0.0), replace(WITH_SUBJECT, alpha=0.0))

    first = pool.pair_subject == 0
    assert np.exp(parts["subject"][first]) == pytest.approx(0.75)
    assert np.exp(parts["subject"][~first]) == pytest.approx(0.25)


def test_alpha_counts_only_in_the_normaliser(tiny_memory: KnowledgeBase, pool: Pools) -> None:
    relations = [tiny_memory.relations[row] for row in pool.relation_of_pair]
    place = relations.index("location.time_zone")
    alone = [0.75, 0.25][pool.pair_subject[place]]

    parts = parts_of(tiny_memory, pool, (math.log(3), 0.0), replace(WITH_SUBJECT, alpha=math.log(2)))

    assert np.exp(parts["subject"][place]) == pytest.approx(2 * alone / (2 * alone + 1 - alone))


def test_temperature_and_weights_scale_their_parts(tiny_memory: KnowledgeBase, pool: Pools) -> None:
    whole, half = (
        parts_of(tiny_memory, pool, (1.0, 0.0), replace(WITH_SUBJECT, subject=value))["subject"] for value in (1.0, 0.5)
    )
    flat = parts_of(tiny_memory, pool, (1.0, 0.0), replace(WITH_SUBJECT, relation=0.0))["relation"]

    sharp = parts_of(tiny_memory, pool, (0.5, 0.0), replace(WITH_SUBJECT, sharpness=2.0))["subject"]

    assert half == pytest.approx(whole / 2)
    assert sharp == pytest.approx(whole)
    assert np.exp(flat) == pytest.approx(1 / len(np.unique(pool.relation)))


def test_a_rung_costs_nothing_but_for_its_distance_from_the_strictest(tiny_memory: KnowledgeBase, pool: Pools) -> None:
    rungs = pool.link_rung[pool.link_of_pair]

    parts = parts_of(tiny_memory, pool, (0.0, 0.0))

    assert parts["rung"] == pytest.approx(WITH_SUBJECT.rung * (1 - rungs))


def test_the_default_weights_are_those_that_were_chosen() -> None:
    assert Weights(1.0, 1.0, 1.0, 1.0, mention=1.0, rung=0.2, similarity=1.0, popularity=0.15) == DEFAULT
    assert replace(DEFAULT, popularity=0.0) == WITH_SUBJECT


def test_without_a_subject_scorer_popularity_is_shown_also_where_it_counts_nothing(
    tiny_memory: KnowledgeBase, pool: Pools
) -> None:
    v = score_relations(tiny_memory, pool, [QUESTION], LexicalScorer(tiny_memory.relations))

    assert score_parts(pool, replace(DEFAULT, popularity=0.0), v=v)["popularity"].tolist() == [0.0] * pool.pairs


def test_the_weighted_sum_counts_differences_of_scores_alone(tiny_memory: KnowledgeBase, pool: Pools) -> None:
    scorer = LexicalScorer(tiny_memory.relations)
    v = score_relations(tiny_memory, pool, [QUESTION], scorer)
    shifted = score_relations(tiny_memory, pool, [QUESTION], scorer, constant=no_constant)

    assert shifted != pytest.approx(v)
    assert (
        add_parts(score_parts(pool, DEFAULT, v=shifted)).tolist() == add_parts(score_parts(pool, DEFAULT, v=v)).tolist()
    )


def test_a_question_alone_is_scored_as_among_others(tiny_memory: KnowledgeBase, pool: Pools) -> None:
    scorer = StaticScorer(tiny_memory.relations)

    alone = score_relations(tiny_memory, pool, [QUESTION], scorer, constant=no_constant)
    both = score_relations(tiny_memory, concatenate_pools([pool, pool]), [QUESTION] * 2, scorer, constant=no_constant)

    assert np.tile(alone, 2) == pytest.approx(both, abs=1e-5)
    assert len(set(alone.round(3))) > 1


def test_several_scorers_count_as_the_mean_of_their_log_probabilities(tiny_memory: KnowledgeBase, pool: Pools) -> None:
    one, other = np.linspace(-3, 0, len(pool.mention_start) * len(pool.relation)), np.zeros(1)

    evidence = Evidence(pool, {"one": one, "other": other.repeat(len(one))})

    assert evidence.mean.tolist() == pytest.approx((one / 2).tolist())


def test_scores_that_differ_by_a_millionth_do_not_tie() -> None:
    scores = {"relation": np.array([-1.0, -1.0, -1.0]), "rung": np.array([0.0, -1e-6, -1e-8])}

    assert add_parts(scores).tolist() == [-1_000_000, -1_000_001, -1_000_000]


@pytest.mark.parametrize("pruning", ["n-gram", "n-gram+", "n-gram-idf"])
@pytest.mark.parametrize("subject", [None, "fact-count"])
def test_many_pools_score_as_each_alone(
    sample_memory: Answerer, examples: Path, pruning: str, subject: str | None
) -> None:
    questions = list(read_annotated(examples / "sample.test.txt"))
    texts = [Question.read(gold.text) for gold in questions]
    scorer = sample_memory.scorer("lexical")
    by = sample_memory.parts.subject_scorer(subject) if subject else None
    opened = sample_memory.opened(sample_memory.system(pruning=pruning, scorer="lexical", subject=subject))
    pools = opened.gather(texts).pools
    alone = [
        parts_alone(sample_memory.kb, question, pool, scorer=scorer, subject=by)
        for question, pool in zip(texts, pools, strict=True)
    ]

    evidence = score_gold(opened, find_gold(sample_memory.kb, questions)).evidence
    together = score_parts(evidence.pools, DEFAULT, v=evidence.mean, u=evidence.u)

    for part, values in together.items():
        expected = np.concatenate([parts[part] for parts in alone if parts])
        assert np.allclose(values, expected, rtol=0, atol=1e-12)


def test_a_question_that_links_to_no_fact_does_not_shift_the_others(sample_memory: Answerer) -> None:
    texts = [Question.read(text) for text in ("who wrote it", "atlantis", "zzz", "where is springfield", "atlantis")]
    pools = sample_memory.opened(sample_memory.system(pruning="n-gram")).gather(texts).pools
    scorer = sample_memory.scorer("lexical")

    together = concatenate_pools(pools)
    v = score_relations(sample_memory.kb, together, texts, scorer)
    parts = score_parts(together, DEFAULT, v=v)

    alone = [
        parts_alone(sample_memory.kb, question, pool, scorer=scorer).get("relation", np.empty(0))
        for question, pool in zip(texts, pools, strict=True)
    ]
    assert [pool.pairs for pool in pools][1] == 0
    assert parts["relation"].tolist() == pytest.approx(np.concatenate(alone).tolist())


@given(st.lists(st.integers(0, 9)))
def test_distinct_rows_are_those_of_numpy(values: list[int]) -> None:
    rows = np.array(values, dtype=np.uint32)

    expected = np.unique(rows, return_index=True)

    assert [own.tolist() for own in distinct(rows)] == [one.tolist() for one in expected]


@pytest.mark.parametrize("control", [FactCount, TypeCount])
def test_a_control_prefers_what_is_counted_more(tiny_memory: KnowledgeBase, control: type) -> None:
    rows = [row for row in tiny_memory.rows(["m.01paris", "m.02paris"]) if row is not None]

    scores = control(tiny_memory).score([], which=np.zeros(2, dtype=np.int64), subjects=np.array(rows, dtype=np.uint32))

    assert scores[0] > scores[1]


def test_a_tie_counts_as_its_expected_value(tiny_memory: KnowledgeBase, pool: Pools) -> None:
    two = concatenate_pools([pool, gather_pool(tiny_memory, [])])
    v = score_relations(tiny_memory, two, [QUESTION, QUESTION], LexicalScorer(tiny_memory.relations))
    gold = np.arange(two.pairs) == 0
    flat = replace(WITH_SUBJECT, relation=0.0, alpha=0.0, rung=0.0)

    scores = GoldScores(Evidence(two, {"lexical": v}, np.zeros(len(two.subject))), gold)

    assert scores.expected(WeightedSum(flat)).tolist() == pytest.approx([1 / pool.pairs, 0.0])


def test_chosen_weights_are_no_worse_and_are_used(sample_memory: Answerer, examples: Path, tmp_path: Path) -> None:
    answerer = Answerer(sample_memory.kb, models=tmp_path)
    query: dict[str, Any] = {"pruning": "n-gram", "scorer": "lexical", "subject": "fact-count"}
    questions = list(read_annotated(examples / "sample.valid.txt"))

    tuned = tune_weights(answerer, questions, answerer.system(**query))
    reopened = Answerer(sample_memory.kb, models=tmp_path)

    assert tuned.after >= tuned.before
    assert reopened.system(**query) == answerer.system(**query) == tuned.system
    assert reopened.system(pruning="n-gram", scorer="lexical").weights == DEFAULT


def test_a_subject_scorer_is_a_part_of_the_score(sample_memory: Answerer) -> None:
    result = sample_memory.query("who wrote it", subject="fact-count")

    assert all({"relation", "subject"} <= set(found.parts) for found in result.candidates)
    assert all("popularity" not in found.parts for found in result.candidates)


def test_nothing_reachable_keeps_the_defaults() -> None:
    assert choose_weights(lambda weights: 0.0, subject=False) == DEFAULT


def test_weights_are_climbed_again_once_others_have_changed() -> None:
    def accuracy(weights: Weights) -> float:
        popular = weights.popularity == 0.3
        return 0.4 * popular + 0.3 * (popular and weights.relation == 0.6) + 0.2 * (weights.sharpness == 8.0)

    assert choose_weights(accuracy, subject=False) == replace(DEFAULT, popularity=0.3, relation=0.6)
    assert choose_weights(accuracy, subject=True) == replace(WITH_SUBJECT, popularity=0.3, relation=0.6, sharpness=8.0)


def test_weights_are_kept_by_name(tmp_path: Path) -> None:
    one = System("n-gram", ("bigru",), "popularity", None, Weights(mention=0.5))
    other = replace(one, scorers=("ltg-cnn",), weights=Weights(mention=0.25))

    TrainedSystems(tmp_path).keep(one)
    TrainedSystems(tmp_path).keep(other)

    assert [read_systems(tmp_path).weighted(system) for system in (one, other)] == [one, other]


def test_damaged_weights_are_named(tmp_path: Path) -> None:
    TrainedSystems(tmp_path).write()
    (tmp_path / FILE).write_bytes(b"?")

    with pytest.raises(
        ModelUnusable,
        match=r"systems\.msgpack: damaged, or of another version; delete it, then run kbtools train ranking",
    ):
        read_systems(tmp_path)
