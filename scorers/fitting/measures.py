"""Measures on the validation split: how often gold is ranked first, with a tie as its expected value."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kbtools.kb.contract import KnowledgeBase
from kbtools.ranking.confidence import expected_first, find_ties
from kbtools.ranking.contracts import SubjectScorer
from kbtools.scorers.fitting.splits import Examples

_TOLERANCE = 1e-9
"""Largest difference, due to rounding of sums, that counts as a tie between subjects of the same types."""

SENTENCES_RIGHT = "of sentences tagged right"
"""The measure of taggers: sentences whose every word is tagged right (paper, section Additional Analysis)."""


@dataclass(frozen=True, slots=True)
class Epoch:
    """The result of an epoch: mean loss, CPU seconds of this process, measures on the validation split."""

    number: int
    loss: float
    seconds: float
    figures: dict[str, float]


EpochCallback = Callable[[Epoch], None]


@dataclass(frozen=True, slots=True)
class Callbacks:
    """Callbacks of a training: after an epoch, and after a batch, with its epoch and the share of it done."""

    epoch: EpochCallback = lambda epoch: None
    batch: Callable[[int, float], None] = lambda epoch, share: None


SILENT = Callbacks()


def relation_marks(kb: KnowledgeBase, subjects: NDArray[np.int64], relations: int) -> NDArray[np.bool_]:
    """Return a mask of the relations of subjects: (subjects, relations); a subject of row -1 has none."""
    # marks[subject, relation] = True for every relation of every subject.
    marks = np.zeros((len(subjects), relations), dtype=np.bool_)
    present = np.flatnonzero(subjects >= 0)
    pairs = kb.relations_of(subjects[present].astype(np.uint32))
    marks[np.repeat(present, np.diff(pairs.starts)), pairs.values] = True
    return marks


def measure_relations(scores: NDArray[np.floating], examples: Examples, has: NDArray[np.bool_]) -> dict[str, float]:
    """Return the share of questions whose gold relation is first, with a tie as its expected value."""
    return {
        "of all relations": first_share(scores, examples.relations),
        "given the subject": first_share(np.where(has, scores, -np.inf), examples.relations),
    }


def first_share(scores: NDArray[np.floating], gold: Sequence[int] | NDArray[np.int64]) -> float:
    """Return the mean chance of drawing gold from the first of each row; zero for a row without finite scores."""
    right = np.zeros(scores.shape, dtype=np.bool_)
    rows = np.arange(len(scores))
    right[rows, gold] = np.isfinite(scores[rows, gold])
    return float(np.mean(expected_first(scores, right)))


class Namesakes:
    """Questions whose mention names several entities with the gold relation; one of them is meant."""

    def __init__(self, examples: Examples, rows: list[int], entities: list[NDArray[np.uint32]]) -> None:
        self.examples, self.rows, self.entities = examples, rows, entities

    @classmethod
    def find(cls, kb: KnowledgeBase, examples: Examples) -> "Namesakes":
        rows, entities = [], []
        for row, mention in enumerate(examples.mentions):
            matches = kb.lookup([mention.form]).get(mention.form, ()) if mention else ()
            if not matches:
                continue
            bearers = np.unique(np.concatenate([match.entities for match in matches]))
            pairs = kb.relations_of(bearers)
            has = pairs.values == examples.relations[row]
            # Each entity is repeated for each of its relations, at most one of them the gold one.
            able = bearers[np.repeat(np.arange(len(bearers)), np.diff(pairs.starts))[has]]
            if len(able) > 1 and examples.subjects[row] in able:
                rows.append(row)
                entities.append(able)
        return cls(examples, rows, entities)

    def share_told_apart(self, scorer: SubjectScorer) -> float:
        """Return the share of questions whose gold subject scores highest, with a tie as its expected value."""
        if not self.rows:
            return 0.0
        # The entities of all questions are concatenated, so that one call scores them all.
        which = np.repeat(np.arange(len(self.rows)), [len(bearers) for bearers in self.entities])
        subjects = np.concatenate(self.entities)
        scores = scorer.score([self.examples.questions[row] for row in self.rows], which=which, subjects=subjects)
        starts = np.flatnonzero(np.diff(which, prepend=-1))
        right = subjects == self.examples.subjects[self.rows][which]
        return float(np.mean(find_ties(scores, starts, tolerance=_TOLERANCE).expected(right)))
