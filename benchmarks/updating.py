"""Update a large knowledge base repeatedly: CPU seconds per update, look-ups before and after, and a reader meanwhile.

python benchmarks/updating.py build/large.kb [--updates 1000] [--entities 12] [--compact]

All updates but the first and the last run in one process. The knowledge base itself is not changed: its files are
linked into another folder, which is updated. Half of the changes of an update are new entities, the others new names,
facts and types of existing ones.
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
from fbsq import parse
from figures import show_table
from measured import children_cpu

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

MISSPELT, ROUNDS = 100, 5
"""Names that are looked up misspelt, and rounds of both in turn, of which the median counts."""


Row = tuple[str, ...]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kb", type=Path, nargs="?", default=Path("build/fb5m.kb"))
    parser.add_argument("--updates", type=int, default=1_000)
    parser.add_argument("--entities", type=int, default=12, help="entities of an update")
    parser.add_argument("--compact", action="store_true", help="merge the updates of another copy at the end")
    parser.add_argument("--names", type=int, default=1_000, help="names that are looked up")
    parser.add_argument("--seed", type=int, default=1)
    asked = parse(parser, updates=3, entities=4, names=8)
    with tempfile.TemporaryDirectory(dir=asked.kb.resolve().parent, prefix="updating-") as work:
        copy = Path(work) / "copy.kb"
        link(asked.kb, copy)
        random = np.random.default_rng(asked.seed)
        before = open_folder(copy)
        print(f"{before.manifest.counts['entities'].unique:,} entities, {asked.updates:,} updates of {asked.entities}")
        sample = random.choice(before.entity_rows(), asked.names).astype(np.uint32)
        forms = [forms_of(name) for name in names_of(before, sample)]
        answers = [look_up(before, own) for own in forms]
        cost = measure_updates(before, copy, random, asked)
        same = answers == [look_up(before, own) for own in forms]
        cost.append(("answers of a reader that had it open", "", "as before" if same else "OTHERS"))
        show_table("cost", ("", "before", "after the updates"), cost)
        after = open_folder(copy)
        assert isinstance(after, Overlay)
        own = np.flatnonzero(after.changes & CHANGED_NAMES).astype(np.uint32)
        changed = random.choice(own[own < after.base_entities], asked.names)
        new = random.choice(own[own >= after.base_entities], asked.names)
        look_ups = {
            "any name": compare(before, after, sample),
            "of changed entities, names that were there": compare(before, after, changed),
        }
        if asked.compact:
            merged = Path(work) / "merged.kb"
            link(copy, merged)
            rows = compact(merged)
            fresh = open_folder(merged)
            same = [look_up(fresh, own) for own in forms] == [look_up(after, own) for own in forms]
            rows.append(("answers", "those of before" if same else "OTHERS"))
            show_table("compact", ("`compact` of those updates", "figure"), rows)
            look_ups["that came with updates"] = compare(fresh, after, new)
        rows_of = zip(*(own.values() for own in look_ups.values()), strict=True)
        named = zip(look_ups["any name"], rows_of, strict=True)
        show_table(
            "look-ups", ("CPU microseconds, without and with", *look_ups), [(what, *cells) for what, cells in named]
        )


def link(kb: Path, copy: Path) -> None:
    """Copy a knowledge base by links to its files."""
    subprocess.run(["cp", "-al", kb, copy], check=True)


def measure_updates(
    before: KnowledgeBase, copy: Path, random: np.random.Generator, asked: argparse.Namespace
) -> list[Row]:
    """Update a copy by the command and in this process, and format the costs."""
    shown = reading(copy)
    first = timed(lambda: update(copy, changes(before, random, asked.entities, number=0)))
    seconds = []
    for number in range(1, asked.updates):
        records = changes(before, random, asked.entities, number=number)
        begun = time.process_time()
        kbtools.update(copy, add=records)
        seconds.append(time.process_time() - begun)
    last = timed(lambda: update(copy, changes(before, random, asked.entities, number=asked.updates)))
    own = [f"{used:.2f} CPU s" for used in (first, last)]
    within = [f"{np.mean(some):.2f} CPU s" for some in (seconds[:10], seconds[-10:])]
    segment = read_manifest(copy).history[-1].bytes / 1e6
    return [
        ("one update, as a process of its own", *own),
        ("one update, in a process that made others", *within),
        ("the segment", "", f"{segment:.1f} MB"),
        *((what, was, now) for (what, was), (_, now) in zip(shown.items(), reading(copy).items(), strict=True)),
    ]


def reading(copy: Path) -> dict[str, str]:
    """Format the CPU time and memory of a process that opens a knowledge base and looks a name up, and its files."""
    code = (
        "import sys, time; from kbtools.indexers.updates.overlay import open_folder; t = time.process_time(); "
        "kb = open_folder(sys.argv[1]); kb.lookup(['x']); t = time.process_time() - t; "
        "own = [line.split()[1] for line in open('/proc/self/status') if line.startswith('RssAnon')]; "
        "print(f'{1000 * t:.0f} CPU ms, {int(own[0]) / 1000:.0f} MB')"
    )
    said = subprocess.run([sys.executable, "-c", code, copy], check=True, capture_output=True, text=True).stdout.strip()
    before = children_cpu()
    shown = subprocess.run(
        [Path(sys.executable).with_name("kbtools"), "info", str(copy)], check=True, capture_output=True, text=True
    )
    seconds, lines = children_cpu() - before, len(shown.stdout.splitlines())
    files = sum(path.is_file() for path in copy.rglob("*"))
    size = (copy / MANIFEST).stat().st_size
    opened, memory = said.split(", ")
    return {
        "opened, with a first look-up": opened,
        "memory of a reader without mapped files": memory,
        "files": str(files),
        "the manifest, with the history": f"{size / 1000:.0f} kB",
        "`kbtools info`": f"{lines} lines, {seconds:.1f} CPU s",
    }


def compact(copy: Path) -> list[tuple[str, str]]:
    """Merge the updates by the command, and format the costs."""
    building, most = beside(copy, "building"), 0
    before = children_cpu()
    arguments = [str(Path(sys.executable).with_name("kbtools")), "compact", "--kb", str(copy), "--quiet"]
    with subprocess.Popen(arguments, stdout=subprocess.DEVNULL) as process:
        while process.poll() is None:
            most = max(most, written(building))
            time.sleep(0.5)
    if process.returncode:
        sys.exit("compact failed")
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e6
    return [
        ("CPU", f"{children_cpu() - before:.0f} s"),
        ("memory, with mapped files, which the system takes back where it needs them", f"{memory:.2f} GB"),
        ("disk beside the knowledge base until it is done", f"{most / 1e9:.2f} GB"),
        ("the knowledge base then", f"{written(copy) / 1e9:.2f} GB"),
    ]


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
    """Return the forms of the n-grams of a question about a name."""
    return [ngram.form for ngram in ngrams(question_of(name), lengths=range(1, 11))]


def question_of(name: str) -> Question:
    return Question.read(f"what is the place where {name} was born in")


def misspell(name: str) -> str:
    """Remove the letter in the middle."""
    return name[: len(name) // 2] + name[len(name) // 2 + 1 :]


def look_up(kb: KnowledgeBase, forms: Sequence[str]) -> dict[str, list[tuple[str, list[str]]]]:
    return {
        form: [(match.name, sorted(kb.ids(match.entities))) for match in matches]
        for form, matches in kb.lookup(forms).items()
    }


def changes(kb: KnowledgeBase, random: np.random.Generator, count: int, *, number: int) -> list[dict[str, Any]]:
    """Make up changes: half are new entities, half get a name, a fact and a type; names are words of other names."""
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


def timed(act: Callable[[], None]) -> float:
    """Return the CPU seconds of the processes that an act starts."""
    before = children_cpu()
    act()
    return children_cpu() - before


def compare(without: KnowledgeBase, with_updates: KnowledgeBase, rows: EntityRows) -> dict[str, str]:
    """Ask both the same in turn, and format the medians and their ratio; `rows` are of the updated knowledge base."""
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
    ratios = {}
    for what, (act, arguments) in acts.items():
        rounds = [[each(act(*home), arguments) for home in both] for _ in range(1 + ROUNDS)]
        old, new = np.median(rounds[1:], axis=0)  # the first round reads pages from the disk
        ratios[what] = f"{old:.1f} and {new:.1f}, {new / old:.2f} times"
    return ratios


def each(act: Callable[[Any], object], arguments: Sequence[Any]) -> float:
    """Return the median CPU microseconds of an act."""
    times = []
    for argument in arguments:
        begun = time.thread_time()
        act(argument)
        times.append(time.thread_time() - begun)
    return 1e6 * float(np.median(times))


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
