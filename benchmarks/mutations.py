"""Faults inserted into the code one at a time, and how many of them the module's tests detect.

python benchmarks/mutations.py [WORD ...] [--survivors]

Each line of mutations.tsv has a file, a text that occurs once in it, a replacement, and the tests to run, separated by
tabs; `\\n` is the end of a line. With words, only lines that contain one of them are used. Everything runs in a copy of
the checkout, in which the same tests must pass first; texts that no longer exist are counted separately. Tests that
need a cluster or FBSQ are skipped.
"""

import argparse
import ast
import importlib
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest
from figures import show_table

ROOT = Path(__file__).resolve().parents[1]
TABLE = Path(__file__).with_suffix(".tsv")
ROOMS = ("scorers", "indexers", "serve", "cli")

PRELOADED = (
    *("numpy", "pyarrow", "pyarrow.csv", "pyarrow.compute", "pyarrow.parquet", "duckdb", "lmdb", "tantivy", "msgpack"),
    *("rapidfuzz.process", "elasticsearch", "click.testing", "torch", "rich.console"),
)
"""Libraries that start no thread when they are imported, so that the process can be forked afterwards."""

SECONDS = 600
"""A mutation may make the code loop; the slowest tests of a line take a tenth of this."""


class Mutation(NamedTuple):
    """A file, a text that occurs once in it, its replacement, and tests that must then fail."""

    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    @property
    def label(self) -> str:
        return f"{self.file}: {self.old.strip()!r} -> {self.new.strip()!r}"


def read_mutations() -> list[Mutation]:
    """Read the table; a line that begins with `#` is a heading."""
    lines = [line for line in TABLE.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    rows = [line.split("\t") for line in lines]
    return [
        Mutation(file, old.replace(r"\n", "\n"), new.replace(r"\n", "\n"), tuple(tests.split(" ")))
        for file, old, new, tests in rows
    ]


def copy_checkout(folder: Path) -> None:
    """Copy the checkout, its rooms in their places, so that the copy is what is imported."""
    left_out = shutil.ignore_patterns(".*", "build", "runs", "*.egg-info", "*.kb", "models")
    shutil.copytree(ROOT, folder, ignore=left_out, dirs_exist_ok=True)
    for room in ROOMS:
        (folder / "kbtools" / room).symlink_to(folder / room)


def preload() -> None:
    """Import the libraries of the tests once: more than half of the time of a short test."""
    for name in PRELOADED:
        with suppress(ImportError):
            importlib.import_module(name)


def enter_copy(folder: Path) -> None:
    """Make a forked process run the code of a copy, without output."""
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    os.environ |= {"PYTHONPATH": str(folder), "OMP_NUM_THREADS": "1"}
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(1, 2)


def tests_pass(folder: Path, tests: tuple[str, ...]) -> bool:
    """Run tests in a copy until one fails, in a process of their own; tests that do not end count as failed."""
    pid = os.fork()
    if not pid:
        signal.alarm(SECONDS)
        enter_copy(folder)
        code = 1
        try:
            code = int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", *(f"tests/{name}" for name in tests)]))
        finally:
            os._exit(code)
    return os.waitpid(pid, 0)[1] == 0


@contextmanager
def mutated(folder: Path, mutation: Mutation, *, seconds: int) -> Iterator[bool]:
    """Put a mutation in for a while; yield whether its text occurs once and the changed code can be parsed.

    The file becomes some seconds younger, since Python compares bytecode by whole seconds and the size.
    """
    path = folder / mutation.file
    code = path.read_text(encoding="utf-8") if path.is_file() else ""
    changed = code.replace(mutation.old, mutation.new)
    try:
        if code.count(mutation.old) != 1 or changed == code:
            raise SyntaxError
        ast.parse(changed)
    except SyntaxError:
        yield False
        return
    before = path.stat().st_mtime
    path.write_text(changed, encoding="utf-8")
    os.utime(path, (before + seconds, before + seconds))
    try:
        yield True
    finally:
        path.write_text(code, encoding="utf-8")
        os.utime(path, (before, before))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="take the lines that hold one of these")
    parser.add_argument("--survivors", action="store_true", help="print the mutations that survive alone")
    parser.add_argument("--small", action="store_true", help="try one mutation of a small file, to see that this runs")
    arguments = parser.parse_args()
    if arguments.small:
        arguments.words = ["LONG_NUMBER"]
    mutations = [
        mutation
        for mutation in read_mutations()
        if not arguments.words or any(word in "\t".join(map(str, mutation)) for word in arguments.words)
    ][: 1 if arguments.small else None]
    killed = valid = 0
    sound: set[tuple[str, ...]] = set()
    if not arguments.small:
        preload()
    with TemporaryDirectory() as name:
        folder = Path(name)
        copy_checkout(folder)
        for number, mutation in enumerate(mutations, 1):
            if mutation.tests not in sound and not tests_pass(folder, mutation.tests):
                sys.exit(f"tests fail without any mutation: {' '.join(mutation.tests)}")
            sound.add(mutation.tests)
            begun = time.monotonic()
            with mutated(folder, mutation, seconds=number) as stands:
                survives = stands and tests_pass(folder, mutation.tests)
            valid += stands
            killed += stands and not survives
            verdict = "survived" if survives else "killed" if stands else "not there"
            if survives or not arguments.survivors:
                print(f"{number:>4} {verdict:<9} {time.monotonic() - begun:>4.0f} s  {mutation.label}", flush=True)
    show_table("killed", ("faults", "not there", "seen", "share"),
               [(len(mutations), len(mutations) - valid, killed, f"{killed / max(valid, 1):.1%}")])  # fmt: skip


if __name__ == "__main__":
    main()
