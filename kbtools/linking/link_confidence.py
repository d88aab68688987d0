"""Confidence in links: whether a mention means the name it matched, by its rung and by the content words it
leaves over: those that could be part of a name, since neither questions nor relations use them."""

import unicodedata
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from kbtools.kb.contract import KnowledgeBase
from kbtools.kb.views import question_languages, relation_labels
from kbtools.linking.links import Link
from kbtools.text.function_words import AUXILIARIES, COMMON_WORDS, CONTEXT_WORDS, FUNCTION_WORDS, QUESTION_WORDS
from kbtools.text.lexicons import hinting_words, reads_english, weak_words
from kbtools.text.question import Question
from kbtools.text.relation_words import stems_of, words_of_all
from kbtools.text.rungs import Rung

# 4,000 validation questions of FBSQ: with the default scorer the area under the curve of risk against coverage is 0.124
# with these factors, 0.131 without any, 0.125 with their squares, which cost right answers about the Human Phenotype
# Ontology their confidence. Where the subject has a name, confidence is the share that is right within 0.06.
BESIDE, ELSEWHERE = 0.67, 0.84
"""The factor for each content word outside the mention: next to it, as if the name went on, or apart."""

_BEFORE_KINDS = frozenset({"how", "what", "which"})
"""Words before a kind of answer, as in `how tall` and `which country`, which is not left over."""

LOOSE = {Rung.VARIANT: 0.9, Rung.FUZZY: 0.84}
"""The factor of the looser rungs; that of the others is 1."""

_OUTSIDE = QUESTION_WORDS | CONTEXT_WORDS | frozenset("are did does has have is was were would".split())
"""Words between which names stand, rather than in them."""

WEAK = FUNCTION_WORDS | AUXILIARIES | COMMON_WORDS | _OUTSIDE
"""Words that say nothing of what a question is about."""

_SHORTEST_WORD = 3
"""Letters of a content word: a name of four letters may have lost one."""

_WORDS_REMEMBERED = 100_000
"""Words whose use in relations is remembered."""

_KBS_REMEMBERED = 16
"""Knowledge bases whose stems are remembered: those that a server holds open."""


class LinkConfidence:
    """The confidence in the links of questions to a knowledge base, 0 to 1."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self.content = ContentWords(kb)

    def of(self, question: Question, links: Sequence[Link]) -> NDArray[np.float64]:
        """Return the confidence in each link, 0 to 1: (links,)."""
        words = [token for token in question.tokens if token.is_word]
        left = [
            self.content.has(word.text) and not (place and words[place - 1].text in _BEFORE_KINDS)
            for place, word in enumerate(words)
        ]
        factors = {}
        for start, end in {(link.start, link.end) for link in links}:
            before = [over for word, over in zip(words, left, strict=True) if word.end <= start]
            behind = [over for word, over in zip(words, left, strict=True) if word.start >= end]
            beside = _run_length(before[::-1]) + _run_length(behind)
            factors[start, end] = BESIDE**beside * ELSEWHERE ** (sum(before) + sum(behind) - beside)
        return np.array([factors[link.start, link.end] * LOOSE.get(link.rung, 1.0) for link in links])


def _run_length(marks: Sequence[bool]) -> int:
    """Count the marks up to the first that is not set."""
    return marks.index(False) if False in marks else len(marks)


@lru_cache(_WORDS_REMEMBERED)
def _is_spelt(word: str) -> bool:
    """Return whether a word is all letters, with vowel signs and the like."""
    return word.isalpha() or all(unicodedata.category(letter)[0] in "LM" for letter in word)


class ContentWords:
    """The content words of questions to a knowledge base; words of its relations are none, in any form.

    `weak` and `outside` are WEAK and _OUTSIDE in the languages of questions.
    """

    def __init__(self, kb: KnowledgeBase) -> None:
        languages = question_languages(kb)
        english = reads_english(languages)
        self.weak = weak_words(languages) | (WEAK if english else frozenset())
        self.outside = hinting_words(languages) | (_OUTSIDE if english else frozenset())
        self.stems = _relation_stems(tuple(text for labels in relation_labels(kb) for text in labels))
        # Most of what clean questions pay here.
        self.is_relation_word = lru_cache(_WORDS_REMEMBERED)(self.shares_stem)
        self.has = lru_cache(_WORDS_REMEMBERED)(self.is_content)

    def is_content(self, word: str) -> bool:
        """Return whether a word is a content word: long enough, no number, no word of questions or relations."""
        return (
            len(word) >= _SHORTEST_WORD
            and _is_spelt(word)
            and word not in self.weak
            and not self.is_relation_word(word)
        )

    def may_end_before(self, word: str) -> bool:
        """Return whether a word is likely to stand beside a name."""
        return word in self.weak or self.is_relation_word(word)

    def shares_stem(self, word: str) -> bool:
        """Return whether a word is a form of one of the relations' words."""
        return not self.stems.isdisjoint(stems_of(word))


@lru_cache(_KBS_REMEMBERED)
def _relation_stems(texts: tuple[str, ...]) -> frozenset[str]:
    """Gather the stems of the words of relations, once for all that ask: thousands take a tenth of a second."""
    return frozenset(stem for word in words_of_all(texts) for stem in stems_of(word))
