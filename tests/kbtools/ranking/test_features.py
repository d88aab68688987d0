"""Features of candidates, and the evidence that they are of, by plain loops over the candidates."""

import math
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kbtools.answering.answerer import Answerer
from kbtools.ranking.evidence import Evidence
from kbtools.ranking.features import find_features
from kbtools.ranking.opened_system import Ranking
from kbtools.ranking.pools import Pools, concatenate_pools
from kbtools.ranking.weights import Weights
from kbtools.text.question import Question

QUESTIONS = ("who wrote harry potter", "zzz", "where is springfield", "what films did stephen king write", "dune dune")
WEIGHTS = Weights(relation=0.7, subject=0.4, sharpness=0.5, alpha=0.3, mention=0.8, rung=0.25, similarity=0.9)


@pytest.fixture(scope="module")
def pools(sample_memory: Answerer) -> Pools:
    opened = sample_memory.opened(sample_memory.system(pruning="n-gram"))
    found = concatenate_pools(opened.gather([Question.read(text) for text in QUESTIONS]).pools)
    chance = np.random.default_rng(5)
    links = len(found.link_start)
    found.link_confidence[:] = chance.random(links)
    found.link_weight[:] = -chance.random(links)
    found.link_similarity[:] = 100 - 20 * chance.random(links)
    found.link_rung[:] = chance.integers(1, 8, links)
    return found


@pytest.fixture(scope="module")
def evidence(pools: Pools) -> Evidence:
    chance = np.random.default_rng(6)
    _, sizes = pools.v_of_mention
    v = {name: chance.normal(size=int(sizes.sum())) for name in ("a", "b")}
    return Evidence(
        pools, v, chance.normal(size=len(pools.subject)), beside={"c": chance.normal(size=int(sizes.sum()))}
    )


def questions_of(pools: Pools) -> Iterator[range]:
    """Yield the candidates of each question."""
    ends = np.cumsum(pools.counts["pair"]).tolist()
    yield from (range(start, end) for start, end in zip([0, *ends], ends, strict=False))


def v_by_pair(pools: Pools, v: NDArray[Any]) -> list[dict[int, float]]:
    """Return, for each candidate, v of its mention and every relation of its question's pool."""
    by_mention: list[dict[int, float]] = []
    values, first = iter(v.tolist()), 0
    for mentions, relations in zip(pools.counts["mention"].tolist(), pools.counts["relation"].tolist(), strict=True):
        for _ in range(mentions):
            by_mention += [{first + place: next(values) for place in range(relations)}]
        first += relations
    return [by_mention[pools.subject_mention[subject]] for subject in pools.pair_subject.tolist()]


def softmax(own: float, others: Sequence[float]) -> float:
    return own - math.log(sum(map(math.exp, others)))


def naive(evidence: Evidence) -> list[dict[str, float]]:
    """Return the features of each candidate."""
    pools, rows = evidence.pools, []
    pairs = list(zip(pools.pair_subject.tolist(), pools.pair_relation.tolist(), strict=True))
    link_of = [int(pools.subject_link[subject]) for subject, _ in pairs]
    mean = (evidence.v["a"] + evidence.v["b"]) / 2
    tables = {name: v_by_pair(pools, v) for name, v in {**evidence.v, **evidence.beside, "mean": mean}.items()}
    u = evidence.u.tolist()
    for own in questions_of(pools):
        subjects = {pairs[pair][0] for pair in own}
        for pair in own:
            subject, relation = pairs[pair]
            link = link_of[pair]
            row: dict[str, float] = {}
            for name, table in tables.items():
                values = [table[other][pairs[other][1]] for other in own]
                row[f"relation.{name}"] = table[pair][relation]
                row[f"relation.{name}.pool"] = softmax(table[pair][relation], list(table[pair].values()))
                row[f"relation.{name}.margin"] = table[pair][relation] - max(values)
                row[f"relation.{name}.subject"] = softmax(
                    table[pair][relation],
                    [table[other][pairs[other][1]] for other in own if pairs[other][0] == subject],
                )
            rivals = [other for other in own if link_of[other] == link and pairs[other][1] == relation]
            namesakes = [other for other in subjects if pools.subject_link[other] == link]
            able = {pairs[other][0] for other in own if pairs[other][1] == relation}
            row |= {
                "subject": u[subject],
                "subject.pool": subject_share(u, subject, subjects, able, Weights()),
                "subject.namesakes": u[subject] - max(u[other] for other in namesakes),
                "subject.rivals": u[subject] - max(u[pairs[other][0]] for other in rivals),
                "mention": float(pools.link_weight[link]),
                "rung": float(pools.link_rung[link]),
                "similarity": float(pools.link_similarity[link]),
                "unexplained": math.log(max(pools.link_confidence[link], 1e-6)),
                "namesakes": math.log(len(namesakes)),
                "namesakes.rivals": math.log(len(rivals)),
                "pool": math.log(len(own)),
            }
            facts = math.log1p(pools.subject_facts[subject])
            row["sum"] = (
                softmax(WEIGHTS.relation * tables["mean"][pair][relation],
                        [WEIGHTS.relation * value for value in tables["mean"][pair].values()])
                + WEIGHTS.mention * row["mention"]
                + WEIGHTS.rung * (1 - row["rung"])
                + WEIGHTS.similarity * math.log(row["similarity"] / 100)
                + WEIGHTS.subject * subject_share(u, subject, subjects, able, WEIGHTS)
                + WEIGHTS.popularity * facts / (1 + facts)
            )  # fmt: skip
            rows.append(row)
        for pair in own:
            rows[pair]["sum.margin"] = rows[pair]["sum"] - max(rows[other]["sum"] for other in own)
    return rows


def subject_share(u: Sequence[float], subject: int, subjects: set[int], able: set[int], weights: Weights) -> float:
    """Return log p(s|q, r): u against that of all subjects, those without the relation weighed by alpha."""
    scaled = {other: weights.sharpness * u[other] for other in subjects}
    has = sum(math.exp(scaled[other] + weights.alpha) for other in subjects if other in able)
    lacks = sum(math.exp(scaled[other]) for other in subjects if other not in able)
    return scaled[subject] + weights.alpha - math.log(has + lacks)


def test_features_are_those_of_a_plain_loop(evidence: Evidence) -> None:
    features = find_features(evidence, WEIGHTS)

    expected = naive(evidence)
    assert set(features.names) == set(expected[0])
    assert features.counts.tolist() == evidence.pools.counts["pair"].tolist()
    for place, name in enumerate(features.names):
        assert features.values[:, place] == pytest.approx([row[name] for row in expected], abs=1e-9), name


def test_the_features_of_some_questions_are_a_part_of_those_of_all(evidence: Evidence) -> None:
    marked = np.array([True, False, False, True, True])

    taken = find_features(evidence, WEIGHTS).of(marked)
    alone = find_features(evidence.of(marked), WEIGHTS)

    assert taken.counts.tolist() == alone.counts.tolist()
    assert taken.names == alone.names
    assert taken.values == pytest.approx(alone.values)


def test_scorers_that_are_put_off_are_left_out_of_the_mean(evidence: Evidence) -> None:
    later = evidence.deferring(["b", "d"])

    assert list(later.v) == ["a"]
    assert list(later.later) == ["b"]
    assert later.mean.tolist() == evidence.v["a"].tolist()
    assert evidence.deferring(["d"]) is evidence
    mentions = np.arange(len(evidence.pools.mention_start)) % 2 == 0
    sizes = np.repeat(mentions, evidence.pools.v_of_mention[1])
    assert later.later["b"](mentions).tolist() == evidence.v["b"][sizes].tolist()


def test_candidates_level_with_the_first_differ_by_rounding_alone(pools: Pools) -> None:
    steps = np.array([0, 10, 11, 2_000], dtype=np.float64) / 1e6
    scores = np.concatenate([-1 - steps, np.full(pools.pairs - len(steps), -9.0)])
    ranking = Ranking(Question.read(QUESTIONS[0]), [], pools, {}, scores, [0, 1], tied=1, level=2)

    assert ranking.all_level == ranking.likeliest == ranking.pairs([0, 1])


@pytest.mark.parametrize(("weight", "counts"), [(1e6, True), (-1e6, True), (1.1e6, False), (math.nan, False)])
def test_a_weight_is_a_number_up_to_a_million(weight: float, counts: bool) -> None:
    with nullcontext() if counts else pytest.raises(ValueError, match="the weight rung is a number from"):
        assert Weights(rung=weight).rung == weight
