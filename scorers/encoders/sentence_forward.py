"""Pretrained encoders of sentences without torch, by ONNX Runtime: a question alone takes less than half the time."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kbtools.scorers.encoders.pretrained import PretrainedRecord, make_tokenizer, split_texts
from kbtools.scorers.encoders.transformer_config import TransformerConfig, distance_classes
from kbtools.scorers.networks.onnx_graph import FLOAT, INT64, Graph, Session
from kbtools.scorers.networks.text_batches import group_by_length
from kbtools.scorers.networks.weight_files import Weights

LEAST = 1e-12
"""The least length that a vector is divided by."""

AT_ONCE = 64
"""Texts in one batch: more are no faster, since their states no longer fit the caches of one core."""


class SentenceForward:
    """A transformer with its tokenizer, from texts to vectors of length 1."""

    def __init__(self, record: PretrainedRecord, weights: Weights) -> None:
        self.record = record
        self.weights = weights
        self.tokenizer = make_tokenizer(record)
        self.config = TransformerConfig.read(record.config)
        self.layers = transformer_session(self.config, weights)

    @property
    def dim(self) -> int:
        return self.config.dim

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Encode any number of texts: (texts, dim)."""
        vectors = np.empty((len(texts), self.dim), dtype=np.float32)
        tokens = split_texts(self.tokenizer, texts)
        for rows in group_by_length(tokens, most=AT_ONCE):
            states = self.states(np.array([tokens[row] for row in rows]))
            pooled = states[:, 0] if self.record.pooling == "first" else states.mean(axis=1)
            vectors[rows] = pooled / np.maximum(np.linalg.norm(pooled, axis=1, keepdims=True), LEAST)
        return vectors

    def states(self, tokens: NDArray[np.int64]) -> NDArray[np.float32]:
        """Give the states of texts of one length: (batch, length) -> (batch, length, dim)."""
        batch, length = tokens.shape
        config, weights = self.config, self.weights
        positions = weights["positions.weight"][config.offset : config.offset + length]
        inputs = {"embedded": (weights["words.weight"][tokens] + positions).reshape(-1, config.dim)}
        if config.distances:
            bias = weights["distances.weight"][distance_classes(length, config.distances)]
            inputs["bias"] = np.ascontiguousarray(bias.transpose(2, 0, 1))
        shape = np.array([batch, length, 3, config.heads, config.dim // config.heads])
        return self.layers(**inputs, shape=shape).reshape(batch, length, config.dim)


def transformer_session(config: TransformerConfig, weights: Weights) -> Session:
    """Write the layers of `Transformer` out as a graph: embedded (tokens, dim) -> states (tokens, dim)."""
    graph = Graph()

    def linear(name: str, states: str) -> str:
        matrix, bias = (graph.constant(weights[f"{name}.{kind}"]) for kind in ("weight", "bias"))
        return graph.add("Gemm", states, matrix, bias, transB=1)

    def norm(name: str, states: str) -> str:
        scale, bias = (graph.constant(weights[f"{name}.{kind}"]) for kind in ("weight", "bias"))
        return graph.add("LayerNormalization", states, scale, bias, axis=-1, epsilon=config.epsilon)

    shorter = graph.constant(np.array(1 / math.sqrt(config.dim // config.heads), dtype=np.float32))
    joined = graph.constant(np.array([-1, config.dim]))
    states = norm("norm", "embedded")
    for number in range(config.layers):
        own = f"layers.{number}."
        # (batch, length, 3, heads, width) -> queries, keys and values, each (1, batch, heads, length, width)
        heads = graph.add("Reshape", linear(f"{own}attention", states), "shape")
        parts = graph.add_many("Split", graph.add("Transpose", heads, perm=[2, 0, 3, 1, 4]), outputs=3, num_outputs=3)
        queries, keys, values = graph.add("Mul", parts[0], shorter), parts[1], parts[2]
        seen = graph.add("MatMul", queries, graph.add("Transpose", keys, perm=[0, 1, 2, 4, 3]))
        seen = graph.add("Add", seen, "bias") if config.distances else seen
        attended = graph.add("MatMul", graph.add("Softmax", seen, axis=-1), values)
        attended = graph.add("Reshape", graph.add("Transpose", attended, perm=[0, 1, 3, 2, 4]), joined)
        states = norm(f"{own}first_norm", graph.add("Add", states, linear(f"{own}attended", attended)))
        hidden = graph.add("Gelu", linear(f"{own}hidden", states))
        states = norm(f"{own}second_norm", graph.add("Add", states, linear(f"{own}output", hidden)))
    inputs: dict[str, tuple[int, Sequence[int | str]]] = {
        "embedded": (FLOAT, ("tokens", config.dim)),
        "shape": (INT64, (5,)),
    }
    if config.distances:
        inputs["bias"] = FLOAT, (config.heads, "length", "length")
    return graph.session(inputs, states, 2)
