"""Relation names are split into the same words for every use."""

import pytest

from kbtools.text.relation_words import (
    SYMBOL,
    answer_kinds,
    kind_stems,
    relation_parts,
    relation_words,
    stems_of,
    words_of_all,
)


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
        ("pH", [["ph"]]),
        ("soilPH", [["soil", "ph"]]),
        ("xCoord", [["x", "coord"]]),
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


@pytest.mark.parametrize(
    ("question", "kinds"),
    [
        ("what films did X direct", {"films"}),
        ("what is a film by X", {"film"}),
        ("what is the name of the river in X", {"river"}),
        ("what type of film is X", {"film"}),
        ("what kind of X is this film", set()),
        ("what was the first language spoken in X", {"first", "language"}),
        ("which german city is X in", {"german", "city"}),
        ("which of the novels did X write", {"novels"}),
        ("which are some of the novels by X", {"novels"}),
        ("name a film by X", {"film"}),
        ("what is X s profession", {"profession"}),
        ("what is X s the film", {"film"}),
        ("who wrote X", {"who"}),
        ("whom did X marry", {"who"}),
        ("where is X", {"where"}),
        ("X was born where", {"where"}),
        ("where was the actor who played X born", {"where", "who"}),
        ("what did X write", set()),
        ("what did the film", set()),
        ("what about films", set()),
        ("what is X", set()),
        ("what X films", {"films"}),
        ("what by films", set()),
        ("what s film", set()),
        ("how many films", set()),
        ("films", set()),
        ("", set()),
    ],
)
def test_the_kind_of_an_answer_stands_behind_the_question_word(question: str, kinds: set[str]) -> None:
    assert answer_kinds([SYMBOL if word == "X" else word for word in question.split()]) == kinds


@pytest.mark.parametrize(
    ("kind", "meant"),
    [
        ("films", {"film", "films"}),
        ("film", {"film"}),
        ("movies", {"movie", "film"}),
        ("towns", {"town", "towns", "cityt", "locat"}),
        ("where", {"where", "city", "count", "locat", "place", "regio"}),
        ("novelists", {"novel"}),
        ("singer", {"singe", "artis"}),
        ("musicians", {"music", "artis"}),
        ("band", {"band", "artis", "group"}),
        ("books", {"book", "books", "work", "writt"}),
        ("games", {"game", "games", "video"}),
        ("show", {"show", "progr"}),
        ("songs", {"song", "songs", "compo", "recor", "track"}),
        ("cities", {"citie", "cityt", "locat"}),
        ("people", {"peopl", "perso"}),
        ("person", {"perso", "human", "peopl"}),
        ("actor", {"actor", "perso"}),
        ("who", {"who", "actor", "artis", "autho", "human", "peopl", "perso", "polit"}),
    ],
)
def test_a_kind_has_the_stems_of_its_words_and_of_the_types_it_means(kind: str, meant: set[str]) -> None:
    assert kind_stems([kind]) == meant
