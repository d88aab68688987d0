"""Gold answers as rows of a knowledge base, the reasons why some are out of reach, and how often gold comes first."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbtools.answering.questions import AnnotatedQuestion
from kbtools.kb.contract import ABSENT, KnowledgeBase, find_rows
from kbtools.ranking.confidence import find_ties
from kbtools.ranking.evidence import Evidence
from kbtools.ranking.opened_system import OpenedSystem
from kbtools.ranking.pools import Pools
from kbtools.ranking.rankers import Scoring
from kbtools.text.question import Question


class Labelled(IntEnum):
    """An enumeration whose members have a name for people."""

    @property
    def label(self) -> str:
        return self.name.lower().replace("_", " ")


class Fault(Labelled):
    """The reason why no system can answer a question right; it still counts as wrong."""

    NONE = 0
    UNKNOWN_SUBJECT = 1
    UNKNOWN_RELATION = 2
    NO_SUCH_FACT = 3
    UNNAMED_SUBJECT = 4


@dataclass(frozen=True, eq=False)
class Gold:
    """Annotated questions with their gold as rows, ABSENT for an unknown id: (questions,) each."""

    kb: KnowledgeBase
    questions: Sequence[AnnotatedQuestion]
    texts: Sequence[Question]
    subject: NDArray[np.int64]
    relation: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.questions)

    @cached_property
    def object(self) -> NDArray[np.int64]:
        return find_rows(self.kb, [question.object for question in self.questions])

    @cached_property
    def fault(self) -> NDArray[np.int8]:
        """The fault of each gold pair: (questions,)."""
        # An absent subject becomes row 0 here; its own fault takes precedence.
        subjects, place = np.unique(np.maximum(self.subject, 0).astype(np.uint32), return_inverse=True)
        pairs = self.kb.relations_of(subjects)
        stated = set(zip(np.repeat(subjects, np.diff(pairs.starts)).tolist(), pairs.values.tolist(), strict=True))
        has_name = np.array([name is not None for name in self.kb.names(subjects)], dtype=np.bool_)[place]
        gold = zip(self.subject.tolist(), self.relation.tolist(), strict=True)
        has_fact = np.array([pair in stated for pair in gold], dtype=np.bool_)
        tests = [
            (self.subject == ABSENT, Fault.UNKNOWN_SUBJECT),
            (self.relation == ABSENT, Fault.UNKNOWN_RELATION),
            (~has_fact, Fault.NO_SUCH_FACT),
            (~has_name, Fault.UNNAMED_SUBJECT),
        ]
        return np.select([test for test, _ in tests], [fault for _, fault in tests], Fault.NONE).astype(np.int8)

    def subjects(self, pools: Pools) -> NDArray[np.bool_]:
        """Return whether each subject in the pools of these questions is gold: (subjects,)."""
        return np.asarray(pools.subject == self.subject[pools.question_of("subject")])

    def pairs(self, pools: Pools) -> NDArray[np.bool_]:
        """Return whether each candidate in the pools of these questions is gold: (pairs,)."""
        gold_relation = pools.relation_of_pair == self.relation[pools.question_of_pair]
        return np.asarray(self.subjects(pools)[pools.pair_subject] & gold_relation)


def find_gold(kb: KnowledgeBase, questions: Sequence[AnnotatedQuestion]) -> Gold:
    """Return questions with the rows of their gold."""
    rows = {relation: row for row, relation in enumerate(kb.relations)}
    relation = np.array([rows.get(question.relation, ABSENT) for question in questions], dtype=np.int64)
    subject = find_rows(kb, [question.subject for question in questions])
    return Gold(kb, questions, [Question.read(question.text) for question in questions], subject, relation)


@dataclass(frozen=True, slots=True, eq=False)
class GoldScores:
    """Evidence on questions, and whether each candidate is gold: (pairs,)."""

    evidence: Evidence
    gold: NDArray[np.bool_]

    def expected(self, scoring: Scoring, values: NDArray[np.floating] | None = None) -> NDArray[np.float64]:
        """Return the expected value of each question's first candidate over ties: (questions,).

        By default the gold pair has value 1 and every other 0; a question without candidates gets 0.
        """
        if not self.evidence.pools.pairs:
            return np.zeros(len(self.evidence.pools))
        return self.expected_by(scoring.rate(self.evidence).scores, values)

    def accuracy(self, scoring: Scoring) -> float:
        """Return the share of questions whose gold pair comes first, 0 without questions."""
        return float(self.expected(scoring).mean()) if len(self.evidence.pools) else 0.0

    def expected_by(self, scores: NDArray[np.int64], values: NDArray[Any] | None = None) -> NDArray[np.float64]:
        """Return the same from the scores of candidates, in millionths."""
        pools = self.evidence.pools
        expected = np.zeros(len(pools))
        filled = np.flatnonzero(pools.counts["pair"])
        ties = find_ties(scores, pools.first("pair")[filled])
        expected[filled] = ties.expected(self.gold if values is None else values)
        return expected


def score_gold(opened: OpenedSystem, gold: Gold) -> GoldScores:
    """Return the pools of annotated questions with the scores of every scorer that a learned ranker reads."""
    pools = opened.gather_pools(gold.texts)
    return GoldScores(opened.evidence(pools, gold.texts, learned=True), gold.pairs(pools))
