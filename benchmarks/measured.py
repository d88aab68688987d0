"""The knowledge base, models and test questions that `quality.py` measures, and what a query gets right."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
from fbsq import questions

import kbtools
from kbtools.answering import Answerer
from kbtools.questions import AnnotatedQuestion, read_annotated
from kbtools.ranking.joint import joint_parts
from kbtools.ranking.judging import gather_pools, judge
from kbtools.ranking.ranking import add_parts
from kbtools.ranking.weights import Judged, accuracy
from kbtools.scorers.examples import Examples, read_examples


class Measured:
    """The knowledge base, the folder of models and the test questions, read once."""

    def __init__(self, kb: Path, models: Path) -> None:
        self.path, self.models = kb, models
        self.kb = kbtools.open(kb).kb
        self.gold: list[AnnotatedQuestion] = list(read_annotated(questions("test")))
        self.answerers: dict[str, Answerer] = {}

    @cached_property
    def test(self) -> Examples:
        return read_examples(self.kb, questions("test"))

    @cached_property
    def seen(self) -> set[str]:
        return {one.relation for one in read_annotated(questions("train"))}

    def answerer(self, tagger: str) -> Answerer:
        if tagger not in self.answerers:
            self.answerers[tagger] = kbtools.open(self.path, models=self.models, tagger=tagger)
        return self.answerers[tagger]

    def beside(self, folder: str) -> "Measured":
        """Measure the models of a folder inside that of the models."""
        return Measured(self.path, self.models / folder)


def pair_accuracy(at: Measured, tagger: str, pruning: str, scorer: str, subject: str | None) -> float:
    """Give the expected share of right pairs, with the weights that were chosen for this query if there are any."""
    judged, answerer = judged_by(at, tagger, pruning, scorer, subject)
    weights = answerer.weights(pruning=pruning, scorer=scorer, subject=subject)
    return accuracy(judged, weights, questions=len(at.gold))


def object_accuracy(at: Measured, tagger: str, pruning: str, scorer: str, subject: str | None) -> float:
    """Give the expected share of questions whose gold object is among those of the first pair."""
    judged, answerer = judged_by(at, tagger, pruning, scorer, subject)
    weights = answerer.weights(pruning=pruning, scorer=scorer, subject=subject)
    right = 0.0
    for one in judged:
        pool, scores = one.scored.candidates, add_parts(joint_parts(one.scored, weights))
        first = np.flatnonzero(scores == scores.max())
        hits = [
            one.target in at.kb.objects_of(int(pool.subjects[pool.subject[place]]), int(pool.relation[place]))
            for place in first
        ]
        right += float(np.mean(hits))
    return right / len(at.gold)


def judged_by(
    at: Measured, tagger: str, pruning: str, scorer: str, subject: str | None
) -> tuple[Sequence[Judged], Answerer]:
    answerer = at.answerer(tagger)
    pools = gather_pools(answerer, at.gold, pruning=pruning)
    return judge(answerer, pools, scorer=scorer, subject=subject), answerer
