"""Columns of a table and what they hold: found by their heads, taken row by row."""

import shlex
from ast import literal_eval
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, product
from math import isfinite, prod

from kbtools.errors import WrongFormat
from kbtools.indexers.readers.batches import ALIAS, Kind, Rows, flaw
from kbtools.indexers.readers.labels import Languages
from kbtools.indexers.readers.reading import ReadOptions, Source
from kbtools.indexers.readers.skips import Skips
from kbtools.kb.ids import canonical_id, canonical_property
from kbtools.kb.table_heads import SUFFIX, USUAL

COLUMNS: dict[Kind, tuple[str, ...]] = {
    "facts": ("subject", "relation", "object"),
    "names": ("entity", "language", "name", "description", "alias"),
    "types": ("entity", "type"),
    "relations": ("relation", "name"),
    "redirects": ("old", "new"),
}
SAYING = ("name", "alias", "description")
OPTIONAL = TEXTS = {"language", *SAYING}
PROPERTIES = {"relation": "subject", "type": "entity"}
"""Columns of relations and types, and the column of ids beside them."""

MOST_ROWS = 100_000
"""Rows of one line with several lists, unless each of its values makes one: 20 KB can hold three lists of 1,000."""


class TableColumns:
    """The columns that one table has for its kind: which heads they stand under, and their values as rows."""

    def __init__(self, source: Source, options: ReadOptions, skips: Skips) -> None:
        if source.kind == "any":
            suffix = source.path.suffix.lower().strip(".")
            raise WrongFormat(f"{source.path}: --rdf takes RDF, found {suffix}", path=str(source.path))
        self.path = str(source.path)
        self.kind: Kind = source.kind
        self.options = options
        self.skips = skips
        self.names = COLUMNS[source.kind]
        self.lists_noted = options.list_separator is not None
        self.languages = Languages.read(options.language)
        self.other_language = f"name in another language than {options.language!r}"

    def heads(self, header: Iterable[str]) -> dict[str, list[str]]:
        """Find the heads of each column, the first to be preferred: the caller's, else the usual ones."""
        by_fold: dict[str, list[str]] = {}
        for head in header:
            by_fold.setdefault(head.casefold(), []).append(head)
        # `subject_id` stands for a column where nothing is called `subject`.
        for head in header:
            by_fold.setdefault(SUFFIX.sub("", head.casefold()), [head])
        usual = {name: chain.from_iterable(by_fold.get(head, ()) for head in self.usual(name)) for name in self.names}
        return {
            name: [head for head in header if head == self.options.columns[name]]
            if name in self.options.columns
            else list(usual[name])
            for name in self.names
        }

    def usual(self, name: str) -> tuple[str, ...]:
        """List the usual heads of a column; a file of relations calls its ids so too."""
        return (*USUAL[name], "id") if self.kind == "relations" and name == "relation" else USUAL[name]

    def missing(self, heads: Mapping[str, Sequence[str]]) -> list[str]:
        """Name the columns that the kind needs, or the caller named, and that have no head."""
        columns = self.options.columns
        missing = [name for name in self.names if not heads[name] and (name not in OPTIONAL or name in columns)]
        return missing or ([] if any(heads.get(name) for name in OPTIONAL) or "name" not in heads else ["name"])

    def check_header(self, header: Sequence[str], number: int, *, advice: str = "") -> dict[str, str]:
        """Give the head of each column; refuse a header that lacks one, or has one of them twice."""
        heads = self.heads(header)
        if missing := self.missing(heads):
            raise self.unfit(number, missing, f"the header {list(header)!r}", advice)
        for name, options in heads.items():
            twice = [head for head in options if head.casefold() == options[0].casefold()]
            if len(twice) > 1:
                raise WrongFormat(
                    f"{self.path}:{number}: found {len(twice)} columns {twice[0]!r}, expected one for {name}; "
                    "rename the others in the header",
                    path=self.path,
                    line=number,
                )
        columns = {name: options[0] for name, options in heads.items() if options}
        self.note_unused([head for head in header if head not in columns.values()], number)
        return columns

    def unfit(self, number: int, missing: Sequence[str], header: str, advice: str = "") -> WrongFormat:
        """Say which columns a header lacks, and which of them the caller named."""
        named = self.options.columns.get(missing[0])
        option = f" (--column {missing[0]}={named} was given, and there is no {named!r})" if named else ""
        return WrongFormat(
            f"{self.path}:{number}: {header} has no column for {', '.join(missing)}; "
            f"name it with --column {missing[0]}=HEADER{option}{advice}",
            path=self.path,
            line=number,
            missing=list(missing),
        )

    def note_unused(self, unused: Sequence[str], number: int) -> None:
        """Name the columns that are not used, and how they would be."""
        if unused:
            names = ", ".join(map(repr, unused[:10])) + (", ..." if len(unused) > 10 else "")
            # What pandas calls `Unnamed: 0`, or writes no head above, is its index: nothing to take.
            named = [head for head in unused if head.strip() and not head.startswith("Unnamed: ")]
            advice = f"; --column {shlex.quote(f'{self.names[-1]}={named[0]}')} takes one" if named else ""
            self.skips.note(f"columns not used: {names}{advice}", line=number)

    def keep(self, cells: Mapping[str, object], number: int, line: str, rows: Rows) -> None:
        """Turn the cells of a row into rows of its kind, or count why not."""
        columns: dict[str, list[str]] = {}
        for name in self.names:
            values = self.values(name, cells.get(name))
            if values is None:
                self.skips.add(f"neither text nor number under {name}", line=number, text=line)
                return
            columns[name] = self.spell(name, values, columns)
        fault = self.fault(columns)
        if fault:
            self.skips.add(fault, line=number, text=line)
        elif self.kind == "names":
            self.keep_names(columns, number, line, rows)
        else:
            list_of_kind: list[tuple[str, ...]] = getattr(rows, self.kind)
            list_of_kind.extend(product(*columns.values()))

    def keep_names(self, columns: Mapping[str, list[str]], number: int, line: str, rows: Rows) -> None:
        """Keep the names of a row in each of its languages that is wanted; without one they are of the first."""
        for tag in columns["language"] or [""]:
            rank = self.languages.rank(tag)
            if rank is None:
                self.skips.add(self.other_language, line=number, text=line, bad=False)
                continue
            rows.names.extend(product(columns["entity"], [rank], columns["name"], [tag.lower()]))
            rows.names.extend(product(columns["entity"], [ALIAS], columns["alias"], [tag.lower()]))
            rows.descriptions.extend(product(columns["entity"], [rank], columns["description"]))

    def values(self, name: str, cell: object) -> list[str] | None:
        """Read a cell as strings, several from a list; nothing if it holds what is neither text nor number."""
        cells = [value for value in (cell if isinstance(cell, list) else [cell]) if value is not None]
        texts: list[str] = []
        for value in cells:
            if isinstance(value, str):
                texts.extend(self.divide(name, value))
            elif (text := plain_text(value)) is None:
                return None
            else:
                texts.append(text)
        return [text for text in map(str.strip, texts) if text]

    def divide(self, name: str, text: str) -> list[str]:
        """Take a cell with a list apart, if lists were announced: `["a", "b"]`, or parts with the separator between."""
        separator = self.options.list_separator
        if separator is None or name == "description":
            return [text]
        if text.strip().startswith("[") and text.strip().endswith("]"):
            try:
                # As pandas writes a list into a cell; nothing is run.
                values = literal_eval(text.strip())
            except (ValueError, SyntaxError, MemoryError, RecursionError):
                values = None
            if isinstance(values, list) and all(isinstance(value, str | int | float) for value in values):
                return list(map(str, values))
        # Spaces stand between the words of a name, whatever else they divide.
        return [text] if name in TEXTS and self.options.divides_words else text.split(separator)

    def spell(self, name: str, values: list[str], columns: Mapping[str, list[str]]) -> list[str]:
        """Give ids their canonical form."""
        if name in TEXTS:
            return values
        if name in PROPERTIES:
            beside = next(iter(columns.get(PROPERTIES[name], ())), "")
            return [canonical_property(value, beside=beside) for value in values]
        return [canonical_id(value) for value in values]

    def fault(self, columns: dict[str, list[str]]) -> str:
        """Name what makes a record unusable."""
        lacking = [name for name, values in columns.items() if name not in OPTIONAL and not all(values or [""])]
        if "name" in columns and not any(columns.get(name) for name in OPTIONAL):
            lacking.append("name")
        if lacking:
            return f"nothing under {', '.join(lacking)}"
        counts = {name: len(values) for name, values in columns.items()}
        total = sum(counts.values())
        # Each text stands in a row of its own: their numbers add up, where those of other columns multiply.
        counts["name"] = counts.get("name", 1) + counts.pop("alias", 0) + counts.pop("description", 0)
        if prod(counts.values()) > max(MOST_ROWS, total):
            return f"lists that make {prod(counts.values()):,} rows, more than {MOST_ROWS:,}"
        return flaw(*chain.from_iterable(columns.values()))


def plain_text(value: object) -> str | None:
    """Give text as it is and a number as text; nothing for a truth value, an object, or what is no number."""
    if isinstance(value, str):
        return value
    # True is an int to Python, and would be read as 1.
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
    return str(value) if is_number else None
