"""Columns in which each row has a run of values: a column of where the runs start, and one of all values."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbtools.kb.rows import Grouped


def within(grouped: Grouped, count: int) -> Grouped:
    """Refuse rows beyond the end of the table that they point into."""
    if len(grouped.values) and (last := int(np.maximum.reduce(grouped.values))) >= count:
        raise IndexError(f"row {last} of a table of {count}")
    return grouped


def gather(starts: NDArray[Any], values: NDArray[Any], rows: NDArray[Any]) -> Grouped:
    """Collect the runs of several rows of a table that is stored one run after the other."""
    bounds, positions = spread(starts, rows, len(values))
    return Grouped(bounds, values[positions])


def spread(starts: NDArray[Any], rows: NDArray[Any], size: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """List the places of the runs of several rows among so many values, and where each run begins in that list."""
    rows = rows.astype(np.int64)
    return spread_runs(starts.take(rows), starts.take(rows + 1), size)


def spread_runs(
    begin: NDArray[np.int64], end: NDArray[np.int64], size: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """List the places of runs among so many values, and where each run begins in that list."""
    lengths = end - begin
    # Sooner than `any` of a few tells, and than their least and largest are found.
    if np.logical_or.reduce((lengths < 0) | (end > size)):
        raise IndexError("a run that begins behind its end, or ends behind the values")
    bounds = np.zeros(len(begin) + 1, dtype=np.int64)
    lengths.cumsum(out=bounds[1:])
    # For every row, for every place of its run: the place, without a loop over the rows.
    places = (begin - bounds[:-1]).repeat(lengths)
    places += np.arange(len(places))
    return bounds, places


def facts_at(columns: Mapping[str, NDArray[Any]], rows: NDArray[Any], subjects: NDArray[Any]) -> NDArray[np.int64]:
    """List the facts at some rows of the columns, which are those of as many subjects, in their order: (facts, 3)."""
    bounds, pairs = spread(columns["fact.first"], rows, len(columns["fact.relation"]))
    runs, objects = spread(columns["fact.first_object"], pairs, len(columns["fact.object"]))
    counts = np.diff(runs)
    by_pair = (np.repeat(subjects, np.diff(bounds)), columns["fact.relation"][pairs])
    facts = (*(np.repeat(column, counts) for column in by_pair), columns["fact.object"][objects])
    return np.stack(facts, axis=1).astype(np.int64)
