"""The forward passes of networks over words, on a CPU without torch: they take a fraction of its time to start, and of
its time for a question alone. Tests hold each to its twin, the network that training makes."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from kbtools.entry_points import import_object
from kbtools.scorers.networks.text_batches import AT_ONCE, group_by_length
from kbtools.scorers.networks.training_settings import EncoderConfig
from kbtools.scorers.networks.weight_files import Weights
from kbtools.scorers.networks.words import letter_trigrams

UNKNOWN_ROW = 1
"""The row of the unknown word, or unknown part of one."""

RECURRENT = "kbtools.scorers.networks.recurrent:RecurrentLayers"

Vectors = NDArray[np.float32]


class Forward(ABC):
    """The forward pass of an encoder, from texts to vectors, each at least one word long."""

    names: ClassVar[bool] = False
    """Whether it also reads the names of relations, in place of a learned table."""

    needs: ClassVar[str | None] = None
    """A module that it computes with, beside NumPy."""

    def __init__(self, config: EncoderConfig, vocabulary: Sequence[str], weights: Weights) -> None:
        self.config = config
        self.vocabulary = tuple(vocabulary)
        self.rows = rows_by_part(self.vocabulary)

    @abstractmethod
    def encode(self, texts: Sequence[Sequence[str]]) -> Vectors:
        """Encode texts of any length: (texts, dim)."""
        ...


class EmbedAverageForward(Forward):
    """The average of the word vectors."""

    def __init__(self, config: EncoderConfig, vocabulary: Sequence[str], weights: Weights) -> None:
        super().__init__(config, vocabulary, weights)
        self.words = weights["encoder.embedding.weight"]

    def encode(self, texts: Sequence[Sequence[str]]) -> Vectors:
        rows = [self.rows.get(word, UNKNOWN_ROW) for text in texts for word in text]
        sizes = np.array([len(text) for text in texts])
        summed: Vectors = np.add.reduceat(self.words[rows], starts_of(sizes))
        summed /= sizes[:, None]
        return summed


FEW = 12
"""Texts that recurrent layers read in one pass whatever their lengths, as the mentions of a question alone are.

Two to four take three fifths of the time that a pass for each length takes, twelve three quarters, sixteen as long.
"""


class BiGRUForward(Forward):
    """The last states of gated recurrent units in both directions, projected unless they are direct."""

    needs = "onnxruntime"

    def __init__(self, config: EncoderConfig, vocabulary: Sequence[str], weights: Weights) -> None:
        super().__init__(config, vocabulary, weights)
        self.words = weights["encoder.embedding.weight"]
        self.layers = import_object(RECURRENT)(weights, "encoder.gru.")
        self.projection = [weights[f"encoder.projection.{kind}"] for kind in ("weight", "bias") if not config.direct]

    def encode(self, texts: Sequence[Sequence[str]]) -> Vectors:
        final = np.empty((len(texts), 2 * self.config.hidden), dtype=np.float32)
        for group in [list(range(len(texts)))] if len(texts) <= FEW else group_by_length(texts):
            lengths = np.array([len(texts[row]) for row in group], dtype=np.int32)
            inside = np.arange(lengths.max()) < lengths[:, None]
            inputs = np.zeros((*inside.shape, self.words.shape[1]), dtype=np.float32)
            inputs[inside] = self.words[[self.rows.get(word, UNKNOWN_ROW) for row in group for word in texts[row]]]
            states = self.layers(inputs.transpose(1, 0, 2), lengths)
            # Forwards after the last word, backwards after the first.
            final[group, : self.config.hidden] = states[lengths - 1, np.arange(len(group)), : self.config.hidden]
            final[group, self.config.hidden :] = states[0, :, self.config.hidden :]
        if self.config.direct:
            return final
        weight, bias = self.projection
        projected: Vectors = final @ weight.T + bias
        return projected


class LetterTrigramForward(Forward):
    """A convolution over bags of letter trigrams, the greatest over the words, and a projection."""

    names = True

    def __init__(self, config: EncoderConfig, vocabulary: Sequence[str], weights: Weights) -> None:
        super().__init__(config, vocabulary, weights)
        self.trigrams, self.bias = weights["encoder.trigrams.weight"], weights["encoder.bias"]
        self.semantic = weights["encoder.semantic.weight"], weights["encoder.semantic.bias"]

    def encode(self, texts: Sequence[Sequence[str]]) -> Vectors:
        distinct: dict[str, int] = {}
        words = np.array([distinct.setdefault(word, len(distinct)) for text in texts for word in text])
        bags = [[self.rows.get(part, UNKNOWN_ROW) for part in letter_trigrams(word)] for word in distinct]
        parts = self.trigrams[[row for bag in bags for row in bag]]
        summed = np.add.reduceat(parts, starts_of(np.array([len(bag) for bag in bags])))
        before, here, after = np.split(summed, 3, axis=1)
        sizes = np.array([len(text) for text in texts])
        starts = starts_of(sizes)
        ends = starts + sizes - 1
        # A word hears what its neighbours add, but for those beyond either end of its text.
        windows = here[words]
        inner = np.ones((len(words), 1), dtype=np.float32)
        inner[starts] = 0.0
        windows[1:] += before[words[:-1]] * inner[1:]
        inner[starts], inner[ends] = 1.0, 0.0
        windows[:-1] += after[words[1:]] * inner[:-1]
        pooled = np.tanh(np.maximum.reduceat(windows, starts) + self.bias)
        weight, bias = self.semantic
        vectors: Vectors = np.tanh(pooled @ weight.T + bias)
        return vectors


class TaggerForward:
    """The emissions H(q) of the focused tagger, by two layers of BiGRU over words and bits of a gazetteer."""

    needs = BiGRUForward.needs

    def __init__(self, config: EncoderConfig, vocabulary: Sequence[str], weights: Weights) -> None:
        self.config = config
        self.vocabulary = tuple(vocabulary)
        self.rows = rows_by_part(self.vocabulary)
        self.weights = weights
        self.words = weights["embedding.weight"]
        self.layers = import_object(RECURRENT)(weights, "gru.")
        self.emissions = weights["emissions.weight"], weights["emissions.bias"]

    def emit(self, texts: Sequence[Sequence[str]], bits: Sequence[Vectors]) -> Vectors:
        """Give H(q) of texts of one length: (batch, length, tags)."""
        tokens = np.array([[self.rows.get(word, UNKNOWN_ROW) for word in text] for text in texts])
        inputs = np.concatenate([self.words[tokens.T], np.stack(bits, axis=1)], axis=2)
        weight, bias = self.emissions
        emissions: Vectors = self.layers(inputs) @ weight.T + bias
        return emissions.transpose(1, 0, 2)

    def state(self) -> Weights:
        """Give the weights by their names in the network that training makes."""
        return self.weights


class DotForward:
    """The scores f(q)·E(x) of texts against every row of a table, without torch: what `DotScorer` gives."""

    def __init__(self, encoder: Forward, names: Sequence[Sequence[str]], weights: Weights) -> None:
        self.encoder = encoder
        self.weights = weights
        # Models of older versions keep no vectors of names.
        self.table = weights["table"] if "table" in weights or not encoder.names else self.encode(names)
        self.bias = weights.get("bias", np.float32(0))

    def encode(self, texts: Sequence[Sequence[str]]) -> Vectors:
        """Encode any number of texts: (texts, dim)."""
        blocks = [self.encoder.encode(texts[first : first + AT_ONCE]) for first in range(0, len(texts), AT_ONCE)]
        return np.concatenate(blocks) if blocks else np.empty((0, self.encoder.config.dim), dtype=np.float32)

    def score_texts(self, texts: Sequence[Sequence[str]]) -> Vectors:
        """Score texts of any length: (texts, rows)."""
        if not len(texts):
            return np.empty((0, len(self.table)), dtype=np.float32)
        scores: Vectors = self.encode(texts) @ self.table.T
        scores += self.bias
        return scores

    def state(self) -> Weights:
        """Give the weights by their names in the network that training makes, and the vectors of rows."""
        return {**self.weights, "table": self.table}


@lru_cache(4)
def rows_by_part(vocabulary: tuple[str, ...]) -> dict[str, int]:
    """Number the words of a vocabulary, or their parts; networks of one training share theirs, of 50,000 words."""
    return {part: row for row, part in enumerate(vocabulary)}


def starts_of(sizes: NDArray[np.int64]) -> NDArray[Any]:
    """Give where each of several parts starts that lie end to end."""
    return np.cumsum(sizes) - sizes
