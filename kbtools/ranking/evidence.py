"""Evidence: what the pruner and every scorer say of the candidates of some questions, which a ranking weighs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from kbtools.kb.contract import KnowledgeBase
from kbtools.ranking.contracts import RelationScorer, SubjectScorer
from kbtools.ranking.pools import Pools
from kbtools.ranking.score import Progress, score_relations, score_subjects
from kbtools.text.question import Question


@dataclass(frozen=True, eq=False)
class Evidence:
    """The pools of some questions, v(r, q) of each relation scorer by its name, and u(s, r, q) if subjects are scored.

    v and u are laid out as `score_relations` and `score_subjects` give them. `beside` holds v of scorers that a learned
    ranker reads, and that the weighted sum does not count.
    """

    pools: Pools
    v: Mapping[str, NDArray[np.floating]]
    u: NDArray[np.floating] | None = None
    beside: Mapping[str, NDArray[np.floating]] = field(default_factory=dict)

    @cached_property
    def mean(self) -> NDArray[np.floating]:
        """Give v of all relation scorers as one: the mean of their log-probabilities."""
        scores = list(self.v.values())
        return scores[0] if len(scores) == 1 else np.mean(scores, axis=0)


def gather_evidence(
    kb: KnowledgeBase,
    pools: Pools,
    questions: Sequence[Question],
    *,
    scorers: Mapping[str, RelationScorer],
    subject: SubjectScorer | None = None,
    beside: Mapping[str, RelationScorer] = MappingProxyType({}),
    progress: Progress = lambda done: None,
) -> Evidence:
    """Ask every scorer about pools; raise BrokenPlugin as `score_relations` does."""
    v, others = (
        {name: score_relations(kb, pools, questions, scorer, progress) for name, scorer in scorers_by_name.items()}
        for scorers_by_name in (scorers, beside)
    )
    return Evidence(pools, v, score_subjects(pools, questions, subject, progress) if subject else None, others)
