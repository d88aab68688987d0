"""Update a large knowledge base again and again: seconds an update, look-ups before and after, and a reader meanwhile.

python benchmarks/updating.py SCALE.kb [--updates 1000] [--entities 12] [--compact]

All updates but the first and the last are made in one process. The knowledge base itself stays as it is: its files are
linked into a folder beside it, and the links are updated. Half of the changes of an update are new entities, the others
new names, facts and types of entities that are there.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import kbtools
from kbtools.answering.answerer import Answerer
from kbtools.indexers.folder.kb_folder import MANIFEST, read_manifest
from kbtools.indexers.updates.overlay import NAMES as CHANGED_NAMES
from kbtools.indexers.updates.overlay import Overlay, open_folder
from kbtools.kb.contract import KnowledgeBase
from kbtools.kb.rows import EntityRows
from kbtools.linking.strict import link_strictly
from kbtools.storage import beside
from kbtools.text.ngrams import ngrams
from kbtools.text.normaliser import normal_form
from kbtools.text.question import Question

NAMES, MISSPELT, ROUNDS = 1_000, 100, 5
"""Names that are looked up, those of them that are misspelt, and rounds of both in turn, of which the median counts."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kb", type=Path)
    parser.add_argument("--updates", type=int, default=1_000)
    parser.add_argument("--entities", type=int, default=12, help="entities of an update")
    parser.add_argument("--compact", action="store_true", help="merge the updates of another copy at the end")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=asked.kb.resolve().parent, prefix="updating-") as work:
        copy = Path(work) / "copy.kb"
        link(asked.kb, copy)
        random = np.random.default_rng(asked.seed)
        before = open_folder(copy)
        print(f"{before.manifest.counts['entities'].unique:,} entities, {asked.updates:,} updates of {asked.entities}")
        sample = random.choice(before.entity_rows(), NAMES).astype(np.uint32)
        forms = [forms_of(name) for name in names_of(before, sample)]
        answers = [look_up(before, own) for own in forms]
        print(f"before any update: {reading(copy)}")
        measure_updates(before, copy, random, asked)
        same = answers == [look_up(before, own) for own in forms]
        print(f"a reader that had it open: {'every answer as before' if same else 'OTHER ANSWERS'}")
        after = open_folder(copy)
        assert isinstance(after, Overlay)
        own = np.flatnonzero(after.changes & CHANGED_NAMES).astype(np.uint32)
        changed = random.choice(own[own < after.base_entities], NAMES)
        new = random.choice(own[own >= after.base_entities], NAMES)
        print("median microseconds, without and with the updates:")
        compare("all names", before, after, sample)
        compare("names of changed entities", before, after, changed)
        if asked.compact:
            merged = Path(work) / "merged.kb"
            link(copy, merged)
            compact(merged)
            fresh = open_folder(merged)
            same = [look_up(fresh, own) for own in forms] == [look_up(after, own) for own in forms]
            print(f"the compacted one: {'every answer as before it' if same else 'OTHER ANSWERS'}")
            print("median microseconds, compacted and not:")
            compare("names that came with updates", fresh, after, new)
            compare("names of changed entities", fresh, after, changed)


def link(kb: Path, copy: Path) -> None:
    """Copy a knowledge base by links to its files."""
    subprocess.run(["cp", "-al", kb, copy], check=True)


def measure_updates(before: KnowledgeBase, copy: Path, random: np.random.Generator, asked: argparse.Namespace) -> None:
    """Update a copy, once by the command and then in this process, and print what that takes and leaves."""
    wall, used = timed(lambda: update(copy, changes(before, random, asked.entities, number=0)))
    print(f"the first update: {wall:.2f} s wall, {used:.2f} CPU s, as a process of its own")
    seconds = []
    for number in range(1, asked.updates):
        records = changes(before, random, asked.entities, number=number)
        begun = time.process_time()
        kbtools.update(copy, add=records)
        seconds.append(time.process_time() - begun)
        if number in (10, asked.updates // 4, asked.updates // 2):
            print(f"update {number:,}: {np.mean(seconds[-10:]):.2f} CPU s", flush=True)
    wall, used = timed(lambda: update(copy, changes(before, random, asked.entities, number=asked.updates)))
    print(f"one more: {wall:.2f} s wall, {used:.2f} CPU s, as a process of its own")
    print(
        f"{len(seconds):,} more in one process: {np.mean(seconds):.2f} CPU s each, "
        f"the first ten {np.mean(seconds[:10]):.2f}, the last ten {np.mean(seconds[-10:]):.2f}"
    )
    manifest = read_manifest(copy)
    print(f"the segment: {manifest.history[-1].bytes / 1e6:.1f} MB")
    print(f"after the last update: {reading(copy)}")


def reading(copy: Path) -> str:
    """Say in what time and memory a fresh process opens a knowledge base and looks a name up, and its files."""
    code = (
        "import sys, time; from kbtools.indexers.updates.overlay import open_folder; t = time.perf_counter(); "
        "kb = open_folder(sys.argv[1]); kb.lookup(['x']); t = time.perf_counter() - t; "
        "own = [line.split()[1] for line in open('/proc/self/status') if line.startswith('RssAnon')]; "
        "print(f'opened in {1000 * t:.0f} ms, {int(own[0]) / 1000:.0f} MB of its own')"
    )
    said = subprocess.run([sys.executable, "-c", code, copy], check=True, capture_output=True, text=True).stdout.strip()
    begun = time.perf_counter()
    shown = subprocess.run(
        [Path(sys.executable).with_name("kbtools"), "info", str(copy)], check=True, capture_output=True, text=True
    )
    seconds, lines = time.perf_counter() - begun, len(shown.stdout.splitlines())
    files = sum(path.is_file() for path in copy.rglob("*"))
    size = (copy / MANIFEST).stat().st_size
    return f"{said}, {files} files, a manifest of {size / 1000:.0f} kB, info of {lines} lines in {seconds:.1f} s"


def compact(copy: Path) -> None:
    """Merge the updates by the command, and print what that takes."""
    building, most = beside(copy, "building"), 0
    begun, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    arguments = [str(Path(sys.executable).with_name("kbtools")), "compact", "--kb", str(copy), "--quiet"]
    with subprocess.Popen(arguments, stdout=subprocess.DEVNULL) as process:
        while process.poll() is None:
            most = max(most, written(building))
            time.sleep(0.5)
    if process.returncode:
        sys.exit("compact failed")
    wall, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(
        f"compact: {wall:.0f} s wall, {used:.0f} CPU s, {after.ru_maxrss / 1e6:.2f} GB of memory with mapped files, "
        f"{most / 1e9:.2f} GB of disk beside the knowledge base, which takes {written(copy) / 1e9:.2f} GB then"
    )


def written(folder: Path) -> int:
    """Count the bytes of files in a folder that have no other name."""
    size = 0
    for place, _, files in os.walk(folder):
        for name in files:
            with suppress(FileNotFoundError):
                status = os.lstat(os.path.join(place, name))
                size += status.st_blocks * 512 if status.st_nlink == 1 else 0
    return size


def names_of(kb: KnowledgeBase, rows: EntityRows) -> list[str]:
    return [name for name in kb.names(rows) if name]


def forms_of(name: str) -> list[str]:
    """Cut a question about a name into the forms of its n-grams."""
    return [ngram.form for ngram in ngrams(question_of(name), lengths=range(1, 11))]


def question_of(name: str) -> Question:
    return Question.read(f"what is the place where {name} was born in")


def misspell(name: str) -> str:
    """Leave out the letter in the middle."""
    return name[: len(name) // 2] + name[len(name) // 2 + 1 :]


def look_up(kb: KnowledgeBase, forms: Sequence[str]) -> dict[str, list[tuple[str, list[str]]]]:
    return {
        form: [(match.name, sorted(kb.ids(match.entities))) for match in matches]
        for form, matches in kb.lookup(forms).items()
    }


def changes(kb: KnowledgeBase, random: np.random.Generator, count: int, *, number: int) -> list[dict[str, Any]]:
    """Make up changes: as many new entities as others that get a name, a fact and a type; names are words of others."""
    rows = random.choice(kb.entity_rows(), 2 * count).astype(np.uint32)
    known, words = kb.ids(rows[:count]), [(name or "nobody").split() for name in kb.names(rows)]
    new = [f"m.0update{number}x{place}" for place in range(count // 2)]
    ids = new + known[: count - len(new)]
    return [
        {
            "id": entity,
            "names": [f"{words[place][0]} {words[count + place][-1]}"],
            "types": [kb.types[int(random.integers(len(kb.types)))]],
            "facts": {kb.relations[int(random.integers(len(kb.relations)))]: [known[-1 - place % 6]]},
        }
        for place, entity in enumerate(ids)
    ]


def update(copy: Path, records: list[dict[str, Any]]) -> None:
    import json

    file = copy.with_name("changes.jsonl")
    file.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    run("update", "--kb", str(copy), "--add", str(file))


def run(*arguments: str) -> None:
    subprocess.run([Path(sys.executable).with_name("kbtools"), *arguments], check=True, stdout=subprocess.DEVNULL)


def timed(act: Callable[[], None]) -> tuple[float, float]:
    """Give wall and CPU seconds of what runs in processes of its own."""
    used, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    act()
    wall, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime


def compare(label: str, without: KnowledgeBase, with_updates: KnowledgeBase, rows: EntityRows) -> None:
    """Ask both the same in turn, and print the medians and their ratio; `rows` are those of the updated one."""
    names, ids = names_of(with_updates, rows), with_updates.ids(rows)
    names = [name for name in names if without.lookup([normal_form(name)])]
    misspelt = [misspell(name) for name in names if len(name) > 6][:MISSPELT]
    acts: dict[str, tuple[Callable[[KnowledgeBase, Answerer], Callable[[Any], object]], Sequence[Any]]] = {
        "the n-grams of a question": (lambda kb, _: kb.lookup, [forms_of(name) for name in names]),
        "linking a question": (lambda kb, _: partial(link_strictly, kb), [question_of(name) for name in names]),
        "lookup of a name": (lambda _, answerer: answerer.lookup, names),
        "lookup of a misspelt name": (lambda _, answerer: answerer.lookup, misspelt),
        "facts": (lambda _, answerer: answerer.facts, ids),
        "facts into": (lambda _, answerer: partial(answerer.facts, reverse=True), ids),
        "entity": (lambda _, answerer: answerer.entity, ids),
    }
    both = [(kb, Answerer(kb)) for kb in (without, with_updates)]
    for what, (act, arguments) in acts.items():
        rounds = [[each(act(*home), arguments) for home in both] for _ in range(1 + ROUNDS)]
        (cold, cold_now), (old, new) = rounds[0], np.median(rounds[1:], axis=0)
        print(
            f"{label}, {what}: {old:.1f} and {new:.1f}, {new / old:.2f} times; "
            f"the first time {cold:.1f} and {cold_now:.1f}",
            flush=True,
        )


def each(act: Callable[[Any], object], arguments: Sequence[Any]) -> float:
    """Give the median microseconds of an act."""
    times = []
    for argument in arguments:
        begun = time.perf_counter()
        act(argument)
        times.append(time.perf_counter() - begun)
    return 1e6 * float(np.median(times))


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
