"""Variants of a knowledge base's owner: words of names that may be written in another way, read from a table."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from kbtools.errors import InputError
from kbtools.text.ngrams import Ngram
from kbtools.text.normaliser import normal_form
from kbtools.text.question import Question
from kbtools.text.rungs import Form

MOST_WRITTEN = 8
"""Words of an n-gram that may be written otherwise."""

Table = Mapping[str, Sequence[Sequence[str]]]
"""By the first word of one way to write something, that way and the other, in normal form."""

NO_VARIANTS: Table = {}


def variant_table(pairs: Iterable[tuple[str, str]]) -> dict[str, list[list[str]]]:
    """Arrange pairs of ways to write the same, each way leading to the other."""
    table: dict[str, list[list[str]]] = {}
    for one, other in pairs:
        for written, meant in ((normal_form(one), normal_form(other)), (normal_form(other), normal_form(one))):
            if written and meant and written != meant:
                table.setdefault(written.split(" ")[0], []).append([written, meant])
    return table


def read_variants(path: Path) -> list[tuple[str, str]]:
    """Read a table of two columns, with a tab or a comma between; raise InputError for one that cannot be used."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = "not UTF-8" if isinstance(error, UnicodeDecodeError) else error.strerror
        raise InputError(f"{path}: cannot be read ({reason})", path=str(path)) from error
    pairs = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            cells = [cell.strip() for cell in line.split("\t" if "\t" in line else ",")]
            if len(cells) != 2 or not all(map(normal_form, cells)):
                raise InputError(
                    f"{path}:{number}: found {line!r}, expected two ways to write the same with a tab between",
                    path=str(path),
                )
            pairs.append((cells[0], cells[1]))
    return pairs


def owner_ngrams(question: Question, lengths: frozenset[int], table: Table) -> Iterator[Ngram]:
    """Yield the n-grams that hold words of a table, with the other way to write these."""
    words = [(place, token) for place, token in enumerate(question.tokens) if token.is_word]
    texts = [token.text for _, token in words]
    for at, text in enumerate(texts):
        for written, meant in table.get(text, ()):
            end = at + written.count(" ") + 1
            if " ".join(texts[at:end]) != written:
                continue
            for first in range(max(0, end - MOST_WRITTEN), at + 1):
                for last in range(end, min(first + MOST_WRITTEN, len(words)) + 1):
                    form = " ".join([*texts[first:at], meant, *texts[end:last]])
                    if form.count(" ") + 1 in lengths:
                        (begin, opening), (close, closing) = words[first], words[last - 1]
                        yield Ngram(form, begin, close, opening.start, closing.end, Form.OTHERWISE)
