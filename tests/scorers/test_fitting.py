"""The training loop is exact, can be stopped, and says what is wrong."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kbtools.errors import BadSetting, DeviceFull, DiskFull, NonFiniteLoss
from kbtools.ranking.model_store import Stamp

pytest.importorskip("torch", reason="networks need torch: pip install 'kbtools[train]'")

import torch

from kbtools.scorers.fitting import training_loop
from kbtools.scorers.fitting.measures import Callbacks, Epoch
from kbtools.scorers.fitting.training import check_optimiser_memory
from kbtools.scorers.fitting.training_loop import STATE, fit, make_batches
from kbtools.scorers.networks.devices import build_network, memory_named, scoring
from kbtools.scorers.networks.training_settings import FitConfig, TrainingSettings, change_settings
from kbtools.scorers.networks.words import group_by_length


class Line:
    """The smallest task: fit a line to points whose length is told apart by their place."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.network = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.Dropout(0.2), torch.nn.Linear(4, 1))
        self.points = torch.randn(40, 2)
        self.lengths = np.arange(40) % 3
        self.scale = 1.0

    def loss(self, rows: np.ndarray) -> torch.Tensor:
        points = self.points[torch.from_numpy(rows)]
        return (self.network(points)[:, 0] - points.sum(dim=1)).square() * self.scale

    def measure(self) -> dict[str, float]:
        return {"right": 1.0}

    def save(self, folder: Path, stamp: Stamp) -> None: ...


CONFIG = FitConfig(epochs=4, batch=8, learning_rate=0.05, optimiser="adam")


def test_a_batch_holds_one_length_and_every_example_once() -> None:
    lengths = np.array([3, 5, 3, 3, 5, 7])

    batches = make_batches(lengths, batch=2, seed=[1, 0])

    assert sorted(np.concatenate(batches).tolist()) == [0, 1, 2, 3, 4, 5]
    assert [len(set(lengths[batch])) for batch in batches] == [1] * len(batches)


def test_a_training_lowers_the_loss() -> None:
    epochs = fit(Line(), CONFIG)

    assert epochs[-1].loss < epochs[0].loss / 2


@pytest.mark.parametrize("optimiser", ["adam", "adagrad", "adagrad-averaged", "row-adagrad"])
def test_a_killed_training_ends_with_the_same_weights(tmp_path: Path, optimiser: str) -> None:
    config = change_settings(TrainingSettings(fit=CONFIG), {"optimiser": optimiser}).fit
    whole, killed, resumed = Line(), Line(), Line()

    def die(epoch: object) -> None:
        raise KeyboardInterrupt

    fit(whole, config)
    with pytest.raises(KeyboardInterrupt):
        fit(killed, config, state=tmp_path, made_of="x", callbacks=Callbacks(die))
    epochs = fit(resumed, config, state=tmp_path, made_of="x")

    assert [epoch.number for epoch in epochs] == [1, 2, 3, 4]
    assert all(torch.equal(a, b) for a, b in zip(whole.network.parameters(), resumed.network.parameters(), strict=True))


def test_processes_agree_on_the_epochs_done_and_on_the_examples(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agreed: list[tuple[int, ...]] = []
    monkeypatch.setattr(training_loop, "check_agreement", lambda *numbers: agreed.append(numbers))

    fit(Line(), replace(CONFIG, epochs=2), state=tmp_path, made_of="x")
    fit(Line(), CONFIG, state=tmp_path, made_of="x")

    assert agreed == [(0, 40), (2, 40)]


def test_a_state_of_another_training_is_passed_over(tmp_path: Path) -> None:
    fit(Line(), CONFIG, state=tmp_path, made_of="x")
    seen: list[Epoch] = []

    fit(Line(), CONFIG, state=tmp_path, made_of="y", callbacks=Callbacks(seen.append))

    assert len(seen) == 4


def test_a_torn_state_is_passed_over(tmp_path: Path) -> None:
    fit(Line(), CONFIG, state=tmp_path, made_of="x")
    torn = (tmp_path / STATE).read_bytes()[:1_000]
    (tmp_path / STATE).write_bytes(torn)
    seen: list[Epoch] = []

    fit(Line(), CONFIG, state=tmp_path, made_of="x", callbacks=Callbacks(seen.append))

    assert [epoch.number for epoch in seen] == [1, 2, 3, 4]


@pytest.mark.parametrize("small_disk", ["16k"], indirect=True)
def test_a_full_disk_is_named_and_the_state_before_is_gone_on_from(small_disk: Path) -> None:
    state = small_disk / "state"

    def fill(epoch: Epoch) -> None:
        (small_disk / "filling").write_bytes(bytes(shutil.disk_usage(small_disk).free))

    with pytest.raises(DiskFull, match=rf"{STATE}: no space left on the disk; nothing was changed"):
        fit(Line(), CONFIG, state=state, made_of="x", callbacks=Callbacks(fill))
    assert [path.name for path in state.iterdir()] == [STATE]

    (small_disk / "filling").unlink()
    epochs = fit(Line(), CONFIG, state=state, made_of="x")
    assert [epoch.number for epoch in epochs] == [1, 2, 3, 4]


def test_each_batch_is_called_with_the_share_of_its_epoch() -> None:
    shares: list[tuple[int, float]] = []

    fit(Line(), FitConfig(epochs=2, batch=20), callbacks=Callbacks(batch=lambda *done: shares.append(done)))

    assert [share for epoch, share in shares if epoch == 2] == pytest.approx([1 / 3, 2 / 3, 1.0])


def test_a_loss_that_is_no_number_names_its_batch() -> None:
    task = Line()
    task.scale = float("nan")

    with pytest.raises(NonFiniteLoss, match="the loss of batch 1 of epoch 1 is nan"):
        fit(task, CONFIG)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        pytest.param({"epoch": 3}, "no setting 'epoch'; known: dim", id="unknown"),
        pytest.param({"epochs": "three"}, "'epochs' is 'three', expected a value of type int", id="type"),
        pytest.param({"epochs": 0}, "epochs and batch must be at least 1", id="range"),
        pytest.param({"optimiser": "sgd"}, "no optimiser 'sgd'", id="optimiser"),
        pytest.param({"objective": "mse"}, "no objective 'mse'", id="objective"),
        pytest.param({"dropout": 1.0}, "dropout", id="dropout"),
        pytest.param({"momentum": 2.0}, "momentum is 2, expected at least 0 and below 1", id="momentum"),
        pytest.param({"seed": -1}, "seed is -1, expected at least 0", id="negative seed"),
        pytest.param({"seed": 2**64}, "seed is 18446744073709551616, expected", id="long seed"),
        pytest.param({"learning_rate": float("inf")}, "learning-rate", id="infinite rate"),
        pytest.param({"margin": float("nan")}, "margin at least 0", id="margin"),
        pytest.param({"known_words": -1}, "known-words", id="known words"),
    ],
)
def test_a_setting_that_cannot_be_is_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(BadSetting, match=message):
        change_settings(TrainingSettings(), changes)


def test_settings_change_whichever_part_holds_them() -> None:
    changed = change_settings(TrainingSettings(), {"learning-rate": 1, "dim": 7, "objective": "cross-entropy"})

    assert (changed.fit.learning_rate, changed.encoder.dim, changed.objective.objective) == (1.0, 7, "cross-entropy")


@pytest.mark.parametrize(
    "error", [torch.OutOfMemoryError(), RuntimeError("MPS backend out of memory (MPS allocated: 9 GB)")]
)
def test_a_full_device_names_the_batch_and_its_option(error: RuntimeError) -> None:
    with pytest.raises(DeviceFull, match=r"a batch of 8 does not fit into memory; lower --batch"), memory_named(8):
        raise error


def test_a_full_machine_says_what_to_do_when_it_scores() -> None:
    with (
        pytest.raises(DeviceFull, match=r"a batch of 4,096 does not fit into memory; use --device"),
        scoring(5_000),
    ):
        torch.empty(2**60)


def test_a_network_that_memory_does_not_hold_is_refused_before_it_is_built() -> None:
    with pytest.raises(DeviceFull, match=r"need 4,096\.0 GiB more memory, [\d,.]+ GiB are free; lower --set dim"):
        build_network(lambda: torch.nn.Embedding(2**20, 2**20))


def test_an_optimiser_that_memory_does_not_hold_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kbtools.scorers.networks.devices.free_memory", lambda device: 100)

    with pytest.raises(DeviceFull, match="or use --set optimiser=row-adagrad"):
        check_optimiser_memory(Line(), "adam", torch.device("cpu"))
    check_optimiser_memory(Line(), "row-adagrad", torch.device("cpu"))


def test_a_question_alone_is_scored_on_one_thread() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with scoring(1):
            alone = torch.get_num_threads()
        with scoring(100):
            together = torch.get_num_threads()
        assert (alone, together, torch.get_num_threads()) == (1, 2, 2)
    finally:
        torch.set_num_threads(before)


def test_another_error_of_a_device_is_left_alone() -> None:
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"), memory_named(8):
        torch.empty(2, 3) @ torch.empty(2, 3)


def test_texts_of_one_length_are_scored_a_few_at_a_time() -> None:
    assert group_by_length(["ab", "c", "de", "fg"], most=2) == [[1], [0, 2], [3]]


def test_each_epoch_deals_its_own_batches() -> None:
    dealt: list[list[int]] = []

    class Kept(Line):
        def loss(self, rows: np.ndarray) -> torch.Tensor:
            dealt.append(rows.tolist())
            return super().loss(rows)

    fit(Kept(), FitConfig(epochs=2, batch=20, optimiser="adam"))

    first, second = dealt[:3], dealt[3:]
    assert all(sorted(row for batch in epoch for row in batch) == list(range(40)) for epoch in (first, second))
    assert first != second


@pytest.mark.parametrize(("scale", "clip"), [(1.0, 1e9), (1.0, 0.1), (100.0, 0.1)])
def test_a_step_follows_the_mean_loss_of_its_batch_clipped(
    monkeypatch: pytest.MonkeyPatch, scale: float, clip: float
) -> None:
    task = Line()
    task.network[1] = torch.nn.Identity()
    task.lengths, task.scale = np.zeros(40, dtype=np.int64), scale
    (task.loss(np.arange(40)).mean()).backward()
    gradients = [parameter.grad.clone() for parameter in task.network.parameters()]
    norm = torch.stack([gradient.norm() for gradient in gradients]).norm()
    steps: list[list[torch.Tensor]] = []

    class Kept(torch.optim.SGD):
        def step(self, closure: None = None) -> None:  # type: ignore[override]
            steps.append([parameter.grad.clone() for parameter in task.network.parameters()])

    monkeypatch.setattr(
        "kbtools.scorers.fitting.training_loop.make_optimisers",
        lambda network, **_: [Kept(network.parameters(), lr=1.0)],
    )

    fit(task, FitConfig(epochs=1, batch=64, clip=clip))

    assert len(steps) == 1
    for own, gradient in zip(steps[0], gradients, strict=True):
        assert torch.allclose(own, gradient * min(1.0, clip / norm), rtol=1e-4)


def test_the_rate_falls_to_zero_in_equal_steps_over_all_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    rates: list[float] = []
    monkeypatch.setattr("kbtools.scorers.fitting.training_loop.set_rate", lambda optimisers, rate: rates.append(rate))

    fit(Line(), FitConfig(epochs=2, batch=20, learning_rate=0.6, optimiser="adam"))

    assert rates == pytest.approx([0.6, 0.5, 0.4, 0.3, 0.2, 0.1])


def test_each_epoch_and_seed_draws_anew() -> None:
    drawn: list[float] = []

    class Kept(Line):
        def loss(self, rows: np.ndarray) -> torch.Tensor:
            drawn.append(float(torch.rand(1)))
            return super().loss(rows)

    for seed in (0, 1, 0):
        fit(Kept(), FitConfig(epochs=3, batch=64, seed=seed, optimiser="adam"))

    once = drawn[:18]
    assert len(set(once)) == len(once)
    assert drawn[18:] == drawn[:9]


def test_the_loss_of_an_epoch_is_the_mean_over_its_examples() -> None:
    task = Line()
    task.network[1] = torch.nn.Identity()
    expected = float(task.loss(np.arange(40)).detach().mean())

    (epoch,) = fit(task, FitConfig(epochs=1, batch=8, learning_rate=1e-9, optimiser="adam"))

    assert epoch.loss == pytest.approx(expected, rel=1e-4)
