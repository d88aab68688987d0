"""The benchmark suite: kbtools beside common alternatives, in one run.

python benchmarks/bench.py [--out build/bench] [--titles 200000] [--elasticsearch-url URL] [--kb KB --models MODELS]

Each measurement runs in its own process, on the same core, with the same queries; missing packages are named and
skipped (`pip install -e .[bench]`). Figures are written to OUT/bench.json and OUT/bench.md, with the machine.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import bench_parsing
import bench_transe
from bench_child import measure as measure_here
from bench_contenders import FUZZY, STRICT, Contender, Elasticsearch
from bench_inputs import write_inputs
from bench_report import better_peers, machine, markdown, tables
from fbsq import SMALL, is_small, parse
from figures import show_table

CHILD = Path(__file__).with_name("bench_child.py")

MOST_SECONDS = 900
"""Seconds after which a measurement is given up: half of the time that all of them should take."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("build/bench"))
    parser.add_argument("--titles", type=int, default=200_000, help="titles of DBpedia beside FBSQ's entities")
    parser.add_argument("--queries", type=int, default=1_000, help="misspelt names, and questions")
    parser.add_argument("--elasticsearch-url", default=os.environ.get("KBTOOLS_ELASTICSEARCH_URL"))
    parser.add_argument("--kb", type=Path, help="a knowledge base that is asked whole questions")
    parser.add_argument("--models", type=Path, help="its models")
    arguments = parse(parser, out=SMALL / "bench", titles=5, queries=5, elasticsearch_url=None)
    begun = time.monotonic()
    write_inputs(arguments.out / "inputs", titles=arguments.titles)
    options = ["--work", str(arguments.out), "--limit", str(arguments.queries)]
    for option in ("elasticsearch_url", "kb", "models"):
        if value := getattr(arguments, option):
            options += [f"--{option.replace('_', '-')}", str(value)]
    results: list[dict[str, Any]] = []
    try:
        for task, name, reason in plan(options):
            figures = {"skipped": reason} if reason else measure([task, name, *options])
            results.append({"task": task, "contender": name} | figures)
            print(json.dumps(results[-1]), file=sys.stderr, flush=True)
    finally:
        if arguments.elasticsearch_url and not missing(Elasticsearch.needs):
            Elasticsearch.url = arguments.elasticsearch_url
            Elasticsearch(arguments.out).clear()
    record = {
        "machine": machine(),
        "titles": arguments.titles,
        "minutes": round((time.monotonic() - begun) / 60, 1),
        "better": better_peers(results),
        "results": results,
    }
    (arguments.out / "bench.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    (arguments.out / "bench.md").write_text(markdown(record), encoding="utf-8")
    print(markdown(record))
    for key, columns, rows in tables(results):
        show_table(key, columns, rows)


def plan(options: list[str]) -> Iterator[tuple[str, str, str]]:
    """Yield each measurement: task, contender, and the reason if it is left out."""
    built: set[type[Contender]] = set()
    for task, contenders in (("build", FUZZY | STRICT), ("fuzzy", FUZZY), ("strict", STRICT)):
        for name, contender in contenders.items():
            if task == "build" and (contender in built or contender.build is Contender.build):
                continue
            built.add(contender)
            url = "--elasticsearch-url" in options or "elasticsearch" not in contender.needs
            yield task, name, missing(contender.needs) or ("" if url else "no --elasticsearch-url")
    for task, readers in (("parse", bench_parsing.CONTENDERS), ("transe", bench_transe.CONTENDERS)):
        for name, packages in readers.items():
            yield task, name, missing(packages)
    yield "questions", "lexical", "" if "--kb" in options else "no --kb"
    yield "questions", "trained", "" if "--models" in options else "no --models"


def missing(packages: tuple[str, ...]) -> str:
    """Return the names of the packages that are not installed."""
    absent = [package for package in packages if find_spec(package) is None]
    return f"not installed: {', '.join(absent)}" if absent else ""


def measure(arguments: list[str]) -> dict[str, Any]:
    """Run a measurement on the first core, and return why it failed if it did; a small one runs in this process."""
    if is_small():
        return measure_here(arguments)
    core = min(os.sched_getaffinity(0))
    single = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS"), "1")
    try:
        ended = subprocess.run(
            [sys.executable, str(CHILD), *arguments],
            capture_output=True,
            text=True,
            timeout=MOST_SECONDS,
            env=os.environ | single,
            preexec_fn=lambda: os.sched_setaffinity(0, {core}),
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"skipped": f"given up after {MOST_SECONDS} s"}
    if ended.returncode:
        return {"skipped": f"failed: {(ended.stderr.strip().splitlines() or ['without a word'])[-1]}"}
    figures: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return figures


if __name__ == "__main__":
    main()
