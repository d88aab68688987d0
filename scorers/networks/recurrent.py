"""Layers of gated recurrent units in both directions, by ONNX Runtime: a question alone takes a quarter of torch's
time."""

import numpy as np
from numpy.typing import NDArray

from kbtools.scorers.networks.onnx_graph import FLOAT, INT32, Graph
from kbtools.scorers.networks.weight_files import Weights

DIRECTIONS = ("", "_reverse")


class RecurrentLayers:
    """The layers of torch's `nn.GRU` whose weights have names that begin so."""

    def __init__(self, weights: Weights, prefix: str) -> None:
        graph, states, layer = Graph(), "inputs", 0
        self.hidden = weights[f"{prefix}weight_hh_l0"].shape[1]
        # For two directions in one: (length, directions, batch, hidden) -> (length, batch, directions · hidden).
        joined = graph.constant(np.array([0, 0, -1]))
        while f"{prefix}weight_ih_l{layer}" in weights:
            parts = [
                graph.constant(np.stack([gates(weights[f"{prefix}{kind}_l{layer}{side}"]) for side in DIRECTIONS]))
                for kind in ("weight_ih", "weight_hh")
            ]
            biases = [
                np.concatenate([gates(weights[f"{prefix}{kind}_l{layer}{side}"]) for kind in ("bias_ih", "bias_hh")])
                for side in DIRECTIONS
            ]
            (both,) = graph.add_many(
                "GRU",
                states,
                *parts,
                graph.constant(np.stack(biases)),
                "lengths",
                outputs=1,
                direction="bidirectional",
                hidden_size=self.hidden,
                linear_before_reset=1,
            )
            states = graph.add("Reshape", graph.add("Transpose", both, perm=[0, 2, 1, 3]), joined)
            layer += 1
        dim = weights[f"{prefix}weight_ih_l0"].shape[1]
        declared = {"inputs": (FLOAT, ("length", "batch", dim)), "lengths": (INT32, ("batch",))}
        self.session = graph.session(declared, states, 3)

    def __call__(self, inputs: NDArray[np.float32], lengths: NDArray[np.int32] | None = None) -> NDArray[np.float32]:
        """Give the states of the last layer: (length, batch, dim) -> (length, batch, 2 hidden).

        A text that ends before the longest has zeros beyond its own length, and its states are those it has alone.
        """
        length, batch, _ = inputs.shape
        lengths = np.full(batch, length, dtype=np.int32) if lengths is None else lengths
        return self.session(inputs=inputs, lengths=lengths)


def gates(weights: NDArray[np.float32]) -> NDArray[np.float32]:
    """Put the gates of torch, reset before update, into the order of ONNX, update before reset."""
    reset, update, new = np.split(weights, 3)
    return np.concatenate([update, reset, new])
