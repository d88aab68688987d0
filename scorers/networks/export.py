"""Export of torch networks as ONNX graphs, for ONNX Runtime in processes without torch."""

import copy
import warnings
from collections.abc import Mapping, Sequence
from io import BytesIO

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from torch import Tensor, nn

from kbtools.scorers.networks.checkpoint import Graph, Weights

_OPSET = 20
"""The version of the operators; Gelu came with 20."""

_SMALL = 1_024
"""Largest constant, in bytes, that stays inside the graph: shapes, places and factors."""


def export_graph(network: nn.Module, inputs: Mapping[str, tuple[Tensor, Sequence[str]]]) -> tuple[Graph, Weights]:
    """Return the graph of a network, and the weights whose layout differs from the network's.

    `inputs` are example arguments of `forward`, each with the names of its variable dimensions. A network with a GRU
    also takes the lengths of the texts, so that padding does not change its states.
    """
    recurrent = any(isinstance(module, nn.GRU) for module in network.modules())
    written = BytesIO()
    with warnings.catch_warnings():
        # torch warns that it has a newer exporter, which takes 8 seconds instead of 0.4 and does not support text
        # lengths.
        warnings.simplefilter("ignore")
        torch.onnx.export(
            # A copy on the CPU: the network may be saved between two steps on a GPU.
            copy.deepcopy(network).cpu().eval(),
            tuple(example for example, _ in inputs.values()),
            written,  # type: ignore[arg-type] # it writes to any file, which its signature leaves out
            dynamo=False,
            opset_version=_OPSET,
            # The exporter rearranges the weights of GRUs, for which it needs their values.
            export_params=recurrent,
            input_names=list(inputs),
            output_names=["output"],
            dynamic_axes={name: dict(enumerate(sizes)) for name, (_, sizes) in inputs.items()},
        )
    model = onnx.load_from_string(written.getvalue())
    graph, state = model.graph, network.state_dict()
    # A session copies its weights but not its inputs, so tables of words stay memory-mapped.
    tables = [f"{name}.weight" for name, module in network.named_modules() if isinstance(module, nn.Embedding)]
    for weight in [value for value in graph.input if value.name in state]:
        graph.input.remove(weight)
        graph.initializer.add(name=weight.name, dims=state[weight.name].shape, data_type=onnx.TensorProto.FLOAT)
    for table in [tensor for tensor in graph.initializer if tensor.name in tables]:
        graph.initializer.remove(table)
        graph.input.append(onnx.helper.make_tensor_value_info(table.name, onnx.TensorProto.FLOAT, table.dims))
    if recurrent:
        graph.input.append(onnx.helper.make_tensor_value_info("lengths", onnx.TensorProto.INT32, ["batch"]))
    for node in graph.node:
        if node.op_type == "GRU":
            node.input[4] = "lengths"
    constants = [tensor for tensor in graph.initializer if tensor.name in state or len(tensor.raw_data) > _SMALL]
    laid_out = {
        tensor.name: np.array(numpy_helper.to_array(tensor)) for tensor in constants if tensor.name not in state
    }
    for tensor in constants:
        # Only declared: the session receives the values.
        tensor.ClearField("raw_data")
        tensor.data_location = onnx.TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value="memory")
    return Graph(model.SerializeToString(), [tensor.name for tensor in constants], tables), laid_out
