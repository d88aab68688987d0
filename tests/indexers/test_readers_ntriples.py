"""N-Triples: Freebase's dump, Wikidata's and anyone's, clean or not."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbtools.indexers.readers.batches import ALIAS, Block, Rows, Skips
from kbtools.indexers.readers.ntriples import NTriplesReader
from kbtools.indexers.readers.reading import Predicates, ReadOptions, Source

NS = "http://rdf.freebase.com/ns/"
WD = "http://www.wikidata.org/"
LABEL = "<http://www.w3.org/2000/01/rdf-schema#label>"
GOOD = "<http://a/s> <http://a/p> <http://a/o> ."
FACT = ("http://a/s", "http://a/p", "http://a/o")


def read_block(block: Block, *, language: str = "en", predicates: Predicates | None = None) -> tuple[Rows, Skips]:
    skips = Skips("file", 1.0)
    options = ReadOptions(language=language, predicates=predicates or Predicates())
    return NTriplesReader(Source(Path("file"), "any"), options, skips).read_block(block), skips


def read(*lines: str, language: str = "en", first: int = 1, predicates: Predicates | None = None) -> tuple[Rows, Skips]:
    text = "".join(line + "\n" for line in lines).encode()
    return read_block(Block(text, first), language=language, predicates=predicates)


def test_freebase_dump_lines_give_facts_names_aliases_and_types() -> None:
    rows, skips = read(
        f"<{NS}m.01>\t<{NS}film.film.directed_by>\t<{NS}m.02>\t.",
        f'<{NS}m.01>\t<{NS}type.object.name>\t"Jaws"@en\t.',
        f'<{NS}m.01>\t<{NS}common.topic.alias>\t"The Shark"@en\t.',
        f"<{NS}m.01>\t<{NS}type.object.type>\t<{NS}film.film>\t.",
        f'<{NS}m.01>\t<http://rdf.freebase.com/key/wikipedia.en>\t"Jaws_$0028film$0029"\t.',
    )

    assert rows.names == [("m.01", 0, "Jaws", "en"), ("m.01", ALIAS, "The Shark", "en")]
    assert rows.types == [("m.01", "film.film")]
    assert rows.facts == [
        ("m.01", "film.film.directed_by", "m.02"),
        ("m.01", "http://rdf.freebase.com/key/wikipedia.en", '"Jaws_$0028film$0029"'),
    ]
    assert (skips.lines, skips.kinds) == (5, {})


def test_wikidata_truthy_lines_give_types_facts_and_labels() -> None:
    rows, _ = read(
        f"<{WD}entity/Q42> <{WD}prop/direct/P31> <{WD}entity/Q5> .",
        f"<{WD}entity/Q42> <{WD}prop/direct/P19> <{WD}entity/Q350> .",
        f'<{WD}entity/Q42> {LABEL} "Douglas Adams"@en .',
    )

    assert rows.types == [(f"{WD}entity/Q42", f"{WD}entity/Q5")]
    assert rows.facts == [
        (f"{WD}entity/Q42", f"{WD}prop/direct/P31", f"{WD}entity/Q5"),
        (f"{WD}entity/Q42", f"{WD}prop/direct/P19", f"{WD}entity/Q350"),
    ]
    assert rows.names == [(f"{WD}entity/Q42", False, "Douglas Adams", "en")]


def test_the_release_spelling_of_predicates_is_known_too() -> None:
    rows, _ = read('<fb:m.01> <fb:type.object.name> "Jaws"@en .', "<fb:m.01> <fb:type.object.type> <fb:film.film> .")

    assert rows.names == [("m.01", False, "Jaws", "en")]
    assert rows.types == [("m.01", "film.film")]


@pytest.mark.parametrize("spelling", ["http://my/title", "<http://my/title>"])
def test_predicates_are_configurable_in_any_spelling(spelling: str) -> None:
    mine = Predicates(name=frozenset({spelling}), alias=frozenset({"http://my/nick"}), type=frozenset())
    rows, _ = read(
        '<http://a/s> <http://my/title> "Name" .',
        '<http://a/s> <http://my/nick> "Nick" .',
        f'<http://a/s> {LABEL} "a plain fact now" .',
        predicates=mine,
    )

    assert rows.names == [("http://a/s", False, "Name", ""), ("http://a/s", ALIAS, "Nick", "")]
    assert rows.facts == [("http://a/s", LABEL[1:-1], '"a plain fact now"')]


def test_blank_nodes_typed_literals_and_escapes_are_kept_as_n_triples_spell_them() -> None:
    rows, _ = read(
        "_:b1 <http://a/p> _:b2 .",
        '<http://a/s> <http://a/p> "3"^^<http://www.w3.org/2001/XMLSchema#int> .',
        r'<http://a/s> <http://a/p> "say \"\u00e4\"" .',
    )

    assert [fact[2] for fact in rows.facts] == [
        "_:b2",
        '"3"^^<http://www.w3.org/2001/XMLSchema#int>',
        r'"say \"ä\""',
    ]
    assert rows.facts[0][0] == "_:b1"


@pytest.mark.parametrize(
    ("literal", "name"),
    [
        (r'"12\""@en', '12"'),
        (r'"says \"x\"@en twice"@en', 'says "x"@en twice'),
        (r'"\\"@en', "\\"),
        (r'"\ud83d\ude00"@en', "😀"),
        (r'"\U0001F600"@en', "😀"),
        ('"Colour"@en-GB', "Colour"),
        ('"untagged"', "untagged"),
        ('"a\ttab"@en', "a\ttab"),
        ('"#1 . <x> "@en', "#1 . <x> "),
        (r'"\n two lines \r"@en', "\n two lines \r"),
    ],
)
def test_a_label_gives_the_name_it_spells(literal: str, name: str) -> None:
    rows, skips = read(f"<http://a/s> {LABEL} {literal} . # a comment")

    assert [row[:3] for row in rows.names] == [("http://a/s", False, name)]
    assert skips.kinds == {}


BROKEN = [
    "no triple at all",
    f'<http://a/s> {LABEL} "never closed .',
    f'<http://a/s> {LABEL} "closed too late\\"@en .',
    "<http://a/s> <http://a/p>",
    "<http://a/s> <http://a/p> <http://a/o>",
    "<http://a/s> <http://a/p> <http://a/o> . rest",
    f"{GOOD} {GOOD}",
    f"{GOOD}\r{GOOD}",
    f'<http://a/s> {LABEL} "half a pair \\ud83d"@en .',
    f'<http://a/s> {LABEL} "no such escape \\q"@en .',
    "<http://a/s <http://a/p> <http://a/o> .",
    "<<<<<<<<",
]


@pytest.mark.parametrize("line", BROKEN)
def test_a_broken_line_is_counted_at_its_number_and_the_rest_is_read(line: str) -> None:
    rows, skips = read(GOOD, "# comment", "", line, GOOD, f'<http://a/s> {LABEL} "x"@en .', first=11)

    assert (rows.facts, len(rows.names)) == ([FACT, FACT], 1)
    assert skips.kinds["invalid N-Triple"].count == skips.bad == 1
    assert skips.kinds["invalid N-Triple"].example.startswith("file:14: ")
    assert skips.lines == 6


def test_all_broken_lines_are_one_kind_with_the_reason_of_the_first() -> None:
    _, skips = read(*BROKEN)

    assert (list(skips.kinds), skips.bad) == (["invalid N-Triple"], len(BROKEN))
    assert "The subject of a triple must be" in skips.kinds["invalid N-Triple"].example


def test_two_broken_lines_that_look_like_one_triple_are_two() -> None:
    rows, skips = read(f'<http://a/s> {LABEL} "open .', f'<http://a/s> {LABEL} " .')

    assert (len(rows), skips.bad) == (0, 2)


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (b"<http://a/\xff> <http://a/p> <http://a/o> .", "invalid UTF-8"),
        (b"<http://a/\0> <http://a/p> _:o .", "NUL byte"),
    ],
)
def test_a_line_that_is_no_text_costs_itself_alone(line: bytes, kind: str) -> None:
    rows, skips = read_block(Block(b"\n".join([GOOD.encode(), line, GOOD.encode(), b""]), 1))

    assert rows.facts == [FACT, FACT]
    assert {name: skip.count for name, skip in skips.kinds.items()} == {kind: 1}
    assert skips.kinds[kind].example.startswith("file:2: ")


@pytest.mark.parametrize(
    ("line", "kind", "bad"),
    [
        (f'<http://a/s> {LABEL} "Moskau"@de .', "literal in a language other than 'en'", False),
        (f'<http://a/s> {LABEL} " "@en .', "an empty name", True),
        (f'<http://a/s> {LABEL} "a\\u0000b"@en .', "NUL byte", True),
        ('<http://a/s> <http://a/p> "a\\u0000b"@en .', "NUL byte", True),
    ],
)
@pytest.mark.parametrize("before", [GOOD, "", "# a comment", "broken"])
def test_a_triple_that_is_left_out_is_shown_where_it_stands(before: str, line: str, kind: str, bad: bool) -> None:
    _, skips = read(GOOD, before, line, first=5)

    assert (skips.kinds[kind].count, skips.kinds[kind].bad) == (1, bad)
    assert skips.kinds[kind].example.startswith("file:7: ")


def test_any_language_is_read_where_none_is_asked() -> None:
    rows, _ = read(f'<http://a/s> {LABEL} "Moskau"@de .', f'<http://a/s> {LABEL} "Moscow"@en .', language="")

    assert [name[2] for name in rows.names] == ["Moskau", "Moscow"]


def test_line_ends_of_windows_change_nothing() -> None:
    rows, skips = read(GOOD + "\r", GOOD + "\r")

    assert (rows.facts, skips.kinds) == ([FACT, FACT], {})


def test_comments_and_blank_lines_are_counted_and_are_no_fault() -> None:
    _, skips = read("# one", "", "  # two", GOOD)

    assert {name: (skip.count, skip.bad) for name, skip in skips.kinds.items()} == {
        "comment": (2, False),
        "blank line": (1, False),
    }


LINE = st.one_of(
    st.just(GOOD),
    st.just(f'<http://a/s> {LABEL} "x"@en .'),
    st.sampled_from([*BROKEN, "", "# comment"]),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"), max_size=8),
)


@settings(deadline=None, max_examples=150)
@given(st.lists(LINE, min_size=1, max_size=5))
def test_a_block_gives_what_its_lines_give_one_by_one(lines: str) -> None:
    rows, skips = read(*lines)
    alone = [read(line) for line in lines]

    assert rows.facts == [fact for found, _ in alone for fact in found.facts]
    assert rows.names == [name for found, _ in alone for name in found.names]
    assert (skips.bad, skips.lines) == (sum(found.bad for _, found in alone), len(lines))


def test_a_type_is_a_fact_too_but_for_freebases() -> None:
    rdf_type = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
    rows, _ = read(f"<http://a/s> {rdf_type} <http://a/T> .", f"<{NS}m.01> <{NS}type.object.type> <{NS}film.film> .")

    assert rows.types == [("http://a/s", "http://a/T"), ("m.01", "film.film")]
    assert rows.facts == [("http://a/s", rdf_type[1:-1], "http://a/T")]


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("Barry_O$0027Branagh", "Barry O'Branagh"),
        ("Gil_Garc$00EDa_M$00E1rcos", "Gil García Márcos"),
        ("Plain_Key_$0028film$0029", "Plain Key (film)"),
        ("costs_$5_and_$12", "costs $5 and $12"),
    ],
)
def test_a_key_of_freebase_that_serves_as_a_name_is_decoded(key: str, name: str) -> None:
    predicates = Predicates(alias=frozenset({"http://rdf.freebase.com/key/wikipedia.en"}))
    rows, _ = read(f'<{NS}m.01> <http://rdf.freebase.com/key/wikipedia.en> "{key}" .', predicates=predicates)

    assert rows.names == [("m.01", ALIAS, name, "")]


def test_half_a_pair_of_surrogates_in_a_key_is_a_bad_line() -> None:
    predicates = Predicates(name=frozenset({"http://rdf.freebase.com/key/en"}))
    rows, skips = read(f'<{NS}m.01> <http://rdf.freebase.com/key/en> "$D83D" .', predicates=predicates)

    assert (rows.names, list(skips.kinds)) == ([], ["half a surrogate pair"])


RDFS, SKOS, SCHEMA = "http://www.w3.org/2000/01/rdf-schema#", "http://www.w3.org/2004/02/skos/core#", "schema.org/"


@pytest.mark.parametrize(
    ("kind", "predicates"),
    [
        ("names", [f"{RDFS}label", f"{SKOS}prefLabel", f"http://{SCHEMA}name", f"https://{SCHEMA}name"]),
        ("names", [f"{SKOS}altLabel", f"{NS}common.topic.alias", "https://schema.org/alternateName"]),
        ("names", ["http://xmlns.com/foaf/0.1/name", "http://purl.org/dc/terms/title"]),
        ("descriptions", [f"http://{SCHEMA}description", f"https://{SCHEMA}description", f"{SKOS}definition"]),
        ("descriptions", [f"{RDFS}comment", "http://purl.org/dc/terms/description"]),
        ("types", ["http://www.w3.org/1999/02/22-rdf-syntax-ns#type", f"{WD}prop/direct/P31"]),
        ("redirects", ["http://www.w3.org/2002/07/owl#sameAs", f"{NS}dataworld.gardening_hint.replaced_by"]),
    ],
)
def test_the_usual_predicates_are_known_by_default(kind: Any, predicates: list[str]) -> None:
    value = "<http://a/T>" if kind in ("types", "redirects") else '"T"@DE-at'
    rows, _ = read(*(f"<http://a/s> <{predicate}> {value} ." for predicate in predicates), language="")

    assert len(rows.of(kind)) == len(predicates)
    assert {row[-1] for row in rows.of(kind)} == {"http://a/T" if "T>" in value else "de-at"}


@pytest.mark.parametrize("predicate", [f"{RDFS}subClassOf", f"{WD}prop/direct/P279"])
@pytest.mark.parametrize(("closure", "parents"), [({}, []), ({"closure": True}, [("http://a/s", "http://a/T")])])
def test_superclasses_are_read_where_asked(closure: Any, parents: list[tuple[str, str]], predicate: str) -> None:
    reader = NTriplesReader(Source(Path("file"), "any"), ReadOptions(**closure), Skips("file", 1.0))
    rows = reader.read_block(Block(f"<http://a/s> <{predicate}> <http://a/T> .\n".encode(), 1))

    assert (rows.subclasses, rows.facts) == (parents, [("http://a/s", predicate, "http://a/T")])


def test_what_is_the_same_is_no_fact() -> None:
    rows, _ = read("<http://a/s> <http://www.w3.org/2002/07/owl#sameAs> <http://b/s> .")

    assert (rows.redirects, rows.facts) == ([("http://a/s", "http://b/s")], [])


def test_a_literal_longer_than_the_parser_takes_is_a_bad_line() -> None:
    rows, skips = read(GOOD, f'<http://a/s> <http://a/p> "{"x" * (17 << 20)}" .', GOOD)

    assert rows.facts == [FACT, FACT]
    assert "a term of over 16 MiB" in skips.kinds["invalid N-Triple"].example
