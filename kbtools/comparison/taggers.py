"""How often the most probable mention of a tagger is just the words that name the subject."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from kbtools.comparison.gold import ABSENT, Gold
from kbtools.kb.contract import KnowledgeBase
from kbtools.linking.mentions import label_mention
from kbtools.pruning.tagging import Tagger, word_span
from kbtools.text.question import Question

AT_ONCE = 512
"""Questions that a tagger reads in one call."""


def judge_tagger(
    kb: KnowledgeBase, tagger: Tagger, gold: Gold, progress: Callable[[int], None]
) -> dict[str, NDArray[np.int8]]:
    """Say of each question whether its mention is known from the gold subject, and whether the tagger found it."""
    labelled, right = np.zeros(len(gold), dtype=np.int8), np.zeros(len(gold), dtype=np.int8)
    for start in range(0, len(gold), AT_ONCE):
        known: dict[int, tuple[int, int]] = {}
        questions: list[Question] = []
        for at, one in enumerate(gold.questions[start : start + AT_ONCE], start):
            question = Question.read(one.text)
            mention = None
            if gold.subject[at] != ABSENT:
                mention = label_mention(kb, question, subject=int(gold.subject[at]))
            span = word_span(question, mention) if mention else None
            if span:
                known[at] = span
                questions.append(question)
        for (at, span), probable in zip(known.items(), tagger.spans(questions) if questions else (), strict=True):
            labelled[at] = 1
            right[at] = span == divmod(int(np.argmax(probable)), probable.shape[1])
        progress(min(start + AT_ONCE, len(gold)))
    return {"labelled": labelled, "right": right}
