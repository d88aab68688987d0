"""Redirects taken together: those that would lead back to where they start are left out, and counted."""

import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kbtools.errors import WrongFormat
from kbtools.indexers.readers.batches import RecordBatch
from kbtools.indexers.readers.lines import lines_of
from kbtools.indexers.readers.skips import Skips
from kbtools.indexers.readers.sources import read_blocks


def without_loops(
    batches: Sequence[RecordBatch], path: Path, skips: Skips, *, earlier: pa.Table | None = None
) -> list[RecordBatch]:
    """Return the redirects of a source without the last one of each loop, which closes it.

    A loop may pass through redirects of earlier sources, which make none by themselves.
    """
    if not batches:
        return []
    table = pa.concat_tables([batch.table for batch in batches]).combine_chunks()
    before = [] if earlier is None else [earlier]
    closing = closing_rows(pa.concat_tables([*before, table]).combine_chunks()) - sum(map(len, before))
    ends = np.cumsum([batch.table.num_rows for batch in batches])
    for row in closing.tolist():
        old, new = (str(table.column(name)[row]) for name in ("old", "new"))
        batch = batches[int(np.searchsorted(ends, row, side="right"))]
        line = batch.line if batch.table.num_rows == 1 else line_of(path, old, new, first=batch.line)
        skips.add("redirect loop", line=line, text=f"{old} -> {new}")
    kept = np.ones(table.num_rows, dtype=bool)
    kept[closing] = False
    return [RecordBatch("redirects", table.filter(pa.array(kept)), batches[0].line)] if kept.any() else []


def closing_rows(table: pa.Table) -> NDArray[np.int64]:
    """List the last row of each loop; of an id that is redirected twice the first row counts."""
    ids = pa.chunked_array([*table.column("old").chunks, *table.column("new").chunks]).combine_chunks()
    codes = ids.dictionary_encode().indices.to_numpy()
    old, new = np.split(codes, 2)
    olds, row_of_old = np.unique(old, return_index=True)
    end = int(codes.max()) + 1
    follow: NDArray[Any] = np.full(end + 1, end, dtype=np.int64)
    follow[olds] = new[row_of_old]
    # Twice as far with each step, until every chain is at its end: who is not there by then goes round in a loop.
    far = follow
    for _ in range(end.bit_length()):
        far = far[far]
    rows: NDArray[Any] = np.full(end + 1, -1, dtype=np.int64)
    rows[olds] = row_of_old
    looping = set(far[far < end].tolist())
    closing = []
    while looping:
        start = at = looping.pop()
        loop = [int(rows[start])]
        while (at := int(follow[at])) != start:
            looping.remove(at)
            loop.append(int(rows[at]))
        closing.append(max(loop))
    return np.array(sorted(closing), dtype=np.int64)


def line_of(path: Path, old: str, new: str, *, first: int) -> int:
    """Find the line, from the first one on, that has an id and behind it that which it leads to; else the first."""
    one, other = (rb"(?<!\w)" + re.escape(entity_id.encode()) + rb"(?!\w)" for entity_id in (old, new))
    pair = re.compile(one + b".*" + other)
    with suppress(WrongFormat):  # a columnar file, which has no lines
        for block in read_blocks(path):
            for number, line in lines_of(block):
                if number >= first and pair.search(line):
                    return number
    return first
