"""Content words of questions: those that could be part of a name, since neither questions nor relations use them."""

import unicodedata
from functools import lru_cache

from kbtools.kb.contract import KnowledgeBase, relation_texts
from kbtools.text.function_words import AUXILIARIES, COMMON_WORDS, CONTEXT_WORDS, FUNCTION_WORDS, QUESTION_WORDS
from kbtools.text.relation_words import stems_of, words_of_all

OUTSIDE = QUESTION_WORDS | CONTEXT_WORDS | frozenset("are did does has have is was were would".split())
"""Words between which names stand, rather than in them."""

WEAK = FUNCTION_WORDS | AUXILIARIES | COMMON_WORDS | OUTSIDE
"""Words that say nothing of what a question is about."""

SHORTEST_WORD = 3
"""Letters of a content word: a name of four letters may have lost one."""

WORDS_REMEMBERED = 100_000
"""Words whose use in relations is remembered."""

KBS_REMEMBERED = 16
"""Knowledge bases whose stems are remembered: those that a server holds open."""


@lru_cache(WORDS_REMEMBERED)
def is_spelt(word: str) -> bool:
    """Return whether a word is all letters, with vowel signs and the like."""
    return word.isalpha() or all(unicodedata.category(letter)[0] in "LM" for letter in word)


class ContentWords:
    """The content words of questions to a knowledge base; words of its relations are none, in any form."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self.stems = relation_stems(tuple(relation_texts(kb)))
        # Most of what clean questions pay here.
        self.is_relation_word = lru_cache(WORDS_REMEMBERED)(self.shares_stem)
        self.has = lru_cache(WORDS_REMEMBERED)(self.is_content)

    def is_content(self, word: str) -> bool:
        """Return whether a word is a content word: long enough, no number, no word of questions or relations."""
        return len(word) >= SHORTEST_WORD and is_spelt(word) and word not in WEAK and not self.is_relation_word(word)

    def may_end_before(self, word: str) -> bool:
        """Return whether a word is likely to stand beside a name."""
        return word in WEAK or self.is_relation_word(word)

    def shares_stem(self, word: str) -> bool:
        """Return whether a word is a form of one of the relations' words."""
        return not self.stems.isdisjoint(stems_of(word))


@lru_cache(KBS_REMEMBERED)
def relation_stems(texts: tuple[str, ...]) -> frozenset[str]:
    """Gather the stems of the words of relations, once for all that ask: thousands take a tenth of a second."""
    return frozenset(stem for word in words_of_all(texts) for stem in stems_of(word))
