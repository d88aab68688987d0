"""The knowledge base, models and test questions of `quality.py`, and the accuracy of a query."""

import os
from functools import cached_property
from pathlib import Path

import numpy as np
from fbsq import questions

import kbtools
from kbtools.answering.answerer import Answerer
from kbtools.answering.gold import GoldScores, find_gold, score_gold
from kbtools.answering.questions import AnnotatedQuestion, read_annotated
from kbtools.ranking.opened_system import OpenedSystem
from kbtools.ranking.system import POPULARITY
from kbtools.scorers.fitting.splits import Examples, read_examples


def children_cpu() -> float:
    """Return the CPU seconds of all processes that this one has waited for."""
    return (spent := os.times()).children_user + spent.children_system


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
        return {gold.relation for gold in read_annotated(questions("train"))}

    def answerer(self, tagger: str) -> Answerer:
        if tagger not in self.answerers:
            self.answerers[tagger] = kbtools.open(self.path, models=self.models, tagger=tagger)
        return self.answerers[tagger]

    def beside(self, folder: str) -> "Measured":
        """Return the same questions with the models of a folder inside that of the models."""
        return Measured(self.path, self.models / folder)


def pair_accuracy(at: Measured, tagger: str, pruning: str, scorer: str, subject: str | None) -> float:
    """Return the expected share of right pairs, ranked by what was trained for this query if there is any."""
    opened, scores = scored_by(at, tagger, pruning, scorer, subject)
    return float(scores.expected(opened.scoring).mean())


def object_accuracy(at: Measured, tagger: str, pruning: str, scorer: str, subject: str | None) -> float:
    """Return the expected share of questions whose gold object is among those of the first pair."""
    opened, scores = scored_by(at, tagger, pruning, scorer, subject)
    targets = at.kb.rows([question.object for question in at.gold])
    pools = scores.evidence.pools
    pairs = list(zip(pools.subject_of_pair.tolist(), pools.relation_of_pair.tolist(), strict=True))
    objects = at.kb.objects_of(pairs)
    leads = np.array([targets[at] in own for at, own in zip(pools.question_of_pair.tolist(), objects, strict=True)])
    return float(scores.expected(opened.scoring, leads).mean())


def scored_by(
    at: Measured, tagger: str, pruning: str, scorer: str, subject: str | None
) -> tuple[OpenedSystem, GoldScores]:
    answerer = at.answerer(tagger)
    opened = answerer.opened(answerer.system(pruning=pruning, scorer=scorer, subject=subject or POPULARITY))
    return opened, score_gold(opened, find_gold(answerer.kb, at.gold))
