"""Pretrained sentence encoders without torch, and the network of `encoder` that uses one."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kbtools.entry_points import import_object
from kbtools.scorers.encoders.pretrained import (
    PretrainedFiles,
    PretrainedRecord,
    TransformerConfig,
    make_tokenizer,
    split_texts,
)
from kbtools.scorers.networks.checkpoint import Checkpoint, Graph, Weights
from kbtools.scorers.networks.sessions import Session
from kbtools.scorers.networks.words import group_by_length
from kbtools.user_cache import keep

SHARPNESS = 15.0
"""Log-probability of a cosine of 1. Untrained, with n-gram-idf and half of `lexical`, 76.6 % of the named questions
among the first 3,000 validation questions of FBSQ are right, 76.8 % at 10, 76.4 % at 20; with `lexical` alone 69.8 %.
"""

UNSEEN = 1.7
"""Bonus of a relation without a learned part over those seen in training, times the share of relations seen. On FBSQ's
validation split after training on 48,887 questions, with 59 % of the relations seen and a bonus of 1: questions of
unseen relations, given the subject, are right in 96.3 %, without a bonus in 94.4 %, at 1.5 in 98.1 %; the right
relation is first of all in 77.4 %, without a bonus in 77.5 %, at 1.5 in 77.1 %. After 50 to 3,000 questions a constant
bonus of 1 costs 0.7 to 2.9 points.
"""

_MINILM = TransformerConfig(30_522, 512, 384, 1_536, 6, 12, 1e-12, offset=0, segments=True, distances=0), "mean"
"""The sizes and pooling of all-MiniLM-L6-v2, whose graph is part of kbtools."""

_EXPORT = "kbtools.scorers.encoders.encoder_network:export_encoder"

_TABLES = ("words.weight", "positions.weight", "distances.weight")
"""The weights of which a text reads a few rows."""

_TEXTS_AT_ONCE = 64
"""Texts in one batch: more are no faster, since their states no longer fit the caches of one core."""


class SentenceForward:
    """A transformer with its tokenizer, from texts to vectors of length 1; its weights have torch's names."""

    def __init__(self, record: PretrainedRecord, weights: Weights, graph: Graph) -> None:
        self.record, self.weights, self.graph = record, weights, graph
        self.tokenizer = make_tokenizer(record)
        self.dim = TransformerConfig.read(record.config).dim
        self.session = Session(graph, weights)

    @classmethod
    def of_files(cls, files: PretrainedFiles) -> "SentenceForward":
        """Build an encoder from its files; except for MiniLM, torch exports the graph once."""
        config = TransformerConfig.read(files.record.config)
        if (config, files.record.pooling) == _MINILM:
            model = Path(__file__).with_name("minilm.onnx").read_bytes()
        else:
            key = f"{config} {files.record.pooling}"
            model = keep("graphs", key, lambda: import_object(_EXPORT)(files.record).model)
        weights = {f"transformer.{name}": array for name, array in files.weights.items()}
        tables = [name for name in weights if name.removeprefix("transformer.") in _TABLES]
        return cls(files.record, weights, Graph(model, [name for name in weights if name not in tables], tables))

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Encode any number of texts: (texts, dim)."""
        vectors = np.empty((len(texts), self.dim), dtype=np.float32)
        tokens = split_texts(self.tokenizer, texts)
        for rows in group_by_length(tokens, most=_TEXTS_AT_ONCE):
            vectors[rows] = self.session(tokens=np.array([tokens[row] for row in rows]))
        return vectors


class EncoderForward:
    """A scorer by f(q)·E(r), where E(r) is the vector of a relation's name plus a learned part."""

    def __init__(self, encoder: SentenceForward, names: NDArray[np.float32], learned: NDArray[np.float32]) -> None:
        self.encoder = encoder
        self.names, self.learned = names, learned
        self.relations = np.float32(SHARPNESS) * (names + learned)
        unseen = (learned == 0).all(axis=1)
        self.gains = np.float32(UNSEEN * (1 - unseen.mean() if len(unseen) else 0)) * unseen

    @classmethod
    def rebuild(cls, saved: Checkpoint) -> "EncoderForward":
        """Rebuild a trained network."""
        assert saved.graph
        weights = {name.removeprefix("encoder."): array for name, array in saved.weights.items()}
        names, learned = weights.pop("names"), weights.pop("learned")
        return cls(SentenceForward(PretrainedRecord(**saved.config), weights, saved.graph), names, learned)

    def score_vectors(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """Score texts by their vectors, (texts, dim): (texts, relations)."""
        scores: NDArray[np.float32] = vectors @ self.relations.T + self.gains
        return scores

    def checkpoint(self) -> Checkpoint:
        """Return everything needed to rebuild the network, except its rows."""
        weights = {f"encoder.{name}": array for name, array in self.encoder.weights.items()}
        weights |= {"names": self.names, "learned": self.learned}
        return Checkpoint(asdict(self.encoder.record), (), (), weights, self.encoder.graph)
