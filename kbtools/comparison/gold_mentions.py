"""Mentions of the gold subjects in questions: those that are linkable, and those that a tagger finds."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from kbtools.answering.gold import Gold
from kbtools.kb.contract import KnowledgeBase
from kbtools.linking.strict import link_all_strictly
from kbtools.pruning.tagging import Tagger, label_mentions, tag, word_span
from kbtools.ranking.opened_system import TOGETHER

TAGGED_AT_ONCE = 512
"""Questions that a tagger reads in one call: its spans grow with the square of a question's words."""


def find_linkable(kb: KnowledgeBase, gold: Gold) -> NDArray[np.bool_]:
    """Mark the questions of which some n-gram is strictly a name of the gold subject: (questions,)."""
    linkable = np.zeros(len(gold), dtype=np.bool_)
    for start in range(0, len(gold), TOGETHER):
        for at, links in enumerate(link_all_strictly(kb, gold.texts[start : start + TOGETHER]), start):
            linkable[at] = any(gold.subject[at] in link.entities for link in links)
    return linkable


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
