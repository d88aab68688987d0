"""The release's files read by kbtools, as rows of canonical ids, and by polars, as columns of text."""

import time
from pathlib import Path
from typing import Any

from bench_inputs import Inputs

CONTENDERS = {"kbtools": (), "polars": ("polars",)}
"""The contenders, and the packages that they need."""


def measure(name: str, inputs: Inputs) -> dict[str, Any]:
    """Read facts, names and types, and return CPU seconds and megabytes per CPU second."""
    files = {"facts": inputs.facts, "names": inputs.names, "types": inputs.types}
    begun = time.process_time()
    rows = {"kbtools": read_by_kbtools, "polars": read_by_polars}[name](files)
    seconds = time.process_time() - begun
    size = sum(path.stat().st_size for path in files.values())
    return {"cpu_s": round(seconds, 2), "mb_per_cpu_s": round(size / 1e6 / seconds), "rows": rows}


def read_by_kbtools(files: dict[str, Path]) -> int:
    from kbtools.indexers.readers.reading import Reading, ReadOptions, Source

    readings = [Reading(Source(path, kind), ReadOptions()) for kind, path in files.items()]  # type: ignore[arg-type]
    return sum(batch.table.num_rows for reading in readings for batch in reading.batches())


def read_by_polars(files: dict[str, Path]) -> int:
    import polars

    return sum(
        polars.read_csv(path, separator="\t", has_header=False, quote_char=None, infer_schema=False).height
        for path in files.values()
    )
