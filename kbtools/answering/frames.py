"""Results as tables: pandas data frames or Arrow tables."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

from kbtools.answering.records import Entity, EntityMatch, Facts, LinkedText, LookupResult
from kbtools.answering.results import Record, Result
from kbtools.errors import BadArgument, MissingDependency
from kbtools.kb.ids import literal_text

_TEXT, _NUMBER, _WHOLE, _FLAG, _TEXTS = "string", "float64", "int64", "bool", "list"
"""Kinds of columns."""

_KINDS = {
    "inverse": _FLAG, "score": _NUMBER, "similarity": _NUMBER, "prior": _NUMBER,
    **dict.fromkeys(("place", "start", "end", "facts_out", "facts_in"), _WHOLE),
    **dict.fromkeys(("answers", "answer_names", "types", "type_names", "aliases"), _TEXTS),
}  # fmt: skip
"""The kind of each column that is not a single text."""

_MATCH = ("id", "name", "matched_name", "rung", "similarity", "prior")

_Cells = dict[str, Any]


def _rows_of_result(result: Result) -> Iterator[_Cells]:
    for place, candidate in enumerate(result.candidates, 1):
        mention = candidate.mention
        yield {
            "question": result.question, "place": place, "subject": candidate.subject,
            "subject_name": candidate.subject_name, "relation": candidate.relation,
            "relation_name": candidate.relation_name,
            "inverse": candidate.inverse, "score": candidate.score,
            "mention": mention.text, "start": mention.start, "end": mention.end,
            "matched_name": candidate.matched_name, "rung": candidate.rung,
            "answers": [literal_text(answer.id) for answer in result.answers] if place == 1 else [],
            "answer_names": [str(answer) for answer in result.answers] if place == 1 else [],
        }  # fmt: skip
    if not result.candidates:
        yield {"question": result.question, "answers": [], "answer_names": []}


def _rows_of_lookup(result: LookupResult) -> Iterator[_Cells]:
    for place, match in enumerate(result.matches, 1):
        cells = {column: getattr(match, column) for column in (*_MATCH, "score")}
        yield {"text": result.text, "place": place, **cells, **_types_of(match)}
    if not result.matches:
        yield {"text": result.text, "types": [], "type_names": []}


def _rows_of_link(linked: LinkedText) -> Iterator[_Cells]:
    for mention in linked.mentions:
        for place, candidate in enumerate(mention.candidates, 1):
            cells = {column: getattr(candidate, column) for column in _MATCH}
            yield {
                "text": linked.text, "mention": mention.text, "start": mention.start, "end": mention.end,
                "score": mention.score, "place": place, **cells,
            }  # fmt: skip
    if not linked.mentions:
        yield {"text": linked.text}


def _rows_of_facts(facts: Facts) -> Iterator[_Cells]:
    for fact in facts.facts:
        yield {
            f"{part}{suffix}": text
            for part in ("subject", "relation", "object")
            for suffix, text in (("", literal_text(getattr(fact, part).id)), ("_name", getattr(fact, part).name))
        }


def _rows_of_entity(entity: Entity) -> Iterator[_Cells]:
    cells = {
        column: getattr(entity, column) for column in ("id", "name", "description", "facts_out", "facts_in", "prior")
    }
    yield {**cells, "aliases": list(entity.aliases), **_types_of(entity)}


def _types_of(record: EntityMatch | Entity) -> _Cells:
    """Return the ids of the types, and their names or else their ids."""
    return {"types": [kind.id for kind in record.types], "type_names": [str(kind) for kind in record.types]}


_TABLES: dict[type[Result | Record], tuple[Callable[[Any], Iterator[_Cells]], Sequence[str]]] = {
    Result: (
        _rows_of_result,
        "question place subject subject_name relation relation_name inverse score mention start end matched_name rung "
        "answers answer_names".split(),
    ),
    LookupResult: (_rows_of_lookup, ("text", "place", *_MATCH, "score", "types", "type_names")),
    LinkedText: (_rows_of_link, ("text", "mention", "start", "end", "score", "place", *_MATCH)),
    Facts: (_rows_of_facts, "subject subject_name relation relation_name object object_name".split()),
    Entity: (
        _rows_of_entity,
        "id name description facts_out facts_in prior aliases types type_names".split(),
    ),
}
"""The function that writes the rows of each record, and the columns of its table."""


def to_frame(results: Result | Record | Iterable[Result | Record]) -> Any:
    """Return results of one kind as a data frame, with a row for each candidate, match, fact or entity.

    A question, name or text without any keeps one row without values. Raises MissingDependency without pandas, and
    BadArgument for records of several kinds, or of a kind without a table.
    """
    pandas = load("pandas")
    columns, kinds = gather_columns(results)
    dtypes = {_TEXT: object, _TEXTS: object, _NUMBER: "float64", _WHOLE: "Int64", _FLAG: "boolean"}
    return pandas.DataFrame(
        {name: pandas.Series(values, dtype=dtypes[kinds[name]]) for name, values in columns.items()}
    )


def to_arrow(results: Result | Record | Iterable[Result | Record]) -> Any:
    """Return results of one kind as an Arrow table, as `to_frame` does."""
    arrow = load("pyarrow")
    columns, kinds = gather_columns(results)
    types = {
        _TEXT: arrow.string(), _TEXTS: arrow.list_(arrow.string()), _NUMBER: arrow.float64(), _WHOLE: arrow.int64(),
        _FLAG: arrow.bool_(),
    }  # fmt: skip
    return arrow.table({name: arrow.array(values, types[kinds[name]]) for name, values in columns.items()})


def gather_columns(results: Result | Record | Iterable[Result | Record]) -> tuple[dict[str, list[Any]], dict[str, str]]:
    """Return the columns of results of one kind, and the kind of each column."""
    several: list[Any] = [results]
    if isinstance(results, Iterable) and not isinstance(results, Result | Record):
        several = list(results)
    result_kinds = {type(result) for result in several}
    if len(result_kinds) > 1 or not result_kinds <= _TABLES.keys():
        given = ", ".join(sorted(kind.__name__ for kind in result_kinds))
        expected = ", ".join(kind.__name__ for kind in _TABLES)
        raise BadArgument(f"a table takes results of one kind ({expected}), found {given}", name="results")
    if not several:
        return {}, {}
    rows_of, names = _TABLES[result_kinds.pop()]
    rows = [row for result in several for row in rows_of(result)]
    columns = {column: [row.get(column) for row in rows] for column in names}
    return columns, {column: _KINDS.get(column, _TEXT) for column in names}


def load(module: str) -> ModuleType:
    """Import a library for tables; raise MissingDependency if it is not installed."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise MissingDependency(f"tables need {module}; install it with pip install {module}", module=module) from error
