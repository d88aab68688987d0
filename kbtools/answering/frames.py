"""Results as tables: data frames of pandas, or Arrow tables."""

from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from types import ModuleType
from typing import Any

from kbtools.answering.records import Entity, EntityMatch, Facts, LinkedText, LookupResult
from kbtools.answering.results import Record, Result
from kbtools.errors import BadArgument, MissingDependency
from kbtools.kb.ids import literal_text

TEXT, NUMBER, WHOLE, FLAG, TEXTS = "string", "float64", "int64", "bool", "list"
"""Kinds of columns."""

MATCH = {"id": TEXT, "name": TEXT, "matched_name": TEXT, "rung": TEXT, "similarity": NUMBER, "prior": NUMBER}

Cells = dict[str, Any]


def rows_of_result(result: Result) -> Iterator[Cells]:
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


def rows_of_lookup(result: LookupResult) -> Iterator[Cells]:
    for place, match in enumerate(result.matches, 1):
        cells = {column: getattr(match, column) for column in (*MATCH, "score")}
        yield {"text": result.text, "place": place, **cells, **types_of(match)}
    if not result.matches:
        yield {"text": result.text, "types": [], "type_names": []}


def rows_of_link(linked: LinkedText) -> Iterator[Cells]:
    for mention in linked.mentions:
        for place, candidate in enumerate(mention.candidates, 1):
            cells = {column: getattr(candidate, column) for column in MATCH}
            yield {
                "text": linked.text, "mention": mention.text, "start": mention.start, "end": mention.end,
                "score": mention.score, "place": place, **cells,
            }  # fmt: skip
    if not linked.mentions:
        yield {"text": linked.text}


def rows_of_facts(facts: Facts) -> Iterator[Cells]:
    for fact in facts.facts:
        yield {
            f"{part}{suffix}": text
            for part in ("subject", "relation", "object")
            for suffix, text in (("", literal_text(getattr(fact, part).id)), ("_name", getattr(fact, part).name))
        }


def rows_of_entity(entity: Entity) -> Iterator[Cells]:
    cells = {
        column: getattr(entity, column) for column in ("id", "name", "description", "facts_out", "facts_in", "prior")
    }
    yield {**cells, "aliases": list(entity.aliases), **types_of(entity)}


def types_of(record: EntityMatch | Entity) -> Cells:
    """Return the cells of the types: the ids, and beside them the names, an id where a type has none."""
    return {"types": [kind.id for kind in record.types], "type_names": [str(kind) for kind in record.types]}


TABLES: dict[type[Result | Record], tuple[Callable[[Any], Iterator[Cells]], dict[str, str]]] = {
    Result: (
        rows_of_result,
        {
            "question": TEXT, "place": WHOLE, "subject": TEXT, "subject_name": TEXT, "relation": TEXT,
            "relation_name": TEXT, "inverse": FLAG,
            "score": NUMBER, "mention": TEXT, "start": WHOLE, "end": WHOLE, "matched_name": TEXT,
            "rung": TEXT, "answers": TEXTS, "answer_names": TEXTS,
        },
    ),
    LookupResult: (
        rows_of_lookup,
        {"text": TEXT, "place": WHOLE, **MATCH, "score": NUMBER, "types": TEXTS, "type_names": TEXTS},
    ),
    LinkedText: (
        rows_of_link,
        {"text": TEXT, "mention": TEXT, "start": WHOLE, "end": WHOLE, "score": NUMBER, "place": WHOLE, **MATCH},
    ),
    Facts: (
        rows_of_facts,
        {f"{part}{suffix}": TEXT for part in ("subject", "relation", "object") for suffix in ("", "_name")},
    ),
    Entity: (
        rows_of_entity,
        {
            "id": TEXT, "name": TEXT, "description": TEXT, "facts_out": WHOLE, "facts_in": WHOLE, "prior": NUMBER,
            "aliases": TEXTS, "types": TEXTS, "type_names": TEXTS,
        },
    ),
}  # fmt: skip
"""Of each record how its rows are written, and the columns of its table."""


def to_frame(results: Result | Record | Iterable[Result | Record]) -> Any:
    """Lay results of one kind out as a data frame: a row for each candidate, match, fact or entity.

    A question, name or text for which nothing was found keeps a row without values. Raises MissingDependency without
    pandas, BadArgument for records of several kinds, or without a table.
    """
    pandas = load("pandas")
    columns, kinds = gather_columns(results)
    dtypes = {TEXT: object, TEXTS: object, NUMBER: "float64", WHOLE: "Int64", FLAG: "boolean"}
    return pandas.DataFrame(
        {name: pandas.Series(values, dtype=dtypes[kinds[name]]) for name, values in columns.items()}
    )


def to_arrow(results: Result | Record | Iterable[Result | Record]) -> Any:
    """Lay results of one kind out as an Arrow table, as `to_frame` does."""
    arrow = load("pyarrow")
    columns, kinds = gather_columns(results)
    types = {
        TEXT: arrow.string(), TEXTS: arrow.list_(arrow.string()), NUMBER: arrow.float64(), WHOLE: arrow.int64(),
        FLAG: arrow.bool_(),
    }  # fmt: skip
    return arrow.table({name: arrow.array(values, types[kinds[name]]) for name, values in columns.items()})


def gather_columns(
    results: Result | Record | Iterable[Result | Record],
) -> tuple[dict[str, list[Any]], dict[str, str]]:
    """Write results out in the columns of their kind; give the kind of each column too."""
    several: list[Any] = [results]
    if isinstance(results, Iterable) and not isinstance(results, Result | Record):
        several = list(results)
    result_kinds = {type(result) for result in several}
    if len(result_kinds) > 1 or not result_kinds <= TABLES.keys():
        names = ", ".join(sorted(kind.__name__ for kind in result_kinds))
        expected = ", ".join(kind.__name__ for kind in TABLES)
        raise BadArgument(f"a table is of results of one kind ({expected}), found {names}", name="results")
    if not several:
        return {}, {}
    rows_of, kinds = TABLES[result_kinds.pop()]
    rows = [row for result in several for row in rows_of(result)]
    return {column: [row.get(column) for row in rows] for column in kinds}, kinds


def load(module: str) -> ModuleType:
    """Import what makes tables; raise MissingDependency where it is not there."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise MissingDependency(f"tables need {module}; install it with pip install {module}", module=module) from error
