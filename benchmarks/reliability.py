"""Break knowledge bases on purpose and count what came of it: kills, damaged pages, full disks.

    python benchmarks/reliability.py

It needs neither data nor a network, takes some five minutes, and prints the tables of docs/reliability.md.
`--damages 40` and `--kills 5` make it shorter.
"""

import argparse
import io
import os
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np

import kbtools.cli.check
import kbtools.cli.info
import kbtools.cli.query
import kbtools.cli.similar
import kbtools.scorers.similar
from kbtools import storage
from kbtools.cli.main import main as kbtools
from kbtools.errors import KBMissing
from kbtools.indexers.build import BuildProgress, build
from kbtools.indexers.embedded import EmbeddedKB
from kbtools.indexers.faiss_index import write_vectors
from kbtools.indexers.kb_folder import find_damage
from kbtools.indexers.readers.reading import ReadOptions, Source
from kbtools.kb.vector_index import EntityVectors

PAGE = 4_096
END = "the command ended with "
LARGE = 30_000
"""Entities of the larger knowledge base, whose files are mapped and not read."""

QUESTIONS = ("who wrote hary poter 7", "genre of solaris 12", "who directed avatar 29999", "what is frankenstien 100")
SWAP = ("os.rename", "ctypes.dlsym", "os.remove", "os.rmdir")
"""What a process does from the moment that it puts a folder in place: the events of Python that a kill waits for."""


def write_sources(folder: Path, entities: int, *, relation: str = "written_by") -> list[Source]:
    """Write a knowledge base of invented books, films and albums as tables."""
    folder.mkdir()
    words = ("Harry Potter", "Solaris", "Avatar", "Frankenstein", "The Old Sea", "Iron Kite")
    rows = range(entities)
    lines = {
        "facts": ["subject\trelation\tobject", *(f"e{row}\t{relation}\te{row * 7919 % entities}" for row in rows)],
        "names": ["id\tname", *(f"e{row}\t{words[row % len(words)]} {row}" for row in rows)],
        "types": ["id\ttype", *(f"e{row}\tt{row % 40}" for row in rows)],
    }
    for kind, table in lines.items():
        (folder / f"{kind}.tsv").write_text("\n".join(table) + "\n", encoding="utf-8")
    facts, names, types = (folder / f"{kind}.tsv" for kind in lines)
    return [Source(facts, "facts"), Source(names, "names"), Source(types, "types")]


def make(sources: list[Source], out: Path, *, vectors: bool = False) -> Path:
    build(sources, out, options=ReadOptions(), watch=BuildProgress(), force=True)
    if vectors:
        kb = EmbeddedKB(out)
        table = np.random.default_rng(1).normal(size=(len(kb.entity_ids), 16)).astype(np.float32)
        rows = np.arange(len(table), dtype=np.uint32)
        write_vectors(out, kb, EntityVectors(rows, 16, lambda some: table[some]), kind="hnsw")
    return out


def in_a_child(act: Callable[[], object], *, kill_after: float | None = None) -> tuple[int, str]:
    """Act in a forked process, which may be killed after some seconds; give its exit code and what it printed."""
    with tempfile.TemporaryFile() as printed:
        pid = os.fork()
        if not pid:
            os.dup2(printed.fileno(), 1)
            os.dup2(printed.fileno(), 2)
            sys.stdout = sys.stderr = io.TextIOWrapper(os.fdopen(1, "wb", closefd=False), write_through=True)
            code = 0
            try:
                act()
            except SystemExit as stopped:
                code = stopped.code if isinstance(stopped.code, int) else 1
            except BaseException:
                traceback.print_exc()
                code = 1
            os._exit(code)
        if kill_after is not None:
            time.sleep(kill_after)
            os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        printed.seek(0)
        return os.waitstatus_to_exitcode(status), printed.read().decode(errors="replace")


def kill_at(number: int) -> None:
    """Kill this process at an event of the swap: the first is the renaming of the finished manifest."""
    left = [number]
    begun = [False]

    def hear(event: str, arguments: tuple[object, ...]) -> None:
        if event == "os.rename" and str(arguments[0]).endswith("manifest.msgpack.new"):
            begun[0] = True
        elif begun[0] and event in SWAP:
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hear)


def without_exchange() -> None:
    """Take `renameat2` away from this process."""

    def refuse(*_: object, **__: object) -> None:
        raise OSError("no such library")

    storage.ctypes = SimpleNamespace(CDLL=refuse)  # type: ignore[assignment]


def state(out: Path) -> str:
    """Say what a folder answers as: the old content, the new, or none, its old content lying beside it."""
    try:
        relations = set(EmbeddedKB(out).relations)
    except KBMissing as error:
        return "put back by the next run" if "brings the old one back" in str(error) else "LOST"
    damaged = list(find_damage(out, EmbeddedKB(out).manifest))
    return "DAMAGED" if damaged else "the new one" if "of_the_new_one" in relations else "the old one"


def kills(work: Path, number: int, how: str, rng: random.Random) -> Counter[str]:
    """Kill builds that replace a knowledge base, each followed by a whole build now and then."""
    old = write_sources(work / f"old {how}", 300)
    new = write_sources(work / f"new {how}", 300, relation="of_the_new_one")
    out = make(old, work / how / "x.kb")
    begun = time.monotonic()
    in_a_child(lambda: make(new, work / "timed" / "x.kb"))
    seconds = time.monotonic() - begun
    table: Counter[str] = Counter()
    for at in range(number):

        def act(at: int = at) -> None:
            if "without" in how:
                without_exchange()
            if "swap" in how:
                kill_at(at)
            make(new, out)

        in_a_child(act, kill_after=None if "swap" in how else rng.uniform(0, 1.2 * seconds))
        table[state(out)] += 1
        if at % 5 == 4 or state(out) not in ("the old one",):
            make(old, out)
            table["left behind"] += len(os.listdir(out.parent)) - 1
    return table


def damage_page(path: Path, rng: random.Random) -> bytes:
    """Change a page of a file in one of four ways; give what the file held."""
    whole = path.read_bytes()
    start = rng.randrange(0, len(whole), PAGE)
    page = whole[start : start + PAGE]
    bit = bytearray(page)
    bit[rng.randrange(len(page))] ^= 1 << rng.randrange(8)
    other = rng.randrange(0, len(whole), PAGE)
    copied = whole[other : other + PAGE].ljust(len(page), b"\0")[: len(page)]
    changed = rng.choice([bytes(len(page)), rng.randbytes(len(page)), bytes(bit), copied])
    if changed == page:
        changed = bytes([page[0] ^ 255]) + page[1:]
    path.write_bytes(whole[:start] + changed + whole[start + PAGE :])
    return whole


def commands(kb: Path, questions: Path) -> list[tuple[str, list[str]]]:
    return [
        ("check", ["check", str(kb)]),
        ("info", ["info", str(kb)]),
        ("query", ["query", "--kb", str(kb), "--questions", str(questions), "--json", "--no-timing"]),
        ("similar", ["similar", "--kb", str(kb), "e7"]),
    ]


def verdict(code: int, printed: str, expected: str) -> str:
    if "Traceback (most recent" in printed:
        return "a traceback"
    if code < 0:
        return "ended by the system"
    if code:
        return "named" if "Error: " in printed else "a traceback"
    return "as before" if printed == expected else "another answer"


def damages(work: Path, kb: Path, number: int, rng: random.Random, *, until: float) -> dict[str, Counter[str]]:
    """Damage one page at a time and run every command in one process, until the time is over."""
    questions = work / "questions.txt"
    questions.write_text("\n".join(QUESTIONS) + "\n", encoding="utf-8")
    lines = commands(kb, questions)
    expected = run_all(lines)
    files = [path for path in sorted(kb.rglob("*")) if path.is_file() and path.stat().st_size]
    weights = [max(1, path.stat().st_size // PAGE) ** 0.5 for path in files]
    table: dict[str, Counter[str]] = {name: Counter() for name, _ in lines}
    for _ in range(number):
        if time.monotonic() > until:
            break
        (path,) = rng.choices(files, weights)
        whole = damage_page(path, rng)
        for name, (code, printed) in run_all(lines).items():
            table[name][verdict(code, printed, expected[name][1])] += 1
        path.write_bytes(whole)
    return table


def run_all(lines: list[tuple[str, list[str]]]) -> dict[str, tuple[int, str]]:
    """Run commands one after the other in a child, and those that it did not live to see in another."""
    outcomes: dict[str, tuple[int, str]] = {}
    while len(outcomes) < len(lines):
        waiting = [line for line in lines if line[0] not in outcomes]

        def act(waiting: list[tuple[str, list[str]]] = waiting) -> None:
            for _, line in waiting:
                code: object = 0
                try:
                    kbtools(line)
                except SystemExit as stopped:
                    code = stopped.code
                except BaseException:
                    traceback.print_exc()
                    code = 1
                print(f"{END}{code}", flush=True)

        code, printed = in_a_child(act)
        first, *later = printed.split(END)
        pairs = [piece.partition("\n")[::2] for piece in later]
        outputs = [first, *(output for _, output in pairs)]
        for at, (ended, _) in enumerate(pairs):
            outcomes[waiting[at][0]] = (int(ended), outputs[at])
        if code < 0:
            outcomes[waiting[len(pairs)][0]] = (code, outputs[-1])
    return outcomes


def full_disks(work: Path, number: int) -> Counter[str]:
    """Build again under a limit on the size of files, from nothing to more than is needed."""
    old = write_sources(work / "disk old", 300)
    new = write_sources(work / "disk new", 300, relation="of_the_new_one")
    out = make(old, work / "disk" / "x.kb")
    table: Counter[str] = Counter()
    for at in range(number):

        def act(at: int = at) -> None:
            limit = 1_000 + at * 2_500
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
            kbtools(["index", *(f"--{source.kind}={source.path}" for source in new), "--out", str(out), "--force"])

        code, printed = in_a_child(act)
        refused = "no space left on the disk; nothing was changed" in printed and "Traceback" not in printed
        table["built" if code == 0 else "refused in one sentence" if refused else printed[-300:]] += 1
        table[state(out)] += 1
        table["left behind"] += len(os.listdir(out.parent)) - 1
        if state(out) == "the new one":
            make(old, out)
    return table


def show(title: str, table: Counter[str]) -> None:
    print(f"| {title} | " + ", ".join(f"{count} {what}" for what, count in sorted(table.items())) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--damages", type=int, default=500)
    parser.add_argument("--disks", type=int, default=30)
    parser.add_argument("--minutes", type=float, default=5, help="When to stop damaging pages.")
    arguments = parser.parse_args()
    rng = random.Random(16)
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="kbtools-reliability-") as folder:
        work = Path(folder)
        print("| broken | what is there afterwards |\n| --- | --- |", flush=True)
        show(f"{arguments.kills} kills at random", kills(work, arguments.kills, "random", rng))
        swaps = min(20, arguments.kills)
        show(f"{swaps} kills at the swap", kills(work, swaps, "swap", rng))
        show(f"{swaps} the same without `renameat2`", kills(work, swaps, "swap without", rng))
        show(f"disk full at {arguments.disks} sizes", full_disks(work, arguments.disks))
        print("\n| a page damaged, then | outcome |\n| --- | --- |")
        left = 60 * arguments.minutes - (time.monotonic() - begun)
        for at, entities in enumerate((300, LARGE), 1):
            kb = make(write_sources(work / f"of {entities}", entities), work / f"{entities}.kb", vectors=True)
            until = begun + 60 * arguments.minutes - left * (2 - at) / 2
            for name, table in damages(work, kb, arguments.damages // 2, rng, until=until).items():
                show(f"`{name}`, {entities:,} entities, {table.total()} times", table)
    print(f"\n{time.monotonic() - begun:.0f} s")


if __name__ == "__main__":
    main()
