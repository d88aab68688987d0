"""Reading a source: its format is found, its rows are streamed, and what was left out is accounted for."""

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

from kbtools.errors import InputError, SourceDamaged, TooManyBadLines, UnknownPlugin, WrongFormat
from kbtools.indexers.readers.batches import ALIAS
from kbtools.indexers.readers.reading import Reading, ReadOptions, Source, Wide, wide_of
from kbtools.indexers.readers.sources import file_digest

FB = "www.freebase.com/"
FACT = f"{FB}m/01\t{FB}film/film/genre\t{FB}m/02\n"
NAME = '<fb:m.01>\t<fb:type.object.name>\t"Jaws"@en\t.\n'
TYPE = "<fb:m.01>\t<fb:type.object.type>\t<fb:film.film>\t.\n"
TRIPLE = "<http://a/s> <http://a/p> <http://a/o> .\n"
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.ZstdCompressor().compress,
}
RELEASE_FACT = ("m.01", "film.film.genre", "m.02")


def reading(path: Path, content: str | bytes, kind: Any = "facts", **options: Any) -> Reading:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return Reading(Source(path, kind), ReadOptions(**options))


def rows_of(read: Reading) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for batch in read.batches() for row in batch.table.to_pylist()]


def kinds(read: Reading) -> dict[str, tuple[int, bool]]:
    return {kind: (skip.count, skip.bad) for kind, skip in read.skips.kinds.items()}


@pytest.mark.parametrize("suffix", PACKERS)
@pytest.mark.parametrize(
    ("name", "kind", "content", "row"),
    [
        ("freebase-FB5M.txt", "facts", FACT, RELEASE_FACT),
        ("FB5M.name.txt", "names", NAME, ("m.01", False, "Jaws", "en")),
        ("FB5M.type.txt", "types", TYPE, ("m.01", "film.film")),
        ("dump", "any", TRIPLE, ("http://a/s", "http://a/p", "http://a/o")),
        ("dump.nt", "facts", TRIPLE, ("http://a/s", "http://a/p", "http://a/o")),
        ("mine.v2.tsv", "facts", "subject\trelation\tobject\na\tr\tb\n", ("a", "r", "b")),
        ("tags.csv", "facts", "subject,relation,object\na,tag,<rdf:RDF\n", ("a", "tag", "<rdf:RDF")),
        ("mine.csv", "names", "id,alias\na,b\n", ("a", ALIAS, "b", "")),
        ("mine.jsonl", "types", '{"id": "a", "type": "t"}\n', ("a", "t")),
        ("mine.jsonl", "types", '{"@id": "x", "id": "a", "type": "t"}\n', ("a", "t")),
        ("mine.NDJSON", "types", '{"id": "a", "type": "t"}\n', ("a", "t")),
    ],
)
def test_every_format_is_read_however_it_is_packed(
    tmp_path: Path, suffix: str, name: str, kind: str, content: str, row: tuple[bool | str, ...]
) -> None:
    path = tmp_path / f"{name}{suffix}"
    read = reading(path, PACKERS[suffix](content.encode()), kind)

    assert rows_of(read) == [row]
    assert read.digest == file_digest(path)
    assert kinds(read) == {}


@pytest.mark.parametrize("suffix", [suffix for suffix in PACKERS if suffix])
@pytest.mark.parametrize("name", ["facts.txt", "facts.nt", "facts.tsv", "facts.csv", "facts.jsonl"])
def test_every_format_says_where_a_truncated_file_ends(tmp_path: Path, suffix: str, name: str) -> None:
    packed = PACKERS[suffix](FACT.encode())
    read = reading(tmp_path / f"{name}{suffix}", packed[: len(packed) // 2])

    with pytest.raises(SourceDamaged, match=rf"{name}{suffix}:\d: "):
        rows_of(read)


def test_the_suffix_of_a_table_counts_in_capitals_before_a_packed_one(tmp_path: Path) -> None:
    content = gzip.compress(b"subject\trelation\tobject\na\tr\tb\n")

    assert rows_of(reading(tmp_path / "FACTS.TSV.GZ", content)) == [("a", "r", "b")]


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
@pytest.mark.parametrize(
    ("kind", "line", "row"),
    [
        ("facts", FACT, RELEASE_FACT),
        ("names", NAME, ("m.01", False, "Jaws", "en")),
        ("any", TRIPLE, ("http://a/s", "http://a/p", "http://a/o")),
    ],
)
def test_neither_line_ends_nor_their_lack_change_a_row(
    tmp_path: Path, end: str, kind: str, line: str, row: tuple[bool | str, ...]
) -> None:
    read = reading(tmp_path / "file.txt", line.replace("\n", end or "\n") + line.rstrip("\n") + end, kind)

    assert rows_of(read) == [row, row]
    assert (kinds(read), read.skips.lines) == ({}, 2)


def test_clean_and_unclean_blocks_give_rows_in_the_order_of_the_file(tmp_path: Path) -> None:
    lines = [f"{FB}m/0{number}\t{FB}r\t{FB}m/02{' ' * (number % 7 == 0)}\n" for number in range(100)]
    read = reading(tmp_path / "facts.txt", "".join(lines))

    read.block = 64

    assert [row[0] for row in rows_of(read)] == [f"m.0{number}" for number in range(100)]
    assert read.skips.lines == 100


@pytest.mark.parametrize("block", [1, 7, 64, 1 << 20])
def test_no_block_size_changes_what_is_counted(tmp_path: Path, block: int) -> None:
    read = reading(tmp_path / "facts.txt", FACT * 20 + "broken\n\n" + FACT * 20, max_bad=1.0)
    read.block = block

    assert len(rows_of(read)) == 40
    assert kinds(read) == {"1 columns where 3 were expected": (1, True), "blank line": (1, False)}
    assert read.skips.kinds["blank line"].example.endswith("facts.txt:22: ''")


@pytest.mark.parametrize(("bad", "allowed"), [(0, 0.0), (1, 0.01), (2, 0.02), (99, 1.0)])
def test_bad_lines_up_to_the_share_allowed_are_counted(tmp_path: Path, bad: int, allowed: float) -> None:
    read = reading(tmp_path / "facts.txt", FACT * (100 - bad) + "a\tb\n" * bad, max_bad=allowed)

    assert len(rows_of(read)) == 100 - bad
    assert read.skips.bad == bad


def test_one_bad_line_more_than_allowed_is_refused_with_the_most_frequent_kind(tmp_path: Path) -> None:
    path = tmp_path / "facts.txt"
    read = reading(path, FACT * 97 + "a\nb\tc\nd\te\n", max_bad=0.02)

    with pytest.raises(TooManyBadLines) as raised:
        rows_of(read)
    assert str(raised.value) == (
        f"{path}: 3 of 100 lines cannot be read, more than --max-bad 0.02 allows; most frequent: "
        rf"2 columns where 3 were expected, first at {path}:99: 'b\tc'; fix the file, or leave the lines out "
        "with --max-bad 0.03"
    )
    assert raised.value.facts == {"path": str(path), "bad": 3, "lines": 100}


def test_blank_lines_are_never_too_many(tmp_path: Path) -> None:
    assert rows_of(reading(tmp_path / "facts.txt", "\n" * 50 + FACT, max_bad=0.0)) == [RELEASE_FACT]


def test_a_broken_first_line_does_not_hide_the_format(tmp_path: Path) -> None:
    read = reading(tmp_path / "names.txt", "<fb:m.01>\tbroken\n" + NAME, "names", max_bad=1.0)
    assert rows_of(read) == [("m.01", False, "Jaws", "en")]

    cut = reading(tmp_path / "cut.txt", "oken\n" + NAME, "names", max_bad=1.0)
    assert rows_of(cut) == [("m.01", False, "Jaws", "en")]

    headed = reading(tmp_path / "headed.txt", "id\tname\nQ1\tJaws\n", "names", max_bad=1.0)
    assert rows_of(headed) == [("Q1", 0, "Jaws", "")]

    broken = reading(tmp_path / "facts.txt", "broken\n" + FACT, max_bad=1.0)
    assert rows_of(broken) == [RELEASE_FACT]


@pytest.mark.parametrize(
    ("kind", "content", "message"),
    [
        ("facts", NAME, r":1: found .*, which names or types an entity, expected facts; pass the file to --names or"),
        ("facts", "\n" + TYPE, r":2: found .*, which names or types an entity"),
        ("names", FACT, r":1: found .*, expected <fb:m.id> TAB .*; check which file the option names"),
        *(
            ("names", f"{fact}\n", ":1: found .*, expected <fb:m.id> TAB")
            for fact in (
                "Q42\tP19\tQ350",
                "ann\tborn_in\tulm",
                "/m/0abc1\t/film/film/genre\t/m/0abc2",
                "Ann\tLee\rBob\tRay",
            )
        ),
        ("types", FACT, r":1: found .*, expected <fb:m.id> TAB"),
        ("any", FACT, r":1: found .*, expected RDF \(N-Triples, .*; check"),
        (
            "facts",
            "one question a line\n",
            r":1: found 'one question a line', expected subject TAB relation TAB objects",
        ),
        ("names", "\n \n\t\n", r": found only blank lines, expected <fb:m.id> TAB"),
        ("facts", "{" + "x" * 500, r":1: found '\{x{119}'…, expected"),
    ],
)
def test_a_file_given_to_the_wrong_option_is_refused_at_its_first_line(
    tmp_path: Path, kind: str, content: str, message: str
) -> None:
    with pytest.raises(WrongFormat, match=message):
        rows_of(reading(tmp_path / "file.txt", content, kind))


def test_a_table_is_no_rdf(tmp_path: Path) -> None:
    with pytest.raises(WrongFormat, match="--rdf takes RDF, found csv"):
        rows_of(reading(tmp_path / "file.csv", "subject,relation,object\n", "any"))


@pytest.mark.parametrize(
    "content",
    [
        FACT.encode("utf-16"),
        FACT.encode("utf-16-le"),
        FACT.encode("utf-16-be"),
        b"\0" * 1000,
        bytes(range(256)) * 10,
        FACT.encode().replace(b"m/01", b"m/\xff"),
        b"<html>\n",
        FACT.replace("\n", "\r").encode() * 3,
    ],
)
@pytest.mark.parametrize("kind", ["facts", "names", "types", "any"])
@pytest.mark.parametrize("name", ["file.txt", "file.nt", "file.tsv", "file.csv", "file.jsonl"])
def test_what_is_no_data_is_an_error_of_its_file(tmp_path: Path, content: bytes, kind: str, name: str) -> None:
    path = tmp_path / name

    with pytest.raises(InputError, match=f"{path}:") as raised:
        assert rows_of(reading(path, content, kind)) == "an error"
    assert raised.value.facts["path"] == str(path)


def test_rows_of_another_kind_are_counted_with_the_line_of_the_first(tmp_path: Path) -> None:
    read = reading(tmp_path / "names.txt", NAME + TYPE + NAME + TYPE, "names")

    assert rows_of(read) == [("m.01", False, "Jaws", "en")] * 2
    assert kinds(read) == {"types in a file of names": (2, False)}
    assert "names.txt:2: " in read.skips.kinds["types in a file of names"].example


def test_rdf_gives_rows_of_every_kind(tmp_path: Path) -> None:
    read = reading(tmp_path / "dump.nt", TRIPLE + NAME.replace("\t", " ") + TYPE, "any")

    assert [batch.kind for batch in read.batches()] == ["facts", "names", "types"]


def test_the_language_of_names_is_an_option(tmp_path: Path) -> None:
    content = NAME + NAME.replace("Jaws", "Der weiße Hai").replace("@en", "@de")

    assert rows_of(reading(tmp_path / "a.txt", content, "names", language="de")) == [
        ("m.01", False, "Der weiße Hai", "de")
    ]
    assert len(rows_of(reading(tmp_path / "b.txt", content, "names", language=""))) == 2


def test_a_line_of_many_megabytes_is_read(tmp_path: Path) -> None:
    objects = " ".join(f"{FB}m/0{number:07}" for number in range(500_000))
    read = reading(tmp_path / "facts.txt", f"{FACT}{FB}m/01\t{FB}r\t{objects}\n{FACT}")

    assert sum(batch.table.num_rows for batch in read.batches()) == 500_002


def test_a_bad_line_of_many_megabytes_is_shown_in_brief(tmp_path: Path) -> None:
    read = reading(tmp_path / "facts.txt", FACT + "é" * 10_000_000 + "\n" + FACT, max_bad=1.0)

    assert len(rows_of(read)) == 2
    assert read.skips.kinds["1 columns where 3 were expected"].example.endswith("facts.txt:2: '" + "é" * 120 + "'…")


def test_control_characters_of_a_bad_line_are_shown_as_escapes(tmp_path: Path) -> None:
    read = reading(tmp_path / "facts.txt", FACT + "\x1b[2J\n", max_bad=1.0)
    rows_of(read)

    assert read.skips.kinds["1 columns where 3 were expected"].example.endswith(r"facts.txt:2: '\x1b[2J'")


def test_progress_is_told_in_bytes_of_the_file(tmp_path: Path) -> None:
    told = []
    read = reading(tmp_path / "facts.txt", FACT * 30)
    read.block, read.progress = 600, told.append

    rows_of(read)

    assert told[-1] == len(FACT) * 30
    assert told == sorted(told)
    assert len(told) > 2


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("@prefix a: <http://a/> .\na:s a:p a:o .\n", ":1: found Turtle .*use --format turtle, or name it .ttl"),
        ("# a comment\nPREFIX a: <http://a/>\n", ":2: found Turtle"),
        ("<http://a/s> <http://a/p> <http://a/o> <http://a/g> .\n", ":1: found N-Quads .*use --format n-quads"),
        ('<http://a/s> <http://a/p> "x y"@en <http://a/g> .\n', ":1: found N-Quads"),
        ("_:s <http://a/p> _:o _:g .\n", ":1: found N-Quads"),
        ('<?xml version="1.0"?>\n<rdf:RDF xmlns="http://a/">\n', r":1: found RDF/XML .*use --format rdf-xml"),
        ('<?xml version="1.0"?>\n<!DOCTYPE rdf:RDF [\n', r":1: found RDF/XML"),
        ('<?xml version="1.0"?>\n<Ontology xmlns="http://www.w3.org/2002/07/owl#">\n', ":1: found OWL/XML.*robot"),
        ("[\n  {\n", "found JSON that cannot be read|takes RDF, found (nt|tsv|csv|jsonl)"),
    ],
)
@pytest.mark.parametrize("name", ["k.nt", "k.tsv", "k.csv", "k.jsonl"])
@pytest.mark.parametrize("kind", ["facts", "any"])
def test_a_syntax_that_the_suffix_belies_is_refused_by_name(
    tmp_path: Path, content: str, message: str, name: str, kind: Any
) -> None:
    with pytest.raises(WrongFormat, match=message):
        rows_of(reading(tmp_path / name, content, kind))


@pytest.mark.parametrize(
    ("content", "advice"),
    [
        ("Q1;capital;Q2\n", "and columns separated by semicolons, use --format csv"),
        ("Q1|capital|Q2\n", "and columns separated by bars, use --format csv"),
        ("Q1  capital  Q2\n", "and columns separated by several spaces, use tabs between"),
        ('{"subject": "a"}\n', "name JSON Lines .jsonl, or use --format jsonl"),
    ],
)
def test_a_line_that_looks_like_a_table_says_how_to_give_it(tmp_path: Path, content: str, advice: str) -> None:
    with pytest.raises(WrongFormat) as raised:
        rows_of(reading(tmp_path / "facts.txt", content))

    assert advice in str(raised.value)


def test_a_format_may_be_given(tmp_path: Path) -> None:
    content = "subject;relation;object\na;r;b\n"

    assert rows_of(reading(tmp_path / "facts.txt", content, format="csv")) == [("a", "r", "b")]
    with pytest.raises(UnknownPlugin, match="no reader 'xml'; known: "):
        rows_of(reading(tmp_path / "facts.txt", content, format="xml"))


def test_the_format_of_a_source_counts_before_that_of_all(tmp_path: Path) -> None:
    (tmp_path / "facts.txt").write_text("subject;relation;object\na;r;b\n")
    read = Reading(Source(tmp_path / "facts.txt", "facts", format="csv"), ReadOptions(format="n-triples"))

    assert rows_of(read) == [("a", "r", "b")]


def test_one_bad_line_of_a_thousand_is_left_out_by_default(tmp_path: Path) -> None:
    assert len(rows_of(reading(tmp_path / "facts.txt", FACT * 999 + "odd\n"))) == 999
    with pytest.raises(TooManyBadLines):
        rows_of(reading(tmp_path / "facts.txt", FACT * 998 + "odd\n" * 2))


@pytest.mark.parametrize("columns", [{"id": "key", "name": "n"}, {"entity": "key", "name": ["n"]}])
def test_columns_of_entities_are_named_by_their_roles(columns: dict[str, Any]) -> None:
    others = {role: role[0] for role in ("alias", "type", "description", "link")}

    assert wide_of({**columns, **others}, sheet="s", query="q") == Wide(
        "key", ("n",), ("a",), ("t",), ("d",), ("l",), query="q", sheet="s"
    )


def test_blank_nodes_are_named_after_their_file(tmp_path: Path) -> None:
    line = "_:b0 <http://a/p> <http://a/o> .\n"

    ((one, *_),) = rows_of(reading(tmp_path / "one.nt", line, "any"))
    ((same, *_),) = rows_of(reading(tmp_path / "same.nt.gz", gzip.compress(line.encode()), "any"))
    other = rows_of(reading(tmp_path / "other.nt", line + TRIPLE, "any"))[0][0]

    assert one == same
    assert one != other
    assert one.endswith(".b0")


def test_a_file_most_of_which_is_bad_is_never_to_be_left_out(tmp_path: Path) -> None:
    with pytest.raises(TooManyBadLines, match="check that it is passed to the right option") as raised:
        rows_of(reading(tmp_path / "facts.txt", FACT * 2 + "odd\n" * 18))

    assert "leave them out" not in str(raised.value)
