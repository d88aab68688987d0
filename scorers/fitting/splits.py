"""Annotated questions for training and validation, with their mentions and the rows of their facts."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kbtools.answering.questions import read_gold
from kbtools.errors import BadQuestions
from kbtools.kb.contract import KnowledgeBase, find_rows
from kbtools.pruning.pruners import label_mentions, word_span
from kbtools.text.ngrams import Ngram
from kbtools.text.question import MarkedQuestion, Question

_MOST_UNKNOWN = 0.05
"""Largest share of questions with a relation that the knowledge base lacks before the file is refused.

FBSQ's own file has none; a file for another knowledge base has almost only such questions.
"""


@dataclass(frozen=True, slots=True, eq=False)
class Examples:
    """Annotated questions in columns; `subjects` is -1 if the knowledge base lacks the subject.

    A mention is None if no name of the subject is in the question; `unknown` counts the questions left out because the
    knowledge base lacks their relation.
    """

    questions: list[MarkedQuestion]
    mentions: list[Ngram | None]
    subjects: NDArray[np.int64]
    relations: NDArray[np.int64]
    unknown: int
    digest: str

    def __len__(self) -> int:
        return len(self.questions)


def read_examples(kb: KnowledgeBase, path: Path) -> Examples:
    """Read an annotated file; raise BadQuestions if the knowledge base lacks too many of its relations."""
    rows = {relation: row for row, relation in enumerate(kb.relations)}
    annotated = read_gold(path, kb)
    known = [gold for gold in annotated if gold.relation in rows]
    unknown = len(annotated) - len(known)
    if not known or unknown > _MOST_UNKNOWN * len(annotated):
        raise BadQuestions(
            f"{path}: {unknown:,} of {len(annotated):,} questions have a relation that the knowledge base lacks, "
            f"at most {_MOST_UNKNOWN:.0%} may; is it the right knowledge base",
            path=str(path),
            unknown=unknown,
        )
    subjects = find_rows(kb, [gold.subject for gold in known])
    texts = [Question.read(gold.text) for gold in known]
    mentions = label_mentions(kb, texts, subjects=subjects)
    # A question without a name of its subject has no mention: all its words are context.
    questions = [
        MarkedQuestion(text, mention.start, mention.end) if mention else MarkedQuestion(text, 0, 0)
        for text, mention in zip(texts, mentions, strict=True)
    ]
    relations = np.array([rows[gold.relation] for gold in known], dtype=np.int64)
    return Examples(questions, mentions, subjects, relations, unknown, hashlib.sha256(path.read_bytes()).hexdigest())


@dataclass(frozen=True, slots=True, eq=False)
class Labelled:
    """Questions with a known mention, and its first and last word among those that a tagger reads."""

    questions: list[Question]
    spans: list[tuple[int, int]]

    def __len__(self) -> int:
        return len(self.questions)


def label_questions(examples: Examples, *, split: str) -> Labelled:
    """Return the questions that contain a name of their subject; raise BadQuestions if there are none."""
    labelled = Labelled([], [])
    for question, mention in zip(examples.questions, examples.mentions, strict=True):
        span = word_span(question.question, mention) if mention else None
        if span:
            labelled.questions.append(question.question)
            labelled.spans.append(span)
    if not len(labelled):
        raise BadQuestions(
            f"no {split} question names its subject by a name of the knowledge base, which taggers need for training",
            split=split,
        )
    return labelled


@dataclass(frozen=True, slots=True, eq=False)
class Splits:
    """The questions for training and for validation."""

    train: Examples
    valid: Examples

    @classmethod
    def read(cls, kb: KnowledgeBase, *, train: Path, valid: Path) -> "Splits":
        """Read both files; raise BadQuestions or InputError if one cannot be used."""
        splits = cls(read_examples(kb, train), read_examples(kb, valid))
        if len(np.unique(splits.train.relations)) < 2:
            raise BadQuestions.at(train, "every question has the same relation, expected at least two")
        return splits
