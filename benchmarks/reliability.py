"""Break knowledge bases on purpose and count what came of it: kills, damaged pages, full disks, floods, junk.

    python benchmarks/reliability.py

It needs neither data nor a network, takes at most ten minutes, and prints the tables of docs/reliability.md.
`--damages 40`, `--kills 5`, `--lines 2000` and `--questions 20000` make it shorter.
"""

import argparse
import os
import random
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from children import in_a_child, run_all, verdict
from endurance import agreement, command_lines, junk_lines, malformed_lines, many_questions, sample

from kbtools import storage
from kbtools.cli.main import main as kbtools
from kbtools.errors import KBMissing
from kbtools.indexers.building.build import BuildProgress, build
from kbtools.indexers.folder.embedded import EmbeddedKB
from kbtools.indexers.folder.faiss_index import write_vectors
from kbtools.indexers.folder.kb_folder import find_damage
from kbtools.indexers.readers.reading import ReadOptions, Source
from kbtools.kb.vector_index import EntityVectors

PAGE = 4_096
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


def kill_at(number: int) -> None:
    """Kill this process at an event of the swap: the first is the renaming of the finished manifest."""
    left = [number]
    begun = [False]

    def hear(event: str, arguments: tuple[object, ...]) -> None:
        if event == "os.rename" and "/.manifest.msgpack." in str(arguments[0]):
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
        (
            "query",
            ["query", "--kb", str(kb), "--scorer", "lexical", "--questions", str(questions), "--json", "--no-timing"],
        ),
        ("similar", ["similar", "--kb", str(kb), "e7"]),
    ]


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


def show(title: str, outcome: Counter[str] | str) -> None:
    if isinstance(outcome, Counter):
        outcome = ", ".join(f"{count} {what}" for what, count in sorted(outcome.items()))
    print(f"| {title} | {outcome} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--damages", type=int, default=500)
    parser.add_argument("--disks", type=int, default=30)
    parser.add_argument("--lines", type=int, default=100_000, help="Malformed lines for each reader, junk for a query.")
    parser.add_argument("--questions", type=int, default=1_000_000, help="As many of them as fit into two minutes.")
    parser.add_argument(
        "--minutes", type=float, default=9.5, help="When to end; what takes longer is cut short, and the counts say so."
    )
    options = parser.parse_args()
    rng = random.Random(16)
    begun = time.monotonic()

    def ends(share: float) -> float:
        return begun + 60 * options.minutes * share

    with tempfile.TemporaryDirectory(prefix="kbtools-reliability-") as folder:
        work = Path(folder)
        print("| broken | what is there afterwards |\n| --- | --- |", flush=True)
        show(f"{options.kills} kills at random", kills(work, options.kills, "random", rng))
        swaps = min(20, options.kills)
        show(f"{swaps} kills at the swap", kills(work, swaps, "swap", rng))
        show(f"{swaps} the same without `renameat2`", kills(work, swaps, "swap without", rng))
        show(f"disk full at {options.disks} sizes", full_disks(work, options.disks))
        print("\n| much of it | what came of it |\n| --- | --- |")
        for reader, outcome in malformed_lines(work, options.lines, rng):
            show(f"malformed lines for `{reader}`", outcome)
        kb = sample(work)
        show("1,000 random command lines", command_lines(kb, 1_000, rng))
        show("threads, forks, processes", agreement(kb, 8))
        show("junk on standard input", junk_lines(kb, work, options.lines, rng, until=ends(0.5)))
        two_minutes = time.monotonic() + 120
        show("one process", many_questions(kb, options.questions, rng, until=min(two_minutes, ends(0.65))))
        print("\n| a page damaged, then | outcome |\n| --- | --- |")
        for entities, share in ((300, 0.8), (LARGE, 1.0)):
            kb = make(write_sources(work / f"of {entities}", entities), work / f"{entities}.kb", vectors=True)
            for name, table in damages(work, kb, options.damages // 2, rng, until=ends(share)).items():
                show(f"`{name}`, {entities:,} entities, {table.total()} times", table)
    print(f"\n{time.monotonic() - begun:.0f} s")


if __name__ == "__main__":
    main()
