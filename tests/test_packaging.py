"""The folders install as one package: what ships, what imports what, what loads when."""

import ast
import doctest
import functools
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from configparser import ConfigParser
from importlib import import_module
from pathlib import Path

import pytest

from kbtools.entry_points import EXTRAS

ROOT = Path(__file__).resolve().parents[1]
SETUP = ConfigParser()
SETUP.read(ROOT / "setup.cfg", encoding="utf-8")

ROOMS = dict(line.split(" = ") for line in SETUP["options"]["package_dir"].split("\n") if line)
HEAVY = {"duckdb", "elasticsearch", "faiss", "lmdb", "pyarrow", "pyoxigraph", "tantivy", "torch"}
DRAWING = {"matplotlib"}
"""Libraries that only the package kbtools.comparison may import."""

KBTOOLS_SCRIPT = str(Path(sysconfig.get_path("scripts"), "kbtools"))

MODULES = {
    ".".join([package, *path.relative_to(ROOT / folder).with_suffix("").parts]).removesuffix(".__init__"): path
    for package, folder in ROOMS.items()
    for path in sorted((ROOT / folder).rglob("*.py"))
}
AROUND = [path for folder in ("tests", "benchmarks") for path in sorted((ROOT / folder).rglob("*.py"))]


def test_setup_lists_every_package() -> None:
    on_disk = [module for module, path in MODULES.items() if path.name == "__init__.py"]

    listed = SETUP["options"]["packages"].split()

    assert sorted(listed) == sorted(on_disk)


def test_every_folder_of_modules_is_a_package() -> None:
    assert [path for path in MODULES.values() if not path.with_name("__init__.py").exists()] == []


def test_readers_of_rdf_say_which_extra_they_need() -> None:
    readers = dict(line.split(" = ") for line in SETUP["options.entry_points"]["kbtools.readers"].split("\n") if line)

    needing = {name for name, value in readers.items() if value.endswith(" [rdf]")}

    assert needing == {"n-triples", "n-quads", "turtle", "trig", "rdf-xml", "json-ld"}


def test_every_module_has_a_docstring() -> None:
    assert [str(path) for path in [*MODULES.values(), *AROUND] if ast.get_docstring(parsed(path)) is None] == []


def test_examples_run() -> None:
    modules = [name for name in modules_with_examples() if room(name) == "kbtools"]

    failed = [name for name in modules if doctest.testmod(import_module(name)).failed]

    assert failed == []


def test_examples_stand_only_where_they_run() -> None:
    assert [name for name in modules_with_examples() if room(name) != "kbtools"] == []


@pytest.mark.parametrize(
    ("source", "targets"),
    [
        pytest.param(
            "kbtools", {"kbtools.indexers", "kbtools.scorers", "kbtools.serve", "kbtools.cli", *HEAVY}, id="kbtools"
        ),
        pytest.param("kbtools.indexers", {"kbtools.scorers", "kbtools.cli"}, id="indexers"),
        pytest.param("kbtools.scorers", {"kbtools.indexers", "kbtools.cli"}, id="scorers"),
        pytest.param("kbtools.serve", {"kbtools.scorers", "kbtools.cli", *HEAVY}, id="serve"),
        pytest.param("kbtools.cli", HEAVY, id="cli"),
    ],
)
def test_arrows_point_one_way(source: str, targets: set[str]) -> None:
    against = [
        f"{module} imports {name}"
        for module, path in MODULES.items()
        if room(module) == source and not module.startswith("kbtools.suites.")  # The suites check all plugins.
        for name in imports(path)
        if any(f"{name}.".startswith(f"{target}.") for target in targets)
    ]

    assert against == []


def test_reports_alone_draw() -> None:
    against = [
        f"{module} imports {name}"
        for module, path in MODULES.items()
        if not module.startswith("kbtools.comparison.")
        for name in imports(path)
        if name.split(".")[0] in DRAWING
    ]

    assert against == []


def test_imports_are_absolute_and_by_installed_name() -> None:
    against = [
        f"{path} imports {name}"
        for path in [*MODULES.values(), *AROUND]
        for name in imports(path)
        if name.split(".")[0] in {"", "scorers", "indexers", "cli"}
    ]

    assert against == []


def test_every_package_that_only_the_server_imports_has_an_extra() -> None:
    imported = {
        name.split(".")[0]
        for module, path in MODULES.items()
        if room(module) == "kbtools.serve"
        for name in imports(path)
    }

    plain = {"kbtools", "msgspec", "numpy", "rapidfuzz"}
    assert imported - sys.stdlib_module_names - plain - EXTRAS.keys() == {"spacy"}


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["-c", "import kbtools"], id="import"),
        pytest.param([KBTOOLS_SCRIPT, "--help"], id="help"),
        *[pytest.param([KBTOOLS_SCRIPT, command, "--help"], id=command) for command in ("query", "train", "plugins")],
    ],
)
def test_heavy_libraries_stay_unloaded(arguments: list[str]) -> None:
    loaded = modules_loaded(arguments)

    assert "kbtools" in loaded
    assert loaded & (HEAVY | DRAWING) == set()


def test_a_query_needs_no_arrow(sample_path: Path) -> None:
    loaded = modules_loaded([KBTOOLS_SCRIPT, "query", "--kb", str(sample_path), "--scorer", "lexical", "who wrote it"])

    assert {"kbtools", "lmdb"} <= loaded
    assert loaded & {"pyarrow", "onnxruntime", "tokenizers", "torch"} == set()


def room(module: str) -> str:
    """Return the room of a module: the longest package of `package_dir` that contains it."""
    return max((package for package in ROOMS if f"{module}.".startswith(f"{package}.")), key=len)


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


@functools.cache
def imports(path: Path) -> list[str]:
    """Return the full names that a file imports, at any depth; a relative one starts with a dot."""
    return list(imported_names(path))


def imported_names(path: Path) -> Iterator[str]:
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{'.' * node.level}{node.module or ''}.{alias.name}" for alias in node.names)


def modules_with_examples() -> Iterable[str]:
    return [name for name, path in MODULES.items() if ">>>" in path.read_text(encoding="utf-8")]


def modules_loaded(arguments: list[str]) -> set[str]:
    """Run Python and return the top-level modules it loaded, from its report of import times."""
    done = subprocess.run([sys.executable, "-X", "importtime", *arguments], capture_output=True, text=True, check=True)
    return {line.rsplit("|", 1)[1].strip().split(".")[0] for line in done.stderr.splitlines() if "|" in line}


def test_the_demonstration_installs_kbtools_alone() -> None:
    plan = subprocess.run(
        ["make", "--dry-run", "VENV=/nonexistent", "demo"], cwd=ROOT, capture_output=True, text=True, check=True
    )

    installs = [line for line in plan.stdout.splitlines() if "pip install" in line]
    assert [line.split("pip install")[1].split() for line in installs] == [["-qq", "--editable", "."]]
