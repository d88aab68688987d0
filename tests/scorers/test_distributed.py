"""Several processes train as one does, over gloo on a CPU, started by torch's own launcher or with its environment."""

import multiprocessing
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from kbtools.errors import UnknownDevice

pytest.importorskip("torch", reason="networks need torch: pip install 'kbtools[train]'")

import torch

from kbtools.cli import train
from kbtools.cli.main import main
from kbtools.scorers.networks.checkpoint import read_checkpoint
from kbtools.scorers.networks.devices import resolve_device
from kbtools.scorers.networks.distributed import processes, rank, share, sum_gradients

LAUNCH = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "--no-python"]
KBTOOLS = [sys.executable, "-c", "from kbtools.cli.main import main; main()"]
SETTINGS = """
words = "random"
dim = 8
words_dim = 8
hidden = 8
epochs = 2
batch = 5
dropout = 0.0
word_dropout = 0.0
"""
"""Nothing is drawn, batches are odd, and the last of a length may hold one question for two processes."""


@pytest.fixture
def arguments(sample_path: Path, examples: Path, tmp_path: Path) -> Callable[..., list[str]]:
    """Give the arguments of kbtools that train a part on the sample into a folder."""
    config = tmp_path / "config.toml"
    config.write_text(SETTINGS)
    files = ("--train", str(examples / "sample.train.txt"), "--valid", str(examples / "sample.valid.txt"))

    def make(folder: str, part: str, *options: str) -> list[str]:
        where = ("--kb", str(sample_path), "--out", str(tmp_path / folder), "--config", str(config))
        return ["train", part, *where, *files, *options]

    return make


def train_as(rank: int, port: int, output: Path, arguments: list[str], show_epoch: Callable[..., None] | None) -> None:
    """Train as the launcher's process of a rank, with its environment."""
    place = {"RANK": str(rank), "LOCAL_RANK": str(rank), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    os.environ |= {"TORCHELASTIC_RUN_ID": "1", "WORLD_SIZE": "2", **place}
    with output.open("w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    if show_epoch:
        train._show_epoch = show_epoch
    main(arguments)


def train_in_two(
    output: Path, *arguments: list[str], show_epoch: Callable[..., None] | None = None
) -> tuple[list[int | None], str]:
    """Train in two processes; return their exit codes, and what both printed.

    They are forked from a process that has imported torch; the launcher would import it three times.
    """
    forks = multiprocessing.get_context("forkserver")
    forks.set_forkserver_preload([__name__, "kbtools.scorers.fitting.training"])
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    outputs = [output.with_suffix(f".{rank}") for rank in range(2)]
    both = [
        forks.Process(target=train_as, args=(rank, port, outputs[rank], own, show_epoch))
        for rank, own in enumerate(arguments * (2 // len(arguments)))
    ]
    for process in both:
        process.start()
    for process in both:
        process.join(timeout=300)
    return [process.exitcode for process in both], "".join(path.read_text() for path in outputs)


def die(epoch: object) -> None:
    sys.exit("killed")


def assert_equal(one: Path, other: Path) -> None:
    """Hold two models to be the same, up to the order in which floating-point numbers were added."""
    found, expected = (read_checkpoint(folder).weights for folder in (one, other))
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=0)


def test_two_processes_train_as_one_does(arguments: Callable[..., list[str]], tmp_path: Path) -> None:
    options = ("--scorer", "embed-avg", "--optimiser", "adam")
    main(arguments("one", "relation", *options), standalone_mode=False)

    command = [*LAUNCH, *KBTOOLS, *arguments("two", "relation", *options)]
    launched = subprocess.run(command, capture_output=True, text=True, timeout=300)

    assert launched.returncode == 0, launched.stderr
    assert launched.stdout.count(": trained, ") == 1
    assert launched.stderr.count("  epoch 2: loss ") == 1
    assert_equal(*(tmp_path / folder / "relation" / "embed-avg" for folder in ("one", "two")))
    assert not list((tmp_path / "two" / "relation").glob(".*.training"))


def test_a_process_that_dies_ends_all_and_the_next_run_goes_on(
    arguments: Callable[..., list[str]], tmp_path: Path
) -> None:
    options = ("--tagger", "bigru-crf", "--optimiser", "adagrad")
    main(arguments("one", "tagger", *options), standalone_mode=False)

    killed, _ = train_in_two(tmp_path / "killed", arguments("two", "tagger", *options), show_epoch=die)
    resumed, printed = train_in_two(tmp_path / "resumed", arguments("two", "tagger", *options))

    assert all(killed)
    assert resumed == [0, 0], printed
    assert "  epoch 2: " in printed
    assert "  epoch 1: " not in printed
    assert_equal(*(tmp_path / folder / "tagger" / "bigru-crf" for folder in ("one", "two")))


def test_processes_that_see_different_models_stop(arguments: Callable[..., list[str]], tmp_path: Path) -> None:
    options = ("--scorer", "embed-avg")
    main(arguments("models-1", "relation", *options), standalone_mode=False)

    apart = [arguments(f"models-{rank}", "relation", *options) for rank in range(2)]
    stopped, printed = train_in_two(tmp_path / "stopped", *apart)

    assert stopped == [1, 1]
    assert printed.count("Error: the processes see different states of the training") == 2


@pytest.fixture
def second_of_two(monkeypatch: pytest.MonkeyPatch) -> None:
    """Be the second of two processes, as the launcher tells it."""
    for name, value in {"TORCHELASTIC_RUN_ID": "1", "WORLD_SIZE": "2", "RANK": "1", "LOCAL_RANK": "1"}.items():
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("second_of_two")
def test_a_batch_is_shared_and_a_small_one_leaves_some_without() -> None:
    assert share(np.arange(5)).tolist() == [1, 3]
    assert share(np.arange(1)).tolist() == []


@pytest.mark.usefixtures("second_of_two")
def test_gradients_of_rows_are_summed_over_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    table = torch.nn.Embedding(4, 1, sparse=True)
    table(torch.tensor([3, 1, 3])).sum().backward()
    # The other process has the same gradient.
    monkeypatch.setattr(torch.distributed, "all_gather", lambda parts, own: [part.copy_(own) for part in parts])

    sum_gradients(table)

    assert table.weight.grad is not None
    assert table.weight.grad.to_dense().flatten().tolist() == [0, 2, 0, 4]


@pytest.mark.usefixtures("second_of_two")
@pytest.mark.parametrize(
    ("device", "message"),
    [
        pytest.param("cuda:0", "device 'cuda:0' cannot be shared by 2 processes; use --device cuda", id="shared"),
        pytest.param("cuda", "device 'cuda:1' is not available", id="own"),
    ],
)
def test_each_process_takes_its_own_device(device: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)

    with pytest.raises(UnknownDevice, match=message):
        resolve_device(device)


def test_without_a_launcher_there_is_one_process() -> None:
    assert (processes(), rank(), share(np.arange(5)).tolist()) == (1, 0, [0, 1, 2, 3, 4])
