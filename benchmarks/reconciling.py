"""Misspelt names reconciled over HTTP by kbtools and by csv-reconcile with the same titles: accuracy and speed.

python benchmarks/reconciling.py --titles titles.txt.xz --variants variants.tsv.gz [--names 5000] [--peer csv-reconcile]

`--peer` is the program of an environment with csv-reconcile, whose comparison should be compiled: pip leaves it in
Python, and `cythonize -i csv_reconcile_dice/cutils.pyx` makes it 25 times faster. It compares each name with every
title, so 5,000 names take about ten minutes.
"""

import argparse
import json
import lzma
import random
import re
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
from fbsq import names_file, parse
from figures import show_table
from serving import NAMES, cpu_seconds, served
from variants import read_variants

import kbtools

SEED = 0
TITLES = 50_000
SPACE = "http://titles/"
PEER_SETTINGS = """
CSVENCODING = "utf-8"
CSVKWARGS = {"delimiter": "\\t", "quoting": 3}
MANIFEST = {"identifierSpace": "http://titles/", "schemaSpace": "http://titles/"}
LIMIT = 10
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--titles", type=Path, default=names_file("titles.txt.xz"))
    parser.add_argument("--variants", type=Path, default=names_file("variants.tsv.gz"))
    parser.add_argument("--names", type=int, default=5_000)
    parser.add_argument("--skip", type=int, default=0, help="names left out before these, for a run in parts")
    parser.add_argument("--peer")
    arguments = parse(parser, names=20)
    rng = random.Random(SEED)
    variants, every = list(read_variants(arguments.variants)), read_titles(arguments.titles)
    sample = rng.sample(variants, min(5_000, len(variants)))
    others = rng.sample(every, min(TITLES, len(every)))
    titles = list(dict.fromkeys([title for _, title in sample] + others))[:TITLES]
    ids = {title: f"title{place}" for place, title in enumerate(titles)}
    asked = [(variant, ids[title]) for variant, title in sample[arguments.skip :][: arguments.names]]
    print(f"{len(asked):,} names over {len(titles):,} titles")

    folder = Path("build/titles")
    folder.mkdir(parents=True, exist_ok=True)
    kbtools.index(out=folder / "titles.kb", names=[(entity, title) for title, entity in ids.items()]).close()
    with served(folder / "titles.kb", workers=1) as (port, pid):
        rows = [measure("kbtools", f"http://127.0.0.1:{port}/reconcile", pid, asked)]
    if arguments.peer:
        with served_by_peer(arguments.peer, folder, ids) as (url, pid):
            rows.append(measure("csv-reconcile", url, pid, asked))
    show_table("services", ("service", "first", "names a second", "CPU a name", "a batch of 10, p50 / p99"), rows)


def read_titles(path: Path) -> list[str]:
    with lzma.open(path, "rt", encoding="utf-8") as file:
        return [line.strip().replace("_", " ") for line in file]


def measure(what: str, url: str, pid: int, asked: Sequence[tuple[str, str]]) -> list[str]:
    """Reconcile in batches over one client, and count the names whose first candidate is right."""
    right, seconds, cpu = 0, [], cpu_seconds(pid)
    for first in range(0, len(asked), NAMES):
        batch = dict(enumerate(asked[first : first + NAMES]))
        queries = json.dumps({str(key): {"query": variant} for key, (variant, _) in batch.items()})
        begun = time.perf_counter()
        with urllib.request.urlopen(url, urlencode({"queries": queries}).encode()) as answer:
            results = json.load(answer)
        seconds.append(time.perf_counter() - begun)
        firsts = {key: results[str(key)]["result"][:1] for key in batch}
        right += sum(
            bool(firsts[key]) and firsts[key][0]["id"].removeprefix(SPACE) == entity
            for key, (_, entity) in batch.items()
        )
    wall, cpu = float(np.sum(seconds)), cpu_seconds(pid) - cpu
    times = "{:.1f} / {:.1f} ms".format(*1000 * np.percentile(seconds, [50, 99]))
    rate = f"{len(asked) / wall:,.0f}"
    return [what, f"{right / len(asked):.2%}", rate, f"{1000 * cpu / len(asked):.1f} ms", times]


@contextmanager
def served_by_peer(program: str, folder: Path, ids: dict[str, str]) -> Iterator[tuple[str, int]]:
    """Run csv-reconcile over the same titles; it listens on port 5000 alone."""
    rows = [f"{SPACE}{entity}\t{title}\n" for title, entity in ids.items()]
    (folder / "titles.tsv").write_text("item\tlabel\n" + "".join(rows), encoding="utf-8")
    (folder / "peer.py").write_text(PEER_SETTINGS, encoding="utf-8")
    initialise = [program, "init", "--config", "peer.py", "titles.tsv", "item", "label"]
    subprocess.run(initialise, cwd=folder, check=True, capture_output=True)
    with (folder / "peer.log").open("w") as log:
        process = subprocess.Popen([program, "serve"], cwd=folder, stdout=log, stderr=log)
        try:
            while not re.search(r"Running on", (folder / "peer.log").read_text()):
                time.sleep(0.1)
            yield "http://127.0.0.1:5000/reconcile", process.pid
        finally:
            process.terminate()
            process.wait()


if __name__ == "__main__":
    main()
