"""Networks over words on a CPU without torch, which start and answer a single question in a fraction of its time.

ONNX Runtime computes the exported networks. The two networks of the profile `fast` use NumPy instead: loading ONNX
Runtime takes 40 ms and 21 MB, a tenth of the first answer, and a question takes 9 us either way for `embed-avg`, and
for `ltg-cnn` 120 us with NumPy and 42 us with a session.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kbtools.entry_points import import_object
from kbtools.scorers.networks.checkpoint import Checkpoint
from kbtools.scorers.networks.words import TEXTS_AT_ONCE, group_by_length, letter_trigrams

if TYPE_CHECKING:
    from kbtools.scorers.networks.sessions import Session

UNKNOWN_ROW = 1
"""The row of the unknown word or unknown part of a word."""

SESSION = "kbtools.scorers.networks.sessions:Session"

_Vectors = NDArray[np.float32]


class Forward(ABC):
    """The forward pass of an encoder, from texts of at least one word to vectors."""

    def __init__(self, saved: Checkpoint) -> None:
        self.rows = rows_by_part(saved.vocabulary)

    def look_up(self, texts: Sequence[Sequence[str]]) -> list[int]:
        """Return the rows of the words of texts, one text after the other."""
        return [self.rows.get(word, UNKNOWN_ROW) for text in texts for word in text]

    @abstractmethod
    def encode(self, texts: Sequence[Sequence[str]]) -> _Vectors:
        """Encode texts of any length: (texts, dim)."""
        ...


class EmbedAverageForward(Forward):
    """The average of the word vectors."""

    def __init__(self, saved: Checkpoint) -> None:
        super().__init__(saved)
        self.words = saved.weights["encoder.embedding.weight"]

    def encode(self, texts: Sequence[Sequence[str]]) -> _Vectors:
        sizes = np.array([len(text) for text in texts])
        summed: _Vectors = np.add.reduceat(self.words[self.look_up(texts)], _starts_of(sizes))
        summed /= sizes[:, None]
        return summed


FEW = 12
"""Most texts that a recurrent network reads in one pass of mixed lengths, such as the mentions of one question.

Two to four texts take three fifths of the time of a pass per length, twelve three quarters, sixteen as long.
"""


class BiGRUForward(Forward):
    """The last states of an exported bidirectional GRU."""

    def __init__(self, saved: Checkpoint) -> None:
        super().__init__(saved)
        self.session: Session = import_object(SESSION)(saved.graph, saved.weights, prefix="encoder.")

    def encode(self, texts: Sequence[Sequence[str]]) -> _Vectors:
        groups = [list(range(len(texts)))] if len(texts) <= FEW else group_by_length(texts, most=TEXTS_AT_ONCE)
        vectors = [self.read([texts[row] for row in group]) for group in groups]
        return np.concatenate(vectors)[np.argsort([row for group in groups for row in group])]

    def read(self, texts: Sequence[Sequence[str]]) -> _Vectors:
        """Encode texts in one pass, the shorter ones padded: (texts, dim)."""
        lengths = np.array([len(text) for text in texts], dtype=np.int32)
        tokens = np.zeros((len(texts), lengths.max()), dtype=np.int64)
        tokens[np.arange(lengths.max()) < lengths[:, None]] = self.look_up(texts)
        return self.session(tokens=tokens, lengths=lengths)


class LetterTrigramForward(Forward):
    """A convolution over bags of letter trigrams, the maximum over the words, and a projection."""

    def __init__(self, saved: Checkpoint) -> None:
        super().__init__(saved)
        self.trigrams, self.bias = saved.weights["encoder.trigrams.weight"], saved.weights["encoder.bias"]
        self.semantic = saved.weights["encoder.semantic.weight"], saved.weights["encoder.semantic.bias"]

    def encode(self, texts: Sequence[Sequence[str]]) -> _Vectors:
        distinct: dict[str, int] = {}
        words = np.array([distinct.setdefault(word, len(distinct)) for text in texts for word in text])
        bags = [[self.rows.get(part, UNKNOWN_ROW) for part in letter_trigrams(word)] for word in distinct]
        bags.append([UNKNOWN_ROW])  # Stands for the word beyond either end of a text.
        parts = self.trigrams[[row for bag in bags for row in bag]]
        summed = np.add.reduceat(parts, _starts_of(np.array([len(bag) for bag in bags])))
        summed[-1] = 0.0  # It adds nothing.
        before, here, after = np.split(summed, 3, axis=1)
        sizes = np.array([len(text) for text in texts])
        starts = _starts_of(sizes)
        left, right = np.concatenate([words[-1:], words[:-1]]), np.concatenate([words[1:], words[:1]])
        left[starts] = right[starts + sizes - 1] = len(distinct)
        windows = here[words] + before[left] + after[right]
        pooled = np.tanh(np.maximum.reduceat(windows, starts) + self.bias)
        weight, bias = self.semantic
        vectors: _Vectors = np.tanh(pooled @ weight.T + bias)
        return vectors


class DotForward:
    """The scores f(q)·E(x) of texts against every row of a table, without torch: equal to those of `DotScorer`."""

    def __init__(self, encoder: Forward, saved: Checkpoint) -> None:
        self.encoder = encoder
        self.saved = saved
        self.table, self.bias = saved.weights["table"], saved.weights.get("bias", np.float32(0))

    def score_texts(self, texts: Sequence[Sequence[str]]) -> _Vectors:
        """Score texts of any length: (texts, rows)."""
        if not len(texts):
            return np.empty((0, len(self.table)), dtype=np.float32)
        starts = range(0, len(texts), TEXTS_AT_ONCE)
        vectors = [self.encoder.encode(texts[start : start + TEXTS_AT_ONCE]) for start in starts]
        scores: _Vectors = np.concatenate(vectors) @ self.table.T
        scores += self.bias
        return scores

    def checkpoint(self) -> Checkpoint:
        """Return the checkpoint of the network."""
        return self.saved


@lru_cache(4)
def rows_by_part(vocabulary: tuple[str, ...]) -> dict[str, int]:
    """Number the words of a vocabulary, or their parts; cached, as networks of one training share 50,000 words."""
    return {part: row for row, part in enumerate(vocabulary)}


def _starts_of(sizes: NDArray[np.int64]) -> NDArray[Any]:
    """Return the start of each of several concatenated parts."""
    return np.cumsum(sizes) - sizes
