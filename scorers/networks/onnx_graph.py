"""Graphs of ONNX operators over arrays in memory, computed by ONNX Runtime on one thread.

A graph is written out here, in the wire format of protocol buffers, so that a model is opened without the package
`onnx` and without a copy of its weights; onnx.proto numbers the fields.
"""

import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray

IR_VERSION, OPSET = 9, 20
"""Of the format, and of the operators: Gelu came with 20."""

FLOAT, INT32, INT64 = 1, 6, 7
TYPES = {"float32": FLOAT, "int64": INT64}

Attribute = int | float | str | Sequence[int]


def varint(value: int) -> bytes:
    """Write an integer, seven bits a byte, the lowest first; a negative one as 64 bits."""
    value &= 2**64 - 1
    packed = bytearray()
    while value > 127:
        packed.append(value & 127 | 128)
        value >>= 7
    packed.append(value)
    return bytes(packed)


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def block(field: int, content: bytes | str) -> bytes:
    packed = content.encode() if isinstance(content, str) else content
    return varint(field << 3 | 2) + varint(len(packed)) + packed


class Graph:
    """A graph that grows by an operator at a time; values are known by their names."""

    def __init__(self) -> None:
        self.nodes: list[bytes] = []
        self.constants: dict[str, NDArray[Any]] = {}

    def constant(self, array: NDArray[Any]) -> str:
        """Take an array into the graph, and give its name."""
        name = f"constant{len(self.constants)}"
        self.constants[name] = np.ascontiguousarray(array)
        return name

    def add(self, operator: str, *inputs: str, **attributes: Attribute) -> str:
        """Add an operator, and give the name of what it yields."""
        return self.add_many(operator, *inputs, outputs=1, **attributes)[0]

    def add_many(self, operator: str, *inputs: str, outputs: int, **attributes: Attribute) -> list[str]:
        """Add an operator that yields several values, and give their names."""
        names = [f"value{len(self.nodes)}.{place}" for place in range(outputs)]
        named = b"".join(block(5, pack_attribute(name, value)) for name, value in attributes.items())
        given = b"".join(block(1, name) for name in inputs)
        self.nodes.append(given + b"".join(block(2, name) for name in names) + block(4, operator) + named)
        return names

    def session(self, inputs: Mapping[str, tuple[int, Sequence[int | str]]], output: str, rank: int) -> "Session":
        """Make a graph computable: an output of that many dimensions, from inputs of a type and a shape each."""
        graph = b"".join(block(1, node) for node in self.nodes) + block(2, "graph")
        graph += b"".join(block(5, pack_constant(name, array)) for name, array in self.constants.items())
        graph += b"".join(block(11, pack_value(name, *declared)) for name, declared in inputs.items())
        graph += block(12, pack_value(output, FLOAT, [f"dim{place}" for place in range(rank)]))
        model = number(1, IR_VERSION) + block(7, graph) + block(8, number(2, OPSET))
        return Session(model, self.constants, output)


class Session:
    """A graph that can be computed; it keeps the arrays that the graph refers to."""

    def __init__(self, model: bytes, constants: Mapping[str, NDArray[Any]], output: str) -> None:
        options = onnxruntime.SessionOptions()
        # Threads share too little of a question, and would not survive the fork of a server's workers.
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        weights = {name: array for name, array in constants.items() if array.dtype != np.int64}
        self.weights = [onnxruntime.OrtValue.ortvalue_from_numpy(array) for array in weights.values()]
        options.add_external_initializers(list(weights), self.weights)
        self.session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self.output = output

    def __call__(self, **inputs: NDArray[Any]) -> NDArray[np.float32]:
        """Compute the output."""
        computed: NDArray[np.float32] = self.session.run([self.output], inputs)[0]
        return computed


def pack_attribute(name: str, value: Attribute) -> bytes:
    if isinstance(value, int):
        return block(1, name) + number(3, value) + number(20, 2)
    if isinstance(value, float):
        return block(1, name) + varint(2 << 3 | 5) + struct.pack("<f", value) + number(20, 1)
    if isinstance(value, str):
        return block(1, name) + block(4, value) + number(20, 3)
    return block(1, name) + b"".join(number(8, part) for part in value) + number(20, 7)


def pack_constant(name: str, array: NDArray[Any]) -> bytes:
    """Write a constant; weights are declared alone, since the session is given them."""
    declared = b"".join(number(1, size) for size in array.shape) + number(2, TYPES[array.dtype.name]) + block(8, name)
    if array.dtype == np.int64:  # shapes and places, which are read before the session has what it is given
        return declared + block(9, array.tobytes())
    return declared + block(13, block(1, "location") + block(2, "memory")) + number(14, 1)


def pack_value(name: str, kind: int, shape: Sequence[int | str]) -> bytes:
    """Declare an input or output; a size with a name is any size."""
    dims = [number(1, size) if isinstance(size, int) else block(2, size) for size in shape]
    tensor = number(1, kind) + block(2, b"".join(block(1, dim) for dim in dims))
    return block(1, name) + block(2, block(1, tensor))
