"""Every way to read the words of a question as a name: as they stand, written otherwise, inside unspaced words."""

from collections.abc import Iterable, Iterator

from kbtools.text.function_words import AUXILIARIES, QUESTION_WORDS
from kbtools.text.ngrams import Ngram, Runs, every_run, ngrams
from kbtools.text.owner_variants import NO_VARIANTS, Table, owner_ngrams
from kbtools.text.question import Question
from kbtools.text.tokens import Token
from kbtools.text.unspaced import inner_ngrams
from kbtools.text.variants import CONJUNCTIONS, is_special, variant_forms

OUTER = QUESTION_WORDS | AUXILIARIES
"""Words that an n-gram neither begins nor ends with if it is written otherwise."""

MOST_WRITTEN = 8
"""Words of an n-gram that may be written otherwise: each adds some ten forms to look up."""


def every_ngram(
    question: Question, *, lengths: Iterable[int], table: Table = NO_VARIANTS, likely: Runs = every_run
) -> list[Ngram]:
    """List the n-grams of a question, those that may be written otherwise, and those inside words without spaces.

    The owner of a knowledge base may have a table of other ways to write words. Of the words as they stand only likely
    runs are listed, where something tells which these are.
    """
    wanted = frozenset(lengths)
    every = ngrams(question, lengths=wanted, likely=likely)
    every += variant_ngrams(question, wanted)
    if table:
        every += owner_ngrams(question, wanted, table)
    if not question.text.isascii():
        every += inner_ngrams(question, wanted)
    return every


def variant_ngrams(question: Question, lengths: frozenset[int]) -> Iterator[Ngram]:
    """Yield n-grams as names are stored that are written otherwise: `iron kite ii` as `iron kite 2`."""
    words = [(place, token) for place, token in enumerate(question.tokens) if token.is_word]
    texts = [token.text for _, token in words]
    special = [position for position, text in enumerate(texts) if is_special(text)]
    if not special:
        return
    # A conjunction is left out between others: alone at an edge it makes no other form.
    edges = [text in CONJUNCTIONS for text in texts]
    joins = [follows(question.text, words[position - 1 : position + 1]) for position in range(len(words))]
    windows = {
        (first, last)
        for at in special
        for first in range(max(0, at - MOST_WRITTEN + 1), at + (not edges[at]))
        for last in range(max(at + edges[at], first + 1), min(first + MOST_WRITTEN, len(words)))
    }
    for first, last in sorted(windows):
        if OUTER.intersection((texts[first], texts[last])):
            continue
        (begin, opening), (end, closing) = words[first], words[last]
        for form, reading in variant_forms(texts[first : last + 1], joins[first : last + 1]):
            if form.count(" ") + 1 in lengths:
                yield Ngram(form, begin, end, opening.start, closing.end, reading)


def follows(text: str, pair: list[tuple[int, Token]]) -> bool:
    """Return whether the second of two words follows the first without a space."""
    return len(pair) == 2 and not any(map(str.isspace, text[pair[0][1].end : pair[1][1].start]))
