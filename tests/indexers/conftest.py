"""A disk of a few hundred kilobytes, to be filled."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def small_disk(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """Mount a disk of 600 kB, or of the size asked for, or skip."""
    folder = tmp_path / "disk"
    folder.mkdir()
    size = getattr(request, "param", "600k")
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if os.geteuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small disk needs root and the right to mount: sudo pytest")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)
