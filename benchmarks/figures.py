"""Figures: measurements by the scripts, stored in the folder figures and inserted into the documents.

python benchmarks/figures.py NAME [SCRIPT.py OPTIONS...]

It runs a script and writes figures/NAME.json with its tables, its command, the machine, the date and the versions of
the code; without a script it repeats the last command. Documents contain figures between cog marks:

    <!-- [[[cog table("fuzzy", "near") ]]] -->
    <!-- [[[cog text("`n-gram` keeps {retrieval[pruners][n-gram][recall]} of the gold pairs.") ]]] -->

`make figures NAME=fuzzy` runs the script and updates the documents; `make docs` only updates the documents.
"""

import importlib
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).with_name("figures")

NUMBER = re.compile(r"[-+±]?[\d,.]+(\s|$|/)")

CELL = re.compile(r"\{([\w-]+)\[(.*?)\]\[(.*?)\]\[(.*?)\]\}")
"""A figure inside a sentence: the name, the table, the row and the column."""

recorded: dict[str, dict[str, Any]] = {}
"""The tables of the script that runs."""


def show_table(key: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table of a script, and record it under a key of the script."""
    cells = [[re.sub(r"(?<=\d)%", " %", str(cell)) for cell in row] for row in rows]
    columns = [re.sub(r"(?<=\d)%", " %", column) for column in columns]
    recorded[key] = {"columns": columns, "rows": cells}
    print("\n" + markdown(columns, cells), flush=True)


def markdown(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Format a table; columns of numbers are right-aligned."""
    filled = [[cell for row in rows if (cell := row[place])] for place in range(len(columns))]
    rules = ["---:" if cells and all(map(NUMBER.match, cells)) else "---" for cells in filled]
    lines = [f"| {' | '.join(map(escaped, cells))} |" for cells in (columns, rules, *rows)]
    return "\n".join(lines).replace("|  |", "| |").replace("|  |", "| |") + "\n"


def escaped(cell: str) -> str:
    return re.sub(r"(?<!\\)\|", r"\|", cell)


def read_records() -> dict[str, dict[str, Any]]:
    """Read the record of every name."""
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.json"))}


def code_versions() -> dict[str, int]:
    """Return the versions of the steps that decide a result."""
    from kbtools import version
    from kbtools.text.normaliser import NORMALISER_VERSION

    steps = (version.LINKING_VERSION, version.POOLS_VERSION, version.SCORE_VERSION)
    return {"normaliser": NORMALISER_VERSION, **dict(zip(("linking", "pools", "score"), steps, strict=True))}


def write_record(name: str, command: Sequence[str]) -> None:
    """Write the tables of the script that ran; tables of the record that it did not make stay."""
    from bench_report import machine

    if not recorded:
        raise SystemExit(f"{command[0]} made no table, so that {name} stays as it is")
    older = {key: own for key, own in read_records().get(name, {"tables": {}})["tables"].items() if key not in recorded}

    root = FOLDER.parents[1]
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=root, capture_output=True, text=True)
    record = {
        "command": shlex.join(["python", f"benchmarks/{command[0]}", *command[1:]]).replace("'", ""),
        "date": datetime.now(UTC).date().isoformat(),
        "commit": commit.stdout.strip(),
        "machine": machine(),
        "code": code_versions(),
        "tables": older | recorded,
    }
    if older:
        record["kept"] = f"of an older run: {', '.join(older)}"
    lines = json.dumps(record, indent=1, ensure_ascii=False)
    short = re.sub(r"\[\s+([^][{}]*?)\s+\]", lambda found: "[" + re.sub(r"\n\s+", " ", found[1]) + "]", lines)
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{name}.json").write_text(short + "\n", encoding="utf-8")


# What the marks of documents call


def table(name: str, key: str, *columns: str, rows: Sequence[str] = ()) -> None:
    """Write a table into a document, or only some columns and rows of it."""
    own = read_records()[name]["tables"][key]
    chosen = columns or own["columns"]
    places = [own["columns"].index(column) for column in columns] or range(len(chosen))
    cells = [[row[place] for place in places] for row in own["rows"] if not rows or row[0] in rows]
    write_out("\n" + markdown(chosen, cells))


def text(template: str) -> None:
    """Write sentences into a document, with cells as {name[key][row][column]}, a row by its first cells."""
    records = read_records()

    def cell(found: re.Match[str]) -> str:
        name, key, row, column = found.groups()
        own = records[name]["tables"][key]
        labels = (plain(" / ".join([*cells, ""])) for cells in own["rows"])
        (cells,) = (cells for cells, label in zip(own["rows"], labels, strict=True) if label.startswith(f"{row} / "))
        return str(cells[[*map(plain, own["columns"])].index(column)])

    write_out("\n" + CELL.sub(cell, template.strip()) + "\n")


def plain(label: str) -> str:
    return label.replace("`", "")


def origins() -> None:
    """Write a table of where all figures come from."""
    rows = []
    for name, record in read_records().items():
        described = record["machine"]
        older = [f"{step} {number}" for step, number in record["code"].items() if code_versions()[step] != number]
        seen = f"{described['cpu']}, {described['cores']} cores, load {described['load']}" if described else ""
        notes = "; ".join([record.get("kept", ""), "by " + ", ".join(older) if older else ""]).strip("; ")
        rows.append([f"`{name}`", f"`{record['command']}`", record["date"], f"{record['commit']}", seen, notes])
    write_out("\n" + markdown(["figures", "command", "date", "commit", "machine", "note"], rows))


def write_out(lines: str) -> None:
    importlib.import_module("cog").outl(lines)


def main() -> None:
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__)
        raise SystemExit(len(sys.argv) < 2)
    name, *command = sys.argv[1:]
    if not command:
        command = shlex.split(read_records()[name]["command"])[1:]
        command[0] = Path(command[0]).name
    sys.argv = [command[0], *(os.path.expandvars(word) for word in command[1:])]
    importlib.import_module(Path(command[0]).stem).main()
    write_record(name, command)


if __name__ == "__main__":
    importlib.import_module("figures").main()
