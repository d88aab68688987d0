"""What a model learns from: annotated questions, with their mentions and the rows of their gold facts."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kbtools.errors import BadQuestions
from kbtools.kb.contract import KnowledgeBase
from kbtools.linking.mentions import label_mention
from kbtools.questions import read_annotated
from kbtools.text.ngrams import Ngram
from kbtools.text.question import MarkedQuestion, Question

MOST_UNKNOWN = 0.05
"""The share of questions whose relation the knowledge base may lack before the file is refused."""


@dataclass(frozen=True, slots=True, eq=False)
class Examples:
    """Annotated questions in columns; `subjects` is -1 where the knowledge base lacks the subject.

    `mentions` is nothing where no name of the subject is in the question; `unknown` counts the questions that were
    left out because the knowledge base lacks their relation.
    """

    asked: list[MarkedQuestion]
    mentions: list[Ngram | None]
    subjects: NDArray[np.int64]
    relations: NDArray[np.int64]
    unknown: int
    digest: str

    def __len__(self) -> int:
        return len(self.asked)


def read_examples(kb: KnowledgeBase, path: Path) -> Examples:
    """Read an annotated file; raise BadQuestions where too few of its relations are the knowledge base's."""
    rows = {relation: row for row, relation in enumerate(kb.relations)}
    annotated = list(read_annotated(path))
    known = [one for one in annotated if one.relation in rows]
    unknown = len(annotated) - len(known)
    if not known or unknown > MOST_UNKNOWN * len(annotated):
        raise BadQuestions(
            f"{path}: {unknown:,} of {len(annotated):,} questions have a relation that the knowledge base lacks, "
            f"at most {MOST_UNKNOWN:.0%} may; is it the right knowledge base",
            path=str(path),
            unknown=unknown,
        )
    found = kb.rows([one.subject for one in known])
    subjects = np.array([-1 if row is None else row for row in found], dtype=np.int64)
    questions = [Question.read(one.text) for one in known]
    mentions = [
        None if subject < 0 else label_mention(kb, question, subject=int(subject))
        for question, subject in zip(questions, subjects, strict=True)
    ]
    asked = [
        MarkedQuestion(question, mention.start, mention.end) if mention else MarkedQuestion(question, 0, 0)
        for question, mention in zip(questions, mentions, strict=True)
    ]
    relations = np.array([rows[one.relation] for one in known], dtype=np.int64)
    return Examples(asked, mentions, subjects, relations, unknown, hashlib.sha256(path.read_bytes()).hexdigest())


def check_labels(labels: NDArray[np.int64], path: Path) -> None:
    """Refuse questions that all have one label: there is nothing to tell apart."""
    if len(np.unique(labels)) < 2:
        raise BadQuestions(f"{path}: every question has the same relation, expected at least two", path=str(path))
