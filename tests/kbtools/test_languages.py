"""Names in many languages, from sources to answers."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import kbtools
from kbtools.answering.answerer import Answerer
from kbtools.errors import BadArgument, UnknownLanguage
from kbtools.kb.language_tags import accepted_tags, read_languages
from tests.conftest import World

NAMES = [
    ("Q64", "Berlin", "de"),
    ("Q64", "Berlin", "en"),
    ("Q183", "Germany", "en"),
    ("Q183", "Deutschland", "de"),
    ("Q183", "République fédérale d'Allemagne", "fr"),
    ("Q365", "Cologne", "en"),
    ("Q365", "Köln", "de"),
    ("Q365", "Kölle", "de-x-ksh"),
    ("Q90", "Paris", "mul"),
    ("Q1", "Gift", "en"),
    ("Q2", "Gift", "de"),
    ("Q3", "nameless", ""),
]
ALIASES = [("Q183", "Germany", "de"), ("Q365", "Köln", "en"), ("Q2", "Rat", "de"), ("Q1", "Rat", "fr")]
FACTS = [
    ("Q365", "country", "Q183"),
    ("Q64", "country", "Q183"),
    ("Q90", "country", "Q3"),
    ("Q1", "opposite", "Q2"),
    ("Q2", "opposite", "Q1"),
]

SPEAKING = World(tuple(FACTS), (), spoken=tuple(NAMES), spoken_aliases=tuple(ALIASES), language="en,de,")


@pytest.fixture(scope="module")
def kb(backend: str, make_kb: Callable[[str, World], Any]) -> Answerer:
    """Give a knowledge base with names in every state: shared, only elsewhere, for all languages, without one."""
    return Answerer(make_kb(backend, SPEAKING))


def subjects(result: kbtools.Result) -> set[str]:
    return {candidate.subject for candidate in result.candidates}


def ids(result: kbtools.LookupResult) -> list[str]:
    return [match.id for match in result.matches]


def test_names_keep_their_languages(kb: Answerer) -> None:
    assert kb.entity("Q365").languages == {"Cologne": ("en",), "Köln": ("de", "en"), "Kölle": ("de-x-ksh",)}
    assert kb.entity("Q64").languages == {"Berlin": ("de", "en")}
    assert kb.entity("Q3").languages == {"nameless": ()}
    assert kb.kb.manifest.languages == {"de": 6, "en": 5, "fr": 2, "de-x-ksh": 1, "mul": 1, "und": 1}


def test_without_a_language_every_name_is_found_as_ever(kb: Answerer) -> None:
    assert sorted(ids(kb.lookup("gift"))) == ["Q1", "Q2"]
    assert kb.query("gift opposite").languages is None
    assert kb.entity("Q183").name == "Germany"


@pytest.mark.parametrize(
    ("lang", "name", "expected"),
    [
        ("de", "Gift", ["Q2"]),
        ("en", "Gift", ["Q1"]),
        ("de,en", "Gift", ["Q1", "Q2"]),
        ("fr", "Paris", ["Q90"]),
        ("fr", "nameless", ["Q3"]),
        ("fr", "Rat", ["Q1"]),
        ("de", "Deutchland", ["Q183"]),
        ("de-at", "Köln", ["Q365"]),
        ("DE", "Kölle", ["Q365"]),
    ],
)
def test_a_name_is_looked_up_in_its_language(kb: Answerer, lang: str, name: str, expected: Sequence[str]) -> None:
    result = kb.lookup(name, lang=lang)

    assert sorted(ids(result)) == expected
    assert not result.other_languages


def test_a_region_is_not_taken_for_another(kb: Answerer) -> None:
    result = kb.lookup("Kölle", lang="de-at")

    assert [(match.name, match.rung) for match in result.matches] == [("Köln", "fuzzy")]


def test_where_a_language_has_no_such_name_those_of_others_are_given_and_said_so(kb: Answerer) -> None:
    looked_up, asked = kb.lookup("Cologne", lang="fr"), kb.query("Cologne country", lang="fr")

    assert ids(looked_up) == ["Q365"]
    assert looked_up.other_languages
    assert subjects(asked) == {"Q365"}
    assert asked.other_languages
    assert asked.languages == looked_up.languages == ("fr",)
    assert not kb.lookup("no such thing at all", lang="fr").other_languages


def test_a_question_links_names_of_its_language(kb: Answerer) -> None:
    assert subjects(kb.query("gift opposite", lang="de")) == {"Q2"}
    assert subjects(kb.query("gift opposite", lang="en")) == {"Q1"}
    assert subjects(kb.query("gift opposite")) == {"Q1", "Q2"}


def test_entities_are_called_by_their_names_in_a_language(kb: Answerer) -> None:
    german, french = kb.query("Köln country", lang="de"), kb.query("Paris country", lang="fr")

    assert german.candidates[0].subject_name == "Köln"
    assert [answer.name for answer in german.answers] == ["Deutschland"]
    assert french.answers[0].name == "nameless"
    assert kb.entity("Q183", lang="de").names == ("Deutschland",)
    assert kb.entity("Q183", lang="de").aliases == ("Germany",)
    assert kb.facts("Q365", lang="fr,de").facts[0].object.name == "République fédérale d'Allemagne"
    assert kb.entity("Q365", lang="fr").name == "Cologne"


def test_a_text_is_linked_in_its_language(kb: Answerer) -> None:
    linked = kb.link("Das Gift kam aus Köln", lang="de")

    assert [mention.candidates[0].id for mention in linked.mentions] == ["Q2", "Q365"]
    assert [mention.candidates[0].name for mention in linked.mentions] == ["Gift", "Köln"]


def test_facts_are_read_backwards_in_a_language_too(kb: Answerer) -> None:
    result = kb.query("Deutschland country", lang="de", inverse=True)

    assert {answer.name for answer in result.answers} == {"Berlin", "Köln"}
    assert kb.query("Deutschland country", lang="fr", inverse=True).other_languages


@pytest.mark.parametrize("lang", ["xx", "de,xx", "german", "e", "", "mu"])
def test_a_language_without_names_is_refused_with_those_that_there_are(kb: Answerer, lang: str) -> None:
    with pytest.raises(UnknownLanguage, match="there are de, de-x-ksh, en, fr, mul"):
        kb.query("gift", lang=lang)


def test_a_language_is_a_text(kb: Answerer) -> None:
    with pytest.raises(BadArgument, match="lang is a str"):
        kb.query("gift", lang=1)  # type: ignore[arg-type]


@pytest.mark.parametrize("names", [[("1", "a"), ("2", "b")], [("1", "a", ""), ("2", "b", None)]])
def test_a_knowledge_base_without_languages_says_so(tmp_path: Path, names: list[Any]) -> None:
    kb = kbtools.index(names=names, facts=[("1", "r", "2")], out=tmp_path / "kb")

    assert kb.kb.manifest.languages == {}
    assert not [name for name in kb.kb.manifest.files if "language" in name]
    assert kb.entity("1").languages == {"a": ()} or kb.entity("1").languages == {}
    with pytest.raises(UnknownLanguage, match="no name has a language"):
        kb.lookup("a", lang="de")


def test_one_language_alone_takes_no_byte_a_name_and_changes_no_content(tmp_path: Path) -> None:
    facts = [("1", "r", "2")]
    plain = kbtools.index(names=[("1", "a"), ("2", "b")], aliases=[("1", "c")], facts=facts, out=tmp_path / "plain")
    names, aliases = [("1", "a", "en"), ("2", "b", "EN")], [("1", "c", "en")]
    english = kbtools.index(names=names, aliases=aliases, facts=facts, out=tmp_path / "english")

    assert english.kb.manifest.digest == plain.kb.manifest.digest
    assert "alias.language" not in english.kb.manifest.files
    assert english.kb.manifest.languages == {"en": 3}
    assert english.entity("1", lang="en").languages == {"a": ("en",), "c": ("en",)}
    assert ids(english.lookup("c", lang="en")) == ["1"]


def test_other_languages_than_those_asked_for_are_left_out(tmp_path: Path) -> None:
    kb = kbtools.index(names=NAMES, facts=FACTS, out=tmp_path / "kb", language="de,mul")

    assert kb.kb.manifest.languages.keys() == {"de", "de-x-ksh", "mul", "und"}
    skipped = {kind: count for source in kb.kb.manifest.sources for kind, count, _ in source.skipped}
    assert skipped == {"name in a language other than 'de,mul'": 5}


@pytest.mark.parametrize("count", [3, 300])
def test_any_number_of_languages_is_kept(tmp_path: Path, count: int) -> None:
    tags = [f"a{chr(97 + number % 26)}-{number}" for number in range(count)]
    names = [("1", "same", tag) for tag in tags] + [("1", f"name {tag}", tag) for tag in tags]
    kb = kbtools.index(names=names, facts=[("1", "r", "2")], out=tmp_path / "kb", language="en,")

    entity = kb.entity("1")
    assert entity.languages["same"] == tuple(sorted(tags))
    assert all(entity.languages[f"name {tag}"] == (tag,) for tag in tags)
    assert kb.kb.manifest.files["alias.language"] == (count + 1) * (1 if count < 256 else 2)


def test_tags_are_found_as_rfc_4647_says() -> None:
    known = ["de", "de-at", "de-ch-1996", "en", "mul", "und", "zh-hans", "zh-hant", "zh"]

    assert accepted_tags(["de"], known) == ("de", "de-at", "de-ch-1996", "mul", "und")
    assert accepted_tags(["de-AT".lower()], known) == ("de-at", "de", "mul", "und")
    assert accepted_tags(["zh-hans-cn"], known) == ("zh-hans", "zh", "mul", "und")
    assert accepted_tags(["en", "de-ch"], known) == ("en", "de", "de-ch-1996", "mul", "und")
    assert read_languages(" DE_at , en,", known) == ("de-at", "en")


def test_updates_and_merges_keep_languages(tmp_path: Path) -> None:
    kb = kbtools.index(names=NAMES, aliases=ALIASES, facts=FACTS, out=tmp_path / "kb", language="en,de,")
    kb.close()
    changes = [
        {"id": "Q365", "names": {"it": "Colonia"}, "rename": {"Köln": "Cöln"}},
        {"id": "Q4", "names": {"de": ["Gift"]}, "facts": {"opposite": ["Q1"]}},
        {"id": "Q64", "remove": {"names": ["Berlin"]}, "names": {"fr": "Berlin"}},
        {"merge": "Q2", "into": "Q1"},
    ]
    kbtools.update(tmp_path / "kb", add=changes, names=[("Q90", "Lutetia", "la")], language="")
    updated = kbtools.open(tmp_path / "kb")
    seen = [updated.entity(entity).languages for entity in ("Q365", "Q4", "Q64", "Q1", "Q90", "Q183")]
    counts = updated.kb.manifest.languages
    german = ids(updated.lookup("Gift", lang="de"))
    updated.close()
    kbtools.compact(tmp_path / "kb")
    merged = kbtools.open(tmp_path / "kb")

    assert seen[0] == {"Cologne": ("en",), "Cöln": ("de", "en"), "Colonia": ("it",), "Kölle": ("de-x-ksh",)}
    assert seen[1:3] == [{"Gift": ("de",)}, {"Berlin": ("fr",)}]
    assert seen[3] == {"Gift": ("de", "en"), "Rat": ("de", "fr")}
    assert seen[4] == {"Paris": ("mul",), "Lutetia": ("la",)}
    assert [merged.entity(entity).languages for entity in ("Q365", "Q4", "Q64", "Q1", "Q90", "Q183")] == seen
    assert merged.kb.manifest.languages == counts
    assert sorted(ids(merged.lookup("Gift", lang="de"))) == sorted(german) == ["Q1", "Q4"]


def test_languages_come_to_a_knowledge_base_without_by_an_update(tmp_path: Path) -> None:
    kbtools.index(names=[("1", "a"), ("2", "b")], facts=[("1", "r", "2")], out=tmp_path / "kb").close()
    kbtools.update(tmp_path / "kb", names=[("1", "A-de", "de")], language="de")
    with kbtools.open(tmp_path / "kb") as updated:
        assert updated.kb.manifest.languages == {"und": 2, "de": 1}
        assert updated.entity("1", lang="de").name == "A-de"
        assert updated.entity("2", lang="de").name == "b"
    kbtools.compact(tmp_path / "kb")
    with kbtools.open(tmp_path / "kb") as merged:
        assert merged.kb.manifest.languages == {"und": 2, "de": 1}
        assert ids(merged.lookup("a", lang="de")) == ["1"]
