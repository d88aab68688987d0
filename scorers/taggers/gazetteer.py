"""The names of a knowledge base as features of a tagger: for each word, whether names begin, go on or end there."""

import numpy as np
from numpy.typing import NDArray

from kbtools.kb.contract import KnowledgeBase
from kbtools.pruning.n_gram_idf import NGramIdf
from kbtools.pruning.tagging import opening, word_places
from kbtools.text.function_words import has_content
from kbtools.text.ngrams import ngrams
from kbtools.text.question import Question

BITS = 6
"""Bits of a word: begins, is in, ends a name that no longer name contains; the same three for the rarest name."""


class Gazetteer:
    """A marker of the words of questions by the names of a knowledge base."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb = kb
        self.rarity = NGramIdf(kb)

    def bits(self, question: Question) -> NDArray[np.float32]:
        """Return the bits of each word: (words, BITS) of zeros and ones."""
        word_at = {place: word for word, place in enumerate(word_places(question))}
        every = ngrams(opening(question), lengths=self.kb.manifest.lengths, likely=self.kb.likely_runs)
        candidates = [ngram for ngram in every if ngram.first in word_at]
        names = self.kb.lookup([ngram.form for ngram in candidates])
        linked = [ngram for ngram in candidates if ngram.form in names and has_content(ngram.form)]
        marks = np.zeros((len(word_at), BITS), dtype=np.float32)
        spans = {(word_at[ngram.first], word_at[ngram.last]) for ngram in linked}
        for first, last in spans:
            if not any(a <= first and last <= b and (a, b) != (first, last) for a, b in spans):
                mark(marks, first, last, bit=0)
        if linked:
            self.rarity.learn({word for ngram in linked for word in ngram.form.split(" ")})
            rarest = max(linked, key=lambda ngram: (self.rarity.weigh(ngram.form), ngram.last - ngram.first))
            mark(marks, word_at[rarest.first], word_at[rarest.last], bit=3)
        return marks


def mark(marks: NDArray[np.float32], first: int, last: int, *, bit: int) -> None:
    """Set the bits of the words `first` to `last`: begins, is in, ends."""
    marks[first, bit] = marks[last, bit + 2] = 1.0
    marks[first : last + 1, bit + 1] = 1.0
