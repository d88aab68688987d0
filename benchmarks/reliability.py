"""Failures caused on purpose, and their consequences: kills, full disks, floods, junk.

    python benchmarks/reliability.py [--only builds,trainings,readers,disks,junk]

It needs neither data nor a network and takes at most ten minutes; `damage.py` damages files. `--kills 5`, `--lines
2000` and `--questions 20000` make it shorter.
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
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

from children import in_a_child, preload, run_all
from cluster_kills import Nodes, cluster_kills, load_with_lost_node
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
from fbsq import parse
from figures import show_table
from folders import make, write_sources
from small_disks import small_disks

from kbtools import storage
from kbtools.cli.main import main as kbtools
from kbtools.errors import KBMissing
from kbtools.indexers.folder.embedded import EmbeddedKB
from kbtools.indexers.folder.kb_folder import find_damage

READERS, UPDATES = 16, 20

LEFT = "left behind"
"""The count of files that remain."""

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
    """Make `renameat2` unavailable to this process."""

    def refuse(*_: object, **__: object) -> None:
        raise OSError("no such library")

    vars(storage)["ctypes"] = SimpleNamespace(CDLL=refuse)


def state(out: Path) -> str:
    """Return the content of a folder: the old one, the new one, or none, with the old one beside it."""
    try:
        relations = set(EmbeddedKB(out).relations)
    except KBMissing as error:
        return "put back by the next run" if " restores the old one" in str(error) else "LOST"
    damaged = list(find_damage(out, EmbeddedKB(out).manifest))
    return "DAMAGED" if damaged else "the new one" if "of_the_new_one" in relations else "the old one"


def kills(work: Path, number: int, how: str, rng: random.Random) -> Counter[str]:
    """Kill builds that replace a knowledge base, and finish one now and then."""
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
            table[LEFT] += len(os.listdir(out.parent)) - 1
    return table


def training_kills(work: Path, kb: Path, number: int, rng: random.Random) -> Counter[str]:
    """Kill trainings that replace a network, query its folder, and train again now and then."""
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
            table[LEFT] += sum(path.name.startswith(".") for path in models.rglob("*"))
    return table


def full_disks(work: Path, number: int) -> Counter[str]:
    """Build again under limits on the size of files, from too small to large enough."""
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
        table[LEFT] += len(os.listdir(out.parent)) - 1
        if state(out) == "the new one":
            make(old, out)
    return table


def in_words(outcome: Counter[str]) -> str:
    """Format the outcomes, the most frequent first, without the files left behind."""
    return ", ".join(f"{count} {what}" for what, count in outcome.most_common() if what != LEFT)


def broken(work: Path, options: argparse.Namespace, rng: random.Random) -> Iterator[tuple[str, Counter[str]]]:
    """Yield each kind of failure and its outcomes."""
    swaps = min(20, options.kills)
    yield f"{options.kills} builds killed at random moments", kills(work, options.kills, "random", rng)
    yield f"{swaps} builds killed at the exchange and after it", kills(work, swaps, "swap", rng)
    yield f"{swaps} the same without `renameat2`", kills(work, swaps, "swap without", rng)
    yield f"builds on a disk full at {options.disks} sizes", full_disks(work, options.disks)


def floods(
    work: Path, options: argparse.Namespace, rng: random.Random, ends: Callable[[float], float]
) -> Iterator[tuple[str, str]]:
    """Yield each kind of large input and its outcome."""
    kb = sample(work)
    for reader, outcome in malformed_lines(work, options.lines, rng):
        yield f"{options.lines:,} malformed lines for `{reader}`", outcome
    yield "junk on standard input", junk_lines(kb, work, options.lines, rng, until=ends(0.5))
    random_lines = command_lines(kb, options.command_lines, rng)
    yield f"{options.command_lines:,} command lines of random bytes and characters", in_words(random_lines)
    yield "questions from threads, forks and processes", agreement(kb, 8)
    two_minutes = time.monotonic() + 120
    yield "questions in one process", many_questions(kb, options.questions, rng, until=min(two_minutes, ends(0.65)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--disks", type=int, default=30)
    parser.add_argument("--lines", type=int, default=100_000, help="Malformed lines for each reader, junk for a query.")
    parser.add_argument("--command-lines", type=int, default=1_000, help="Command lines of random bytes.")
    parser.add_argument("--questions", type=int, default=1_000_000, help="As many of them as fit into two minutes.")
    parser.add_argument("--only", default="builds,trainings,readers,disks,junk", help="Tables to make.")
    parser.add_argument(
        "--nodes",
        nargs=2,
        type=Path,
        metavar=("PROGRAM", "FOLDER"),
        help="Kill loads and updates of the cluster of three nodes at KBTOOLS_ELASTICSEARCH_URL instead: the program "
        "that started it in the folder, with the actions kill and restart.",
    )
    parser.add_argument("--kb", type=Path, help="With --nodes: load this folder, and kill a node in the middle.")
    parser.add_argument(
        "--minutes", type=float, default=9.5, help="When to end; what takes longer is cut short, and the counts say so."
    )
    options = parse(parser, kills=1, disks=1, only="builds")
    only = {"nodes"} if options.nodes else set(options.only.split(","))
    rng = random.Random(16)
    begun = time.monotonic()

    def ends(share: float) -> float:
        return begun + 60 * float(options.minutes) * share

    with tempfile.TemporaryDirectory(prefix="kbtools-reliability-") as folder:
        work = Path(folder)
        if "nodes" in only and options.kb:
            show_table("node", ("what", "outcome"), load_with_lost_node(options.kb, Nodes(*options.nodes), rng))
        elif "nodes" in only:
            tables = cluster_kills(work, Nodes(*options.nodes), options.kills, rng).items()
            show_table("nodes", ("what is killed", "outcome"), [(what, in_words(table)) for what, table in tables])
        if "builds" in only:
            columns = ("broken", "what is there afterwards", "left behind after the next build")
            rows = [(what, in_words(table), table[LEFT] or "nothing") for what, table in broken(work, options, rng)]
            show_table("builds", columns, rows)
        if "trainings" in only:
            killed = training_kills(work, sample(work), options.kills, rng)
            columns = ("trainings of a network killed at random moments", "what answers afterwards", LEFT)
            show_table("trainings", columns, [(options.kills, in_words(killed), killed[LEFT])])
        if "readers" in only:
            what = f"{UPDATES} updates and {UPDATES // 5} compactions of a folder, {READERS} processes that open it"
            seen = readers_meanwhile(work, READERS, UPDATES)
            show_table("readers", ("what happens", "what readers see"), [(what, seen)])
        if "disks" in only:
            sizes = options.disks // 2
            outcomes = small_disks(work, sizes).items()
            disks = [(*what.split(", which needs "), in_words(table), table[LEFT]) for what, table in outcomes]
            show_table("disks", ("command", "bytes it needs", f"on {sizes + 1} disks", LEFT), disks)
        if "junk" in only:
            show_table("junk", ("what comes", "what came of it"), floods(work, options, rng, ends))


if __name__ == "__main__":
    main()
