"""Tables of a person's own: TSV, CSV and JSON Lines with columns by name."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kbtools.errors import WrongFormat
from kbtools.indexers.readers.batches import ALIAS, Block, Rows, Skips
from kbtools.indexers.readers.delimited import CSVReader, TSVReader
from kbtools.indexers.readers.delimited_rows import read_row
from kbtools.indexers.readers.json_lines import JSONLinesReader
from kbtools.indexers.readers.reading import ReadOptions, Source

READERS: dict[str, Any] = {".csv": CSVReader, ".tsv": TSVReader, ".jsonl": JSONLinesReader}


def read_blocks(
    blocks: Iterable[Block], kind: Any = "facts", suffix: str = ".csv", **options: Any
) -> tuple[Rows, Skips]:
    skips, rows = Skips("file", 1.0), Rows()
    for batch in READERS[suffix](Source(Path("file"), kind), ReadOptions(**options), skips).read(blocks):
        getattr(rows, batch.kind).extend(tuple(row.values()) for row in batch.table.to_pylist())
    return rows, skips


def read(
    text: str | bytes, kind: Any = "facts", suffix: str = ".csv", columns: dict[str, str] | None = None, **options: Any
) -> tuple[Rows, Skips]:
    data = text.encode() if isinstance(text, str) else text
    return read_blocks([Block(data, 1)], kind, suffix, columns=columns or {}, **options)


def read_objects(*records: object, kind: Any = "facts") -> tuple[Rows, Skips]:
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

    assert rows.names == [("Q1", False, name, "")]


def test_a_tsv_cell_is_taken_as_it_is() -> None:
    rows, _ = read('id\tname\nQ1\t"Weird" Al, Yankovic\n', "names", ".tsv")

    assert rows.names == [("Q1", False, '"Weird" Al, Yankovic', "")]


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

    assert sorted(rows.names) == [
        ("7", 0, "1984", ""),
        ("Q1", 0, "Marie Curie", ""),
        ("Q1", ALIAS, "Madame Curie", ""),
        ("Q1", ALIAS, "Maria Skłodowska", ""),
        ("Q2", ALIAS, "nameless", ""),
    ]


def test_no_value_of_a_list_is_lost() -> None:
    rows, _ = read_objects(
        {"subject": "Q0", "relation": "r", "object": "Q5"},
        {"subject": ["Q1", "Q2"], "relation": "r", "object": ["Q3", "Q4"]},
    )

    assert rows.facts == [
        ("Q0", "r", "Q5"), ("Q1", "r", "Q3"), ("Q1", "r", "Q4"), ("Q2", "r", "Q3"), ("Q2", "r", "Q4"),
    ]  # fmt: skip


def test_types_may_be_lists() -> None:
    rows, _ = read_objects({"id": "Q1", "types": ["person", "physicist"]}, kind="types")

    assert rows.types == [("Q1", "person"), ("Q1", "physicist")]


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("not json", "invalid JSON"),
        ("[" * 200_000, "invalid JSON"),
        ('{"subject": ' + "9" * 5_000 + "}", "invalid JSON"),
        ("[1, 2]", "not a JSON object"),
        ("null", "not a JSON object"),
        ("{}", "no value under subject, relation, object"),
        ('{"subject": "a", "relation": " ", "object": []}', "no value under relation, object"),
        ('{"subject": "<fb:>", "relation": "r", "object": "o"}', "no value under subject"),
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

    assert len(rows.facts) == 2
    assert {name: (skip.count, skip.bad) for name, skip in skips.kinds.items()} == {kind: (1, True)}
    assert skips.kinds[kind].example.startswith("file:2: ")


def test_a_pair_of_surrogates_in_json_is_one_character() -> None:
    rows, _ = read(r'{"id": "a", "name": "\ud83d\ude00"}' + "\n", "names", ".jsonl")

    assert rows.names == [("a", False, "😀", "")]


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("Q1,r", "2 columns where 3 were expected"),
        ("Q1,r,Q2,", "4 columns where 3 were expected"),
        ("Q1,,Q2", "no value under relation"),
        ('Q1,r,"open', "invalid CSV row"),
        ('Q1,r,"a"b', "invalid CSV row"),
        ("Q1,r,a\rb", "invalid CSV row"),
        ("Q1,r," + "x" * 200_000, "invalid CSV row"),
        ("Q1,r,\0", "NUL byte"),
    ],
)
def test_a_row_that_is_no_fact_is_counted_where_it_stands(line: str, kind: str) -> None:
    rows, skips = read(f"subject,relation,object\nQ1,r,Q2\n{line}\nQ1,r,Q2\n")

    assert len(rows.facts) == 2
    assert {name: (skip.count, skip.bad) for name, skip in skips.kinds.items()} == {kind: (1, True)}
    assert skips.kinds[kind].example.startswith("file:3: ")


def test_the_header_holds_for_every_block() -> None:
    rows, skips = read_blocks([Block(b"subject,relation,object\n", 1), Block(b"Q1,r,Q2\n", 2)])

    assert rows.facts == [("Q1", "r", "Q2")]
    assert skips.lines == 2


@pytest.mark.parametrize(
    ("text", "suffix", "names"),
    [
        ('id\tname\nQ1\t"The ""Big"" Apple"\nQ2\tplain\n', ".tsv", {"Q1": 'The "Big" Apple', "Q2": "plain"}),
        ('id\tname\nQ1\t"Foo\nLand"\nQ2\tplain\n', ".tsv", {"Q1": "Foo\nLand", "Q2": "plain"}),
        ('id\tname\nQ1\t"Weird\nQ2\tplain"\n', ".tsv", {"Q1": '"Weird', "Q2": 'plain"'}),
        ('id\tname\nQ1\t"a\tb"\nQ2\tplain\n', ".tsv", {"Q1": "a\tb", "Q2": "plain"}),
        ('id\tname\nQ1\t12" single\nQ2\t"Q2" single\n', ".tsv", {"Q1": '12" single', "Q2": '"Q2" single'}),
        ('id,name\nQ1,"Foo\nLand"\nQ2,plain\nQ3,more\n', ".csv", {"Q1": "Foo\nLand", "Q2": "plain", "Q3": "more"}),
        ('id,name\r\nQ1,"Foo\r\nLand"\r\nQ2,plain\r\n', ".csv", {"Q1": "Foo\nLand", "Q2": "plain"}),
        ('id,name\n"Q1","a, ""b"""\n"Q2",plain\n', ".csv", {"Q1": 'a, "b"', "Q2": "plain"}),
        ('"id","name"\n"Q1","a"\n', ".csv", {"Q1": "a"}),
    ],
)
@pytest.mark.parametrize("size", [1, 2, 5, 100])
def test_cells_are_read_as_pandas_writes_them_wherever_a_block_ends(
    text: str, suffix: str, names: dict[str, str], size: int
) -> None:
    rows, skips = read_blocks(blocks_of(text, size), "names", suffix)

    assert {row[0]: row[2] for row in rows.names} == names
    assert skips.kinds == {}
    assert skips.lines == text.count("\n")


def blocks_of(text: str, size: int) -> Iterator[Block]:
    """Cut a text into blocks of some lines."""
    lines = [line + b"\n" for line in text.encode().split(b"\n")[:-1]]
    for start in range(0, len(lines), size):
        yield Block(b"".join(lines[start : start + size]), start + 1)


def test_an_open_quote_costs_its_own_line_alone() -> None:
    lines = "".join(f"Q{number},r,Q2\n" for number in range(3_000))

    rows, skips = read_blocks(blocks_of(f'subject,relation,object\nQ0,r,"open\n{lines}', 700))

    assert len(rows.facts) == 3_000
    assert {name: skip.count for name, skip in skips.kinds.items()} == {"invalid CSV row": 1}
    assert skips.kinds["invalid CSV row"].example.startswith("file:2: ")


CELL = st.lists(
    st.sampled_from(["a", "b", '"', '""', ",", "\t", " ", "\n", "\r", "é", "\\", "\0", "<fb:m.1>", "/m/01", "[", "|"]),
    max_size=4,
).map("".join)
ROW = st.one_of(
    st.lists(st.sampled_from(["a", "b c", '"x"', '"a ""b"""', '"y\nz"', ""]), min_size=3, max_size=3),
    st.lists(CELL, min_size=2, max_size=4),
)


@settings(deadline=None, max_examples=300)
@given(
    rows=st.lists(ROW, max_size=6),
    suffix=st.sampled_from([".csv", ".tsv"]),
    size=st.integers(1, 8),
    separator=st.sampled_from([None, "|", " "]),
)
@example(rows=[["\n", ""]], suffix=".tsv", size=1, separator=None)  # the second blank line is counted first
@example(rows=[['"x"', '5"', "b"], ["c", "d", '"']], suffix=".csv", size=1, separator=None)  # a quote for inches
def test_columns_give_what_rows_give_one_by_one(
    rows: list[list[str]], suffix: str, size: int, separator: str | None
) -> None:
    divider = {".csv": ",", ".tsv": "\t"}[suffix]
    text = "".join(divider.join(row) + "\n" for row in [["s", "p", "o"], *rows])

    fast, skips = read_blocks(blocks_of(text, 100), "facts", suffix, list_separator=separator)
    slow, others = ByRows.of(suffix, blocks_of(text, size), list_separator=separator)

    assert sorted(fast.facts) == sorted(slow.facts)
    assert (skips.lines, skips.bad) == (others.lines, others.bad)
    assert {name: skip.example for name, skip in skips.kinds.items()} == {
        name: skip.example for name, skip in others.kinds.items()
    }


class ByRows:
    """The plain twin: the same readers without Arrow."""

    @staticmethod
    def of(suffix: str, blocks: Iterable[Block], **options: Any) -> tuple[Rows, Skips]:
        skips, rows = Skips("file", 1.0), Rows()
        reader = READERS[suffix](Source(Path("file"), "facts"), ReadOptions(**options), skips)
        reader.end_of_rows = lambda text, *, last: None
        for batch in reader.read(blocks):
            rows.facts.extend(tuple(row.values()) for row in batch.table.to_pylist())
        return rows, skips


@pytest.mark.parametrize(("separator", "word"), [(";", "semicolons"), ("|", "bars"), ("\t", "tabs")])
def test_another_separator_is_recognised_and_named(separator: str, word: str) -> None:
    rows, skips = read(f"subject{separator}relation{separator}object\nQ1{separator}r{separator}a, b\n")

    assert rows.facts == [("Q1", "r", "a, b")]
    assert skips.notes == [f"file:1: columns separated by {word}"]


def test_columns_that_spaces_divide_are_named() -> None:
    with pytest.raises(WrongFormat, match="separated by several spaces, use tabs"):
        read("subject   relation   object\nQ1   r   Q2\n", suffix=".tsv")


def test_unused_columns_are_named_with_the_option_that_takes_one() -> None:
    _, skips = read("id,name,synonyms,type\nQ1,a,b,c\n", "names")
    _, others = read_objects({"id": "Q1", "name": "a"}, {"id": "Q2", "name": "b", "synonyms": ["c"]}, kind="names")

    assert skips.notes == ["file:1: columns not used: 'synonyms', 'type'; --column alias=synonyms takes one"]
    assert others.notes == ["file:1: columns not used: 'synonyms'; --column alias=synonyms takes one"]


@pytest.mark.parametrize("head", ["", "Unnamed: 0"])
def test_the_index_that_pandas_writes_is_not_offered_as_a_column(head: str) -> None:
    rows, skips = read(f"{head},subject,relation,object\n0,Q1,r,Q2\n")
    _, others = read(f"{head},subject,relation,object,my note\n0,Q1,r,Q2,x\n")

    assert rows.facts == [("Q1", "r", "Q2")]
    assert skips.notes == [f"file:1: columns not used: {head!r}"]
    assert others.notes == [f"file:1: columns not used: {head!r}, 'my note'; --column 'object=my note' takes one"]


def test_shortened_heads_are_usual_ones() -> None:
    rows, _ = read("subj,pred,obj\nQ1,r,Q2\n")
    assert rows.facts == [("Q1", "r", "Q2")]


@pytest.mark.parametrize(("line", "told"), [("Q1\tr\tQ2", True), ("subject\txyz\tobject", False)])
def test_a_table_of_facts_without_a_header_is_told_how_it_is_read(line: str, told: bool) -> None:
    with pytest.raises(WrongFormat) as raised:
        read(line + "\n", suffix=".tsv")
    assert ("; to read a file of facts without a header, name it .txt" in str(raised.value)) is told


@pytest.mark.parametrize(("separator", "cell"), [("|", "a|b"), ("; ", "a; b"), ("|", "['a', 'b']"), ("|", '["a","b"]')])
@pytest.mark.parametrize("suffix", [".tsv", ".jsonl"])
def test_a_cell_with_a_list_is_taken_apart_where_its_separator_is_given(separator: str, cell: str, suffix: str) -> None:
    text = f"id\talias\nQ1\t{cell}\n" if suffix == ".tsv" else json.dumps({"id": "Q1", "alias": cell}) + "\n"

    rows, _ = read(text, "names", suffix, list_separator=separator)

    assert rows.names == [("Q1", ALIAS, "a", ""), ("Q1", ALIAS, "b", "")]


def test_cells_that_look_like_lists_are_noticed() -> None:
    rows, skips = read("id\talias\nQ1\ta\nQ1\ta|b\n", "names", ".tsv")

    assert rows.names[1] == ("Q1", ALIAS, "a|b", "")
    assert "file:2: cells under alias that look like lists, such as 'a|b'; --list-separator" in skips.notes[0]


@pytest.mark.parametrize("header", ["subject,relation,object,object", "object,subject,relation,Object"])
def test_of_two_equal_columns_none_wins(header: str) -> None:
    with pytest.raises(WrongFormat, match="file:1: found 2 columns 'object', expected one for object"):
        read(f"{header}\na,b,c,d\n")


def test_two_equal_columns_that_are_not_used_are_no_fault() -> None:
    assert read("subject,relation,object,x,x\na,b,c,d,e\n")[0].facts == [("a", "b", "c")]


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_a_head_that_is_not_there_is_named_with_those_that_are(suffix: str) -> None:
    text = "from,relation,object\na,b,c\n" if suffix == ".csv" else '{"from": "a", "relation": "b", "object": "c"}\n'

    with pytest.raises(
        WrongFormat, match=r"'from', 'relation', 'object'\].*--column subject=head was given, but there"
    ):
        read(text, suffix=suffix, columns={"subject": "head"})


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
def test_what_is_no_number_is_no_entity(value: str) -> None:
    good = '{"subject": "a", "relation": "r", "object": 1e3}'

    rows, skips = read(f'{good}\n{{"subject": "a", "relation": "r", "object": {value}}}\n', suffix=".jsonl")

    assert rows.facts == [("a", "r", "1000")]
    assert skips.bad == 1


def test_an_object_with_one_field_twice_is_bad() -> None:
    rows, skips = read('{"subject": "a", "relation": "r", "object": "b", "object": "c"}\n', suffix=".jsonl")

    assert (rows.facts, list(skips.kinds)) == ([], ["invalid JSON"])
    assert "two fields 'object'" in skips.kinds["invalid JSON"].example


def test_lists_that_would_fill_the_memory_are_bad() -> None:
    values = [str(number) for number in range(1_000)]

    rows, skips = read_objects(
        {"subject": values, "relation": values, "object": values},
        {"subject": "a", "relation": "r", "object": [str(number) for number in range(200_000)]},
    )

    assert len(rows.facts) == 200_000
    assert list(skips.kinds) == ["lists that make 1,000,000,000 rows, more than 100,000"]


@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
def test_a_row_of_another_length_that_is_no_text_is_counted_in_silence(
    suffix: str, capfd: pytest.CaptureFixture[str]
) -> None:
    divider = b"," if suffix == ".csv" else b"\t"
    text = b"\n".join([divider.join([b"s", b"p", b"o"]), b"\xff" + divider, divider.join([b"a", b"r", b"b"]), b""])

    rows, skips = read(text, suffix=suffix)

    assert rows.facts == [("a", "r", "b")]
    assert list(skips.kinds) == ["invalid UTF-8"]
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(("head", "language"), [("language", "de"), ("lang", "de"), ("lan", "")])
def test_a_file_of_relations_gives_their_names(head: str, language: str) -> None:
    rows, _ = read(f"id,label,{head}\nr1,geboren in,de\n", "relations", language="de")

    assert rows.relations == [("r1", 0, "geboren in", language)]


@pytest.mark.parametrize("header", ["old,new", "from,to", "id,target"])
def test_a_file_of_redirects_gives_old_and_new_ids(header: str) -> None:
    rows, _ = read(f"{header}\nQ1,Q2\n", "redirects")

    assert rows.redirects == [("Q1", "Q2")]


@pytest.mark.parametrize("heads", ["subject_id,relation uri,objectIRI", "Subject,Predicate_ID,object id"])
def test_heads_may_say_that_ids_stand_under_them(heads: str) -> None:
    rows, _ = read(f"{heads}\nQ1,r,Q2\n")
    assert rows.facts == [("Q1", "r", "Q2")]


@pytest.mark.parametrize("table", ["subject_id,subject,relation,object\n7,Q1,r,Q2\n",
                                   "subject,subject_id,relation,object\nQ1,7,r,Q2\n"])  # fmt: skip
def test_a_head_without_such_an_ending_is_preferred(table: str) -> None:
    rows, skips = read(table)
    assert rows.facts == [("Q1", "r", "Q2")]
    assert skips.notes == ["file:1: columns not used: 'subject_id'; --column object=subject_id takes one"]


def test_spaces_divide_lists_of_ids_and_no_name() -> None:
    facts, _ = read("subject,relation,object\nQ1,r,Q2 Q3\n", list_separator=" ")
    names, _ = read("id,name,alias\nQ1,New York,\"['Big Apple', 'NYC']\"\n", "names", list_separator=" ")
    assert facts.facts == [("Q1", "r", "Q2"), ("Q1", "r", "Q3")]
    assert names.names == [("Q1", 0, "New York", ""), ("Q1", ALIAS, "Big Apple", ""), ("Q1", ALIAS, "NYC", "")]


class Indexed(list[tuple[int, bytes]]):
    """Lines that may be looked up and not passed over, which each row would do anew."""

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        raise AssertionError("passed over all lines")


def test_a_quoted_row_is_read_without_passing_over_those_before_it() -> None:
    lines = Indexed([(1, b"a,b"), (2, b'"two'), (3, b'lines",c'), (4, b"d,e")])
    row = read_row(lines, 1, separator=",", width=2)
    assert (row.cells, row.lines) == (["two\nlines", "c"], 2)
