"""Evidence: what the pruner and every scorer say of the candidates of some questions, which a ranking weighs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from kbtools.quick_records import computed_once
from kbtools.ranking.pools import Pools, take_questions

_AskMentions = Callable[[NDArray[np.bool_]], NDArray[np.floating]]
"""Returns v of the marked mentions of pools by a scorer that is asked only then."""


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
    later: Mapping[str, _AskMentions] = field(default_factory=dict)

    @computed_once
    def mean(self) -> NDArray[np.floating]:
        """Return v of all relation scorers as one: the mean of their log-probabilities."""
        scores = list(self.v.values())
        return scores[0] if len(scores) == 1 else np.mean(scores, axis=0)

    def deferring(self, names: Sequence[str]) -> "Evidence":
        """Return the same where some scorers, of which v may be known already, are to be asked later."""
        _, sizes = self.pools.v_of_mention
        known = {name: self.v[name] for name in names if name in self.v}
        if not known:
            return self
        later = {name: partial(_choose_v, v, sizes) for name, v in known.items()}
        rest = {name: v for name, v in self.v.items() if name not in known}
        return replace(self, v=rest, later={**self.later, **later})

    def of(self, questions: NDArray[np.bool_]) -> "Evidence":
        """Return the evidence on the marked questions, without what is asked later: (questions,)."""
        if questions.all():
            return replace(self, later={})
        counts = self.pools.counts
        own = questions.repeat(counts["mention"] * counts["relation"])
        v, beside = ({name: scores[own] for name, scores in some.items()} for some in (self.v, self.beside))
        u = None if self.u is None else self.u[questions.repeat(counts["subject"])]
        return Evidence(take_questions(self.pools, questions), v, u, beside)


def _choose_v(v: NDArray[np.floating], sizes: NDArray[np.int64], mentions: NDArray[np.bool_]) -> NDArray[np.floating]:
    """Return v of the marked mentions, of which each has so many."""
    return v[mentions.repeat(sizes)]
