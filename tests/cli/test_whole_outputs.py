"""All that the commands about entities print, over a few entities with all that an entity may have."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kbtools.cli.main import main

Run = Callable[..., str]


@pytest.fixture(scope="module")
def path(kites: Callable[..., Path]) -> Path:
    return kites(
        facts=(("m.7", "book.author", "m.9"),),
        names=(("book.book", "books"),),
        spoken=(("m.1", "Cerf-volant", "fr"),),
        language="en,fr",
    )


@pytest.fixture
def run(path: Path) -> Run:
    def run_command(command: str, *arguments: str) -> str:
        result = CliRunner().invoke(main, [command, str(path), *arguments])
        assert result.exit_code == 0, result.output
        return result.stdout

    return run_command


SHOWN = """\
Kite (m.1) [-]
  a novel
  prior 0.602, the probability that its name means it
  also Cerf-volant [fr], The Iron Kite [-]
  types books
  subject of 3 facts
    book.author  Ada Venn (m.8)
    book.author  Orla Quinn (m.9)
    book.pages  312
  object of 0 facts
"""

CUT = """\
Orla Quinn (m.9)
  prior 1.000, the probability that its name means it
  subject of 0 facts
  object of 3 facts
    Kite (m.1)  book.author
    Kite (m.2)  book.author
    and 1 more (--limit)
"""

FRENCH = """\
Cerf-volant (m.1) [fr]
  a novel
  prior 1.000, the probability that its name means it
  also Kite [-], The Iron Kite [-]
  types books
  subject of 3 facts
    book.author  Ada Venn (m.8)
    and 2 more (--limit)
  object of 0 facts
"""

LOOKED_UP = """\
kite
  1   93.01  Kite (m.1), a novel  [case: Kite]  books
  2   91.99  Kite (m.2)  [case: Kite]  book.series
"""

EXPLAINED = """\
Kite
  1   98.01  Kite (m.1), a novel  [exact: Kite]  books
      'Kite' is exactly the name 'Kite'
      prior 0.602, from 3 facts out and 0 in
"""

LINKED = """\
Ada Venn met Kite
      0-8  1.000  Ada Venn: Ada Venn (m.8)
    13-17  0.598  Kite: Kite (m.1) or 1 more
"""

LINKED_EXPLAINED = """\
Ada Venn met Kite
      0-8  1.000  Ada Venn: Ada Venn (m.8)
             100.00  Ada Venn (m.8)
                     'Ada Venn' is exactly the name 'Ada Venn'
                     prior 1.000, from 0 facts out and 1 in
    13-17  0.598  Kite: Kite (m.1)
              98.01  Kite (m.1)
                     'Kite' is exactly the name 'Kite'
                     prior 0.602, from 3 facts out and 0 in
              96.99  Kite (m.2)
                     'Kite' is exactly the name 'Kite'
                     prior 0.398, from 1 fact out and 0 in
"""


@pytest.mark.parametrize(
    ("arguments", "output"),
    [
        (["show", "m.1"], SHOWN),
        (["show", "m.9", "--limit", "2"], CUT),
        (["show", "m.1", "--lang", "fr", "--limit", "1"], FRENCH),
        (["lookup", "kite"], LOOKED_UP),
        (["lookup", "Kite", "--limit", "1", "--explain"], EXPLAINED),
        (["lookup", "Kite", "--type", "book.series"], "Kite\n  1  100.00  Kite (m.2)  [exact: Kite]  book.series\n"),
        (["lookup", "zzzz"], "zzzz\n  no entity has this name\n"),
        (["lookup", "zzzz", "--type", "book.series"], "zzzz\n  no entity has this name and the type book.series\n"),
        (["link", "Ada Venn met Kite"], LINKED),
        (["link", "Ada Venn met Kite", "--explain"], LINKED_EXPLAINED),
        (["link", "nothing"], "nothing\n  no mention\n"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_people_read_all_there_is_about_an_entity(run: Run, arguments: list[str], output: str) -> None:
    assert run(*arguments) == output


HEAD = ["subject", "subject_name", "relation", "relation_name", "object", "object_name"]


@pytest.mark.parametrize(("output", "separator"), [("csv", ","), ("tsv", "\t")])
def test_programs_read_facts_in_both_directions_under_one_head(run: Run, output: str, separator: str) -> None:
    rows = [line.split(separator) for line in run("show", "m.9", "--format", output).splitlines()]

    assert rows == [
        HEAD,
        ["m.1", "Kite", "book.author", "", "m.9", "Orla Quinn"],
        ["m.2", "Kite", "book.author", "", "m.9", "Orla Quinn"],
        ["m.7", "", "book.author", "", "m.9", "Orla Quinn"],
    ]


def test_a_table_has_the_types_of_an_entity_in_one_cell(run: Run) -> None:
    head, first, second = (line.split("\t") for line in run("lookup", "Kite", "--format", "tsv").splitlines())

    assert dict(zip(head, first, strict=True)) == {
        "text": "Kite", "place": "1", "id": "m.1", "name": "Kite", "matched_name": "Kite", "rung": "exact",
        "similarity": "100.0", "prior": first[head.index("prior")], "score": first[head.index("score")],
        "types": "book.book", "type_names": "books",
    }  # fmt: skip
    assert (second[head.index("place")], second[head.index("types")]) == ("2", "book.series")


def test_json_has_the_entity_and_its_facts(run: Run) -> None:
    record = json.loads(run("show", "m.2", "--format", "json"))

    assert (record["id"], record["name"], record["facts_out"], record["facts_in"]) == ("m.2", "Kite", 1, 0)
    assert [fact["object"]["name"] for fact in record["facts"]["facts"]] == ["Orla Quinn"]
    assert record["incoming"]["total"] == 0


def test_one_of_several_bearers_is_shown_with_a_hint(path: Path) -> None:
    results = [CliRunner().invoke(main, ["show", str(path), name]) for name in ("Kite", "Ada Venn")]

    assert [result.stdout.split("\n")[0] for result in results] == ["Kite (m.1) [-]", "Ada Venn (m.8)"]
    assert results[0].stderr == "other entities have the name 'Kite' or a similar one; kbtools lookup lists them\n"
    assert results[1].stderr == ""


@pytest.fixture
def files(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a copy of the knowledge base, and files of an update beside it."""
    shutil.copytree(path, tmp_path / "x.kb")
    (tmp_path / "gone=1.txt").write_text("m.2\nm.404\n")
    (tmp_path / "same.tsv").write_text("old\tnew\nm.7\tm.8\n")
    records: dict[str, list[Any]] = {
        "gone.facts": [{"subject": "m.1", "relation": "book.pages", "object": '"312"'}],
        "gone.names": [
            {"id": "m.1", "alias": "The Iron Kite"},
            {"id": "m.1", "name": "No"},
            {"id": "m.9", "name": "N"},
        ],
        "gone.types": [{"id": "m.1", "type": "book.book"}],
        "new.facts": [{"subject": "m.5", "relation": "book.author", "object": entity} for entity in ("m.9", "m.7")],
        "new.names": [{"id": "m.5", "name": "Lamp"}],
        "new.types": [{"id": "m.5", "type": "book.book"}],
        "new": [{"id": "m.1", "rename": {"Kite": "Kite I"}}, 1],
    }
    for name, lines in records.items():
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    monkeypatch.chdir(tmp_path)
    return tmp_path


UPDATED = """\
x.kb: 1 entity added, 1 entity merged, 1 entity removed, 3 facts added, 3 facts removed, 2 names added, 3 names \
removed, 1 type added, 2 types removed, 1 value removed; content ...
not there: 1 entity; first: m.404
not there: 2 names; first: m.1 No
skipped 1 of 2 lines: invalid record of changes; first: new.jsonl:2: '1' ('not a JSON object')
"""


def test_an_update_tells_what_was_made_of_each_file(files: Path) -> None:
    arguments = [
        *("--add", "new.jsonl", "--facts", "new.facts.jsonl", "--names", "new.names.jsonl"),
        *("--types", "new.types.jsonl"),
        *("--redirects", "same.tsv", "--remove", "gone=1.txt", "--remove", "facts=gone.facts.jsonl"),
        *("--remove", "names=gone.names.jsonl", "--remove", "types=gone.types.jsonl", "--max-bad", "1"),
    ]

    result = CliRunner().invoke(main, ["update", "x.kb", *arguments])

    assert result.exit_code == 0, result.output
    assert re.sub(r"content [0-9a-f]{16}", "content ...", result.stdout) == UPDATED
    shown = CliRunner().invoke(main, ["show", "x.kb", "m.8"]).stdout
    assert "  object of 2 facts\n    Kite I (m.1)  book.author\n    Lamp (m.5)  book.author\n" in shown
