"""Weights are written as the format has it, and read as they lie."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kbtools.scorers.networks.checkpoint import read_weights, write_weights

ARRAYS: dict[str, NDArray[Any]] = {
    "table": np.arange(6, dtype=np.float32).reshape(2, 3),
    "rows": np.array([3, -1], dtype=np.int64),
    "bias": np.array(0.5, dtype=np.float64),
    "none": np.empty((0, 4), dtype=np.float32),
}


def test_what_is_written_is_read(tmp_path: Path) -> None:
    write_weights(tmp_path / "weights", ARRAYS)

    weights = read_weights(tmp_path / "weights")

    assert list(weights) == list(ARRAYS)
    for name, array in ARRAYS.items():
        assert weights[name].dtype == array.dtype
        assert weights[name].shape == array.shape
        assert np.array_equal(weights[name], array)


def test_numbers_begin_at_a_multiple_of_eight_bytes_whatever_the_names(tmp_path: Path) -> None:
    for size in range(1, 9):
        write_weights(tmp_path / "weights", {"w" * size: ARRAYS["rows"]})

        assert int.from_bytes((tmp_path / "weights").read_bytes()[:8], "little") % 8 == 0
        assert read_weights(tmp_path / "weights")["w" * size].tolist() == [3, -1]


def test_what_is_changed_in_memory_is_not_written(tmp_path: Path) -> None:
    write_weights(tmp_path / "weights", ARRAYS)

    read_weights(tmp_path / "weights")["table"][:] = 9

    assert read_weights(tmp_path / "weights")["table"][0, 1] == 1


def test_other_readers_and_writers_of_the_format_agree(tmp_path: Path) -> None:
    safetensors = pytest.importorskip("safetensors.numpy", reason="needs safetensors: pip install 'kbtools[dev]'")
    write_weights(tmp_path / "ours", ARRAYS)
    safetensors.save_file(ARRAYS, tmp_path / "theirs", metadata={"format": "pt"})

    for name, array in ARRAYS.items():
        assert np.array_equal(safetensors.load_file(tmp_path / "ours")[name], array)
        assert np.array_equal(read_weights(tmp_path / "theirs")[name], array)


def test_bfloat16_is_read_as_float32(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="tensors need torch: pip install 'kbtools[train]'")
    files = pytest.importorskip("safetensors.torch", reason="needs safetensors: pip install 'kbtools[dev]'")
    tensor = torch.tensor([[0.5, -3.0], [1e20, 7.0]], dtype=torch.bfloat16)
    files.save_file({"table": tensor}, tmp_path / "weights")

    assert np.array_equal(read_weights(tmp_path / "weights")["table"], tensor.float().numpy())


@pytest.mark.parametrize("cut", [4, 30, -3])
def test_a_damaged_file_is_an_error(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "weights"
    write_weights(path, {"table": ARRAYS["table"]})
    path.write_bytes(path.read_bytes()[:cut])

    with pytest.raises((ValueError, KeyError)):
        read_weights(path)
