"""All readings of a question's words as names: as written, rewritten, by the user's table of variants, and inside words
of scripts without spaces or before Korean particles."""

import re
import unicodedata
from bisect import bisect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from kbtools.deadline import check_time
from kbtools.errors import InputError
from kbtools.text.common_words import ORDINARY, commonness
from kbtools.text.function_words import AUXILIARIES, FUNCTION_WORDS, QUESTION_WORDS
from kbtools.text.ngrams import Ngram, Runs, every_run, ngrams, span_ngram
from kbtools.text.normaliser import normal_form
from kbtools.text.question import UNSPACED, Question, Token
from kbtools.text.rungs import Form
from kbtools.text.variants import CONJUNCTIONS, is_special, variant_forms

OUTER = QUESTION_WORDS | AUXILIARIES
"""Words with which a rewritten n-gram neither begins nor ends."""

MOST_WRITTEN = 8
"""The most words of a rewritten n-gram; each adds about ten forms to look up."""

_MOST_REWRITTEN = 32
"""The most rewritings of an n-gram by the user's table."""

_PARTICLE = re.compile(
    "(?<=[\uac00-\ud7a3])(?:은|는|이|가|을|를|의|에|에서|에게|에는|에서는|에도|와|과|로|으로|도|만|까지|부터|보다|처럼|"
    "하고|이나|나|이랑|랑|께|께서|한테|이란|란|이라는|라는|이다|입니다|인가요|인가|이야|야|이며|며)"
)
"""Korean particles, which follow a name without a space."""

_DIVIDED = re.compile(rf"(?<={UNSPACED.pattern}) (?={UNSPACED.pattern})")
"""The place of a mark inside a name, `スター・ウォーズ`, which may be omitted."""

_HINT = re.compile(rf"{UNSPACED.pattern}|[\uac00-\ud7a3]")

_SHORTEST_INNER = 2
"""Fewest characters of a name inside a word; a single one occurs in too many words."""

_LONGEST_INNER = 24
"""The most characters of a name that begins or ends inside a word, which limits the forms to look up."""

HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[^\W\d_])(?=\d)|(?<=\d)(?=[^\W\d_])")
"""A place inside a word where another may begin: `#NewYork`, `route66`."""

_SHORTEST_DIVIDED, _LONGEST_DIVIDED, _SHORTEST_PART = 6, 24, 2
"""Fewest and most letters of a word that may be two, or of two that may be one, and fewest of each part."""

Table = Mapping[str, Sequence[Sequence[str]]]
"""A spelling and its alternative, in normal form, by the first word of the spelling."""

NO_VARIANTS: Table = {}


def every_ngram(
    question: Question, *, lengths: Iterable[int], table: Table = NO_VARIANTS, likely: Runs = every_run
) -> list[Ngram]:
    """Return the n-grams of a question, rewritten ones, and those inside words without spaces.

    `table` has the user's alternative spellings. Of the words as written, only `likely` runs are returned.
    """
    wanted = frozenset(lengths)
    every = ngrams(question, lengths=wanted, likely=likely)
    every += _variant_ngrams(question, wanted)
    if table:
        every += _owner_ngrams(question, wanted, table)
    if "#" in question.text:
        every += respaced_ngrams(question, wanted)
    if not question.text.isascii():
        every += inner_ngrams(question, wanted)
    return every


def _variant_ngrams(question: Question, lengths: frozenset[int]) -> Iterator[Ngram]:
    """Yield n-grams in the form under which variants are stored: `iron kite 2` for `iron kite ii`."""
    words = [(place, token) for place, token in enumerate(question.tokens) if token.is_word]
    texts = [token.text for _, token in words]
    special = [position for position, text in enumerate(texts) if is_special(text)]
    if not special:
        return
    # A conjunction is dropped between words; at an edge it makes no other form.
    edges = [text in CONJUNCTIONS for text in texts]
    joins = [_follows(question.text, words[position - 1 : position + 1]) for position in range(len(words))]
    windows = {
        (first, last)
        for at in special
        for first in range(max(0, at - MOST_WRITTEN + 1), at + (not edges[at]))
        for last in range(max(at + edges[at], first + 1), min(first + MOST_WRITTEN, len(words)))
    }
    for first, last in sorted(windows):
        if OUTER.intersection((texts[first], texts[last])):
            continue
        for form, reading in variant_forms(texts[first : last + 1], joins[first : last + 1]):
            if form.count(" ") + 1 in lengths:
                yield span_ngram(words, first, last, form, reading)


def _follows(text: str, pair: list[tuple[int, Token]]) -> bool:
    """Return whether the second of two words follows without a space."""
    return len(pair) == 2 and not any(map(str.isspace, text[pair[0][1].end : pair[1][1].start]))


class _Cuts(NamedTuple):
    """Characters of a question at which a name may begin or end in a word, ascending, including its edges."""

    starts: list[int]
    ends: list[int]


def inner_ngrams(question: Question, lengths: frozenset[int]) -> Iterator[Ngram]:
    """Yield n-grams that begin or end inside a word: `成都` in `成都的人口`, `서울` in `서울의`.

    A name of several words may begin in one word and end in another.
    """
    if not _HINT.search(question.text):
        return
    words = [(place, token) for place, token in enumerate(question.tokens) if token.is_word]
    cuts = [_word_cuts(question.text, token) for _, token in words]
    longest = max(lengths, default=0)
    for at, (first, opening) in enumerate(words):
        for start in cuts[at].starts:
            check_time()
            for (last, closing), other in zip(words[at : at + longest], cuts[at : at + longest], strict=True):
                for end in other.ends[bisect(other.ends, start) : bisect(other.ends, start + _LONGEST_INNER)]:
                    if end - start >= _SHORTEST_INNER and (start > opening.start or end < closing.end):
                        form = normal_form(question.text[start:end])
                        if form.count(" ") + 1 in lengths:
                            yield Ngram(form, first, last, start, end)
                        if " " in form and (together := _DIVIDED.sub("", form)).count(" ") + 1 in lengths:
                            yield Ngram(together, first, last, start, end, Form.OTHERWISE)


def respaced_ngrams(question: Question, lengths: frozenset[int]) -> Iterator[Ngram]:
    """Yield n-grams with a word split or two words joined, alone and with a neighbouring word on either side."""
    words = [(place, token) for place, token in enumerate(question.tokens) if token.is_word]
    texts = [token.text for _, token in words]
    for at, (_, token) in enumerate(words):
        written = [(at, form) for form in divisions(question.text[token.start : token.end])]
        if at and are_parts(texts[at - 1], texts[at]):
            written.append((at - 1, texts[at - 1] + texts[at]))
        for begin, form in written:
            for first in range(max(0, begin - 1), begin + 1):
                for last in range(at, min(at + 2, len(words))):
                    whole = " ".join([*texts[first:begin], form, *texts[at + 1 : last + 1]])
                    if whole.count(" ") + 1 in lengths:
                        yield span_ngram(words, first, last, whole, Form.OTHERWISE)


def divisions(word: str) -> list[str]:
    """Return the forms of a word as two: split at humps or digits, or for a rare word at each letter."""
    if HUMP.search(word):
        return [normal_form(HUMP.sub(" ", word))]
    if not _SHORTEST_DIVIDED <= len(word) <= _LONGEST_DIVIDED or not word.isalpha() or UNSPACED.search(word):
        return []
    form = normal_form(word)
    if commonness(form) > ORDINARY:
        return []
    return [f"{form[:at]} {form[at:]}" for at in range(_SHORTEST_PART, len(form) - _SHORTEST_PART + 1)]


def are_parts(before: str, word: str) -> bool:
    """Return whether two words may be one: content words of sufficient length."""
    return (
        len(before) + len(word) >= _SHORTEST_DIVIDED
        and min(len(before), len(word)) >= _SHORTEST_PART
        and before.isalpha()
        and word.isalpha()
        and FUNCTION_WORDS.isdisjoint((before, word))
    )


def _word_cuts(text: str, token: Token) -> _Cuts:
    """Return where names may begin and end in a word: at letters of an unspaced script, and before a particle."""
    word = text[token.start : token.end]
    inner = [
        token.start + at
        for at in range(1, len(word))
        if (UNSPACED.match(word, at - 1) or UNSPACED.match(word, at))
        and unicodedata.category(word[at]) not in ("Mn", "Mc", "Lm")
    ]
    particles = [token.start + at for at in range(1, len(word)) if _PARTICLE.fullmatch(word, at)]
    return _Cuts([token.start, *inner], sorted({*inner, *particles, token.end}))


def variant_table(pairs: Iterable[tuple[str, str]]) -> dict[str, list[list[str]]]:
    """Return pairs of spellings as a table that maps each spelling to the other."""
    table: dict[str, list[list[str]]] = {}
    for one, other in pairs:
        for written, meant in ((normal_form(one), normal_form(other)), (normal_form(other), normal_form(one))):
            if written and meant and written != meant:
                table.setdefault(written.split(" ")[0], []).append([written, meant])
    return table


def read_variants(path: Path) -> list[tuple[str, str]]:
    """Return a table of two columns separated by a tab or comma; raise InputError if it is invalid."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = "not UTF-8" if isinstance(error, UnicodeDecodeError) else error.strerror
        raise InputError.at(path, f"cannot be read ({reason})") from error
    pairs = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            cells = [cell.strip() for cell in line.split("\t" if "\t" in line else ",")]
            if len(cells) != 2 or not all(map(normal_form, cells)):
                raise InputError(
                    f"{path}:{number}: found {line!r}, expected two spellings separated by a tab", path=str(path)
                )
            pairs.append((cells[0], cells[1]))
    return pairs


def _owner_ngrams(question: Question, lengths: frozenset[int], table: Table) -> Iterator[Ngram]:
    """Yield the n-grams with words of a table, in their alternative spellings."""
    words = [(place, token) for place, token in enumerate(question.tokens) if token.is_word]
    texts = [token.text for _, token in words]
    if not any(text in table for text in texts):
        return
    for first in range(len(words)):
        for last in range(first, min(first + MOST_WRITTEN, len(words))):
            for form in rewrite(texts[first : last + 1], table):
                if form.count(" ") + 1 in lengths:
                    yield span_ngram(words, first, last, form, Form.OTHERWISE)


def rewrite(words: Sequence[str], table: Table) -> list[str]:
    """Return alternative spellings of words by a table, with each row applied or not, at most MOST_REWRITTEN."""
    written: list[list[list[str]]] = [[[]], *([] for _ in words)]  # the spellings of the words up to each place
    for at, word in enumerate(words):
        steps = [([word], 1)] + [
            (meant.split(" "), length)
            for one, meant in table.get(word, ())
            if words[at : at + (length := one.count(" ") + 1)] == one.split(" ")
        ]
        for meant, length in steps:
            ways = [[*way, *meant] for way in written[at]]
            written[at + length] = (written[at + length] + ways)[:_MOST_REWRITTEN]
    return [form for form in map(" ".join, written[-1]) if form != " ".join(words)]
