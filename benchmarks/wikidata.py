"""Measure reading a Wikidata dump against a plain orjson loop and qwikidata: CPU seconds, MB/s, peak memory.

python benchmarks/wikidata.py [--entities 100000] [--shape short] [--dump FILE] [--shares orjson,kbtools,both,index]

Each reads the same file in its own process: `kbtools` on one core and `both` on all, including every row; `orjson`
decompresses and parses; `qwikidata` reads its `WikidataJsonDump`, makes items of the first 5,000 entities and gets what
kbtools reads: labels, aliases and descriptions of the languages, the values of the best statements as text, types and
sitelinks, as columns. Each has read a dump of a hundred entities before, so that loading libraries does not count.
`index` is the whole of `kbtools index` with all its processes; its memory is their joint peak, with shared pages
counted once. Rates relative to qwikidata, by CPU and wall time, come last.
pip install '.[wikidata]' orjson qwikidata
"""

import argparse
import gzip
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

from fbsq import SMALL, parse
from figures import show_table
from wikidata_dump import SHAPES, write_dump

from kbtools.indexers.readers.batches import ALIAS
from kbtools.indexers.readers.reading import Reading, ReadOptions, Source
from kbtools.indexers.readers.sources import read_blocks

FIRST = 5_000
"""Entities that qwikidata reads, in some seconds."""

WARM = 100
"""Entities that each way reads before it is measured."""

COLUMNS = (
    "read by", "lines", "MB of JSON", "CPU s", "wall s", "MB a CPU second", "MB a second", "memory, MB",
    "knowledge base, MB",
)  # fmt: skip

WHOLE_DUMP = 115_000_000
"""Entities of the whole dump, by Wikidata:Statistics in 2024."""

LANGUAGES = ("en", "mul")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entities", type=int, default=100_000)
    parser.add_argument("--shape", choices=SHAPES, default="whole")
    parser.add_argument("--dump", type=Path, default=Path("build/wikidata-dump.json.gz"), help="written if not there")
    parser.add_argument("--shares", default="orjson,kbtools,both,qwikidata,index", help="what is measured")
    parser.add_argument("--alone", help=argparse.SUPPRESS)
    asked = parse(parser, entities=20, shares="kbtools", dump=SMALL / "wikidata.json.gz")
    warm = asked.dump.with_name("wikidata-warm.json.gz")
    if asked.alone:
        print(json.dumps(alone(asked.alone, asked.dump, warm)))
        return
    if not asked.dump.exists():
        write_dump(asked.dump, asked.entities, SHAPES[asked.shape])
    write_dump(warm, WARM, SHAPES[asked.shape])
    size = sum(len(block.text) for block in read_blocks(asked.dump))
    rates: dict[str, tuple[float, float]] = {}
    rows = []
    for name in asked.shares.split(","):
        command = [sys.executable, __file__, "--dump", str(asked.dump), "--alone", name]
        figures = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
        figures["bytes"] = size
        if figures["lines"] == FIRST:
            figures["bytes"] = sum(map(len, islice(lines_of(asked.dump), FIRST + 1)))
        rows.append(row_of(name, figures))
        rates[name] = figures["bytes"] / figures["cpu"], figures["bytes"] / figures["wall"]
        if name == "index":
            share = WHOLE_DUMP / asked.entities
            hours, size_of_kb = share * figures["cpu"] / 3600, share * figures["size"] / 1e9
            estimate = [("CPU hours", f"{hours:.0f}"), ("knowledge base", f"{size_of_kb:.0f} GB")]
            show_table("estimate", ("for the whole dump, by the same rates", "estimate"), estimate)
    show_table("reading", COLUMNS, rows)
    if "qwikidata" in rates:
        others = {name: rate for name, rate in rates.items() if name not in ("qwikidata", "index")}
        ratios = [
            (name, *(f"{own / other:.1f}" for own, other in zip(rate, rates["qwikidata"], strict=True)))
            for name, rate in others.items()
        ]
        show_table("beside qwikidata", ("times as fast as qwikidata", "a CPU second", "by the clock"), ratios)


def row_of(name: str, figures: dict[str, float]) -> list[str]:
    """Format the figures of a way to read."""
    size = figures["bytes"] / 1e6
    rates = (f"{size / figures['cpu']:.0f}", f"{size / figures['wall']:.0f}", f"{figures['memory'] / 1e6:.0f}")
    seconds = (f"{figures['cpu']:.1f}", f"{figures['wall']:.1f}")
    made = f"{figures['size'] / 1e6:,.0f}" if figures["size"] else ""
    return [name, f"{figures['lines']:,}", f"{size:,.0f}", *seconds, *rates, made]


def alone(name: str, dump: Path, warm: Path) -> dict[str, float]:
    """Read the dump in one way, and return its lines, CPU and wall seconds, peak memory and bytes on disk."""
    if name not in ("both", "index"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    if name != "index":
        WAYS[name](warm)
    begun, started = time.perf_counter(), time.process_time()
    lines = WAYS[name](dump)
    cores = len(os.sched_getaffinity(0)) if name == "both" else 0
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return {
        "lines": lines,
        "wall": time.perf_counter() - begun,
        "cpu": sum(usage.ru_utime + usage.ru_stime for usage in used) - started,
        "size": PEAK.get("size", 0),
        "memory": PEAK.get(name) or 1024 * (used[0].ru_maxrss + used[1].ru_maxrss * cores),
    }  # fmt: skip


def lines_of(dump: Path) -> Iterator[bytes]:
    with gzip.open(dump) if dump.suffix == ".gz" else dump.open("rb") as opened:
        yield from opened


def read_with_kbtools(dump: Path) -> int:
    """Read every row, as a build does."""
    reading = Reading(Source(dump, "any", format="wikidata"), ReadOptions())
    for _ in reading.batches():
        pass
    return reading.skips.lines


def read_with_orjson(dump: Path) -> int:
    """Unpack and parse."""
    import orjson

    lines = 0
    for line in lines_of(dump):
        lines += 1
        if len(line) > 3:
            orjson.loads(line.rstrip(b",\n"))
    return lines


def read_with_qwikidata(dump: Path) -> int:
    """Read the first lines as items, and make the same rows as kbtools."""
    import pyarrow as pa
    from qwikidata.entity import WikidataItem
    from qwikidata.json_dump import WikidataJsonDump

    lines = 0
    tables: dict[str, list[tuple[object, ...]]] = {
        kind: [] for kind in ("names", "described", "facts", "types", "counts")
    }
    for entity in islice(WikidataJsonDump(str(dump)), FIRST):
        lines += 1
        if entity["type"] == "item":
            item = WikidataItem(entity)
            own = item.entity_id
            for rank, language in enumerate(LANGUAGES):
                tables["names"] += [(own, rank, text) for text in [item.get_label(language)] if text]
                tables["names"] += [(own, ALIAS, text) for text in item.get_aliases(language)]
                tables["described"] += [(own, rank, text) for text in [item.get_description(language)] if text]
            for relation, claims in item.get_truthy_claim_groups().items():
                for claim in claims:
                    if claim.mainsnak.snaktype == "value":
                        value = claim.mainsnak.datavalue
                        text = value.value["id"] if value.datatype == "wikibase-entityid" else str(value)
                        tables["facts"].append((own, relation, text))
                        if relation == "P31":
                            tables["types"].append((own, text))
            if sitelinks := len(item.get_sitelinks("")):
                tables["counts"].append((own, sitelinks))
    for rows in tables.values():
        [pa.array(column) for column in zip(*rows, strict=True)]
    return lines


def build_with_kbtools(dump: Path) -> int:
    """Build a knowledge base beside the dump, measure it, and remove it."""
    out = dump.with_suffix(".kb")
    command = [str(Path(sys.executable).with_name("kbtools")), "index", "--quiet", "--wikidata", str(dump)]
    with subprocess.Popen([*command, "--out", str(out)], stdout=subprocess.DEVNULL) as build:
        while build.poll() is None:
            time.sleep(0.2)
            memory = sum(map(proportional_memory, [build.pid, *descendants(build.pid)]))
            PEAK["index"] = max(PEAK.get("index", 0), memory)
    if build.returncode:
        raise SystemExit(build.returncode)
    size = sum(file.stat().st_size for file in out.rglob("*") if file.is_file())
    PEAK["size"] = size
    shutil.rmtree(out)
    return 0


def descendants(process: int) -> Iterator[int]:
    """Yield the processes that a process started, and those that they did."""
    with suppress(OSError):
        for children in Path(f"/proc/{process}/task").glob("*/children"):
            for child in map(int, children.read_text().split()):
                yield child
                yield from descendants(child)


def proportional_memory(process: int) -> int:
    """Return the bytes of a process, with its part of shared pages; 0 if it has ended."""
    with suppress(OSError):
        for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return 1024 * int(line.split()[1])
    return 0


WAYS: dict[str, Callable[[Path], int]] = {
    "orjson": read_with_orjson,
    "kbtools": read_with_kbtools,
    "both": read_with_kbtools,
    "qwikidata": read_with_qwikidata,
    "index": build_with_kbtools,
}

PEAK: dict[str, int] = {}
"""Bytes of memory of the ways that measure it themselves, and `size`, the bytes of a knowledge base."""


if __name__ == "__main__":
    main()
