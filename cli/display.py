"""Output that is safe on any terminal: names, paths and errors cannot send commands, break lines or reverse text."""

import csv
import io
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click

from kbtools.kb.ids import is_literal, literal_text
from kbtools.text.printable import UNPRINTABLE, spreadsheet_cell, visible


def echo(*lines: str, err: bool = False) -> None:
    """Print lines for people; line breaks inside one are escaped like other control characters."""
    for line in lines:
        click.echo(visible(line), err=err)


def named(entity_id: str, name: str | None) -> str:
    """Return the name of an entity followed by its id; for a value, only its text."""
    if is_literal(entity_id):
        return literal_text(entity_id)
    return f"{name or '(no name)'} ({entity_id})"


def overwrite(line: str, *, last: bool) -> None:
    """Print a line of progress on standard error over the previous one; the last one stays."""
    click.echo(f"\r{visible(line)}\033[K", err=True, nl=last)


@contextmanager
def counted(name: str, total: Callable[[], int], *, beside_output: bool) -> Iterator[Callable[[], None]]:
    """Yield a function that counts one more of `total`, shown as a bar on standard error if that is a terminal.

    With `beside_output`, standard output is printed at the same time, and a bar on the same terminal would disturb it.
    """
    if not sys.stderr.isatty() or (beside_output and sys.stdout.isatty()):
        yield lambda: None
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(escape(visible(name)), total=total())
        yield lambda: bar.advance(task)


class ResultPrinter:
    """A printer of results, one at a time: lines for people, JSON Lines, or the rows of one CSV or TSV table."""

    def __init__(self, output: str | None, lines: Callable[[Any], Iterable[str]] = lambda result: ()) -> None:
        self.output, self.lines = output, lines
        self.begun = False

    def print(self, result: Any) -> None:
        """Print a record of the library."""
        if self.output == "json":
            echo_json(result.to_json())
        elif self.output:
            from kbtools.answering.frames import gather_columns

            columns, _ = gather_columns(result)
            self.print_rows([*columns], zip(*columns.values(), strict=True))
        else:
            echo(*self.lines(result))

    def print_rows(self, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Print rows, after their header if it is not printed yet; a list is one cell with semicolons."""
        written = io.StringIO()
        writer = csv.writer(written, "excel-tab" if self.output == "tsv" else "excel", lineterminator="\n")
        if not self.begun:
            writer.writerow(header)
        self.begun = True
        safe = visible if sys.stdout.isatty() else str  # Only a terminal would execute control characters.
        writer.writerows([safe(text) for text in map(_cell_text, row)] for row in rows)
        click.echo(written.getvalue().encode(errors="replace"), nl=False)


def _cell_text(value: object) -> str:
    """Return the text of a cell, which no spreadsheet runs as a formula."""
    text = ";".join(map(str, value)) if isinstance(value, list) else value
    return "" if text is None else str(spreadsheet_cell(text))


def echo_json(record: object) -> None:
    """Print a record as one line of JSON, in UTF-8 on any terminal."""
    echo_document(json.dumps(record, ensure_ascii=False))


def echo_document(text: str) -> None:
    """Print JSON text; control characters and lone surrogates are escaped."""
    if not text.isascii() or "\x7f" in text:
        text = UNPRINTABLE.sub(lambda match: match[0] if match[0] == "\n" else f"\\u{ord(match[0]):04x}", text)
    click.echo(text.encode())
