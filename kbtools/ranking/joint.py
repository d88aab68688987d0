"""The joint score: log p(r|q) + beta·log p(s|q, r) + gamma·log p(w|q) over the pool, and what else counts.

Eq. 2 of the paper over the pool C of Eq. 3, with a temperature for each network and a weight for each part.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kbtools.errors import BrokenPlugin, KBToolsError
from kbtools.kb.contract import KnowledgeBase
from kbtools.linking.candidates import Candidates
from kbtools.ranking.contracts import RelationScorer, SubjectScorer, as_scores, log_softmax
from kbtools.text.question import MarkedQuestion, Question

RUNG = 0.2
"""What each rung of the ladder costs, in log-probability."""

POPULARITY = 0.15
"""What the most popular subject gains; less than a rung, so that a stricter link outranks a namesake's facts."""


@dataclass(frozen=True, slots=True)
class Weights:
    """What each part of a score counts; those of `kbtools train ranking` are chosen on a validation split."""

    relation: float = 1.0
    """The inverse of the temperature of v(r, q)."""

    subject: float = 1.0
    """The paper's beta is 1."""

    sharpness: float = 1.0
    """The inverse of the temperature of u(s, r, q)."""

    alpha: float = 1.0
    """The paper's weight of h(r, s), which counts only in the normaliser: every candidate has s -> r."""

    mention: float = 1.0
    rung: float = RUNG
    similarity: float = 1.0
    popularity: float = POPULARITY


DEFAULT = Weights()
WITH_SUBJECT = Weights(popularity=0.0)
"""With a subject scorer, its score takes the place of popularity."""


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """A pool with what its scorers say: v (mentions, relations), u (subjects,) or nothing, facts (subjects,).

    `mention` leads from a subject to its row of v, `column` from a candidate to its column.
    """

    candidates: Candidates
    v: NDArray[np.float64]
    mention: NDArray[np.int64]
    column: NDArray[np.int64]
    u: NDArray[np.float64] | None
    facts: NDArray[np.int64]


def score_pools(
    kb: KnowledgeBase,
    questions: Sequence[Question],
    pools: Sequence[Candidates],
    *,
    scorer: RelationScorer,
    subject: SubjectScorer | None = None,
) -> list[Scored]:
    """Score the pools of several questions, none of them empty, in one batch.

    Raises BrokenPlugin where a scorer fails, or does not give a finite score for all that it is asked.
    """
    asked: list[MarkedQuestion] = []
    rows, which = [], []
    for question, pool in zip(questions, pools, strict=True):
        links, row = np.unique(pool.link, return_inverse=True)
        rows.append((len(asked), len(links), row))
        which.append(len(asked) + row)
        asked += [MarkedQuestion(question, pool.links[link].start, pool.links[link].end) for link in links]
    v = checked(scorer, lambda: scorer.score(asked), shape=(len(asked), len(kb.relations)))
    subjects = np.concatenate([pool.subjects for pool in pools])
    facts = kb.fact_counts(subjects)
    u = None
    if subject is not None:
        places = np.concatenate(which)
        u = checked(subject, lambda: subject.score(asked, which=places, subjects=subjects), shape=(len(subjects),))
    ends = np.cumsum([len(pool.subjects) for pool in pools])
    found = []
    for pool, (first, count, row), end in zip(pools, rows, ends.tolist(), strict=True):
        own = slice(end - len(pool.subjects), end)
        relations, column = np.unique(pool.relation, return_inverse=True)
        mine = v[first : first + count, relations]
        found.append(Scored(pool, mine, row, column, None if u is None else u[own], facts[own]))
    return found


def joint_parts(scored: Scored, weights: Weights) -> dict[str, NDArray[np.float64]]:
    """Give the parts of every candidate's score: (candidates,) each."""
    pool = scored.candidates
    parts = {
        "relation": log_softmax(weights.relation * scored.v)[scored.mention[pool.subject], scored.column],
        "mention": by_link(pool, [weights.mention * link.weight for link in pool.links]),
        "rung": by_link(pool, [weights.rung * (1 - link.rung) for link in pool.links]),
        "similarity": by_link(pool, [weights.similarity * np.log(link.similarity / 100) for link in pool.links]),
    }
    if scored.u is not None:
        parts["subject"] = weights.subject * subject_log_probability(scored, weights)
    if weights.popularity or scored.u is None:
        counts = np.log1p(scored.facts)
        parts["popularity"] = (weights.popularity * counts / (1 + counts))[pool.subject]
    return parts


def subject_log_probability(scored: Scored, weights: Weights) -> NDArray[np.float64]:
    """Give log p(s|q, r) of every candidate, normalised over the subjects of the pool (paper, Eq. 11)."""
    assert scored.u is not None
    pool = scored.candidates
    u = weights.sharpness * (scored.u - scored.u.max())
    able = np.bincount(scored.column, weights=np.exp(u)[pool.subject])
    others = np.maximum(np.exp(u).sum() - able, 0.0)
    normaliser = np.log(np.exp(weights.alpha) * able + others)
    found: NDArray[np.float64] = u[pool.subject] + weights.alpha - normaliser[scored.column]
    return found


def by_link(pool: Candidates, values: list[float]) -> NDArray[np.float64]:
    """Spread what is known of each link over its candidates."""
    return np.array(values, dtype=np.float64)[pool.link][pool.subject]


def checked(scorer: object, score: Callable[[], NDArray[np.float64]], *, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Ask a scorer; raise BrokenPlugin where it fails, or gives other than finite scores of a shape."""
    name = type(scorer).__name__
    try:
        scores = score()
    except KBToolsError:
        raise
    except (Exception, SystemExit) as error:
        raise BrokenPlugin(f"scorer {name} failed: {error!r}", name=name) from error
    return as_scores(scores, scorer=name, shape=shape)
