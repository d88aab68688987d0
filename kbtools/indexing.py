"""Building and updating knowledge bases from Python, from files, data frames or rows."""

import os
import re
from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from kbtools.errors import BadArgument, BuildLocked, KBMissing, KBToolsError
from kbtools.user_cache import VARIABLE, own_cache

if TYPE_CHECKING:
    from kbtools.answering.answerer import Answerer
    from kbtools.answering.records import UpdateResult

_Rows = str | Path | Iterable[Any]
"""A path, several paths, a data frame (pandas, polars, Arrow), or rows as tuples or dictionaries."""

_SAMPLE = "sample"
"""The name of the knowledge base that comes with kbtools."""

_UPDATES = {
    "embedded": "kbtools.indexers.updates.given_changes",
    "elasticsearch": "kbtools.indexers.elastic.cluster_updates",
}
"""The module that updates the knowledge bases of each backend."""

_ARGUMENTS = {
    "--max-bad": "max_bad",
    "--list-separator": "list_separator",
    "--lang": "language",
    "--column": "columns",
    "--id": "columns",
} | {
    f"--{name}": name
    for name in "facts names types relations redirects rdf table wikidata out memory jobs encoding sheet query".split()
}
"""The Python arguments of command line options."""

_OPTION = re.compile(rf"({'|'.join(_ARGUMENTS)})(?![a-z-])")
_COLUMN = re.compile(r"--column (\w+)=(\S+)")


def index(
    *,
    out: str | Path,
    facts: _Rows = (),
    names: _Rows = (),
    aliases: _Rows = (),
    types: _Rows = (),
    descriptions: _Rows = (),
    relations: _Rows = (),
    redirects: _Rows = (),
    counts: _Rows = (),
    rdf: _Rows = (),
    table: _Rows = (),
    wikidata: _Rows = (),
    language: str | None = None,
    columns: Mapping[str, str] | None = None,
    list_separator: str | None = None,
    encoding: str = "",
    sheet: str = "",
    query: str = "",
    max_bad: float = 0.001,
    memory: str = "1GB",
    jobs: int | None = None,
    force: bool = False,
) -> "Answerer":
    """Build a knowledge base in the folder `out`, as `kbtools index` does from files, and open it; rows are streamed.

    Rows are (subject, relation, object), (id, name), (id, alias), (id, type), (id, description), (relation, name),
    (old, new), and for counts (name, id, count) or (id, count). `table` has a row per entity, and `columns` names
    columns that are not recognised: `{"id": "company", "name": "title"}`. `sheet`, `query` and `encoding` apply to
    spreadsheets, databases and text files. `jobs` is the number of processes and threads, by default one per core. Does
    nothing if the folder already has the same content, unless `force` is set. Raises BadArgument for rows of another
    shape, InputError and BuildError.
    """
    if not isinstance(out, str | os.PathLike):
        raise BadArgument(f"out is a str or a Path, found {out!r}", name="out")
    given = {
        "facts": facts, "names": names, "aliases": aliases, "types": types, "descriptions": descriptions,
        "relations": relations, "redirects": redirects, "counts": counts, "rdf": rdf, "table": table,
        "wikidata": wikidata,
    }  # fmt: skip
    # Imported by name, since this package must not depend on storage.
    index_given = import_module("kbtools.indexers.building.given_rows").index_given
    options: dict[str, Any] = {"language": language, "columns": columns or {}, "list_separator": list_separator}
    options |= {"encoding": encoding, "sheet": sheet, "query": query, "max_bad": max_bad, "jobs": jobs}
    try:
        index_given(given, Path(out), **options, memory=memory, force=force)
    except KBToolsError as error:
        raise _in_python(error) from error.__cause__
    answerer: Answerer = import_module("kbtools.answering.answerer").open_kb(out)
    return answerer


def is_sample(path: str | Path) -> bool:
    """Return whether a path is the name of the sample knowledge base and no such folder exists."""
    return str(path) == _SAMPLE and not Path(path).exists()


def find_kb(path: str | Path) -> Path:
    """Return the folder of a knowledge base; `sample` is the one that comes with kbtools, unless such a folder exists.

    The sample is indexed in the user's cache on first use. Raises KBMissing if there is no cache.
    """
    if not is_sample(path):
        return Path(path)
    cache = own_cache("sample")
    if cache is None:
        raise KBMissing.at(path, f"no folder to index it in; name one in {VARIABLE}")
    (files,) = import_module("kbtools.examples").__path__
    folder = cache / f"{_SAMPLE}.kb"
    try:
        facts, names, types = (Path(files, f"sample.{kind}.txt") for kind in ("facts", "names", "types"))
        index(out=folder, facts=facts, names=names, types=types)
    except BuildLocked:  # another process is building the same content
        if not folder.is_dir():
            raise
    return folder


def _in_python(error: KBToolsError) -> KBToolsError:
    """Return an error whose message names Python arguments instead of command line options."""
    message = _COLUMN.sub(r"columns={'\1': '\2'}", str(error))
    return type(error)(_OPTION.sub(lambda option: _ARGUMENTS[option[1]], message), **error.facts)


def _updates_of(backend: str) -> ModuleType:
    """Import the module that updates knowledge bases of a backend; raise BadArgument if there is none."""
    if backend not in _UPDATES:
        known = " and ".join(_UPDATES)
        raise BadArgument(
            f"backend {backend!r}: its knowledge bases cannot be updated; those of {known} are", name="backend"
        )
    return import_module(_UPDATES[backend])


def update(
    kb: str | Path,
    *,
    add: _Rows = (),
    remove: _Rows = (),
    facts: _Rows = (),
    names: _Rows = (),
    aliases: _Rows = (),
    types: _Rows = (),
    descriptions: _Rows = (),
    relations: _Rows = (),
    redirects: _Rows = (),
    rdf: _Rows = (),
    table: _Rows = (),
    wikidata: _Rows = (),
    remove_facts: _Rows = (),
    remove_names: _Rows = (),
    remove_types: _Rows = (),
    language: str | None = None,
    columns: Mapping[str, str] | None = None,
    list_separator: str | None = None,
    encoding: str = "",
    sheet: str = "",
    query: str = "",
    max_bad: float = 0.001,
    backend: str = "embedded",
) -> "UpdateResult":
    """Update the knowledge base `kb`, as `kbtools update` does from files; open it again to see the changes.

    With the backend `elasticsearch`, `kb` is a name on the cluster in the environment, otherwise a folder.

    `add` takes records of changes as dictionaries, or files of them; `remove` takes ids of entities, or a file of them
    as a `Path`. The others are rows as in `index`. Raises BadArgument for anything else, InputError, BuildError.
    """
    given = {  # in the order in which changes are made
        "remove": remove, "remove_facts": remove_facts, "remove_names": remove_names, "remove_types": remove_types,
        "redirects": redirects, "add": add, "facts": facts, "names": names, "aliases": aliases, "types": types,
        "descriptions": descriptions, "rdf": rdf, "table": table, "wikidata": wikidata, "relations": relations,
    }  # fmt: skip
    update_given, given_sources = _updates_of(backend).update_given, _updates_of("embedded").given_sources
    options: dict[str, Any] = {"language": language, "columns": columns or {}, "list_separator": list_separator}
    options |= {"encoding": encoding, "sheet": sheet, "query": query, "max_bad": max_bad}
    try:
        with given_sources(given, **options) as (sources, reading):
            result: UpdateResult = update_given(kb, sources, options=reading)
    except KBToolsError as error:
        raise _in_python(error) from error.__cause__
    return result


def compact(kb: str | Path, *, memory: str = "1GB", backend: str = "embedded") -> None:
    """Merge the updates of the knowledge base in the folder `kb`, if it has any.

    With the backend `elasticsearch`, deleted data is removed from the cluster's disks.
    """
    _updates_of(backend).compact_given(kb, memory=memory)
