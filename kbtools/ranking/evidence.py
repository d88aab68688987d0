"""Evidence: the scores of the pruner and every scorer for the candidates of some questions."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from kbtools.ranking.pools import Pools, take_questions

_AskMentions = Callable[[NDArray[np.bool_]], NDArray[np.floating]]
"""A function that returns v of the marked mentions by a scorer used only in doubt."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """The pools of some questions, v(r, q) by each relation scorer, and u(s, r, q) if subjects are scored.

    v and u are laid out as by `score_relations` and `score_subjects`; for the weighted sum v is known up to a constant
    per mention. `beside` holds v of scorers that only a learned ranker reads; `later` holds scorers used only in doubt.
    """

    pools: Pools
    v: Mapping[str, NDArray[np.floating]]
    u: NDArray[np.floating] | None = None
    beside: Mapping[str, NDArray[np.floating]] = field(default_factory=dict)
    later: Mapping[str, _AskMentions] = field(default_factory=dict)

    @cached_property
    def mean(self) -> NDArray[np.floating]:
        """The mean of v, a log-probability, over all relation scorers."""
        scores = list(self.v.values())
        return scores[0] if len(scores) == 1 else np.mean(scores, axis=0)

    def deferring(self, names: Sequence[str]) -> "Evidence":
        """Return the evidence with some scorers deferred, even if their v is known."""
        _, sizes = self.pools.v_of_mention
        known = {name: self.v[name] for name in names if name in self.v}
        if not known:
            return self
        later = {name: partial(_choose_v, v, sizes) for name, v in known.items()}
        rest = {name: v for name, v in self.v.items() if name not in known}
        return replace(self, v=rest, later={**self.later, **later})

    def of(self, questions: NDArray[np.bool_]) -> "Evidence":
        """Return the evidence on the marked questions, without deferred scorers: (questions,)."""
        if questions.all():
            return replace(self, later={})
        counts = self.pools.counts
        places = questions.repeat(counts["mention"] * counts["relation"])
        v, beside = ({name: scores[places] for name, scores in some.items()} for some in (self.v, self.beside))
        u = None if self.u is None else self.u[questions.repeat(counts["subject"])]
        return Evidence(take_questions(self.pools, questions), v, u, beside)


def _choose_v(v: NDArray[np.floating], sizes: NDArray[np.int64], mentions: NDArray[np.bool_]) -> NDArray[np.floating]:
    """Return v of the marked mentions, which have `sizes` scores each."""
    return v[mentions.repeat(sizes)]
