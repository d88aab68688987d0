"""Changes passed in Python: records, ids and rows are written to temporary files for the update."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

from kbtools.answering.records import UpdateResult
from kbtools.errors import BadArgument
from kbtools.indexers.building.build import BuildProgress
from kbtools.indexers.building.given_rows import json_lines, read_options, sources_of, write_lines
from kbtools.indexers.readers.reading import ReadOptions, Source
from kbtools.indexers.updates.compacting import compact
from kbtools.indexers.updates.update_sources import Role, UpdateSource
from kbtools.indexers.updates.updating import update
from kbtools.storage import temporary_folder


@contextmanager
def given_sources(
    changes_by_kind: Mapping[str, Any], *, columns: Mapping[str, str], **reading: Any
) -> Iterator[tuple[list[UpdateSource], ReadOptions]]:
    """Yield the sources of an update for the changes of each kind: paths, data frames, rows, records or ids."""
    options = read_options(columns=columns, **reading)
    with temporary_folder() as folder:
        sources = [
            source
            for kind, changes in changes_by_kind.items()
            for source in _update_sources(kind, changes, folder / f"{kind}.jsonl", columns)
        ]
        if not sources:
            raise BadArgument("give at least one change, such as add or remove", name="add")
        yield sources, options


def update_given(kb: str | Path, sources: Sequence[UpdateSource], *, options: ReadOptions) -> UpdateResult:
    return update(Path(kb), sources, options=options)


def compact_given(kb: str | Path, *, memory: str) -> None:
    compact(Path(kb), watch=BuildProgress(), memory=memory)


def _update_sources(kind: str, changes: Any, path: Path, columns: Mapping[str, str]) -> Iterator[UpdateSource]:
    """Yield the files of a kind of changes, or the file they are written to."""
    if kind in ("add", "remove"):
        yield from _changes_of(kind, changes, path)
        return
    rows = kind.removeprefix("remove_")
    role: Role = "remove" if rows != kind else "add"
    yield from (UpdateSource(source, role) for source in sources_of(rows, changes, path, columns))


def _changes_of(kind: str, changes: Any, path: Path) -> Iterator[UpdateSource]:
    """Yield files of records or ids, or the file they are written to."""
    role: Role = "changes" if kind == "add" else "gone"
    if isinstance(changes, Path) or (isinstance(changes, str) and (kind == "add" or Path(changes).is_file())):
        changes = [Path(changes)]
    if isinstance(changes, str | bytes) or not isinstance(changes, Iterable):
        raise BadArgument(f"{kind}: expected a path or several {'records' if kind == 'add' else 'ids'}", name=kind)
    remaining = iter(changes)
    first = next(remaining, None)
    if first is None:
        return
    parts = chain([first], remaining)
    if isinstance(first, Path) or (kind == "add" and isinstance(first, str)):
        yield from (UpdateSource(Source(Path(part), "any"), role) for part in parts)
    else:
        lines = json_lines(kind, parts) if kind == "add" else (str(part) for part in parts)
        write_lines(lines, path)
        yield UpdateSource(Source(path, "any", label=f"{kind} given in Python"), role)
