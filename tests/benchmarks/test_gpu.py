"""The benchmark of GPUs runs to its end on a device that is not the CPU."""

from typing import Any

import pytest

pytest.importorskip("torch", reason="networks need torch: pip install 'kbtools[train]'")

import gpu

from kbtools.scorers.fitting.training_loop import make_optimisers
from tests.stand_in_device import DEVICE, StandIn

ADAGRAD: dict[str, Any] = {"name": "row-adagrad", "lr": 0.01, "momentum": 0.9}


@pytest.fixture
def report(monkeypatch: pytest.MonkeyPatch) -> gpu.Report:
    """Return a report of speeds that one run is enough for."""
    monkeypatch.setattr(gpu, "SECONDS", 0.0)
    monkeypatch.setattr(gpu, "WORDS", 50)
    monkeypatch.setattr(gpu, "TRIPLES", 8)
    # Adam of torch takes only devices that it knows, and those of one kind of gradient.
    monkeypatch.setattr(gpu, "make_optimisers", lambda network, **_: make_optimisers(network, **ADAGRAD))
    report = gpu.Report(None)
    report.bandwidth = 1e9
    return report


@pytest.mark.parametrize("name", gpu.SCORERS)
def test_a_network_scores_and_then_trains_on_another_device(report: gpu.Report, name: str) -> None:
    with StandIn():
        gpu.measure_scorer(name, DEVICE, report, relations=5, batches=[2])

    assert report.figures[f"{name}: meta agrees with the CPU"]
    assert f"{name}: seconds of a training epoch of 75,910" in report.figures


def test_transe_trains_on_another_device(report: gpu.Report) -> None:
    with StandIn():
        gpu.measure_transe(DEVICE, report, entities=20)

    assert "transe: triples/s with row-adagrad over 20 entities" in report.figures
