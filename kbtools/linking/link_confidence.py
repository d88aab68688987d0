"""Confidence in links: whether a mention means the matched name, from its rung and from the content words around it
that could belong to a longer name because neither questions nor relations use them."""

import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate

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

# On 4,000 validation questions of FBSQ with the default scorer, the area under the risk-coverage curve is 0.124 with
# these factors, 0.131 without and 0.125 with their squares, which also withhold right answers about the Human Phenotype
# Ontology. For subjects with a name, confidence is within 0.06 of the share that is right.
BESIDE, ELSEWHERE = 0.67, 0.84
"""The factor for each content word outside the mention: next to it, where the name might go on, or elsewhere."""

_BEFORE_KINDS = frozenset({"how", "what", "which"})
"""Words before a kind of answer, as in `how tall` and `which country`; that word is not counted."""

LOOSE = {Rung.VARIANT: 0.9, Rung.FUZZY: 0.84}
"""The factors of the looser rungs; the other rungs have 1."""

_OUTSIDE = QUESTION_WORDS | CONTEXT_WORDS | frozenset("are did does has have is was were would".split())
"""Words that stand between names rather than inside them."""

WEAK = FUNCTION_WORDS | AUXILIARIES | COMMON_WORDS | _OUTSIDE
"""Words that say nothing about the topic of a question."""

_SHORTEST_WORD = 3
"""Fewest letters of a content word: a name of four letters may have lost one."""

_WORDS_REMEMBERED = 100_000
"""Words whose use in relations is cached."""

_KBS_REMEMBERED = 16
"""Knowledge bases whose stems are cached, enough for a server."""


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
        # Sums and places of gaps keep the confidence of many links in a long question from taking quadratic time.
        sums = [0, *accumulate(left)]
        gaps = [-1, *(place for place, counts in enumerate(left) if not counts), len(left)]
        starts, ends = [word.start for word in words], [word.end for word in words]
        factors = {}
        for start, end in {(link.start, link.end) for link in links}:
            before, behind = bisect_right(ends, start), bisect_left(starts, end)
            outside = sums[before] + sums[-1] - sums[behind]
            beside = before - 1 - gaps[bisect_left(gaps, before) - 1] + gaps[bisect_left(gaps, behind)] - behind
            factors[start, end] = BESIDE**beside * ELSEWHERE ** (outside - beside)
        return np.array([factors[link.start, link.end] * LOOSE.get(link.rung, 1.0) for link in links])


@lru_cache(_WORDS_REMEMBERED)
def _is_spelt(word: str) -> bool:
    """Return whether a word has only letters, including combining vowel signs."""
    return word.isalpha() or all(unicodedata.category(letter)[0] in "LM" for letter in word)


class ContentWords:
    """The content words of questions, which exclude every form of the words of relations.

    `weak` and `outside` are WEAK and _OUTSIDE in the languages of questions.
    """

    def __init__(self, kb: KnowledgeBase) -> None:
        languages = question_languages(kb)
        english = reads_english(languages)
        self.weak = weak_words(languages) | (WEAK if english else frozenset())
        self.outside = hinting_words(languages) | (_OUTSIDE if english else frozenset())
        self.stems = _relation_stems(tuple(text for labels in relation_labels(kb) for text in labels))
        # Most of the time that a correctly spelt question spends here.
        self.is_relation_word = lru_cache(_WORDS_REMEMBERED)(self.shares_stem)
        self.has = lru_cache(_WORDS_REMEMBERED)(self.is_content)

    def is_content(self, word: str) -> bool:
        """Return whether a word is long enough, not a number, and neither a question word nor in a relation."""
        return (
            len(word) >= _SHORTEST_WORD
            and _is_spelt(word)
            and word not in self.weak
            and not self.is_relation_word(word)
        )

    def may_end_before(self, word: str) -> bool:
        """Return whether a word is likely to stand next to a name."""
        return word in self.weak or self.is_relation_word(word)

    def shares_stem(self, word: str) -> bool:
        """Return whether a word is a form of a word of the relations."""
        return not self.stems.isdisjoint(stems_of(word))


@lru_cache(_KBS_REMEMBERED)
def _relation_stems(texts: tuple[str, ...]) -> frozenset[str]:
    """Return the stems of the words of relations, cached because thousands take 0.1 s."""
    return frozenset(stem for word in words_of_all(texts) for stem in stems_of(word))
