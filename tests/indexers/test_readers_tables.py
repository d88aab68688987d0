"""Tables of a person's own: TSV, CSV and JSON Lines with columns by name."""

import json
from typing import Any

import pytest

from kbtools.errors import WrongFormat
from kbtools.indexers.readers.skips import Skips
from kbtools.indexers.readers.sources import Block
from kbtools.indexers.readers.tables import TableReader


def read(
    text: str | bytes, kind: Any = "facts", suffix: str = ".csv", columns: dict[str, str] | None = None
) -> tuple[Any, Skips]:
    skips = Skips("file", 1.0)
    data = text.encode() if isinstance(text, str) else text
    rows = TableReader("file", kind, suffix, columns or {}).read(Block(data, 1), skips)
    return rows, skips


def read_objects(*records: object, kind: Any = "facts") -> tuple[Any, Skips]:
    return read("".join(json.dumps(record) + "\n" for record in records), kind, ".jsonl")


@pytest.mark.parametrize(
    ("suffix", "text"),
    [
        (".csv", "subject,relation,object\nQ1,capital of,Q2\n"),
        (".csv", "object,notes,subject,relation\nQ2,x,Q1,capital of\n"),
        (".csv", "Head, Predicate ,TAIL\r\nQ1, capital of ,Q2\r\n"),
        (".tsv", "s\tp\to\nQ1\tcapital of\tQ2\n"),
        (".jsonl", '{"subject": "Q1", "relation": "capital of", "object": "Q2", "more": {"a": [1]}}\n'),
    ],
)
def test_facts_are_found_by_their_columns(suffix: str, text: str) -> None:
    rows, skips = read(text, suffix=suffix)
    assert rows.facts == [("Q1", "capital of", "Q2")]
    assert skips.kinds == {}


def test_ids_of_freebase_are_one_whatever_their_spelling() -> None:
    rows, _ = read("subject,relation,object\n/m/01,www.freebase.com/film/film/genre,<fb:m.02>\n")
    assert rows.facts == [("m.01", "film.film.genre", "m.02")]


def test_a_slashed_relation_is_freebases_beside_a_topic_alone() -> None:
    rows, _ = read("subject,relation,object\n/m/01,/film/film/genre,/m/02\n/films/one,/r/of/x,ns:1\n")
    assert rows.facts == [("m.01", "film.film.genre", "m.02"), ("/films/one", "/r/of/x", "ns:1")]


@pytest.mark.parametrize(
    ("cell", "name"),
    [
        ('"Gump, Forrest"', "Gump, Forrest"),
        ('"Milton ""Bill"" Finger"', 'Milton "Bill" Finger'),
        ('12"', '12"'),
        (r"back\slash", r"back\slash"),
        ("Žižek 😀", "Žižek 😀"),
        ("  spaced ", "spaced"),
    ],
)
def test_a_csv_cell_gives_the_name_it_quotes(cell: str, name: str) -> None:
    rows, _ = read(f"id,name\nQ1,{cell}\n", "names")
    assert rows.names == [("Q1", False, name)]


def test_a_tsv_cell_is_taken_as_it_is() -> None:
    rows, _ = read('id\tname\nQ1\t"Weird" Al, Yankovic\n', "names", ".tsv")
    assert rows.names == [("Q1", False, '"Weird" Al, Yankovic')]


def test_columns_may_have_any_name_that_the_caller_gives() -> None:
    rows, _ = read("von,wie,zu\nQ1,r,Q2\n", columns={"subject": "von", "relation": "wie", "object": "zu"})
    assert rows.facts == [("Q1", "r", "Q2")]


@pytest.mark.parametrize(
    ("kind", "header", "columns", "missing"),
    [
        ("facts", "subject,object", {}, "relation"),
        ("facts", "a,b,c", {}, "subject, relation, object"),
        ("facts", "subject,relation,object", {"object": "zu"}, "object"),
        ("names", "id", {}, "name"),
        ("names", "id,name", {"alias": "nickname"}, "alias"),
        ("types", "id,genre", {}, "type"),
    ],
)
def test_a_header_without_a_needed_column_is_refused_with_the_option_that_names_it(
    kind: str, header: str, columns: dict[str, str], missing: str
) -> None:
    with pytest.raises(WrongFormat, match=rf"file:1: the header .* has no column for {missing}; name it with --column"):
        read(header + "\nx,y,z\n", kind, columns=columns)


def test_a_header_is_the_first_line_that_is_not_blank() -> None:
    with pytest.raises(WrongFormat, match="file:3: the header"):
        read("\n\na,b\n")


def test_a_header_alone_gives_no_rows_and_no_fault() -> None:
    rows, skips = read("subject,relation,object\n")
    assert (len(rows), skips.lines, skips.kinds) == (0, 1, {})


def test_names_and_aliases_may_be_lists() -> None:
    rows, _ = read_objects(
        {"id": "Q1", "name": "Marie Curie", "aliases": ["Maria Skłodowska", "Madame Curie", None, ""]},
        {"id": 7, "label": 1984},
        {"id": "Q2", "alias": "nameless"},
        kind="names",
    )
    assert rows.names == [
        ("Q1", False, "Marie Curie"),
        ("Q1", True, "Maria Skłodowska"),
        ("Q1", True, "Madame Curie"),
        ("7", False, "1984"),
        ("Q2", True, "nameless"),
    ]


def test_no_value_of_a_list_is_lost() -> None:
    rows, _ = read_objects({"subject": ["Q1", "Q2"], "relation": "r", "object": ["Q3", "Q4"]})
    assert rows.facts == [("Q1", "r", "Q3"), ("Q1", "r", "Q4"), ("Q2", "r", "Q3"), ("Q2", "r", "Q4")]


def test_types_may_be_lists() -> None:
    rows, _ = read_objects({"id": "Q1", "types": ["person", "physicist"]}, kind="types")
    assert rows.types == [("Q1", "person"), ("Q1", "physicist")]


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("not json", "no JSON"),
        ("[" * 200_000, "no JSON"),
        ('{"subject": ' + "9" * 5_000 + "}", "no JSON"),
        ("[1, 2]", "no JSON object"),
        ("null", "no JSON object"),
        ("{}", "nothing under subject, relation, object"),
        ('{"subject": "a", "relation": " ", "object": []}', "nothing under relation, object"),
        ('{"subject": "<fb:>", "relation": "r", "object": "o"}', "nothing under subject"),
        ('{"subject": "a", "relation": "r", "object": {"id": "b"}}', "neither text nor number under object"),
        ('{"subject": "a", "relation": "r", "object": [["b"]]}', "neither text nor number under object"),
        ('{"subject": "a", "relation": true, "object": "b"}', "neither text nor number under relation"),
        (r'{"subject": "a", "relation": "r", "object": "\ud83d"}', "half a surrogate pair"),
        (r'{"subject": "a", "relation": "r", "object": "b\u0000"}', "NUL byte"),
    ],
)
def test_a_record_that_is_no_fact_is_counted_where_it_stands(line: str, kind: str) -> None:
    good = '{"subject": "a", "relation": "r", "object": "b"}'
    rows, skips = read(f"{good}\n{line}\n{good}\n", suffix=".jsonl")
    assert next(rows.batches()).table.num_rows == 2
    assert {name: (skip.count, skip.bad) for name, skip in skips.kinds.items()} == {kind: (1, True)}
    assert skips.kinds[kind].example.startswith("file:2: ")


def test_a_pair_of_surrogates_in_json_is_one_character() -> None:
    rows, _ = read(r'{"id": "a", "name": "\ud83d\ude00"}' + "\n", "names", ".jsonl")
    assert rows.names == [("a", False, "😀")]


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("Q1,r", "2 columns where 3 were expected"),
        ("Q1,r,Q2,", "4 columns where 3 were expected"),
        ("Q1,,Q2", "nothing under relation"),
        ('Q1,r,"open', "no CSV row"),
        ('Q1,r,"a"b', "no CSV row"),
        ("Q1,r,a\rb", "no CSV row"),
        ("Q1,r," + "x" * 200_000, "no CSV row"),
        ("Q1,r,\0", "NUL byte"),
    ],
)
def test_a_row_that_is_no_fact_is_counted_where_it_stands(line: str, kind: str) -> None:
    rows, skips = read(f"subject,relation,object\nQ1,r,Q2\n{line}\nQ1,r,Q2\n")
    assert len(rows.facts) == 2
    assert {name: (skip.count, skip.bad) for name, skip in skips.kinds.items()} == {kind: (1, True)}
    assert skips.kinds[kind].example.startswith("file:3: ")


def test_the_header_holds_for_every_block() -> None:
    reader, skips = TableReader("file", "facts", ".csv"), Skips("file", 0.0)
    reader.read(Block(b"subject,relation,object\n", 1), skips)
    rows = reader.read(Block(b"Q1,r,Q2\n", 2), skips)
    assert rows.facts == [("Q1", "r", "Q2")]
    assert skips.lines == 2
