"""Names of relations and descriptions in several languages: read of every kind of source, updated, merged and shown."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import kbtools
from kbtools.answering.answerer import Answerer
from kbtools.cli.main import main
from kbtools.kb.language_tags import SpokenText, read_text, stored_text, text_in, with_text

FACTS = [("Q1", "P19", "Q2"), ("Q2", "P17", "Q3")]
NAMES = [
    ("Q1", "Ann", "en"),
    ("Q1", "Anna", "de"),
    ("Q2", "Cologne", "en"),
    ("Q2", "Köln", "de"),
    ("Q3", "Germany", "en"),
]
DESCRIBED = [("Q1", "a painter", "en"), ("Q1", "eine Malerin", "de"), ("Q2", "une ville", "fr")]
RELATIONS = [("P19", "place of birth", "en"), ("P19", "Geburtsort", "de"), ("P17", "country", "")]
LANGUAGES = "en,de,fr"


def spoken(answerer: Answerer) -> tuple[dict[str, str | None], dict[str, str | None]]:
    """Return names of relations and descriptions as they are called in German."""
    kb = answerer.in_languages("de").kb
    rows = kb.entity_rows()
    return (
        dict(zip(kb.relations, kb.relation_names, strict=True)),
        {entity: text for entity, text in zip(kb.ids(rows), kb.descriptions(rows), strict=True) if text},
    )


def by_tag(text: str | None) -> dict[str, str]:
    assert isinstance(text, SpokenText)
    return dict(text.by_tag)


def given(tmp_path: Path, **sources: Any) -> Answerer:
    options: dict[str, Any] = {"facts": FACTS, "names": NAMES, "language": LANGUAGES} | sources
    return kbtools.index(out=tmp_path / "k.kb", **options)


def indexed(tmp_path: Path, *arguments: str) -> Answerer:
    done = CliRunner().invoke(
        main, ["index", "--quiet", "--out", str(tmp_path / "i.kb"), "--lang", "en,de,fr", *arguments]
    )
    assert done.exit_code == 0, done.stderr
    return kbtools.open(tmp_path / "i.kb")


def test_a_text_in_languages_is_a_string_in_the_first_of_them() -> None:
    text = SpokenText.of({"en": "city", "de": "Stadt"})

    assert text == "city"
    assert by_tag(read_text(stored_text(text))) == text.by_tag
    assert [text_in(text, tags) for tags in (["de", "en"], ["fr"], [])] == ["Stadt", "city", "city"]
    assert text_in("plain", ["de"]) == "plain"
    assert read_text("") is None


def test_a_text_changes_in_one_language_or_in_all() -> None:
    text = SpokenText.of({"en": "city", "de": "Stadt"})

    assert by_tag(with_text(text, "de", "Ort", usual="en")) == {"en": "city", "de": "Ort"}
    assert by_tag(with_text("city", "de", "Ort", usual="en")) == {"en": "city", "de": "Ort"}
    assert stored_text(with_text("city", "en", "town", usual="en")) == "town"
    assert stored_text(with_text(text, "", "town", usual="en")) == "town"


def test_rows_of_python_say_the_language_of_relations_and_descriptions(tmp_path: Path) -> None:
    answerer = given(tmp_path, relations=RELATIONS, descriptions=DESCRIBED)

    assert spoken(answerer) == ({"P19": "Geburtsort", "P17": "country"}, {"Q1": "eine Malerin", "Q2": "une ville"})
    assert answerer.facts("Q1").facts[0].relation.name == "place of birth"
    assert answerer.entity("Q1").description == "a painter"


def test_the_first_language_of_the_build_is_the_usual_one(tmp_path: Path) -> None:
    answerer = given(tmp_path, relations=RELATIONS, descriptions=DESCRIBED, language="de,en")

    assert answerer.kb.relation_names == ("country", "Geburtsort")
    assert answerer.entity("Q1").description == "eine Malerin"
    assert answerer.entity("Q2").description is None


@pytest.mark.parametrize("tag", ["", "en"])
def test_one_language_alone_is_stored_without_it(tmp_path: Path, tag: str) -> None:
    names = [(entity, name, tag) for entity, name, _ in NAMES]
    relations, described = [("P19", "born in", tag)], [("Q1", "a painter", tag)]
    answerer = given(tmp_path, names=names, relations=relations, descriptions=described)
    row = np.array(answerer.kb.rows(["Q1"]), dtype=np.uint32)

    assert [type(text) for text in (answerer.kb.relation_names[1], answerer.kb.descriptions(row)[0])] == [str, str]


def test_tables_of_relations_have_a_column_of_languages(tmp_path: Path) -> None:
    (tmp_path / "f.tsv").write_text("subject\trelation\tobject\nQ1\tP19\tQ2\n")
    (tmp_path / "n.tsv").write_text("id\tname\tlanguage\nQ1\tAnn\ten\nQ1\tAnna\tde\n")
    (tmp_path / "r.csv").write_text(
        "relation,language,name\nP19,de,Geburtsort\nP19,en,place of birth\nP19,it,luogo di nascita\n"
    )
    files = [word for kind, name in (("facts", "f.tsv"), ("names", "n.tsv"), ("relations", "r.csv"))
             for word in (f"--{kind}", str(tmp_path / name))]  # fmt: skip
    answerer = indexed(tmp_path, *files)

    assert spoken(answerer)[0] == {"P19": "Geburtsort"}
    assert answerer.kb.relation_names == ("place of birth",)
    skipped = {kind: count for source in answerer.kb.manifest.sources for kind, count, _ in source.skipped}
    assert skipped == {"name in a language other than 'en,de,fr'": 1}


def test_wide_tables_have_columns_of_a_language(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(
        "id,label@en,label@de,description@en,description@de,P19\n"
        "Q1,Ann,Anna,a painter,eine Malerin,Q2\nQ2,Cologne,Köln,a city,eine Stadt,\nP19,place of birth,Geburtsort,,,\n"
    )
    answerer = indexed(tmp_path, "--table", str(tmp_path / "t.csv"))

    assert spoken(answerer) == ({"P19": "Geburtsort"}, {"Q1": "eine Malerin", "Q2": "eine Stadt"})


def test_rdf_says_languages_by_its_tags(tmp_path: Path) -> None:
    label, comment = "<http://www.w3.org/2000/01/rdf-schema#label>", "<http://www.w3.org/2000/01/rdf-schema#comment>"
    (tmp_path / "d.nt").write_text(
        f'<Q1> <http://a/p> <Q2> .\n<Q1> {label} "Ann"@en .\n<Q1> {label} "Anna"@de .\n'
        f'<http://a/p> {label} "place of birth"@en .\n<http://a/p> {label} "Geburtsort"@de .\n'
        f'<Q1> {comment} "a painter"@en .\n<Q1> {comment} "eine Malerin"@de .\n'
    )

    assert spoken(indexed(tmp_path, "--rdf", str(tmp_path / "d.nt"))) == (
        {"http://a/p": "Geburtsort"}, {"Q1": "eine Malerin"},
    )  # fmt: skip


def test_wikidata_has_properties_and_descriptions_in_every_language_asked_for(tmp_path: Path) -> None:
    def terms(**texts: str) -> dict[str, Any]:
        return {tag: {"language": tag, "value": text} for tag, text in texts.items()}

    value = {"snaktype": "value", "datavalue": {"type": "wikibase-entityid", "value": {"id": "Q2"}}}
    item = {
        "type": "item", "id": "Q1", "labels": terms(en="Ann", de="Anna", it="Anna"),
        "descriptions": terms(de="eine Malerin", en="a painter", it="una pittrice"),
        "claims": {"P19": [{"rank": "normal", "mainsnak": value}]},
    }  # fmt: skip
    place = {"type": "property", "id": "P19", "labels": terms(de="Geburtsort", en="place of birth", it="nascita")}
    (tmp_path / "d.json").write_text(f"[\n{json.dumps(item)},\n{json.dumps(place)}\n]\n")
    answerer = indexed(tmp_path, "--wikidata", str(tmp_path / "d.json"))

    assert spoken(answerer) == ({"P19": "Geburtsort"}, {"Q1": "eine Malerin"})
    assert by_tag(answerer.kb.relation_names[0]) == {"en": "place of birth", "de": "Geburtsort"}
    assert by_tag(answerer.entity("Q1").description) == {"en": "a painter", "de": "eine Malerin"}


def test_updates_change_a_language_and_merges_keep_all(tmp_path: Path) -> None:
    given(tmp_path, relations=RELATIONS, descriptions=DESCRIBED).close()
    changes = [
        {"id": "Q1", "description": {"de": "eine Bildhauerin"}},
        {"id": "Q2", "description": {"de": "eine Stadt", "en": "a city"}},
        {"id": "Q3", "description": "a country"},
        {"id": "Q1", "facts": {"P27": ["Q3"]}},
    ]
    relations = [("P17", "Staat", "de"), ("P27", "Nation", "de")]
    kbtools.update(tmp_path / "k.kb", add=changes, relations=relations, language=LANGUAGES)
    with kbtools.open(tmp_path / "k.kb") as updated:
        seen, usual = spoken(updated), dict(zip(updated.kb.relations, updated.kb.relation_names, strict=True))
        described = [updated.entity(entity).description for entity in ("Q1", "Q2", "Q3")]
    kbtools.compact(tmp_path / "k.kb")

    assert seen[0] == {"P19": "Geburtsort", "P17": "Staat", "P27": "Nation"}
    assert seen[1] == {"Q1": "eine Bildhauerin", "Q2": "eine Stadt", "Q3": "a country"}
    assert described == ["a painter", "une ville", "a country"]
    with kbtools.open(tmp_path / "k.kb") as merged:
        assert spoken(merged) == seen
        assert dict(zip(merged.kb.relations, merged.kb.relation_names, strict=True)) == usual


@pytest.mark.parametrize(("text", "stored"), [("a\x1fb\x1ec", "a b c"), ("  two\n lines ", "two lines")])
def test_marks_between_languages_cannot_come_from_a_source(tmp_path: Path, text: str, stored: str) -> None:
    relations = [("P19", text, "en"), ("P19", "Geburtsort", "de")]
    answerer = given(tmp_path, relations=relations, descriptions=[("Q1", text, "en")])

    assert by_tag(answerer.kb.relation_names[1]) == {"en": stored, "de": "Geburtsort"}
    assert answerer.entity("Q1").description == stored


def test_all_that_is_shown_is_in_the_language_asked_for(tmp_path: Path) -> None:
    given(tmp_path, relations=RELATIONS, descriptions=DESCRIBED).close()
    shown = CliRunner().invoke(main, ["show", str(tmp_path / "k.kb"), "Q1", "--lang", "de"]).stdout
    asked = CliRunner().invoke(main, ["query", str(tmp_path / "k.kb"), "--lang", "de", "--json", "Geburtsort von Anna"])
    candidate = json.loads(asked.stdout)["candidates"][0]

    assert "Geburtsort  Köln" in shown
    assert "eine Malerin" in shown
    assert "place" not in shown
    assert (candidate["relation_name"], candidate["subject_description"]) == ("Geburtsort", "eine Malerin")
