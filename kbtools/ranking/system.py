"""The system that answers a question: a value that holds its parts, from the pruner to the ranker."""

from dataclasses import dataclass, replace

from kbtools.quick_records import quick_record
from kbtools.ranking.confidence import Calibration
from kbtools.ranking.weights import Weights

POPULARITY, NO_SUBJECT = "popularity", "none"
"""What stands in the place of a subject scorer: the number of facts, or nothing, so that namesakes tie."""

WEIGHTED_SUM = "weighted-sum"
"""The name of the score that is not learned."""

MARGIN = 2.0
"""Log-probabilities that the best candidate of a mention may be behind the winner before the mention is ruled out.

Validation questions of FBSQ, cross-fitted: with 1, 2, 3 and 5 accuracy differs by 0.02 points; with 2 a question in
doubt has 1.3 mentions to read, of 3.3.
"""


@dataclass(frozen=True, slots=True)
class FittedRanker:
    """A learned ranker as training left it: its plugin, its digest, and those of the models that it was fitted on.

    `features` is the version of the features that it reads.
    """

    name: str
    digest: str
    fitted_on: tuple[tuple[str, str], ...]
    features: int
    calibration: Calibration


@dataclass(frozen=True, slots=True)
class Cascade:
    """A system of fewer, or quicker, scorers that ranks first, and when the whole system ranks in its place.

    It does where the winner's share of the pool is below the threshold, for a learned ranker among the candidates, for
    the weighted sum among mentions with a relation. Of such a question the mentions that are behind the winner by more
    than the margin are ruled out. The first system is calibrated on the questions that it ranks.
    """

    first: "System"
    threshold: float
    margin: float = MARGIN


@quick_record
@dataclass(frozen=True, slots=True)
class System:
    """A pruner with the model that may guide it, relation scorers, a subject scorer, their weights, and a ranker.

    Without a ranker the weighted sum ranks. `subject` is a subject scorer, or `popularity`, or `none`. `guide` is the
    tagger of a pruner that reads one, or the subject scorer whose vectors it searches. `calibration` turns confidence
    into the share that is right, where a comparison measured it.
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
        """Return the relation scorers with commas between; those that decide first, if they are others, and a slash."""
        names = ",".join(self.scorers)
        return names if self.every_scorer == self.scorers else f"{self.first.scorer}/{names}"

    @property
    def first(self) -> "System":
        """Return the system that ranks first: of a cascade its first one, else this one."""
        return self.cascade.first if self.cascade else self

    @property
    def every_scorer(self) -> tuple[str, ...]:
        """Return the relation scorers that any question is asked of."""
        first = self.first.scorers
        return self.scorers if set(first) <= set(self.scorers) else tuple(dict.fromkeys((*first, *self.scorers)))

    @property
    def subject_scorer(self) -> str | None:
        """Return the plugin that scores subjects, if one does."""
        return None if self.subject in (POPULARITY, NO_SUBJECT) else self.subject

    @property
    def ranker_name(self) -> str:
        return self.ranker.name if self.ranker else WEIGHTED_SUM

    @property
    def key(self) -> str:
        """Return the pruner and the scorers, which weights and rankers are chosen for, as one text."""
        guided = f"{self.pruner}/{self.guide}" if self.guide else self.pruner
        return f"{guided} {self.scorer} {self.subject}"

    @property
    def deferred(self) -> tuple[str, ...]:
        """Return the relation scorers that are asked only where the first system of a cascade is in doubt."""
        return tuple(name for name in self.scorers if name not in self.first.scorers)

    def counting(self) -> dict[str, float]:
        """Return the weights that count, by name; none where the score is learned."""
        return {} if self.ranker else self.weights.counting(self.subject_scorer)

    def weighted(self, weights: Weights) -> "System":
        """Return the same parts ranked by the weighted sum with these weights.

        Popularity is ignored where nothing may distinguish subjects.
        """
        weights = replace(weights, popularity=0.0) if self.subject == NO_SUBJECT else weights
        return System(self.pruner, self.scorers, self.subject, self.guide, weights)
