"""Every script of the benchmarks can be imported, describes its options, and runs over the sample knowledge base."""

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import figures
import pytest
import serving

from tests.indexers.elastic.conftest import SmallServer
from tests.indexers.elastic.stand_in import StandIn

ROOT = Path(figures.__file__).parent
SCRIPTS = sorted(path.stem for path in ROOT.glob("*.py"))


@pytest.fixture(params=SCRIPTS)
def script(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the name of a script whose libraries are installed."""
    name: str = request.param
    monkeypatch.setattr(sys, "argv", [f"{name}.py", "--help"])
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and error.name.split(".")[0] in {"kbtools", *SCRIPTS}:
            raise
        pytest.skip(f"needs {error.name}: pip install -e '.[dev,train,bench]'")
    return name


def test_a_script_describes_its_options(script: str, capsys: pytest.CaptureFixture[str]) -> None:
    module = importlib.import_module(script)
    if "ArgumentParser(" not in Path(str(module.__file__)).read_text(encoding="utf-8"):
        return  # a module that scripts share, or a script without options

    with pytest.raises(SystemExit) as ended:
        module.main()

    assert ended.value.code == 0
    assert f"usage: {script}.py" in capsys.readouterr().out


def test_a_benchmark_starts_the_server_inside_the_clone(
    sample_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("uvicorn", reason="a server needs the extra: pip install 'kbtools[serve]'")
    clone = tmp_path / "clone"
    (clone / "kbtools").mkdir(parents=True)
    (clone / "kbtools" / "__init__.py").touch()
    monkeypatch.chdir(clone)

    with serving.served(sample_path, workers=1) as (port, pid):
        assert port > 0
        assert serving.cpu_seconds(pid) >= 0


def test_every_fault_of_the_table_can_be_put_into_the_code() -> None:
    mutations = importlib.import_module("mutations")
    faults = mutations.read_mutations()

    assert [one.label for one in faults if (mutations.ROOT / one.file).read_text("utf-8").count(one.old) != 1] == []
    assert [
        name for one in faults for name in one.tests if not (mutations.ROOT / "tests" / name.split("::")[0]).exists()
    ] == []


FORKING = ("damage", "mutations", "reliability", "sampled_mutations")
"""Scripts that fork before they import kbtools or torch, so that each needs a process of its own."""

CLUSTER = ("cluster_figures", "cluster_updating")

SMALL = [
    name
    for name in SCRIPTS
    if "ArgumentParser(" in (ROOT / f"{name}.py").read_text(encoding="utf-8")
    and name not in (*FORKING, *CLUSTER, "bench_child", "figures")
]
"""The other scripts with options; `bench` runs `bench_child`."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder in which all small runs share a knowledge base and models."""
    return tmp_path_factory.mktemp("small")


def run_small(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, Any]]:
    """Run a script over the sample, and return the tables that it shows."""
    monkeypatch.setattr(sys, "argv", [f"{name}.py", "--small"])
    monkeypatch.setattr(figures, "recorded", recorded := {})
    monkeypatch.setenv("KBTOOLS_DATA", str(folder / "nowhere"))
    monkeypatch.chdir(folder)
    with mock.patch.dict(os.environ):  # a script may set variables, which its process would take with it
        importlib.import_module(name).main()
    return recorded


@pytest.mark.parametrize("name", SMALL)
def test_a_script_runs_to_its_end_over_the_sample(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tables = run_small(name, folder, monkeypatch)

    capsys.readouterr()
    assert tables
    assert all(table["rows"] for table in tables.values())


@pytest.mark.parametrize("name", CLUSTER)
def test_a_script_for_a_cluster_runs_to_its_end_on_a_stand_in(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    server = SmallServer(StandIn().reply, product="Elasticsearch")
    monkeypatch.setenv("KBTOOLS_ELASTICSEARCH_URL", server.url)

    tables = run_small(name, folder, monkeypatch)

    server.close()
    capsys.readouterr()
    assert all(table["rows"] for table in tables.values())


@pytest.mark.parametrize("name", FORKING)
def test_a_script_that_forks_runs_to_its_end(name: str, folder: Path) -> None:
    command = [sys.executable, str(ROOT / f"{name}.py"), "--small"]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True)

    assert ended.returncode == 0, ended.stderr
    assert re.search(r"^\| .* \|\n\| ---.*\n\| .+ \|$", ended.stdout, re.MULTILINE)
