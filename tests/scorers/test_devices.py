"""Networks on another device, without a GPU: on a stand-in that refuses to mix its tensors with those of the CPU."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

from kbtools.kb.contract import KnowledgeBase

pytest.importorskip("torch", reason="networks need torch: pip install 'kbtools[train]'")

import torch

from kbtools.errors import UnknownDevice
from kbtools.ranking.contracts import as_scores
from kbtools.scorers.fitting.splits import Splits
from kbtools.scorers.fitting.training_loop import Task, make_optimisers
from kbtools.scorers.networks.devices import resolve_device
from kbtools.scorers.networks.word_networks import moved
from kbtools.scorers.relations.relation import BiGRUScorer
from tests.scorers.test_precision import TASKS, relation_task
from tests.stand_in_device import DEVICE, OnDevice, StandIn


@pytest.fixture
def device() -> Iterator[torch.device]:
    with StandIn():
        yield DEVICE


def test_the_stand_in_computes_and_refuses_to_mix(device: torch.device) -> None:
    here, there = torch.ones(3, device=device), torch.ones(3)

    assert isinstance(here, OnDevice)
    assert (here + there.to(device)).cpu().tolist() == [2, 2, 2]
    with pytest.raises(RuntimeError, match="same device"):
        here + there
    with pytest.raises(RuntimeError, match="no doubles"):
        here.double()


@pytest.mark.parametrize(
    "make",
    [pytest.param(make, id=name) for name, make in TASKS.items()]
    + [pytest.param(partial(relation_task, BiGRUScorer, "hinge"), id="bigru by hinge")],
)
def test_a_training_step_on_a_device_is_the_step_on_the_cpu(
    sample_kb: KnowledgeBase, splits: Splits, device: torch.device, make: Callable[..., Task]
) -> None:
    losses = []
    for where in ("cpu", device):
        task = make(sample_kb, splits)
        task.network.to(where).train()
        rows = np.flatnonzero(task.lengths == task.lengths[0])[:8]
        optimisers = make_optimisers(task.network, name="row-adagrad", lr=0.1, momentum=0.9)
        torch.manual_seed(2)
        first = task.loss(rows)
        first.mean().backward()
        for optimiser in optimisers:
            optimiser.step()
        torch.manual_seed(2)
        losses.append(torch.cat([first, task.loss(rows)]).detach().cpu())

    assert torch.allclose(losses[0], losses[1], atol=1e-5)


@pytest.mark.parametrize("name", ["embed-avg", "ltg-cnn", "bigru"])
def test_scores_from_a_device_are_those_of_the_cpu(
    sample_kb: KnowledgeBase, splits: Splits, device: torch.device, name: str
) -> None:
    texts = [["who", "wrote", "it"], ["where"], ["when", "was", "it"]]
    make: Any = TASKS[name]
    networks = [make(sample_kb, splits).network.to(where) for where in ("cpu", device)]

    scores = [network.score_texts(texts) for network in networks]

    assert np.allclose(scores[0], scores[1], atol=1e-5)


def test_scores_of_a_device_without_doubles_are_read(device: torch.device) -> None:
    scores = torch.tensor([[1.0, 2.0]]).to(device)

    assert as_scores(scores, scorer="Any", shape=(1, 2)).tolist() == [[1.0, 2.0]]


def test_a_device_multiplies_in_tf32_where_its_name_says_so() -> None:
    before = torch.get_float32_matmul_precision()

    try:
        assert resolve_device("cpu-tf32") == torch.device("cpu")
        assert torch.get_float32_matmul_precision() == "high"
    finally:
        torch.set_float32_matmul_precision(before)


def test_a_training_on_a_bfloat16_device_names_mixed_precision() -> None:
    with pytest.raises(UnknownDevice, match=r"no device 'cpu-bf16'; known: .* for queries .*--set amp=true"):
        resolve_device("cpu-bf16")


class Recorded:
    """A tensor that records what is done with it."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def pin_memory(self) -> "Recorded":
        self.calls.append("pinned")
        return self

    def to(self, device: torch.device, *, non_blocking: bool = False) -> "Recorded":
        self.calls.append(f"copied to {device.type}" + " without waiting" * non_blocking)
        return self


@pytest.mark.parametrize(
    ("name", "calls"), [("cuda", ["pinned", "copied to cuda without waiting"]), ("mps", ["copied to mps"])]
)
def test_a_copy_that_does_not_wait_starts_from_pinned_memory(name: str, calls: list[str]) -> None:
    tensor: Any = Recorded()

    moved((tensor,), torch.device(name))

    assert tensor.calls == calls
