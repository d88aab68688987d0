"""Changes given in Python: records, ids and rows become files for the time of an update."""

from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any

from kbtools.answering.records import UpdateResult
from kbtools.errors import BadArgument
from kbtools.indexers.building.build import BuildProgress
from kbtools.indexers.building.given_rows import json_lines, read_options, sources_of, write_lines
from kbtools.indexers.readers.reading import Source
from kbtools.indexers.updates.compacting import compact
from kbtools.indexers.updates.update_sources import Role, UpdateSource
from kbtools.indexers.updates.updating import update
from kbtools.storage import temporary_folder

ON_CLUSTER = "elasticsearch"
"""The backend whose knowledge bases are on a cluster, by name."""


def update_given(
    changes_by_kind: Mapping[str, Any],
    kb: str | Path,
    *,
    backend: str,
    language: str | None,
    columns: Mapping[str, str],
    list_separator: str | None,
    max_bad: float,
) -> UpdateResult:
    """Change a knowledge base by what is given for each kind: paths, data frames, rows, records or ids."""
    check_updatable(backend)
    options = read_options(language, columns, list_separator, max_bad)
    with temporary_folder() as folder:
        sources = [
            source
            for kind, given in changes_by_kind.items()
            for source in update_sources(kind, given, folder / f"{kind}.jsonl", columns)
        ]
        if not sources:
            raise BadArgument("give at least one change, such as add or remove", name="add")
        if backend == ON_CLUSTER:
            # By name, so that folders are changed without the client of a cluster.
            result: UpdateResult = import_module("kbtools.indexers.elastic.cluster_updates").update_by_name(
                str(kb), sources, options=options
            )
            return result
        return update(Path(kb), sources, options=options)


def check_updatable(backend: str) -> None:
    """Refuse a backend whose knowledge bases cannot be changed."""
    if backend not in ("embedded", ON_CLUSTER):
        raise BadArgument(
            f"backend {backend!r}: its knowledge bases are not updated; those of embedded and {ON_CLUSTER} are",
            name="backend",
        )


def compact_given(kb: str | Path, *, memory: str, backend: str) -> None:
    """Merge the updates of a knowledge base."""
    check_updatable(backend)
    if backend == ON_CLUSTER:
        import_module("kbtools.indexers.elastic.deleted_documents").compact_by_name(str(kb))
    else:
        compact(Path(kb), watch=BuildProgress(), memory=memory)


def update_sources(kind: str, given: Any, path: Path, columns: Mapping[str, str]) -> Iterator[UpdateSource]:
    """Yield the files of a kind of changes, or the one that they are written to."""
    if kind in ("add", "remove"):
        yield from changes_of(kind, given, path)
        return
    rows = kind.removeprefix("remove_")
    role: Role = "remove" if rows != kind else "add"
    yield from (UpdateSource(source, role) for source in sources_of(rows, given, path, columns))


def changes_of(kind: str, given: Any, path: Path) -> Iterator[UpdateSource]:
    """Yield files of records or ids, or the one that they are written to."""
    role: Role = "changes" if kind == "add" else "gone"
    if isinstance(given, Path) or (kind == "add" and isinstance(given, str)):
        given = [given]
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise BadArgument(f"{kind}: expected a path or several {'records' if kind == 'add' else 'ids'}", name=kind)
    remaining = iter(given)
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
