"""The report of the benchmark suite: one table per task, with ratios to kbtools."""

import os
import platform
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from math import nan
from pathlib import Path
from typing import Any

OURS = "kbtools"

TITLES = {
    "build": "Building",
    "fuzzy": "Misspelt names: the name that is meant among the twenty nearest",
    "strict": "All n-grams of a question: its subject among the entities",
    "parse": "Reading the files of the release",
    "transe": "TransE: the object of a fact kept back among the ten nearest",
    "questions": "Whole questions",
}

SPEED = {"build": "cpu_s", "fuzzy": "wall_ms_50", "strict": "wall_ms_50", "parse": "cpu_s", "transe": "cpu_s"}
"""The figure of each task that is compared with ours, lower is better: wall time, since a server works elsewhere."""

PACKAGES = ("kbtools", "tantivy", "lmdb", "duckdb", "rapidfuzz", "simstring-rust", "csv-reconcile", "spacy",
            "elasticsearch", "polars", "pykeen", "torch")  # fmt: skip


def machine() -> dict[str, Any]:
    """Return the machine, its load, and the versions of the packages."""
    model = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cpu": model[0].partition(":")[2].strip() if model else platform.processor(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": round(memory / 1e9, 1),
        "load": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
        "versions": {name: found for name in PACKAGES if (found := installed(name))},
    }


def installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def better_peers(results: Sequence[dict[str, Any]]) -> list[str]:
    """Return the peers that are at least as good as kbtools in speed and recall, and better in one of them."""
    ours = {result["task"]: result for result in results if result["contender"] == OURS}
    better = []
    for result in results:
        mine, speed = ours.get(result["task"], {}), SPEED.get(result["task"], "")
        if result["contender"] == OURS or "recall" not in result or "recall" not in mine:
            continue
        gains = (mine[speed] - result[speed], result["recall"] - mine["recall"])
        if min(gains) >= 0 and max(gains) > 0:
            better.append(f"{result['task']}: {result['contender']}")
    return better


def tables(results: Sequence[dict[str, Any]]) -> Iterator[tuple[str, list[str], list[list[object]]]]:
    """Yield the tables of the documents: key, columns and rows."""
    measured = {(result["task"], result["contender"]): result for result in results if "skipped" not in result}

    def rows(task: str, cells: Callable[[dict[str, Any]], list[object]]) -> list[list[object]]:
        ours = measured.get((task, OURS), {}).get("wall_ms_50", nan)
        return [
            [name, f"{figures['cpu_ms_50']:.3g}", f"{figures['wall_ms_50']:.3g}", f"{figures['wall_ms_50'] / ours:.2g}",
             *cells(figures)]
            for (own, name), figures in measured.items() if own == task
        ]  # fmt: skip

    times = ["CPU ms, p50", "wall ms, p50", "times kbtools"]
    yield (
        "misspelt",
        ["misspelt names", *times, "queries", "recall@20", "first", "opened in"],
        rows("fuzzy", lambda own: [f"{own['queries']:,}", f"{own['recall']:.1%}", f"{own['first']:.1%}",
                                   f"{own['open_ms']:,.0f} ms"]),
    )  # fmt: skip
    yield (
        "n-grams",
        ["all n-grams of a question", *times, "subject among the entities", "memory"],
        rows("strict", lambda own: [f"{own['recall']:.1%}", f"{own['peak_mb']:,} MB"]),
    )
    yield (
        "others",
        ["task", "by", "CPU s", "objects among the nearest ten"],
        [[TITLES[task], name, figures["cpu_s"], f"{figures['recall']:.1%}" if task == "transe" else ""]
         for (task, name), figures in measured.items() if task in ("build", "parse", "transe")],
    )  # fmt: skip


def markdown(record: dict[str, Any]) -> str:
    """Return the report: the tables, the machine and the versions."""
    described, results = record["machine"], record["results"]
    lines = [
        f"{described['cpu']}, {described['cores']} cores with a load of {described['load']}, "
        f"{described['memory_gb']} GB, Python {described['python']}; "
        f"FBSQ and {record['titles']:,} titles; {record['minutes']} minutes.",
        "Versions: " + ", ".join(f"{name} {found}" for name, found in described["versions"].items()) + ".",
        "",
    ]
    for task, title in TITLES.items():
        of_task = [result for result in results if result["task"] == task]
        measured = [result for result in of_task if "skipped" not in result]
        lines += [f"## {title}", ""]
        if measured:
            heads = [key for key in dict.fromkeys(key for result in measured for key in result) if key != "task"]
            ratio = SPEED.get(task, "")
            base = next((result[ratio] for result in measured if result["contender"] == OURS and ratio in result), None)
            lines += ["| " + " | ".join([*heads, *(["times kbtools"] if base else [])]) + " |"]
            lines += ["| " + " | ".join(["---"] * (len(heads) + bool(base))) + " |"]
            for result in measured:
                cells = [str(result.get(head, "")) for head in heads]
                cells += [f"{result[ratio] / base:.2f}"] if base else []
                lines += ["| " + " | ".join(cells) + " |"]
            lines += [""]
        lines += [f"Left out: {result['contender']}, {result['skipped']}." for result in of_task if "skipped" in result]
        lines += [""]
    best = ", ".join(record["better"])
    lines += [f"Better than kbtools at speed and recall at once: {best or 'none'}."]
    return "\n".join(lines) + "\n"
