"""Failures caused on purpose, and their consequences: kills, full disks, floods, junk.

    python benchmarks/reliability.py

It needs neither data nor a network, takes at most ten minutes, and prints tables of docs/reliability.md; `damage.py`
prints those of damaged files. `--kills 5`, `--lines 2000` and `--questions 20000` make it shorter.
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

from children import in_a_child, preload, run_all
from cluster_kills import Nodes, cluster_kills
from endurance import (
    EXAMPLES,
    agreement,
    command_lines,
    junk_lines,
    malformed_lines,
    many_questions,
    readers_meanwhile,
    sample,
)
from folders import make, write_sources
from small_disks import small_disks

from kbtools import storage
from kbtools.cli.main import main as kbtools
from kbtools.errors import KBMissing
from kbtools.indexers.folder.embedded import EmbeddedKB
from kbtools.indexers.folder.kb_folder import find_damage

SWAP = ("os.rename", "ctypes.dlsym", "os.remove", "os.rmdir")
"""What a process does from the moment that it puts a folder in place: the events of Python that a kill waits for."""


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

    vars(storage)["ctypes"] = SimpleNamespace(CDLL=refuse)


def state(out: Path) -> str:
    """Return what a folder answers as: the old content, the new, or none, its old content lying beside it."""
    try:
        relations = set(EmbeddedKB(out).relations)
    except KBMissing as error:
        return "put back by the next run" if " restores the old one" in str(error) else "LOST"
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


def training_kills(work: Path, kb: Path, number: int, rng: random.Random) -> Counter[str]:
    """Kill trainings that replace a network, and ask the folder of models; run each again now and then."""
    models = work / "models"
    splits = [f"--{split}={EXAMPLES / f'sample.{split}.txt'}" for split in ("train", "valid")]
    train = ["train", "relation", "--scorer", "embed-avg", "--words", "random", *splits]
    line = [*train, "--kb", str(kb), "--out", str(models), "--set"]
    asked = ["--scorer", "embed-avg", "--questions", str(EXAMPLES / "questions.txt"), "--json", "--no-timing"]
    lines = [
        ("new", [*line, "epochs=30"]),
        ("answers of the new", ["query", "--kb", str(kb), "--models", str(models), *asked]),
        ("old", [*line, "epochs=2"]),
        ("answers of the old", ["query", "--kb", str(kb), "--models", str(models), *asked]),
    ]
    preload(lines)
    begun = time.monotonic()
    outcomes = run_all(lines)
    seconds = (time.monotonic() - begun) / 2
    answers = {outcomes[f"answers of the {which}"]: f"the {which} network" for which in ("old", "new")}
    assert len(answers) == 2, outcomes
    table: Counter[str] = Counter()
    for at in range(number):
        in_a_child(lambda: kbtools(lines[0][1]), kill_after=rng.uniform(0, 1.2 * seconds))
        found = answers.get(run_all(lines[1:2])[lines[1][0]], "NEITHER")
        table[found] += 1
        if at % 3 == 2 or found != "the old network":
            again = run_all(lines[:2])
            done = answers.get(again[lines[1][0]]) == "the new network"
            table["the new one after the next run" if done else "NOT DONE"] += 1
            run_all(lines[2:])
            table["left behind"] += sum(path.name.startswith(".") for path in models.rglob("*"))
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
    parser.add_argument("--disks", type=int, default=30)
    parser.add_argument("--lines", type=int, default=100_000, help="Malformed lines for each reader, junk for a query.")
    parser.add_argument("--questions", type=int, default=1_000_000, help="As many of them as fit into two minutes.")
    parser.add_argument(
        "--nodes",
        nargs=2,
        type=Path,
        metavar=("PROGRAM", "FOLDER"),
        help="Kill loads and updates of the cluster of three nodes at KBTOOLS_ELASTICSEARCH_URL instead: the program "
        "that started it in the folder, with the actions kill and restart.",
    )
    parser.add_argument(
        "--minutes", type=float, default=9.5, help="When to end; what takes longer is cut short, and the counts say so."
    )
    options = parser.parse_args()
    rng = random.Random(16)
    begun = time.monotonic()

    def ends(share: float) -> float:
        return begun + 60 * float(options.minutes) * share

    with tempfile.TemporaryDirectory(prefix="kbtools-reliability-") as folder:
        work = Path(folder)
        print("| broken | what is there afterwards |\n| --- | --- |", flush=True)
        if options.nodes:
            for what, table in cluster_kills(work, Nodes(*options.nodes), options.kills, rng).items():
                show(f"a cluster, {what}", table)
            return
        show(f"{options.kills} kills at random", kills(work, options.kills, "random", rng))
        swaps = min(20, options.kills)
        show(f"{swaps} kills at the swap", kills(work, swaps, "swap", rng))
        show(f"{swaps} the same without `renameat2`", kills(work, swaps, "swap without", rng))
        show(f"disk full at {options.disks} sizes", full_disks(work, options.disks))
        kb = sample(work)
        show(f"{options.kills} trainings killed at random", training_kills(work, kb, options.kills, rng))
        for what, table in small_disks(work, options.disks // 2).items():
            show(f"{what}, on disks of {options.disks // 2 + 1} sizes", table)
        print("\n| much of it | what came of it |\n| --- | --- |")
        for reader, outcome in malformed_lines(work, options.lines, rng):
            show(f"malformed lines for `{reader}`", outcome)
        show("1,000 random command lines", command_lines(kb, 1_000, rng))
        show("threads, forks, processes", agreement(kb, 8))
        show("16 processes that read meanwhile", readers_meanwhile(work, 16, 20))
        show("junk on standard input", junk_lines(kb, work, options.lines, rng, until=ends(0.5)))
        two_minutes = time.monotonic() + 120
        show("one process", many_questions(kb, options.questions, rng, until=min(two_minutes, ends(0.65))))
    print(f"\n{time.monotonic() - begun:.0f} s")


if __name__ == "__main__":
    main()
