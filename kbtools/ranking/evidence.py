"""Evidence: what the pruner and every scorer say of the candidates of some questions, which a ranking weighs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from kbtools.kb.contract import KnowledgeBase
from kbtools.quick_records import computed_once
from kbtools.ranking.contracts import RelationScorer, SubjectScorer, log_total
from kbtools.ranking.pools import Pools, take_questions
from kbtools.ranking.score import Constant, Progress, score_relations, score_subjects
from kbtools.text.question import Question

Asked = Callable[[NDArray[np.bool_]], NDArray[np.floating]]
"""What gives v of some mentions of pools, which are marked, by a scorer that is asked only then."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """The pools of some questions, v(r, q) of each relation scorer by its name, and u(s, r, q) if subjects are scored.

    v and u are laid out as `score_relations` and `score_subjects` give them, v for the weighted sum, which counts
    differences alone, up to a constant a mention. `beside` holds v of scorers that a learned ranker reads, and that the
    weighted sum does not count, and `later` those that are asked where a question is in doubt.
    """

    pools: Pools
    v: Mapping[str, NDArray[np.floating]]
    u: NDArray[np.floating] | None = None
    beside: Mapping[str, NDArray[np.floating]] = field(default_factory=dict)
    later: Mapping[str, Asked] = field(default_factory=dict)

    @computed_once
    def mean(self) -> NDArray[np.floating]:
        """Give v of all relation scorers as one: the mean of their log-probabilities."""
        scores = list(self.v.values())
        return scores[0] if len(scores) == 1 else np.mean(scores, axis=0)

    def deferring(self, names: Sequence[str]) -> "Evidence":
        """Give the same where some scorers, of which v may be known already, are to be asked later."""
        _, sizes = self.pools.v_of_mention
        known = {name: self.v[name] for name in names if name in self.v}
        if not known:
            return self
        later = {name: partial(choose_v, v, sizes) for name, v in known.items()}
        rest = {name: v for name, v in self.v.items() if name not in known}
        return replace(self, v=rest, later={**self.later, **later})

    def of(self, questions: NDArray[np.bool_]) -> "Evidence":
        """Give the evidence on the marked questions, without what is asked later: (questions,)."""
        if questions.all():
            return replace(self, later={})
        counts = self.pools.counts
        own = questions.repeat(counts["mention"] * counts["relation"])
        v, beside = ({name: scores[own] for name, scores in some.items()} for some in (self.v, self.beside))
        u = None if self.u is None else self.u[questions.repeat(counts["subject"])]
        return Evidence(take_questions(self.pools, questions), v, u, beside)


def choose_v(v: NDArray[np.floating], sizes: NDArray[np.int64], mentions: NDArray[np.bool_]) -> NDArray[np.floating]:
    """Choose v of the marked mentions, of which each has so many."""
    return v[mentions.repeat(sizes)]


def gather_evidence(
    kb: KnowledgeBase,
    pools: Pools,
    questions: Sequence[Question],
    *,
    scorers: Mapping[str, RelationScorer],
    subject: SubjectScorer | None = None,
    beside: Mapping[str, RelationScorer] = MappingProxyType({}),
    later: Mapping[str, Callable[[], RelationScorer]] = MappingProxyType({}),
    progress: Progress = lambda done: None,
    constant: Constant = log_total,
) -> Evidence:
    """Ask every scorer about pools, but for those that are made and asked later; raise BrokenPlugin where one fails.

    `score_relations` says what a constant is.
    """
    v, others = (
        {
            name: score_relations(kb, pools, questions, scorer, progress, constant=constant)
            for name, scorer in scorers_by_name.items()
        }
        for scorers_by_name in (scorers, beside)
    )
    u = score_subjects(pools, questions, subject, progress) if subject else None
    return Evidence(
        pools, v, u, others, {name: partial(ask_later, kb, pools, questions, make) for name, make in later.items()}
    )


def ask_later(
    kb: KnowledgeBase,
    pools: Pools,
    questions: Sequence[Question],
    make: Callable[[], RelationScorer],
    mentions: NDArray[np.bool_],
) -> NDArray[np.floating]:
    """Make a scorer and ask it about the marked mentions: (mentions,)."""
    return score_relations(kb, pools.with_mentions(mentions), questions, make())
