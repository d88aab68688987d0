"""Update a large knowledge base again and again: seconds an update, look-ups before and after, and a reader meanwhile.

python benchmarks/updating.py SCALE.kb [--updates 1000] [--entities 12] [--compact]

The knowledge base itself stays as it is: its files are linked into a folder beside it, and the links are updated. Half
of the changes of an update are new entities, the others new names, facts and types of entities that are there.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import kbtools
from kbtools.indexers.updates.updated_kb import open_folder
from kbtools.kb.contract import KnowledgeBase
from kbtools.text.ngrams import ngrams
from kbtools.text.question import Question

QUESTIONS, ROUNDS = 1_000, 7
"""Questions whose n-grams are looked up, and rounds of both knowledge bases in turn, of which the median counts."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kb", type=Path)
    parser.add_argument("--updates", type=int, default=1_000)
    parser.add_argument("--entities", type=int, default=12, help="entities of an update")
    parser.add_argument("--compact", action="store_true", help="merge the updates at the end")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=asked.kb.resolve().parent, prefix="updating-") as work:
        copy = Path(work) / "copy.kb"
        subprocess.run(["cp", "-al", asked.kb, copy], check=True)
        measure(copy, asked)


def measure(copy: Path, asked: argparse.Namespace) -> None:
    """Update a copy and print every figure."""
    random = np.random.default_rng(asked.seed)
    before = open_folder(copy)
    rows = before.entity_rows()
    texts = questions(before, random.choice(rows, QUESTIONS))
    answers = [look_up(before, forms) for forms in texts]
    print(f"{before.manifest.counts['entities'].unique:,} entities, {asked.updates:,} updates of {asked.entities}")
    wall, used = timed(lambda: update(copy, changes(before, random, asked.entities, number=0)))
    print(f"the first update: {wall:.2f} s wall, {used:.2f} CPU s, as a process of its own")
    seconds = []
    for number in range(1, asked.updates):
        records = changes(before, random, asked.entities, number=number)
        begun = time.process_time()
        kbtools.update(copy, add=records)
        seconds.append(time.process_time() - begun)
    after = open_folder(copy)
    touched = len(after.own["fact.row"])  # type: ignore[attr-defined]
    print(
        f"{len(seconds):,} more in one process: {np.mean(seconds):.2f} CPU s each, "
        f"the last ten {np.mean(seconds[-10:]):.2f}"
    )
    print(
        f"the segment: {touched:,} entities, {after.manifest.history[-1].bytes / 1e6:.1f} MB; "
        f"opened in {opening(copy)} ms"
    )
    same = answers == [look_up(before, forms) for forms in texts]
    print(f"a reader that had it open: {'every answer as before' if same else 'OTHER ANSWERS'}")
    compare("look-up of the n-grams of a question, names of all", before, after, texts)
    news = after.own["alias.row"]  # type: ignore[attr-defined]
    compare("the same, names that updates changed", before, after, questions(after, random.choice(news, QUESTIONS)))
    if asked.compact:
        wall, used = timed(lambda: run("compact", "--kb", str(copy), "--quiet"))
        print(f"compact: {wall:.0f} s wall, {used:.0f} CPU s")


def questions(kb: KnowledgeBase, rows: np.ndarray) -> list[list[str]]:
    """Write questions about entities and cut them into the forms of their n-grams."""
    names = [name or "nobody" for name in kb.names(rows.astype(np.uint32))]
    texts = (Question.read(f"what is the place where {name} was born in") for name in names)
    return [[ngram.form for ngram in ngrams(text, lengths=range(1, 11))] for text in texts]


def look_up(kb: KnowledgeBase, forms: Sequence[str]) -> dict[str, list[tuple[str, list[int]]]]:
    return {
        form: [(match.name, match.entities.tolist()) for match in found] for form, found in kb.lookup(forms).items()
    }


def changes(kb: KnowledgeBase, random: np.random.Generator, count: int, *, number: int) -> list[dict[str, Any]]:
    """Make up changes: as many new entities as others that get a name, a fact and a type."""
    known = kb.ids(random.choice(kb.entity_rows(), count).astype(np.uint32))
    new = [f"m.0update{number}x{place}" for place in range(count // 2)]
    ids = new + known[: count - len(new)]
    return [
        {
            "id": entity,
            "names": [f"Updated {number} {place}"],
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


def opening(copy: Path) -> str:
    """Give the milliseconds in which a fresh process opens it."""
    code = (
        "import sys, time; from kbtools.indexers.updates.updated_kb import open_folder; t = time.perf_counter(); "
        "kb = open_folder(sys.argv[1]); kb.lookup(['x']); print(f'{1000 * (time.perf_counter() - t):.0f}')"
    )
    return subprocess.run([sys.executable, "-c", code, copy], check=True, capture_output=True, text=True).stdout.strip()


def compare(label: str, before: KnowledgeBase, after: KnowledgeBase, texts: list[list[str]]) -> None:
    """Look up the same forms in both in turn, and print the medians and their ratio."""
    rounds = [[look_up_all(kb, texts) for kb in (before, after)] for _ in range(ROUNDS)]
    old, new = np.median(rounds[1:], axis=0)
    print(f"{label}: p50 {old:.1f} us before, {new:.1f} us after, {new / old:.2f} times")


def look_up_all(kb: KnowledgeBase, texts: list[list[str]]) -> float:
    """Give the median microseconds of a look-up."""
    times = []
    for forms in texts:
        begun = time.perf_counter()
        kb.lookup(forms)
        times.append(time.perf_counter() - begun)
    return 1e6 * float(np.median(times))


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
