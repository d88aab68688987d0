"""Reconciliation of a table: each row gets the entity named in a cell, judged as the server judges a query."""

import codecs
import csv
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

from kbtools.answering.answerer import Answerer
from kbtools.answering.questions import find_relations
from kbtools.errors import BadArgument
from kbtools.indexers.readers.entity_columns import find_head
from kbtools.indexers.readers.plain_tables import BETWEEN, PlainTable
from kbtools.serve.extension import extend
from kbtools.serve.live_kb import Edition
from kbtools.serve.matching import reconcile
from kbtools.serve.reconciliation_queries import ExtensionProperty, ExtensionQuery, PropertyValue, ReconciliationQuery
from kbtools.serve.vocabulary import Vocabulary
from kbtools.storage import new_file
from kbtools.text.printable import plural, spreadsheet_cell

_COMPARED = 2
"""Candidates per row: the first, and one that may tie with it."""

AT_ONCE = 100
"""Rows extended in one look-up."""

JUDGED = 50_000
"""Distinct rows whose judgement is cached, some 400 bytes each: tables repeat their names."""

_SUFFIXES = {".csv": ",", ".tsv": "\t", ".jsonl": ""}
"""The output formats, with the separator of each."""


@dataclass(frozen=True, slots=True)
class _Judgement:
    """The first candidate of a row, if any, and its judgement."""

    outcome: str
    id: str = ""
    name: str = ""
    score: float | None = None

    @property
    def match(self) -> bool:
        return self.outcome == "matched"


@dataclass(frozen=True, slots=True)
class TableQuery:
    """The columns of a table to reconcile, and the values its rows are compared with.

    `properties` maps columns to the relations that should have their values. From the score `threshold` on, 0 to 100,
    an uncertain first candidate is a match too. A tie is never a match.
    """

    column: str
    types: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    extend: tuple[str, ...] = ()
    threshold: float | None = None


_OUTCOMES = {
    "tied": "tied",
    "doubtful": "with a candidate that is not certain",
    "unknown": "without a candidate",
    "empty": "empty",
}
"""The outcomes of rows without a match, in words."""


@dataclass(slots=True)
class _TableSummary:
    """The number of rows by outcome: matched, or one of OUTCOMES."""

    counts: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        rows, matched = self.counts.total(), self.counts["matched"]
        others = [f"{self.counts[outcome]:,} {words}" for outcome, words in _OUTCOMES.items() if self.counts[outcome]]
        return ", ".join([f"{plural(rows, 'row')}: {matched:,} matched ({matched / max(rows, 1):.0%})", *others])


def reconcile_table(
    answerer: Answerer, table: PlainTable, query: TableQuery, out: Path, *, count: Callable[[], None] = lambda: None
) -> _TableSummary:
    """Write a table with the entity of each row to a file; `count` is called after each row.

    The file appears complete at the end. Raises UnknownType for a type that no entity has, BadArgument for an unknown
    column or relation, and for a file format other than .csv, .tsv and .jsonl.
    """
    if out.suffix.lower() not in _SUFFIXES:
        known = ", ".join(_SUFFIXES)
        raise BadArgument(f"{out}: the output is written as {known}; name it with one of these suffixes", name="out")
    edition, summary = Edition(answerer), _TableSummary()
    query = replace(query, types=tuple(answerer.kb.types[answerer.reader.type_row(kind)] for kind in query.types))
    column = _place_of(table, query.column)
    properties = {
        _place_of(table, head): _relation_of(edition.vocabulary, name) for head, name in query.properties.items()
    }
    extended = [_relation_of(edition.vocabulary, name) for name in query.extend]
    heads = [_head_of(part, table.header) for part in ("id", "name", "score", "match", *query.extend)]
    relations = tuple(properties.values())

    @lru_cache(JUDGED)
    def judge(text: str, *values: str) -> _Judgement:
        return _judge(edition, query, text, zip(relations, values, strict=True))

    out.parent.mkdir(parents=True, exist_ok=True)
    with new_file(out) as file:
        write = _row_writer(file, out.suffix.lower(), [*table.header, *heads])
        for rows in table.batches(AT_ONCE):
            judgements = []
            for row in rows:
                judgements.append(judge(*(row[place] for place in (column, *properties))))
                summary.counts[judgements[-1].outcome] += 1
                count()
            cells = _extended_cells(edition, [entity.id for entity in judgements if entity.match], extended)
            for row, entity in zip(rows, judgements, strict=True):
                more = cells.get(entity.id, {}) if entity.match else {}
                added = [entity.id, entity.name, entity.score, entity.match]
                write(row, [*added, *(more.get(relation, "") for relation in extended)])
    return summary


def _judge(edition: Edition, query: TableQuery, text: str, values: Iterable[tuple[str, str]]) -> _Judgement:
    """Reconcile a row by its name and its values of relations."""
    if not text:
        return _Judgement("empty")
    properties = [
        PropertyValue(relation=relation, raw=[*parts])
        for relation, cell in values
        if (parts := list(filter(None, re.split(r"\s*[;|]\s*", cell))))
    ]
    request = ReconciliationQuery(text=text, types=list(query.types), limit=_COMPARED, properties=properties)
    candidates = reconcile(edition, request)
    if not candidates:
        return _Judgement("unknown")
    first, *others = candidates
    tied = bool(others) and others[0]["score"] >= first["score"]
    likely = query.threshold is not None and first["score"] >= query.threshold
    outcome = "tied" if tied else "matched" if first["match"] or likely else "doubtful"
    return _Judgement(outcome, first["id"], first["name"], first["score"])


def _extended_cells(edition: Edition, ids: Sequence[str], relations: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return the values of relations of some entities, as text."""
    if not ids or not relations:
        return {}
    request = ExtensionQuery(ids=list(ids), properties=[ExtensionProperty(relation=name) for name in relations])
    return {
        entity_id: {
            relation: BETWEEN.join(value.get("name") or value["str"] for value in values)
            for relation, values in cells.items()
        }
        for entity_id, cells in extend(edition, request)["rows"].items()
    }


def _row_writer(file: BinaryIO, suffix: str, header: Sequence[str]) -> Callable[[Sequence[Any], Sequence[Any]], None]:
    """Return a function that writes a row and the cells added to it under a header, in the format of a suffix."""
    text = codecs.getwriter("utf-8")(file, "replace")
    if suffix == ".jsonl":
        return lambda row, added: text.write(
            json.dumps(dict(zip(header, [*row, *added], strict=True)), ensure_ascii=False) + "\n"
        )
    writer = csv.writer(text, delimiter=_SUFFIXES[suffix], lineterminator="\n")
    writer.writerow(header)
    return lambda row, added: writer.writerow([*row, *map(_added_cell, added)])


def _added_cell(value: object) -> object:
    """Return a value as a cell of CSV, which no spreadsheet runs as a formula."""
    return str(value).lower() if isinstance(value, bool) else spreadsheet_cell(value)


def _place_of(table: PlainTable, head: str) -> int:
    """Return the place of a column; raise BadArgument if it does not exist."""
    if column := find_head(head, table.header):
        return table.header.index(column)
    raise BadArgument(f"no column {head!r}; the columns are {', '.join(map(repr, table.header))}", name="column")


def _head_of(part: str, columns: Sequence[str]) -> str:
    """Return the head of a new column, distinct from those of the table."""
    while part in columns:
        part = f"kb_{part}"
    return part


def _relation_of(vocabulary: Vocabulary, text: str) -> str:
    """Return the relation with an id or name; raise BadArgument if there is none, or several."""
    relations = find_relations(vocabulary.kb, text)
    if len(relations) == 1:
        return relations[0]
    near = relations or vocabulary.find_relations(text) or vocabulary.find_relations("")
    reason = "several relations are called" if relations else "no relation"
    raise BadArgument(f"{reason} {text!r}; there are {', '.join(map(repr, near[:5]))}", name="property")
