"""Views of a knowledge base: inverse relations are the facts read backwards, and nothing else changes."""

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from kbtools.errors import IncomingMissing
from kbtools.indexers.folder.embedded import EmbeddedKB
from kbtools.indexers.folder.memory import MemoryKB
from kbtools.kb import views
from kbtools.kb.contract import BackendDefaults, KnowledgeBase, SimilarName
from kbtools.kb.language_tags import SpokenText
from kbtools.kb.views import BothWays, CalledIn, InLanguages, question_languages, read_direction, relation_labels
from kbtools.text.lexicons import language_of


@pytest.fixture
def both(tiny: KnowledgeBase) -> BothWays:
    return BothWays(tiny)


def every_row(kb: KnowledgeBase) -> np.ndarray:
    return np.arange(kb.manifest.counts["entities"].unique, dtype=np.uint32)


def test_a_pair_is_there_for_every_fact_and_direction(both: BothWays) -> None:
    rows, stored = every_row(both), both.stored
    facts = both.facts_of(rows).tolist()
    pairs = both.relations_of(rows)
    listed = set(zip(np.repeat(rows, np.diff(pairs.starts)).tolist(), pairs.values.tolist(), strict=True))
    assert listed == {(s, r) for s, r, _ in facts} | {(o, r + stored) for _, r, o in facts}


def test_relations_of_an_entity_ascend_and_stand_once(both: BothWays) -> None:
    rows = every_row(both)[::-1]
    pairs = both.relations_of(rows)
    groups = [pairs.values[first:last].tolist() for first, last in zip(pairs.starts, pairs.starts[1:], strict=False)]
    assert len(groups) == len(rows)
    assert groups == [sorted(set(group)) for group in groups]


def test_the_objects_of_an_inverse_are_the_subjects_of_its_relation(both: BothWays) -> None:
    facts = both.facts_of(every_row(both)).tolist()
    pairs = [(target, relation + both.stored) for _, relation, target in facts]
    inverse = {pair: objects.tolist() for pair, objects in zip(pairs, both.objects_of(pairs), strict=True)}
    assert inverse == {
        (target, relation): sorted(s for s, r, o in facts if (r + both.stored, o) == (relation, target))
        for target, relation in pairs
    }


def test_an_inverse_that_no_fact_has_leads_nowhere(both: BothWays) -> None:
    (orwell,) = both.rows(["m.16orwell"])
    genre = list(both.relations).index("^music.artist.genre")
    assert both.objects_of([(orwell or 0, genre)])[0].tolist() == []


def test_no_entities_have_no_relations(both: BothWays) -> None:
    pairs = both.relations_of(np.empty(0, dtype=np.uint32))
    assert (pairs.starts.tolist(), pairs.values.tolist()) == ([0], [])


def test_facts_are_counted_from_both_ends(both: BothWays) -> None:
    rows = every_row(both)
    facts = both.facts_of(rows)
    assert both.fact_counts(rows).tolist() == [int((facts[:, [0, 2]] == row).sum()) for row in rows.tolist()]


def test_relations_and_their_inverses_have_ids_of_their_own(both: BothWays) -> None:
    assert len(set(both.relations)) == len(both.relations) == len(both.relation_names) == 2 * both.stored
    assert [read_direction(both, both.stored + number) for number in (0, 1)] == [(0, True), (1, True)]
    assert read_direction(both, 1) == (1, False)


def test_results_of_both_ways_are_not_taken_for_those_of_one(both: BothWays) -> None:
    assert both.manifest.digest != both.kb.manifest.digest


def test_a_backend_without_incoming_facts_is_refused_in_one_sentence() -> None:
    class Outgoing(BackendDefaults):
        relations = ("r",)

    with pytest.raises(IncomingMissing, match="cannot read facts backwards: this backend has no index"):
        BothWays(Outgoing())  # type: ignore[arg-type]


@pytest.fixture
def spoken() -> MemoryKB:
    names = [("a", "Cologne", "en"), ("a", "Köln", "de"), ("b", "Germany", "en"), ("b", "Deutschland", "de")]
    return MemoryKB([("a", "country", "b")], names)


def test_a_view_may_have_languages_and_inverse_relations(spoken: MemoryKB) -> None:
    german = BothWays(InLanguages(spoken, "de"))
    cologne, germany = german.entity_rows().tolist()
    assert german.names(german.entity_rows()) == ["Köln", "Deutschland"]
    assert german.lookup(["cologne"]) == {}
    assert german.relations == ("country", "^country")
    pairs = [(germany, 1), (cologne, 0), (cologne, 1)]
    assert [objects.tolist() for objects in german.objects_of(pairs)] == [[cologne], [germany], []]
    assert len({german.manifest.digest, InLanguages(spoken, "de").manifest.digest, spoken.manifest.digest}) == 3


class Wide(MemoryKB):
    """A knowledge base that remembers how many similar names and forms it was asked for."""

    limits: ClassVar[list[int]] = []
    options: ClassVar[list[dict[str, Any]]] = []

    def similar(self, forms: Any, *, limit: int = 20, **options: Any) -> list[list[SimilarName]]:
        self.limits.append(limit)
        self.options.append(options)
        return super().similar(forms, limit=limit, **options)

    def forms_with_prefix(self, prefix: str, *, limit: int) -> list[str]:
        self.limits.append(limit)
        return super().forms_with_prefix(prefix, limit=limit)


def test_similar_names_and_prefixes_of_a_language_are_as_many_as_asked_for() -> None:
    languages = [("de", f"Solaris {number}") for number in range(30)] + [
        ("en", f"Solarin {number}") for number in range(9)
    ]
    names = [(f"e{number}", name, tag) for number, (tag, name) in enumerate(languages)]
    kb = Wide([("e0", "r", "e1")], names, language="de,en")
    Wide.limits, Wide.options = [], []
    view = InLanguages(kb, "en")

    (few,), (usual,) = view.similar(["solaris 1"], limit=2), view.similar(["solaris 1"])

    assert [name.form for name in few] == [name.form for name in usual][:2]
    assert all(name.form.startswith("solarin") for name in usual)
    assert view.forms_with_prefix("sol", limit=3) == ["solarin 0", "solarin 1", "solarin 2"]
    assert Wide.limits == [8, 80, 12]
    view.similar(["solaris 1"], cutoff=99.0, edits_only=True)
    assert Wide.options[1:] == [{"cutoff": 80.0, "edits_only": False}, {"cutoff": 99.0, "edits_only": True}]


class Worded(MemoryKB):
    """A knowledge base whose relations have names in languages."""

    @property
    def relation_names(self) -> tuple[str | None, ...]:
        return (SpokenText.of({"en": "made by", "de": "gemacht von", "de-at": "gmocht"}), "near", None)


NAMES = [("a", "Elm", "de"), ("b", "Ash", "en"), ("c", "Oak", "fr"), ("d", "Fir", "de-at")]
WORDED = Worded(
    [("a", "made", "b"), ("a", "near", "b"), ("a", "of", "b")], NAMES, language="en,de,fr",
    descriptions=[("a", SpokenText.of({"en": "a tree", "fr": "un arbre"})), ("b", "plain")],
)  # fmt: skip


@pytest.mark.parametrize(
    ("language", "labels", "languages"),
    [
        (None, [["made by"], ["near"], ["of"]], ()),
        ("en", [["made by"], ["near"], ["of"]], ()),
        ("de", [["gemacht von", "gmocht"], ["near", "near"], ["of", "of"]], ("de",)),
        ("de,en", [["gemacht von", "gmocht", "made by"], ["near", "near"], ["of", "of"]], ("de", "en")),
        ("fr", [["made by", "made by"], ["near", "near"], ["of", "of"]], ("fr",)),
    ],
)
def test_relations_are_labelled_in_the_languages_of_questions(
    language: str | None, labels: list[list[str]], languages: tuple[str, ...]
) -> None:
    kb: KnowledgeBase = InLanguages(WORDED, language) if language else WORDED

    found = relation_labels(BothWays(kb))

    assert found == labels
    assert question_languages(kb) == question_languages(BothWays(kb)) == languages
    if languages:
        assert [language_of(label) for label in found[1]] == [*dict.fromkeys([*languages, "en"])]


def test_names_and_matches_of_a_view_are_in_order_of_what_they_are_in_its_language() -> None:
    names = [("a", "Fir", "de"), ("b", "elm", "de"), ("c", "Elm", "en"), ("c", "Ulme", "de"), ("c", "Alme", "de")]
    names.append(("d", "Oak", "en"))
    aliases = [("a", "Elm", "de"), ("c", "Elm", "de"), ("c", "Baum", "de")]
    kb = MemoryKB([("a", "near", "b"), ("b", "near", "c")], names, aliases=aliases, language="en,de")
    german, rows = InLanguages(kb, "de"), kb.entity_rows()

    assert [name.text for name in kb.names_of(rows)[2]] == ["Elm", "Alme", "Ulme", "Baum"]
    assert [name.text for name in german.names_of(rows)[2]] == ["Alme", "Ulme", "Elm", "Baum"]
    assert german.names(rows) == ["Fir", "elm", "Alme", "Oak"]
    assert [name.text for name in german.names_of(rows)[3]] == ["Oak"]
    assert [(match.name, match.is_alias, kb.ids(match.entities)) for match in german.lookup(["elm"])["elm"]] == [
        ("elm", False, ["b"]), ("Elm", True, ["a", "c"]),
    ]  # fmt: skip


def test_results_in_more_languages_are_not_taken_for_those_in_one() -> None:
    asked = ("de", "de,en", "en,de", "fr")
    assert len({InLanguages(WORDED, languages).manifest.digest for languages in asked}) == len(asked)


def test_questions_are_in_the_languages_of_names_unless_some_are_english() -> None:
    def kb(*tags: str) -> MemoryKB:
        return MemoryKB([("a", "r", "b")], [(f"e{tag}", f"Name {tag}", tag) for tag in tags], language="de,fr,en")

    assert question_languages(kb("de", "fr", "mul", "")) == ("de", "fr")
    assert question_languages(InLanguages(kb("de", "fr"), "fr")) == ("fr",)
    assert [question_languages(kb(*tags)) for tags in (("de", "en-gb"), ("",), ("mul",), ())] == [()] * 4


def test_descriptions_and_relations_are_told_in_a_language_and_names_are_remembered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    view, rows = CalledIn(WORDED, "fr,de"), WORDED.entity_rows()
    monkeypatch.setattr(views, "_NAMES_REMEMBERED", 2)

    assert view.descriptions(rows) == ["un arbre", "plain", None, None]
    assert view.relation_names == ("gemacht von", "near", None)
    names = [view.names(rows[at : at + 1])[0] for at in (0, 1, 2, 3, 0)]
    assert names == ["Elm", "Ash", "Oak", "Fir", "Elm"]
    assert len(view.called) <= 3
    found = InLanguages(WORDED, "de")
    assert [sorted(found.lookup([form])) for form in ("elm", "ash", "fir", "oak", "elm")] == [
        ["elm"],
        [],
        ["fir"],
        [],
        ["elm"],
    ]
    assert len(found.remembered) <= 3


@pytest.mark.parametrize("duplicate", [copy.copy, lambda seen: pickle.loads(pickle.dumps(seen))])
def test_a_view_can_be_copied_and_pickled(sample_path: Path, duplicate: Callable[[object], Any]) -> None:
    kb = EmbeddedKB(sample_path)
    seen = duplicate(BothWays(kb))
    assert seen.relations == BothWays(kb).relations
    assert seen.ids(seen.entity_rows()) == kb.ids(kb.entity_rows())
