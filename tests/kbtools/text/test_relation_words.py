"""Relation names are split into the same words for every use."""

import pytest

from kbtools.text.relation_words import relation_parts, relation_words, stems_of, words_of_all


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("people.person.place_of_birth", [["people"], ["person"], ["place", "of", "birth"]]),
        ("location/location/containedby", [["location"], ["location"], ["containedby"]]),
        ("a.b..mediator.of_x", [["a"], ["b"], ["mediator"], ["of", "x"]]),
        ("schema:birthDate", [["schema"], ["birth", "date"]]),
        ("date-of-birth", [["date", "of", "birth"]]),
        ("HTMLPage", [["html", "page"]]),
        ("/r/HasA", [["r"], ["has", "a"]]),
        ("P19", [["p19"]]),
        ("place of birth", [["place", "of", "birth"]]),
        ("Ünïcode/Größe", [["unicode"], ["grosse"]]),
        ("http://dbpedia.org/ontology/birthPlace", [["birth", "place"]]),
        ("http://www.w3.org/2000/01/rdf-schema#label", [["label"]]),
        ("http://example.org/people.person.place_of_birth/", [["people"], ["person"], ["place", "of", "birth"]]),
        ("https://example.org/na%C3%AFve-name", [["naive", "name"]]),
        ("...", []),
        ("", []),
    ],
)
def test_a_name_splits_at_its_signs_and_of_a_url_the_last_part_counts(name: str, parts: list[list[str]]) -> None:
    assert relation_parts(name) == parts
    assert relation_words(name) == [word for part in parts for word in part]


@pytest.mark.parametrize(
    ("word", "stems"),
    [
        ("published", {"published", "publish", "publishe"}),
        ("used", {"used"}),
        ("acted", {"acted", "acte"}),
        ("cities", {"cities", "citie", "citi"}),
    ],
)
def test_a_word_has_its_stems_of_four_letters_or_more(word: str, stems: set[str]) -> None:
    assert stems_of(word) == stems


def test_the_words_of_several_names_are_gathered() -> None:
    words = words_of_all(["a.b_c/d#e", "film.directed_by"])

    assert words == {"a", "b", "c", "d", "e", "film", "directed", "by"}
