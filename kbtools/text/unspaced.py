"""Names inside words: in scripts that are written without spaces, and before Korean particles."""

import re
import unicodedata
from bisect import bisect
from collections.abc import Iterator
from typing import NamedTuple

from kbtools.text.ngrams import Ngram
from kbtools.text.normaliser import normal_form
from kbtools.text.question import Question
from kbtools.text.rungs import Form
from kbtools.text.tokens import UNSPACED, Token

PARTICLE = re.compile(
    "(?<=[\uac00-\ud7a3])(?:은|는|이|가|을|를|의|에|에서|에게|에는|에서는|에도|와|과|로|으로|도|만|까지|부터|보다|처럼|"
    "하고|이나|나|이랑|랑|께|께서|한테|이란|란|이라는|라는|이다|입니다|인가요|인가|이야|야|이며|며)"
)
"""Korean particles, which are written without a space behind a name."""

DIVIDED = re.compile(rf"(?<={UNSPACED.pattern}) (?={UNSPACED.pattern})")
"""The place of a mark inside a name, `スター・ウォーズ`, that is written without it too."""

HINT = re.compile(rf"{UNSPACED.pattern}|[\uac00-\ud7a3]")

SHORTEST_INNER = 2
"""Characters of a name that is found inside a word: one is a part of too many."""

LONGEST_INNER = 24
"""Characters of a name that begins or ends inside a word; the forms to look up grow with them."""


class Cuts(NamedTuple):
    """Characters of a question at which a name may begin or end in a word, ascending, its own edges among them."""

    starts: list[int]
    ends: list[int]


def inner_ngrams(question: Question, lengths: frozenset[int]) -> Iterator[Ngram]:
    """Yield what begins or ends inside a word: `成都` in `成都的人口`, `서울` in `서울의`.

    A name of several words may begin in one and end in another.
    """
    if not HINT.search(question.text):
        return
    words = [(place, token) for place, token in enumerate(question.tokens) if token.is_word]
    cuts = [word_cuts(question.text, token) for _, token in words]
    longest = max(lengths, default=0)
    for at, (first, opening) in enumerate(words):
        for start in cuts[at].starts:
            for (last, closing), other in zip(words[at : at + longest], cuts[at : at + longest], strict=True):
                for end in other.ends[bisect(other.ends, start) : bisect(other.ends, start + LONGEST_INNER)]:
                    if end - start >= SHORTEST_INNER and (start > opening.start or end < closing.end):
                        form = normal_form(question.text[start:end])
                        if form.count(" ") + 1 in lengths:
                            yield Ngram(form, first, last, start, end)
                        if " " in form and (together := DIVIDED.sub("", form)).count(" ") + 1 in lengths:
                            yield Ngram(together, first, last, start, end, Form.OTHERWISE)


def word_cuts(text: str, token: Token) -> Cuts:
    """Find where names may begin and end in a word: at each letter of an unspaced script, before a particle."""
    word = text[token.start : token.end]
    inner = [
        token.start + at
        for at in range(1, len(word))
        if (UNSPACED.match(word, at - 1) or UNSPACED.match(word, at))
        and unicodedata.category(word[at]) not in ("Mn", "Mc", "Lm")
    ]
    particles = [token.start + at for at in range(1, len(word)) if PARTICLE.fullmatch(word, at)]
    return Cuts([token.start, *inner], sorted({*inner, *particles, token.end}))
