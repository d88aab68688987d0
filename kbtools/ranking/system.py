"""The system that answers a question: a value that names its parts, from the pruner to the ranker."""

from dataclasses import dataclass, replace

from kbtools.quick_records import quick_record
from kbtools.ranking.confidence import Calibration
from kbtools.ranking.weights import Weights

POPULARITY, NO_SUBJECT = "popularity", "none"
"""Substitutes for a subject scorer: the number of facts, or nothing, which leaves namesakes tied."""

WEIGHTED_SUM = "weighted-sum"
"""The name of the score that is not learned."""

MARGIN = 2.0
"""Log-probability behind the winner below which a mention is ruled out.

On cross-fitted validation questions of FBSQ, accuracy with 1, 2, 3 and 5 differs by 0.02 points; with 2, scorers read
1.3 of 3.3 mentions of a question in doubt.
"""


@dataclass(frozen=True, slots=True)
class FittedRanker:
    """A learned ranker: its plugin, its digest, the models it was fitted on, and the version of its features."""

    name: str
    digest: str
    fitted_on: tuple[tuple[str, str], ...]
    features: int
    calibration: Calibration


@dataclass(frozen=True, slots=True)
class Cascade:
    """A first system with fewer or faster scorers, and the doubt in which the whole system ranks instead.

    The whole system ranks if the winner's share of the pool is below the threshold: for a learned ranker its share
    among candidates, for the weighted sum among mentions with a relation. Mentions behind the winner by more than the
    margin are then ruled out. The first system is calibrated on the questions that it ranks.
    """

    first: "System"
    threshold: float
    margin: float = MARGIN


@quick_record
@dataclass(frozen=True, slots=True)
class System:
    """A pruner with its guide, relation scorers, a subject scorer, their weights, and a ranker.

    Without a ranker the weighted sum ranks. `subject` is a subject scorer, `popularity` or `none`. `guide` is the
    tagger of the pruner, or the subject scorer whose vectors it searches. `calibration` maps confidence to the share
    that is right, if a comparison measured it.
    """

    pruner: str
    scorers: tuple[str, ...]
    subject: str
    guide: str | None
    weights: Weights
    ranker: FittedRanker | None = None
    cascade: Cascade | None = None
    calibration: Calibration | None = None

    def __str__(self) -> str:
        guided = f" by {self.guide}" if self.guide else ""
        return f"{self.pruner}{guided} / {self.scorer} / {self.subject} / {self.ranker_name}"

    @property
    def scorer(self) -> str:
        """The relation scorers, separated by commas, after those of a different first system and a slash."""
        names = ",".join(self.scorers)
        return names if self.every_scorer == self.scorers else f"{self.first.scorer}/{names}"

    @property
    def first(self) -> "System":
        """The first system of a cascade, or else this one."""
        return self.cascade.first if self.cascade else self

    @property
    def every_scorer(self) -> tuple[str, ...]:
        """All relation scorers that may be used for a question."""
        first = self.first.scorers
        return self.scorers if set(first) <= set(self.scorers) else tuple(dict.fromkeys((*first, *self.scorers)))

    @property
    def subject_scorer(self) -> str | None:
        """The plugin that scores subjects, None if there is none."""
        return None if self.subject in (POPULARITY, NO_SUBJECT) else self.subject

    @property
    def ranker_name(self) -> str:
        return self.ranker.name if self.ranker else WEIGHTED_SUM

    @property
    def key(self) -> str:
        """The pruner and scorers as one text; weights and rankers are chosen per key."""
        guided = f"{self.pruner}/{self.guide}" if self.guide else self.pruner
        return f"{guided} {self.scorer} {self.subject}"

    @property
    def deferred(self) -> tuple[str, ...]:
        """The relation scorers used only if the first system of a cascade is in doubt."""
        return tuple(name for name in self.scorers if name not in self.first.scorers)

    def counting(self) -> dict[str, float]:
        """Return the weights that have an effect, by name, empty if the score is learned."""
        return {} if self.ranker else self.weights.counting(self.subject_scorer)

    def weighted(self, weights: Weights) -> "System":
        """Return the same parts ranked by the weighted sum with these weights.

        Popularity becomes 0 if `subject` is `none`.
        """
        weights = replace(weights, popularity=0.0) if self.subject == NO_SUBJECT else weights
        return System(self.pruner, self.scorers, self.subject, self.guide, weights)
