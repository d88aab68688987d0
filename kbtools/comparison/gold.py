"""Gold answers as rows of a knowledge base, with their faults, and gold mentions."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kbtools.answering.question_faults import find_faults
from kbtools.answering.questions import AnnotatedQuestion
from kbtools.kb.contract import ABSENT, KnowledgeBase, find_rows
from kbtools.linking.links import Link
from kbtools.linking.strict import link_all_strictly
from kbtools.pruning.tagging import Tagger, label_mentions, tag, word_span
from kbtools.text.question import Question

TOGETHER = 64
"""Questions that are looked up together, as in `kbtools.answering.answerer`."""

TAGGED_AT_ONCE = 512
"""Questions that a tagger reads in one call: its spans grow with the square of a question's words."""


@dataclass(frozen=True, slots=True, eq=False)
class Gold:
    """Questions with their gold, in columns (questions,); `linkable` says that some n-gram is a name of the subject."""

    questions: Sequence[AnnotatedQuestion]
    texts: Sequence[Question]
    subject: NDArray[np.int64]
    relation: NDArray[np.int64]
    object: NDArray[np.int64]
    fault: NDArray[np.int8]
    linkable: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.questions)


def find_gold(
    kb: KnowledgeBase, questions: Sequence[AnnotatedQuestion], *, linkable: NDArray[np.bool_] | None = None
) -> Gold:
    """Find the gold of questions in a knowledge base; what is linkable is found too unless it is known."""
    relations = {relation: row for row, relation in enumerate(kb.relations)}
    texts = [Question.read(question.text) for question in questions]
    subject = find_rows(kb, [question.subject for question in questions])
    relation = np.array([relations.get(question.relation, ABSENT) for question in questions], dtype=np.int64)
    targets = find_rows(kb, [question.object for question in questions])
    if linkable is None:
        links = (own for batch in batches(texts) for own in link_all_strictly(kb, batch))
        linkable = np.array([is_linked(row, own) for row, own in zip(subject.tolist(), links, strict=True)], dtype=bool)
    return Gold(questions, texts, subject, relation, targets, find_faults(kb, subject, relation), linkable)


def is_linked(subject: int, links: Sequence[Link]) -> bool:
    """Return whether some link of a question leads to its gold subject."""
    return any(subject in link.entities for link in links)


def batches(questions: Sequence[Question]) -> Iterator[Sequence[Question]]:
    """Yield the questions that are looked up together."""
    return (questions[start : start + TOGETHER] for start in range(0, len(questions), TOGETHER))


def mark_mentions(
    kb: KnowledgeBase, tagger: Tagger, gold: Gold, progress: Callable[[int], None]
) -> dict[str, NDArray[np.int8]]:
    """Mark the questions whose mention the gold subject's names tell, and those where a tagger finds it: (questions,).

    The mention is the longest name of the gold subject in the question; a tagger finds it if it is the most probable.
    """
    labelled, right = np.zeros(len(gold), dtype=np.int8), np.zeros(len(gold), dtype=np.int8)
    for start in range(0, len(gold), TAGGED_AT_ONCE):
        spans: dict[int, tuple[int, int]] = {}
        texts = gold.texts[start : start + TAGGED_AT_ONCE]
        mentions = label_mentions(kb, texts, subjects=gold.subject[start : start + TAGGED_AT_ONCE])
        for at, (question, mention) in enumerate(zip(texts, mentions, strict=True), start):
            if mention and (span := word_span(question, mention)):
                spans[at] = span
        probable = tag(tagger, [gold.texts[at] for at in spans]) if spans else []
        for (at, span), log_probability in zip(spans.items(), probable, strict=True):
            labelled[at] = 1
            # The greatest entry of the table, as its row and column: the first and last word.
            right[at] = span == divmod(int(np.argmax(log_probability)), log_probability.shape[1])
        progress(min(start + TAGGED_AT_ONCE, len(gold)))
    return {"labelled": labelled, "right": right}
