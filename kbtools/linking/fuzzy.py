"""Fuzzy linking: from misspelt words of a question to the names that resemble them."""

from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np

from kbtools.kb.contract import KnowledgeBase
from kbtools.kb.rows import EntityRows
from kbtools.linking.links import Link
from kbtools.text.function_words import AUXILIARIES, CONTEXT_WORDS, FUNCTION_WORDS, QUESTION_WORDS
from kbtools.text.ngrams import Ngram
from kbtools.text.question import Question
from kbtools.text.relation_words import words_of_all
from kbtools.text.rungs import Rung

LONGEST_SPAN = 6
"""Words of a mention that may be misspelt."""

TRIED = 3
"""Mentions that are looked up fuzzily before a question is given up."""

OUTSIDE = QUESTION_WORDS | AUXILIARIES | CONTEXT_WORDS
"""Words that end a misspelt mention rather than stand in it."""

STEM = 5
"""Letters by which a word is one of the relations' words: `published` is `publisher`."""

SHORTEST_WORD = 4
"""Letters of a word that may be misspelt: shorter ones have too many neighbours."""


def link_fuzzily(kb: KnowledgeBase, ngram: Ngram, *, but: EntityRows) -> list[Link]:
    """Link an n-gram to the names most similar to it, at most twenty (paper, section Focused Pruning).

    Entities in `but` are left out: they have a stricter link.
    """
    similar = kb.similar(ngram.form)
    matches = kb.lookup([name.form for name in similar])
    links = []
    for name in similar:
        for match in matches.get(name.form, ()):
            entities = match.entities[np.isin(match.entities, but, invert=True)]
            if len(entities):
                similarity = name.similarity
                links.append(
                    Link(ngram, ngram.start, ngram.end, match.name, Rung.FUZZY, entities, similarity=similarity)
                )
    return links


class Misspelling:
    """The misspelt mentions of a question.

    A word is suspect if no name holds it, it is no number, and the relations do not speak of it either
    (`published` is a verb, not a misspelling).
    """

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb = kb
        self.stems = frozenset(word[:STEM] for word in words_of_all(kb.relations))

    def links(self, question: Question, *, strict: Sequence[Link] = ()) -> list[Link]:
        """Link the n-grams around suspect words, the longest first, until one of them is similar to a name.

        Entities that are linked strictly keep their stricter link.
        """
        linked = np.concatenate([link.entities for link in strict]) if strict else np.empty(0, dtype=np.uint32)
        spans = list(islice(self.spans(question), TRIED))
        self.kb.expect_similar([ngram.form for ngram in spans])
        for ngram in spans:
            links = link_fuzzily(self.kb, ngram, but=linked)
            if links:
                return links
        return []

    def spans(self, question: Question) -> Iterator[Ngram]:
        """Yield the n-grams with a suspect word that could be a name, the longest first."""
        words = [(place, token) for place, token in enumerate(question.tokens) if token.is_word]
        candidates = [position for position, (_, token) in enumerate(words) if self.may_be_suspect(token.text)]
        counts = self.kb.name_frequency([words[position][1].text for position in candidates])
        suspects = {position for position, count in zip(candidates, counts, strict=True) if count == 0}
        if not suspects:
            return
        texts = [token.text for _, token in words]
        for length in range(LONGEST_SPAN, 0, -1):
            for first in range(len(words) - length + 1):
                last = first + length - 1
                inside = texts[first : last + 1]
                if (
                    any(first <= suspect <= last for suspect in suspects)
                    and not OUTSIDE.intersection(inside)
                    and all(edge in suspects or self.may_be_edge(texts[edge]) for edge in (first, last))
                ):
                    form = " ".join(inside)
                    yield Ngram(form, words[first][0], words[last][0], words[first][1].start, words[last][1].end)

    def may_be_suspect(self, word: str) -> bool:
        return len(word) >= SHORTEST_WORD and word.isalpha() and word not in CONTEXT_WORDS and self.may_be_edge(word)

    def may_be_edge(self, word: str) -> bool:
        return word not in FUNCTION_WORDS and not self.is_relation_word(word)

    def is_relation_word(self, word: str) -> bool:
        return word[:STEM] in self.stems
