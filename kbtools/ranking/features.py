"""Features of candidates that a learned ranker reads; beyond the paper.

No feature depends on how entities entered the knowledge base, such as their number of facts or types. The first word of
a feature's name is its part of the score.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbtools.ranking.evidence import Evidence
from kbtools.ranking.pools import Pools
from kbtools.ranking.score import places_of_v, relation_part, score_parts, subject_part
from kbtools.ranking.weights import Weights

VERSION = 1
"""Rises when a feature is added, removed or computed differently; rankers of other versions are refused."""

_LEAST_CONFIDENCE = 1e-6
"""Lowest link confidence that features distinguish, reached with seventeen words beside a mention."""

_Column = tuple[str, NDArray[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class Features:
    """Features of the candidates of some questions, whose pools are concatenated.

    names (features,); values (pairs, features); counts, the number of candidates of each question: (questions,).
    """

    names: tuple[str, ...]
    values: NDArray[np.float64]
    counts: NDArray[np.int64]

    def of(self, questions: NDArray[np.bool_]) -> "Features":
        """Return the features of the marked questions: (questions,)."""
        return Features(self.names, self.values[np.repeat(questions, self.counts)], self.counts[questions])


def find_features(evidence: Evidence, weights: Weights) -> Features:
    """Return the features of every candidate, among them the weighted sum with these weights."""
    columns = dict(
        [*_weighted_columns(evidence, weights), *_relation_columns(evidence), *_subject_columns(evidence)]
    ) | dict(_link_columns(evidence.pools))
    counts = evidence.pools.counts["pair"]
    values = np.stack([np.asarray(column, dtype=np.float64) for column in columns.values()], axis=1)
    return Features(tuple(columns), values, counts)


def _weighted_columns(evidence: Evidence, weights: Weights) -> Iterator[_Column]:
    """Yield the weighted sum of the parts, and its difference from the best of the pool."""
    parts = score_parts(evidence.pools, weights, v=evidence.mean, u=evidence.u)
    total = np.sum(list(parts.values()), axis=0)
    yield "sum", total
    yield "sum.margin", total - _best_of(total, evidence.pools.question_of_pair)


def _relation_columns(evidence: Evidence) -> Iterator[_Column]:
    """Yield, for each relation scorer and their mean, log p(r|q) over all relations, over those of the pool and over
    those of the subject, and the difference from the best of the pool."""
    pools = evidence.pools
    scorers = {**evidence.v, **evidence.beside} | ({"mean": evidence.mean} if len(evidence.v) > 1 else {})
    for name, v in scorers.items():
        values = np.asarray(v, dtype=np.float64)[places_of_v(pools)]
        yield f"relation.{name}", values
        yield f"relation.{name}.pool", relation_part(pools, v, Weights())
        yield f"relation.{name}.margin", values - _best_of(values, pools.question_of_pair)
        yield f"relation.{name}.subject", values - _total_of(values, pools.pair_subject)


def _subject_columns(evidence: Evidence) -> Iterator[_Column]:
    """Yield u, log p(s|q, r), and the differences from the best namesake and from the best with the same relation."""
    pools, link = evidence.pools, evidence.pools.link_of_pair
    if evidence.u is not None:
        u = np.asarray(evidence.u, dtype=np.float64)[pools.pair_subject]
        yield "subject", u
        yield "subject.pool", subject_part(pools, evidence.u, Weights())
        yield "subject.namesakes", u - _best_of(u, link)
        yield "subject.rivals", u - _best_of(u, _alike(pools))


def _link_columns(pools: Pools) -> Iterator[_Column]:
    """Yield the weight, rung and similarity of the link, its unexplained words, namesakes, and pool size."""
    link = pools.link_of_pair
    bearers = np.bincount(pools.subject_link, minlength=len(pools.link_start))
    yield "mention", pools.link_weight[link]
    yield "rung", pools.link_rung[link]
    yield "similarity", pools.link_similarity[link]
    yield "unexplained", np.log(np.maximum(pools.link_confidence, _LEAST_CONFIDENCE))[link]
    yield "namesakes", np.log(bearers[link])
    rivals = _alike(pools)
    yield "namesakes.rivals", np.log(np.bincount(rivals))[rivals]
    yield "pool", np.log(pools.counts["pair"][pools.question_of_pair])


def _alike(pools: Pools) -> NDArray[np.int64]:
    """Return the group number of each candidate by link and relation: (pairs,)."""
    both = pools.link_of_pair.astype(np.int64) * len(pools.relation) + pools.pair_relation
    numbers: NDArray[np.int64] = np.unique(both, return_inverse=True)[1].reshape(-1)
    return numbers


def _best_of(values: NDArray[np.float64], group: NDArray[np.integer]) -> NDArray[np.float64]:
    """Return the largest value of the group of each value."""
    best = np.full(int(group.max(initial=-1)) + 1, -np.inf)
    np.maximum.at(best, group, values)
    best_of_group: NDArray[np.float64] = best[group]
    return best_of_group


def _total_of(values: NDArray[np.float64], group: NDArray[np.integer]) -> NDArray[np.float64]:
    """Return the logarithm of the sum of exp(values) over the group of each value."""
    best = _best_of(values, group)
    total: NDArray[np.float64] = best + np.log(np.bincount(group, weights=np.exp(values - best))[group])
    return total
