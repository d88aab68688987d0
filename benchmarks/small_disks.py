"""Commands on disks that fill up: a file system in memory with a given size, visible to one forked process only."""

import ctypes
import os
import shutil
import threading
from collections import Counter
from pathlib import Path

import numpy as np
from children import END, in_a_child, preload
from endurance import EXAMPLES, sample
from folders import make, write_sources

from kbtools.cli.main import main as kbtools

NEW_NAMESPACE, NEW_USER = 0x20000, 0x10000000
"""The flags of unshare(2) for mounts, and for a user who may mount: constants of linux/sched.h."""

PRIVATE, AGAIN = 0x44000, 0x20
"""The flags of mount(2) for changes that no other process sees, and for changing a mount: constants of sys/mount.h."""

ROOM = 1 << 30
"""Bytes of a disk with room for everything."""


def call(function: str, *arguments: object) -> None:
    """Call a function of the C library; raise OSError if it fails."""
    libc = ctypes.CDLL(None, use_errno=True)
    plain = [argument.encode() if isinstance(argument, str) else argument for argument in arguments]
    if getattr(libc, function)(*plain):
        raise OSError(ctypes.get_errno(), function)


def mount_disk(place: Path, size: int, *, again: bool = False) -> None:
    """Mount a disk of some bytes for this process alone, or change its size."""
    if not again:
        call("unshare", NEW_NAMESPACE | (NEW_USER if os.getuid() else 0))
        call("mount", None, "/", None, PRIVATE, None)
    call("mount", "tmpfs", str(place), "tmpfs", AGAIN if again else 0, f"size={size}")


def run(line: list[str]) -> int:
    try:
        kbtools(line)
    except SystemExit as stopped:
        return stopped.code if isinstance(stopped.code, int) else 1
    return 0


def fill(place: Path, source: Path) -> int:
    """Mount a disk with room in this process, copy files to it, and return how many bytes they take."""
    mount_disk(place, ROOM)
    shutil.copytree(source, place, dirs_exist_ok=True)
    os.environ["TMPDIR"] = str(place)
    return shutil.disk_usage(place).used


def on_a_disk(place: Path, source: Path, size: int, line: list[str], answer: list[str]) -> Counter[str]:
    """Run a command on a disk with some free bytes, then with enough, and count the outcomes."""

    def act() -> None:
        mount_disk(place, fill(place, source) + size, again=True)
        print(f"{END}{run(line)}", flush=True)
        mount_disk(place, ROOM, again=True)
        for command in (answer, line, answer):
            print(f"{END}{run(command)}", flush=True)
        left = [path.name for path in place.iterdir() if path.name.startswith(".")]
        print(f"{END}{len(left)} {left}", flush=True)

    code, printed = in_a_child(act)
    pieces = printed.split(END)
    table: Counter[str] = Counter()
    if code or len(pieces) != 6 or "Traceback" in printed:
        table[f"a traceback or worse: {code} {printed[-600:]!r}"] += 1
        return table
    codes = [piece.partition("\n")[0] for piece in pieces[1:]]
    full = "no space left" in pieces[0]
    first = (
        "done" if codes[0] == "0" else "refused in a sentence" if full else f"refused otherwise: {pieces[0][-300:]!r}"
    )
    table[first] += 1
    table["what was there answers" if codes[1] == "0" else f"NO ANSWER: {pieces[1][-300:]!r}"] += 1
    table["done by the next run" if codes[2:4] == ["0", "0"] else f"NOT DONE AGAIN: {pieces[2:4]!r}"] += 1
    table["left behind"] += int(codes[4].split(" ")[0])
    return table


def bytes_needed(place: Path, source: Path, line: list[str]) -> int:
    """Return how many bytes a command needs beside its files, at most, while it runs."""

    def act() -> None:
        used, most, done = fill(place, source), 0, threading.Event()

        def look() -> None:
            nonlocal most
            while not done.wait(0.001):
                most = max(most, shutil.disk_usage(place).used)

        looking = threading.Thread(target=look)
        looking.start()
        assert run(line) == 0
        done.set()
        looking.join()
        print(f"{END}{most - used}", flush=True)

    code, printed = in_a_child(act)
    assert code == 0, printed
    return int(printed.rpartition(END)[2])


def small_disks(work: Path, number: int) -> dict[str, Counter[str]]:
    """Run each command on disks from nothing to more than it needs."""
    place, source = work / "small disk", work / "files of the disk"
    source.mkdir()
    tables = [f"--{each.kind}={place / 'tables' / each.path.name}" for each in write_sources(source / "tables", 300)]
    make(write_sources(source / "other tables", 300), source / "x.kb", vectors=True)
    sample(source)
    (source / "changes.jsonl").write_text('{"id": "e7", "aliases": ["Another"]}\n', encoding="utf-8")
    np.save(source / "vectors.npy", np.eye(300, 512, dtype=np.float32))
    (source / "ids.txt").write_text("".join(f"e{row}\n" for row in range(300)), encoding="utf-8")
    splits = [f"--{split}={EXAMPLES / f'sample.{split}.txt'}" for split in ("train", "valid")]
    kb, of_sample = ["--kb", str(place / "x.kb")], ["--kb", str(place / "sample.kb")]
    trained = [*of_sample, *splits, "--out", str(place / "models")]
    questions = ["--questions", str(EXAMPLES / "sample.test.txt"), "--out", str(place / "run"), "--quiet"]
    vectors = [f"--vectors={place / 'vectors.npy'}", f"--ids={place / 'ids.txt'}"]
    ask = ["query", *kb, "--scorer", "lexical", "who wrote solaris 7"]
    lines = {
        "index": ["index", *tables, "--out", str(place / "x.kb"), "--force", "--quiet"],
        "update": ["update", *kb, "--add", str(place / "changes.jsonl")],
        "index vectors": ["index", "vectors", *kb, *vectors],
        "train tagger": ["train", "tagger", "--tagger", "crf", *trained],
        "train relation": ["train", "relation", "--scorer", "embed-avg", "--words", "random", *trained],
        "compare": ["compare", *of_sample, *questions, "--scorer", "lexical", "--pruning", "n-gram"],
    }
    shutil.copytree(source, place)
    preload([*lines.items(), ("query", ask), ("similar", ["similar", *kb, "e7"])])
    shutil.rmtree(place)
    place.mkdir()
    outcomes: dict[str, Counter[str]] = {}
    for name, line in lines.items():
        needed = bytes_needed(place, source, line)
        answer = ["similar", *kb, "e7"] if "vectors" in name else ask
        outcomes[f"`{name}`, which needs {needed / 1e3:,.0f} kB"] = sum(
            (on_a_disk(place, source, needed * at * 11 // (10 * number), line, answer) for at in range(number + 1)),
            Counter(),
        )
    return outcomes
