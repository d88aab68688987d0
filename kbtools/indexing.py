"""Building a knowledge base from Python: of files, data frames or rows."""

from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kbtools.answering import Answerer

Rows = str | Path | Iterable[Any]
"""A path, several, a data frame (pandas, polars, Arrow), or rows as tuples or dictionaries."""


def index(
    *,
    out: str | Path,
    facts: Rows = (),
    names: Rows = (),
    aliases: Rows = (),
    types: Rows = (),
    relations: Rows = (),
    redirects: Rows = (),
    counts: Rows = (),
    rdf: Rows = (),
    language: str | None = None,
    columns: Mapping[str, str] | None = None,
    list_separator: str | None = None,
    max_bad: float = 0.001,
    memory: str = "1GB",
    force: bool = False,
) -> "Answerer":
    """Build a knowledge base in the folder `out` and open it, as `kbtools index` does with files; rows are streamed.

    Rows are (subject, relation, object), (id, name), (id, alias), (id, type), (relation, name), (old, new), and for
    counts (name, id, count) or (id, count). Nothing is done where the folder holds the same content already, unless
    forced. Raises BadArgument for rows of another shape, InputError and BuildError.
    """
    given = {
        "facts": facts,
        "names": names,
        "aliases": aliases,
        "types": types,
        "relations": relations,
        "redirects": redirects,
        "counts": counts,
        "any": rdf,
    }
    # By name: this package knows of no storage, it is reached as a plugin is.
    import_module("kbtools.indexers.given_rows").index_given(
        given,
        Path(out),
        language=language,
        columns=columns or {},
        list_separator=list_separator,
        max_bad=max_bad,
        memory=memory,
        force=force,
    )
    answerer: Answerer = import_module("kbtools.answering").open_kb(out)
    return answerer
