"""One measurement of the benchmark suite in its own process; its last line is the figures as JSON.

python benchmarks/bench_child.py build|fuzzy|strict|parse|transe|questions CONTENDER --work FOLDER ...
"""

import argparse
import json
import resource
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import bench_contenders
import bench_parsing
import bench_questions
import bench_transe
import numpy as np
from bench_contenders import Contender
from bench_inputs import Inputs

from kbtools.text.normaliser import normal_form

WARMING = 50
"""Queries before the first that is timed: they read pages from the disk."""


def main() -> None:
    print(json.dumps(measure()))


def measure(words: Sequence[str] | None = None) -> dict[str, Any]:
    """Return the figures of the measurement requested by arguments or the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=["build", "fuzzy", "strict", "parse", "transe", "questions"])
    parser.add_argument("contender")
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--limit", type=int, default=1_000, help="queries")
    parser.add_argument("--elasticsearch-url")
    parser.add_argument("--kb", type=Path)
    parser.add_argument("--models", type=Path)
    arguments = parser.parse_args(words)
    bench_contenders.Elasticsearch.url = arguments.elasticsearch_url
    inputs = Inputs(arguments.work / "inputs")
    task, name = arguments.task, arguments.contender
    if task == "parse":
        figures = bench_parsing.measure(name, inputs)
    elif task == "transe":
        figures = bench_transe.measure(name, inputs, arguments.work)
    elif task == "questions":
        figures = bench_questions.measure(name, kb=arguments.kb, models=arguments.models)
    else:
        figures = by_name(task, name, inputs, arguments.work, arguments.limit)
    peaks = (resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return figures | {"peak_mb": round(max(peaks) / 1e3)}


def by_name(task: str, name: str, inputs: Inputs, work: Path, limit: int) -> dict[str, Any]:
    """Build a contender, or open it and ask it."""
    make = (bench_contenders.FUZZY | bench_contenders.STRICT)[name]
    folder = work / make.__name__
    folder.mkdir(parents=True, exist_ok=True)
    contender = make(folder)
    if task == "build":
        begun = cpu()
        contender.build(inputs)
        return {"cpu_s": round(cpu() - begun, 1), "bytes": sum(path.stat().st_size for path in folder.rglob("*"))}
    begun = time.perf_counter()
    contender.open(inputs)
    opened = {"open_ms": round(1000 * (time.perf_counter() - begun), 1)}
    limit = min(limit, make.sample or limit)
    return opened | (fuzzy if task == "fuzzy" else strict)(contender, inputs, limit)


def cpu() -> float:
    """Return the CPU seconds of this process and its children."""
    of = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(used.ru_utime + used.ru_stime for used in of)


def timed(ask: Callable[[str], Any], texts: Sequence[str]) -> tuple[list[Any], dict[str, float]]:
    """Return the answers to texts, with the CPU milliseconds of this process and the wall milliseconds."""
    for text in texts[: min(WARMING, len(texts) // 2)]:
        ask(text)
    answers, busy, wall = [], [], []
    for text in texts:
        begun, begun_wall = time.process_time(), time.perf_counter()
        answers.append(ask(text))
        busy.append(1000 * (time.process_time() - begun))
        wall.append(1000 * (time.perf_counter() - begun_wall))
    figures: dict[str, float] = {"queries": len(texts)}
    for what, values in (("cpu", busy), ("wall", wall)):
        figures |= {f"{what}_ms_{place}": round(float(np.percentile(values, place)), 4) for place in (50, 99)}
    return answers, figures


def fuzzy(contender: Contender, inputs: Inputs, limit: int) -> dict[str, Any]:
    """Return how often the intended name of a misspelt one is among the twenty nearest, and the first."""
    pairs = inputs.read_variants(limit)
    answers, figures = timed(contender.near, [variant for variant, _ in pairs])
    places = [[normal_form(name) for name in answer] for answer in answers]
    wanted = [normal_form(title) for _, title in pairs]
    recall = np.mean([title in names for title, names in zip(wanted, places, strict=True)])
    first = np.mean([names[:1] == [title] for title, names in zip(wanted, places, strict=True)])
    return figures | {"recall": round(float(recall), 4), "first": round(float(first), 4)}


def strict(contender: Contender, inputs: Inputs, limit: int) -> dict[str, Any]:
    """Return how often the subject of a question is among the entities of its n-grams."""
    pairs = inputs.read_questions(limit)
    answers, figures = timed(contender.linked, [text for text, _ in pairs])
    right = [contender.entity(subject) in linked for (_, subject), linked in zip(pairs, answers, strict=True)]
    return figures | {
        "recall": round(float(np.mean(right)), 4),
        "entities": round(float(np.mean([*map(len, answers)])), 1),
    }


if __name__ == "__main__":
    main()
