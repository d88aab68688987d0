"""N-gram pruning by rarity: the mention is made of the words that few names hold. No training, beyond the paper."""

import math

from kbtools.candidates import Link
from kbtools.knowledge import KnowledgeBase
from kbtools.linking import link_strictly
from kbtools.misspelling import Misspelling, relation_words
from kbtools.ngrams import Question
from kbtools.pruning.words import FUNCTION_WORDS, has_content, is_spoken

KEPT = 3
"""Mentions that are kept, the weightiest first."""

RELATION_WORD, STOP_WORD = 0.5, 0.1
"""What a word of the relations' names weighs beside its rarity; what a stop word weighs at all."""

REMEMBERED = 100_000
"""Words whose rarity is kept in memory."""

TEMPERATURE = 1.0
"""Log-probability that a unit of weight is worth; chosen on FBSQ's validation split."""


class NGramIdf:
    """Weigh n-grams by the rarity of their words and keep the best that link.

    The weight of a link is a log-probability over the n-grams that were kept, up to a constant. A word that no name
    holds outweighs every other: its n-grams link fuzzily.
    """

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb = kb
        self.forms = kb.manifest.statistics["forms"]
        self.misspelling = Misspelling(kb)
        self.relation_words = relation_words(list(kb.relations))
        self.rarities = dict.fromkeys(FUNCTION_WORDS, STOP_WORD)

    def links(self, question: Question) -> list[Link]:
        strict = link_strictly(self.kb, question)
        links = strict + self.misspelling.links(question, strict=strict)
        weights = {form: self.weigh(form) for form in {link.ngram.form for link in links}}
        best = sorted(set(weights.values()), reverse=True)[:KEPT]
        return [
            link._replace(weight=TEMPERATURE * (weights[link.ngram.form] - best[0]))
            for link in links
            if weights[link.ngram.form] >= best[-1]
        ]

    def weigh(self, form: str) -> float:
        """Sum the rarities of the words of an n-gram; a mark that is no title weighs like a stop word."""
        if not is_spoken(form) and not has_content(form):
            return STOP_WORD / 2
        return sum(map(self.rarity, form.split(" ")))

    def rarity(self, word: str) -> float:
        """Give the inverse document frequency of a word among the names of the knowledge base."""
        known = self.rarities.get(word)
        if known is None:
            (names,) = self.kb.name_frequency([word])
            known = math.log((self.forms + 1) / (names + 1))
            if word in self.relation_words or word.removesuffix("s") in self.relation_words:
                known *= RELATION_WORD
            if len(self.rarities) < REMEMBERED:
                self.rarities[word] = known
        return known
