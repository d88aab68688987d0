"""Networks of torch as graphs of ONNX operators, which ONNX Runtime computes where torch is not imported."""

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
"""The version of the operators: Gelu came with 20."""

_SMALL = 1_024
"""Bytes of a constant that stays inside the graph: shapes, places and factors."""


def export_graph(network: nn.Module, inputs: Mapping[str, tuple[Tensor, Sequence[str]]]) -> tuple[Graph, Weights]:
    """Return the graph of a network, and the weights that it needs in another layout than the network's own.

    `inputs` are examples of what `forward` takes, each with the names of its dimensions of any size. A network with a
    GRU also takes the lengths of the texts, and its states are those of each text alone.
    """
    recurrent = any(isinstance(module, nn.GRU) for module in network.modules())
    written = BytesIO()
    with warnings.catch_warnings():
        # torch warns that it has a newer exporter, which takes 8 seconds instead of 0.4 and knows no lengths of texts.
        warnings.simplefilter("ignore")
        torch.onnx.export(
            # On the CPU, and a copy: the network may be saved between two steps on a GPU.
            copy.deepcopy(network).cpu().eval(),
            tuple(example for example, _ in inputs.values()),
            written,  # type: ignore[arg-type] # it writes to any file, which its signature leaves out
            dynamo=False,
            opset_version=_OPSET,
            # The exporter lays out the weights of GRUs anew, for which it needs their values.
            export_params=recurrent,
            input_names=list(inputs),
            output_names=["output"],
            dynamic_axes={name: dict(enumerate(sizes)) for name, (_, sizes) in inputs.items()},
        )
    model = onnx.load_from_string(written.getvalue())
    graph, own = model.graph, network.state_dict()
    # A session copies its weights, but not its inputs: tables of words are read where they are mapped into memory.
    tables = [f"{name}.weight" for name, module in network.named_modules() if isinstance(module, nn.Embedding)]
    for weight in [value for value in graph.input if value.name in own]:
        graph.input.remove(weight)
        graph.initializer.add(name=weight.name, dims=own[weight.name].shape, data_type=onnx.TensorProto.FLOAT)
    for table in [tensor for tensor in graph.initializer if tensor.name in tables]:
        graph.initializer.remove(table)
        graph.input.append(onnx.helper.make_tensor_value_info(table.name, onnx.TensorProto.FLOAT, table.dims))
    if recurrent:
        graph.input.append(onnx.helper.make_tensor_value_info("lengths", onnx.TensorProto.INT32, ["batch"]))
    for node in graph.node:
        if node.op_type == "GRU":
            node.input[4] = "lengths"
    given = [tensor for tensor in graph.initializer if tensor.name in own or len(tensor.raw_data) > _SMALL]
    laid_out = {tensor.name: np.array(numpy_helper.to_array(tensor)) for tensor in given if tensor.name not in own}
    for tensor in given:
        # Declared alone: the session is given the values.
        tensor.ClearField("raw_data")
        tensor.data_location = onnx.TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value="memory")
    return Graph(model.SerializeToString(), [tensor.name for tensor in given], tables), laid_out
