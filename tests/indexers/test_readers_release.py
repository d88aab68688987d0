"""The release's formats: what each line gives, and that columns and lines give the same."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from kbtools.indexers.readers.batches import ALIAS as ALIAS_RANK
from kbtools.indexers.readers.batches import Block, RecordBatch, Rows, Skips, read_lines
from kbtools.indexers.readers.labels import Languages
from kbtools.indexers.readers.release import (
    fact_reader,
    facts_in_columns,
    statement_reader,
    statements_in_columns,
)

FB = "www.freebase.com/"
NAME, ALIAS, TYPE = "<fb:type.object.name>", "<fb:common.topic.alias>", "<fb:type.object.type>"


often = settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.filter_too_much])
"""Most nasty lines are left to the line reader, rightly, and `assume` finds the blocks with others."""


def in_columns(lines: list[str], read: Callable[[Block], RecordBatch | None]) -> Block:
    """Make a block of the lines that the reader of columns would take alone, since one that it leaves rules out all."""
    blocks = [Block(f"{line}\n".encode(), 3) for line in lines]
    return Block(b"".join(block.text for block in blocks if read(block) is not None), 3)


def fact_line(subject: str = "m/01", relation: str = "film/film/genre", objects: Iterable[str] = ("m/02",)) -> str:
    return "\t".join([FB + subject, FB + relation, " ".join(FB + entity for entity in objects)])


def by_lines(block: Block, read: Callable[..., Any]) -> tuple[Any, Skips]:
    skips = Skips("file", 0.0)
    return read_lines(block, read, skips), skips


def read_facts(*lines: str) -> tuple[Any, Skips]:
    return by_lines(Block("".join(line + "\n" for line in lines).encode(), 1), fact_reader())


def read_statements(*lines: str, language: str = "en") -> tuple[Any, Skips]:
    return by_lines(Block("".join(line + "\n" for line in lines).encode(), 1), statement_reader(language))


def rows_of(batches: Iterable[RecordBatch]) -> list[tuple[Any, ...]]:
    return [(batch.kind, *row.values()) for batch in batches for row in batch.table.to_pylist()]


def kinds(skips: Skips) -> dict[str, tuple[int, bool]]:
    return {skip.kind: (skip.count, skip.bad) for skip in skips.kinds.values()}


# --- facts


def test_a_line_of_facts_gives_one_fact_an_object() -> None:
    rows, _ = read_facts(fact_line(objects=("m/02", "m/03")))

    assert rows.facts == [("m.01", "film.film.genre", "m.02"), ("m.01", "film.film.genre", "m.03")]


@pytest.mark.parametrize("objects", ["New York City", "Q2 Q3", "a  b"])
def test_words_with_spaces_are_one_object_and_noticed(objects: str) -> None:
    rows, skips = read_facts(f"Q1\tcapital\t{objects}", f"Q2\tcapital\t{objects}")

    assert rows.facts == [("Q1", "capital", objects), ("Q2", "capital", objects)]
    assert skips.notes == [f"file:1: an object with spaces, taken as one: {objects!r}; --list-separator ' ' splits it"]


def test_a_separator_divides_objects_with_words_and_ids() -> None:
    block = Block(b"Q1\tr\tx m.0abc|Q2\nQ1\tr\tx m.0abc\n", 1)
    rows, skips = by_lines(block, fact_reader("|"))

    assert rows.facts == [("Q1", "r", "x m.0abc"), ("Q1", "r", "Q2")]
    assert kinds(skips) == {"an id of Freebase among words": (1, True)}


@pytest.mark.parametrize("objects", ["/m/01 m.02", "ns:m.01 fb:m.02", f"{FB}m/01 m/02"])
def test_every_spelling_of_freebases_ids_divides_objects(objects: str) -> None:
    assert [fact[2] for fact in read_facts(f"/m/01\tr\t{objects}")[0].facts] == ["m.01", "m.02"]


def test_an_id_of_freebase_among_words_is_bad() -> None:
    assert kinds(read_facts(f"Q1\tr\t{FB}m/01 New York")[1]) == {"an id of Freebase among words": (1, True)}


def test_a_separator_divides_objects() -> None:
    block = Block(b"Q1\tr\tNew York| Rome\n", 1)

    assert [fact[2] for fact in by_lines(block, fact_reader("|"))[0].facts] == ["New York", "Rome"]


def test_a_header_of_facts_is_left_out_at_the_first_line_alone() -> None:
    rows, skips = read_facts("subject\trelation\tobject", "Q1\tr\tQ2", "subject\trelation\tobject")

    assert [fact[0] for fact in rows.facts] == ["Q1", "subject"]
    assert kinds(skips) == {"a header": (1, False)}


def test_a_line_end_of_windows_is_no_part_of_an_object() -> None:
    rows, skips = read_facts(fact_line() + "\r")

    assert rows.facts == [("m.01", "film.film.genre", "m.02")]
    assert skips.kinds == {}


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("", "blank line"),
        (" \t \t ", "blank line"),
        (f"{FB}m/01\t{FB}r", "2 columns where 3 were expected"),
        (fact_line() + "\tx", "4 columns where 3 were expected"),
        (f"\t{FB}r\t{FB}m/02", "an empty column"),
        (f"{FB}m/01\t \t{FB}m/02", "an empty column"),
        (f"{FB}m/01\t{FB}r\t ", "an empty column"),
        (f"{FB}\t{FB}r\t{FB}m/02", "an empty column"),
        (f"{FB}m/01\t{FB}r\t{FB} {FB}m/02", "an empty column"),
        (fact_line("m/0\0"), "NUL byte"),
    ],
)
def test_a_line_without_a_fact_is_counted_where_it_stands(line: str, kind: str) -> None:
    rows, skips = read_facts(fact_line(), line, fact_line())

    assert len(rows.facts) == 2
    assert list(skips.kinds) == [kind]
    assert skips.kinds[kind].example.startswith("file:2: ")


def test_invalid_utf_8_costs_its_own_line_alone() -> None:
    block = Block(b"\xff\xfe\n" + fact_line().encode() + b"\n", 5)
    rows, skips = by_lines(block, fact_reader())

    assert rows.facts == [("m.01", "film.film.genre", "m.02")]
    assert skips.kinds["invalid UTF-8"].example == r"file:5: '\\xff\\xfe'"


PIECES = st.sampled_from(
    [
        FB,
        "m/01",
        "m/02",
        "a.b",
        "/",
        " ",
        "\t",
        "\r",
        "\n",
        "é",
        "\u00a0",
        "\u2028",
        "\x0b",
        "\x1c",
        "\ufeff",
        '"',
        "\\",
        "\0",
    ]
)
FIELD = st.lists(PIECES, max_size=4).map("".join)
CLEAN_ID = st.sampled_from(["m/01", "m/02", "g/11é", "people/person/x"])
ID = st.one_of(CLEAN_ID, CLEAN_ID, st.text(st.characters(exclude_categories=["Cs"]), max_size=3), FIELD)
CLEAN_FACT = st.builds(fact_line, ID, ID, st.lists(ID, min_size=1, max_size=3))
ANY_LINE = st.lists(FIELD, max_size=5).map("\t".join)


@pytest.mark.parametrize("subject", [" www.freebase.com/m/01", "m/01 www.freebase.com/m/02"])
def test_a_subject_with_a_prefix_inside_is_read_by_lines(subject: str) -> None:
    assert facts_in_columns(Block((fact_line(subject, "a/b", ["m/02"]) + "\n").encode(), 1)) is None
    assert facts_in_columns(Block((fact_line("m/01", subject, ["m/02"]) + "\n").encode(), 1)) is None


@often
@given(st.lists(st.one_of(CLEAN_FACT, CLEAN_FACT, CLEAN_FACT, ANY_LINE), min_size=1, max_size=3))
def test_facts_in_columns_are_the_facts_in_lines(lines: list[str]) -> None:
    block = in_columns(lines, facts_in_columns)
    assume(block.text)
    batch = facts_in_columns(block)
    assume(batch is not None)
    assert batch is not None

    rows, skips = by_lines(block, fact_reader())

    assert rows_of([batch]) == rows_of(rows.batches())
    assert skips.kinds == {}


@pytest.mark.parametrize(
    "line",
    [
        f"{FB}m/0x{FB}y\trelation\t{FB}m/02",
        f"{FB}\t{FB}r\t{FB}m/02",
        f"{FB}m/01\t{FB}r\t{FB} {FB}m/02",
        f"{FB}m/01\t{FB}r\t{FB}m/02 {FB}",
        fact_line() + "\r",
        fact_line() + " ",
        "\ufeff" + fact_line(),
    ],
)
def test_an_unclean_line_of_facts_is_left_to_the_line_reader(line: str) -> None:
    assert facts_in_columns(Block(f"{line}\n{fact_line()}\n".encode(), 1)) is None


def test_a_byte_order_mark_inside_an_id_is_read_alike() -> None:
    block = Block((fact_line("\ufeffm/01") + "\n").encode(), 1)
    rows, _ = by_lines(block, fact_reader())

    assert (
        rows_of([facts_in_columns(block)])
        == rows_of(rows.batches())
        == [("facts", "\ufeffm.01", "film.film.genre", "m.02")]
    )


def test_clean_facts_are_read_in_columns() -> None:
    batch = facts_in_columns(Block((fact_line("m/0é") + "\n" + fact_line(objects=("m/02", "m/03")) + "\n").encode(), 9))

    assert rows_of([batch]) == [
        ("facts", "m.0é", "film.film.genre", "m.02"),
        ("facts", "m.01", "film.film.genre", "m.02"),
        ("facts", "m.01", "film.film.genre", "m.03"),
    ]
    assert batch.line == 9


# --- names and types


def statement(predicate: str, value: str, entity: str = "<fb:m.01>") -> str:
    return f"{entity}\t{predicate}\t{value}\t."


def test_names_aliases_and_types_are_told_apart() -> None:
    rows, _ = read_statements(
        statement(NAME, '"Harry Potter"@en'), statement(ALIAS, '"Potter"@en'), statement(TYPE, "<fb:book.character>")
    )

    assert rows.names == [("m.01", False, "Harry Potter", "en"), ("m.01", ALIAS_RANK, "Potter", "en")]
    assert rows.types == [("m.01", "book.character")]


@pytest.mark.parametrize(
    ("literal", "text"),
    [
        (r'"Milton \"Bill\" Finger"@en', 'Milton "Bill" Finger'),
        ('"Milton "Bill" Finger"@en', 'Milton "Bill" Finger'),
        (r'"12\""@en', '12"'),
        (r'"AC\\DC"@en', r"AC\DC"),
        (r'"ends in \\"@en', "ends in \\"),
        (r'"lone \ backslash"@en', r"lone \ backslash"),
        ('"says "hello"@en to all"@en', 'says "hello"@en to all'),
        (r'"tab\tand\nline"@en', "tab\tand\nline"),
        (r'"Syrj\u00e4"@en', "Syrjä"),
        (r'"\U0001F600"@en', "😀"),
        (r'"\ud83d\ude00"@en', "😀"),
        (r'"\uD83D\uDE00\uD83D"@en', "😀\\uD83D"),
        (r'"\ud83dx\ude00"@en', r"\ud83dx\ude00"),
        (r'"\\ud83d\\ude00"@en', r"\ud83d\ude00"),
        (r'"\u12"@en', r"\u12"),
        (r'"\U00110000"@en', r"\U00110000"),
        ('"untagged"', "untagged"),
        ('"Colour"@en-GB', "Colour"),
        ('"1984"^^<http://www.w3.org/2001/XMLSchema#string>', "1984"),
        ('" spaced "@en', " spaced "),
        ('"!!!"@en', "!!!"),
        ('"it\'s"@en', "it's"),
    ],
)
def test_a_literal_gives_the_name_it_spells(literal: str, text: str) -> None:
    rows, skips = read_statements(statement(NAME, literal))

    assert [row[:3] for row in rows.names] == [("m.01", False, text)]
    assert skips.kinds == {}


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (statement(NAME, '"a"@en')[:-2], "3 columns where 4, the last a dot, were expected"),
        (statement(NAME, '"a\tb"@en'), "5 columns where 4, the last a dot, were expected"),
        (statement(NAME, '"a"@en').replace(".", ","), "4 columns where 4, the last a dot, were expected"),
        (statement(NAME, '"a"@en', "<fb:>"), "an empty column"),
        (statement(NAME, "  "), "an empty column"),
        (statement(TYPE, "<fb:>"), "an empty column"),
        (statement(NAME, "bare"), "a name that is not a quoted literal"),
        (statement(NAME, '"@en'), "a name that is not a quoted literal"),
        (statement(NAME, '"open@en'), "a name that is not a quoted literal"),
        (statement(NAME, '"a"@en extra'), "a name that is not a quoted literal"),
        (statement(NAME, '""@en'), "an empty name"),
        (statement(NAME, '"\u00a0 "@en'), "an empty name"),
        (statement(NAME, r'"\n\t"@en'), "an empty name"),
        (statement(NAME, r'"a\u0000b"@en'), "NUL byte"),
    ],
)
def test_a_bad_statement_is_counted_where_it_stands(line: str, kind: str) -> None:
    good = statement(NAME, '"good"@en')
    rows, skips = read_statements(good, line, good)

    assert len(rows) == 2
    assert kinds(skips) == {kind: (1, True)}
    assert skips.kinds[kind].example.startswith("file:2: ")


def test_other_predicates_are_one_kind_however_many_there_are() -> None:
    lines = [statement(f"<fb:other.predicate.{number}>", '"x"@en') for number in range(50)]
    _, skips = read_statements(*lines)

    assert kinds(skips) == {"a predicate other than name, alias or type": (50, False)}


def test_names_in_other_languages_are_left_out_and_are_no_fault() -> None:
    rows, skips = read_statements(statement(NAME, '"Moskau"@de'), statement(NAME, '"Moscow"@en'))

    assert rows.names == [("m.01", False, "Moscow", "en")]
    assert kinds(skips) == {"name in a language other than 'en'": (1, False)}


def test_names_in_a_later_language_rank_below_the_first_and_above_aliases() -> None:
    lines = [statement(NAME, '"Moskau"@de'), statement(NAME, '"Moscow"@en'), statement(ALIAS, '"Moskwa"@de')]
    rows, _ = read_statements(*lines, language="en,de")

    assert [row[1:3] for row in rows.names] == [(1, "Moskau"), (0, "Moscow"), (ALIAS_RANK, "Moskwa")]


@pytest.mark.parametrize(
    ("tag", "language", "spoken"),
    [
        ("en", "en", True),
        ("EN", "en", True),
        ("en-GB", "en", True),
        ("en", "en-GB", False),
        ("eng", "en", False),
        ("de", "en", False),
        ("de", "", True),
        (None, "en", True),
    ],
)
def test_a_tag_speaks_its_language_and_its_regions(tag: str | None, language: str, spoken: bool) -> None:
    assert (Languages.read(language)[tag] is not None) is spoken


TEXT = st.lists(
    st.sampled_from(
        [
            "a",
            "é",
            "😀",
            '"',
            "\\",
            "\\u0041",
            " ",
            "\u00a0",
            "\u2028",
            "\x0b",
            "\x1c",
            "\t",
            "\r",
            "\ufeff",
            "@en",
            "\0",
        ]
    ),
    max_size=5,
).map("".join)
ENTITY = st.one_of(
    st.sampled_from(
        [
            "<fb:m.01>",
            "<fb:m.0é>",
            "<fb:>",
            "fb:m.02",
            "\ufeff<fb:m.03>",
            "<fb:<fb:m.04>>",
            " <fb:m.05> ",
            "<fb:a\u00a0>",
        ]
    ),
    TEXT.map("<fb:{}>".format),
)
LITERAL = st.builds('"{}"{}'.format, TEXT, st.sampled_from(["@en", "@en", "@en-GB", "@de", "", "^^<x>", '"@en']))
VALUE = st.one_of(LITERAL, LITERAL, TEXT, TEXT.map('{}"@en'.format), ENTITY)
PREDICATE = st.sampled_from([NAME, NAME, ALIAS, TYPE, "<fb:other>", "fb:type.object.name"])
LINE = st.builds("{}\t{}\t{}\t{}".format, ENTITY, PREDICATE, VALUE, st.sampled_from([".", ".", ".", " .", ""]))
TYPE_LINE = st.builds("{}\t{}\t{}\t.".format, ENTITY, st.just(TYPE), ENTITY)
NAME_LINE = st.builds("{}\t{}\t{}\t.".format, ENTITY, st.sampled_from([NAME, ALIAS]), VALUE)


@often
@given(
    lines=st.one_of(*(st.lists(line, min_size=1, max_size=3) for line in (LINE, NAME_LINE, TYPE_LINE))),
    language=st.sampled_from(["en", "", "EN", "en-GB", "de"]),
)
def test_statements_in_columns_are_the_statements_in_lines(lines: list[str], language: str) -> None:
    block = in_columns(lines, lambda block: statements_in_columns(block, language))
    assume(block.text)
    batch = statements_in_columns(block, language)
    assume(batch is not None)
    assert batch is not None

    rows, skips = by_lines(block, statement_reader(language))

    assert rows_of([batch]) == rows_of(rows.batches())
    assert skips.kinds == {}


@pytest.mark.parametrize(
    "line",
    [
        statement(NAME, '"@en'),
        statement(NAME, '""@en'),
        statement(NAME, '"\u00a0"@en'),
        statement(NAME, '"x"@en', "<fb:>"),
        statement(NAME, r'"a\u0000b"@en'),
        statement(NAME, r'"\n"@en'),
        statement(NAME, '"x"@de'),
        statement(TYPE, "<fb:>"),
    ],
)
def test_an_unclean_statement_is_left_to_the_line_reader(line: str) -> None:
    assert statements_in_columns(Block(f"{line}\n".encode(), 1), "en") is None


def test_clean_names_are_read_in_columns() -> None:
    lines = [statement(NAME, '"😀 Ångström"@en'), statement(ALIAS, r'"a"@en \"b\""@en'), ""]
    block = Block("\n".join(lines).encode(), 1)

    batch = statements_in_columns(block, "en")

    assert batch is not None
    assert rows_of([batch]) == [
        ("names", "m.01", False, "😀 Ångström", "en"),
        ("names", "m.01", ALIAS_RANK, 'a"@en "b"', "en"),
    ]


def test_clean_types_are_read_in_columns() -> None:
    block = Block(f"{statement(TYPE, '<fb:film.film>')}\n".encode(), 1)

    batch = statements_in_columns(block, "en")

    assert batch is not None
    assert rows_of([batch]) == [("types", "m.01", "film.film")]


def test_rows_remember_the_first_line_of_each_kind() -> None:
    rows, _ = read_statements(statement(TYPE, "<fb:t>"), statement(TYPE, "<fb:t>"), statement(NAME, '"a"@en'))

    assert rows.lines == {"types": 1, "names": 3}


def test_no_rows_give_no_batch() -> None:
    assert list(Rows().batches()) == []
