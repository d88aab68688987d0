"""Whether the joint score is the paper's factorisation over the pool, and weights are chosen and kept."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kbtools.answering import Answerer
from kbtools.errors import ModelUnusable
from kbtools.kb.contract import KnowledgeBase
from kbtools.linking.candidates import Candidates, gather_candidates
from kbtools.linking.strict import link_strictly
from kbtools.questions import read_annotated
from kbtools.ranking.joint import DEFAULT, WITH_SUBJECT, Scored, Weights, joint_parts, score_pools
from kbtools.ranking.judging import choose_for, gather_pools, judge
from kbtools.ranking.ranking import rank
from kbtools.ranking.weights import FILE, Judged, accuracy, choose_weights, keep_weights, ranking_key, read_weights
from kbtools.scorers.counts import FactCount, TypeCount
from kbtools.scorers.lexical import LexicalScorer
from kbtools.text.question import MarkedQuestion, Question


class Known:
    """A subject scorer with one score for each entity row."""

    def __init__(self, scores: dict[int, float]) -> None:
        self.scores = scores

    def score(self, asked: Sequence[MarkedQuestion], *, which: np.ndarray, subjects: np.ndarray) -> np.ndarray:
        return np.array([self.scores[int(row)] for row in subjects])


QUESTION = Question.read("what is in the time zone of paris")


@pytest.fixture
def pool(tiny_memory: KnowledgeBase) -> Candidates:
    """Give a pool of two subjects: both are contained by something, one of them has a time zone as well."""
    return gather_candidates(tiny_memory, link_strictly(tiny_memory, QUESTION))


def scored(kb: KnowledgeBase, pool: Candidates, u: tuple[float, float]) -> Scored:
    subject = Known(dict(zip(pool.subjects.tolist(), u, strict=True)))
    (found,) = score_pools(kb, [QUESTION], [pool], scorer=LexicalScorer(kb.relations), subject=subject)
    return found


def test_a_subject_is_normalised_over_the_pool(tiny_memory: KnowledgeBase, pool: Candidates) -> None:
    found = scored(tiny_memory, pool, (math.log(3), 0.0))

    parts = joint_parts(found, replace(WITH_SUBJECT, alpha=0.0))

    first = pool.subject == 0
    assert np.exp(parts["subject"][first]) == pytest.approx(0.75)
    assert np.exp(parts["subject"][~first]) == pytest.approx(0.25)


def test_alpha_counts_only_in_the_normaliser(tiny_memory: KnowledgeBase, pool: Candidates) -> None:
    found = scored(tiny_memory, pool, (math.log(3), 0.0))
    relations = [tiny_memory.relations[row] for row in pool.relation]
    place = relations.index("location.time_zone")
    alone = [0.75, 0.25][pool.subject[place]]

    parts = joint_parts(found, replace(WITH_SUBJECT, alpha=math.log(2)))

    assert np.exp(parts["subject"][place]) == pytest.approx(2 * alone / (2 * alone + 1 - alone))


def test_temperature_and_weights_scale_their_parts(tiny_memory: KnowledgeBase, pool: Candidates) -> None:
    found = scored(tiny_memory, pool, (1.0, 0.0))
    whole, half = (joint_parts(found, replace(WITH_SUBJECT, subject=value)) for value in (1.0, 0.5))

    assert half["subject"] == pytest.approx(whole["subject"] / 2)
    flat = joint_parts(found, replace(WITH_SUBJECT, relation=0.0))["relation"]
    assert np.exp(flat) == pytest.approx(1 / len(np.unique(pool.relation)))


def test_many_pools_score_as_each_alone(sample_memory: Answerer, examples: Path) -> None:
    questions = list(read_annotated(examples / "sample.test.txt"))
    judged = judge(sample_memory, gather_pools(sample_memory, questions, pruning="n-gram"), scorer="lexical")

    asked = [Question.read(gold.text) for gold in questions]
    pruner = sample_memory.pruner("n-gram")
    pools = [gather_candidates(sample_memory.kb, pruner.links(question)) for question in asked]
    scorer = sample_memory.scorer("lexical")
    alone = [
        rank(sample_memory.kb, question, pool, scorer=scorer, top=None).scores
        for question, pool in zip(asked, pools, strict=True)
        if len(pool)
    ]
    together = [np.sum(list(joint_parts(one.scored, DEFAULT).values()), axis=0) for one in judged]
    assert all(np.allclose(one, other, atol=1e-5) for one, other in zip(alone, together, strict=True))


@pytest.mark.parametrize("control", [FactCount, TypeCount])
def test_a_control_prefers_what_is_counted_more(tiny_memory: KnowledgeBase, control: type) -> None:
    rows = [row for row in tiny_memory.rows(["m.01paris", "m.02paris"]) if row is not None]

    scores = control(tiny_memory).score([], which=np.zeros(2, dtype=np.int64), subjects=np.array(rows, dtype=np.uint32))

    assert scores[0] > scores[1]


def test_a_tie_counts_as_its_expected_value(tiny_memory: KnowledgeBase, pool: Candidates) -> None:
    found = scored(tiny_memory, pool, (0.0, 0.0))
    relation = list(tiny_memory.relations).index("location.containedby")
    judged = Judged(found, int(pool.subjects[0]), relation)
    flat = replace(WITH_SUBJECT, relation=0.0, alpha=0.0, rung=0.0)

    assert judged.expected(flat) == pytest.approx(1 / len(pool))
    assert accuracy([judged], flat, questions=2) == pytest.approx(0.5 / len(pool))


def test_chosen_weights_are_no_worse_and_are_used(sample_memory: Answerer, examples: Path, tmp_path: Path) -> None:
    answerer = Answerer(sample_memory.kb)
    told: dict[str, Any] = {"pruning": "n-gram", "scorer": "lexical", "subject": "fact-count"}

    chosen = choose_for(answerer, examples / "sample.valid.txt", models=tmp_path, **told)
    reopened = Answerer(sample_memory.kb, models=tmp_path)

    assert chosen.after >= chosen.before
    assert reopened.weights(**told) == chosen.weights
    assert reopened.weights(pruning="n-gram", scorer="lexical", subject=None) == DEFAULT


def test_a_subject_scorer_is_a_part_of_the_score(sample_memory: Answerer) -> None:
    result = sample_memory.query("who wrote it", subject="fact-count")

    assert all({"relation", "subject"} <= set(found.parts) for found in result.candidates)
    assert all("popularity" not in found.parts for found in result.candidates)


def test_nothing_reachable_keeps_the_defaults() -> None:
    assert choose_weights([], subject=False) == DEFAULT


def test_weights_are_kept_by_name(tmp_path: Path) -> None:
    keys = [ranking_key(pruning="n-gram", scorer=scorer, subject=None) for scorer in ("bigru", "ltg-cnn")]

    keep_weights(tmp_path, keys[0], Weights(mention=0.5))
    keep_weights(tmp_path, keys[1], Weights(mention=0.25))

    assert [read_weights(tmp_path)[key].mention for key in keys] == [0.5, 0.25]


def test_damaged_weights_are_named(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"?")

    with pytest.raises(ModelUnusable, match=r"ranking\.msgpack: damaged, or of another version"):
        read_weights(tmp_path)
