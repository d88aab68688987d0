"""Exported networks, computed by ONNX Runtime on one thread."""

from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from kbtools.scorers.networks.checkpoint import Graph, Weights


class Session:
    """A graph ready to compute; tables of words stay memory-mapped."""

    def __init__(self, graph: Graph, weights: Weights, *, prefix: str = "") -> None:
        options = onnxruntime.SessionOptions()
        # Threads gain little on one question, and would not survive the fork of a server's workers.
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self.tables = {name: weights[prefix + name] for name in graph.tables}
        # Kept alive here, since the session refers to them.
        self.weights = [onnxruntime.OrtValue.ortvalue_from_numpy(weights[prefix + name]) for name in graph.weights]
        options.add_external_initializers(list(graph.weights), self.weights)
        self.session = onnxruntime.InferenceSession(graph.model, options, providers=["CPUExecutionProvider"])

    def __call__(self, **inputs: NDArray[Any]) -> NDArray[np.float32]:
        output: NDArray[np.float32] = self.session.run(None, {**inputs, **self.tables})[0]
        return output
