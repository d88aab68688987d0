"""Ids: one canonical form for every way of writing one, and literals told from entities."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbtools.kb.ids import (
    canonical_id,
    canonical_property,
    is_freebase,
    is_literal,
    literal_text,
    other_spellings,
    split_literal,
    unescape,
)


@pytest.mark.parametrize(
    "spelling",
    [
        "m.01_x",
        "/m/01_x",
        "m/01_x",
        "www.freebase.com/m/01_x",
        "http://www.freebase.com/m/01_x",
        "https://freebase.com/m/01_x",
        "<fb:m.01_x>",
        "fb:m.01_x",
        "ns:m.01_x",
        "http://rdf.freebase.com/ns/m.01_x",
        "<http://rdf.freebase.com/ns/m.01_x>",
    ],
)
def test_every_spelling_of_an_id_is_one(spelling: str) -> None:
    assert canonical_id(spelling) == "m.01_x"


@pytest.mark.parametrize(
    ("spelling", "canonical"),
    [
        ("www.freebase.com/film/film/genre", "film.film.genre"),
        ("<fb:film.film.genre>", "film.film.genre"),
        ("http://rdf.freebase.com/ns/film.film.genre", "film.film.genre"),
        ("<fb:common>", "common"),
        ("/g/11b6", "g.11b6"),
        ("<http://www.wikidata.org/entity/Q42>", "http://www.wikidata.org/entity/Q42"),
        ("http://rdf.freebase.com/key/wikipedia.en", "http://rdf.freebase.com/key/wikipedia.en"),
        ("Q42", "Q42"),
        ("m/s", "m/s"),
        ("g/cm", "g/cm"),
        ("/m/01\n", "/m/01\n"),
        ("<>", ""),
        ("<", "<"),
        ("", ""),
        ("ns:films.genre.of", "films.genre.of"),
        ("fb:film.film", "film.film"),
        *(
            (own, own)
            for own in (
                "/usr/bin/ls", "/films/one", "films.one", "/c/en/dog", "/r/IsA", "/m/data", "m/16", "/g/cm",
                "ns:1", "ns:films.one", "ns:Film.Film.Genre", "fb:1", "fb:FBgn0000001", "FB:film.film.genre",
                "<b>", "<not an iri>", "freebase.community/x", "http://freebase.org/m/01", "/people/person/gender",
            )
        ),
    ],
)  # fmt: skip
def test_any_other_id_is_kept(spelling: str, canonical: str) -> None:
    assert canonical_id(spelling) == canonical


@pytest.mark.parametrize(
    ("spelling", "beside", "canonical"),
    [
        ("/people/person/gender", "m.0abc", "people.person.gender"),
        ("/film/film", "g.1abc", "film.film"),
        ("/a/b/c./d/e/f", "m.0abc", "a.b.c..d.e.f"),
        ("www.freebase.com/film/film/genre", "Q42", "film.film.genre"),
        ("/people/person/gender", "Q42", "/people/person/gender"),
        ("/usr/bin/ls", "m.data", "/usr/bin/ls"),
        ("/r/IsA", "m.0abc", "/r/IsA"),
    ],
)
def test_a_path_is_a_property_beside_a_topic_of_freebase_alone(spelling: str, beside: str, canonical: str) -> None:
    assert canonical_property(spelling, beside=beside) == canonical


@pytest.mark.parametrize(
    ("literal", "text"),
    [
        ('"1984"', "1984"),
        ('"Jaws"@en', "Jaws"),
        ('"Colour"@en-GB', "Colour"),
        ('"3"^^<http://www.w3.org/2001/XMLSchema#int>', "3"),
        (r'"say \"ä\""@en', 'say "ä"'),
        (r'"back\\slash\n"', "back\\slash\n"),
        (r'"\ud83d\ude00"', "😀"),
        (r'"\U0010ffff\U00110000"', "\U0010ffff\\U00110000"),
        ('""', ""),
    ],
)
def test_a_literal_gives_its_words(literal: str, text: str) -> None:
    assert is_literal(literal)
    assert literal_text(literal) == text


@pytest.mark.parametrize("entity_id", ["m.01", "", '"', '"open', '"Weird" Al', 'Al "Weird"', '"a"@en b'])
def test_what_is_no_whole_literal_is_an_entity(entity_id: str) -> None:
    assert not is_literal(entity_id)
    assert literal_text(entity_id) == entity_id


@pytest.mark.parametrize(
    ("spelling", "freebase"),
    [("m.01", True), ("/m/01", True), ("fb:film.film", True), ("Q42", False), ("m.data", False)],
)
def test_topics_and_urls_are_of_freebase(spelling: str, freebase: bool) -> None:
    assert is_freebase(spelling) is freebase


def test_ids_have_the_other_spellings_of_wikidata_and_of_known_prefixes() -> None:
    entity, direct = "http://www.wikidata.org/entity/", "http://www.wikidata.org/prop/direct/"

    assert other_spellings("wd:Q42") == ["Q42", f"{entity}Q42", f"{direct}Q42", "wd:Q42", "wdt:Q42"]
    assert other_spellings(f"{direct}P31")[0] == "P31"
    assert other_spellings("dbo:Book") == ["http://dbpedia.org/ontology/Book"]
    assert [other_spellings(text) for text in ("Q0", "x:Book", "dbo", "m.01")] == [[]] * 4


def test_a_literal_has_a_language() -> None:
    assert split_literal('"Köln"@de') == ("Köln", "de")
    assert split_literal('"1"^^<int>') == ("1", None)
    assert split_literal("Köln") is None


@given(st.lists(st.sampled_from(["\\", "u", "U", "d83d", "de00", "0041", "00", '"', "n", "x"])).map("".join))
def test_no_text_crashes_the_escapes_or_leaves_half_a_pair(text: str) -> None:
    assert unescape(text).encode().decode() == unescape(text)


@given(st.text())
def test_escaped_text_is_undone(text: str) -> None:
    escaped = "".join(f"\\U{ord(character):08x}" for character in text)
    assert unescape(escaped) == text
    assert unescape(text.replace("\\", "\\\\")) == text
