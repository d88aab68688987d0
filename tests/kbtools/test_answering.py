"""Answering: from a question to its answers, and what a caller may get wrong."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kbtools.answering import Answerer, open_kb
from kbtools.errors import BrokenPlugin, KBMissing, UnknownPlugin
from kbtools.kb.contract import KnowledgeBase
from tests.conftest import World

every_pruner = pytest.mark.parametrize("pruning", ["n-gram", "n-gram+", "n-gram-idf"])


@every_pruner
@pytest.mark.parametrize(
    ("text", "answers"),
    [
        ("who created the character harry potter", [("m.042xh", "J. K. Rowling")]),
        ("what genre is AC/DC", None),
        ("what chromosome is titin on", None),
    ],
)
def test_answers_are_the_objects_of_the_first_candidate_by_id(
    sample: Answerer, sample_world: World, pruning: str, text: str, answers: list[tuple[str, str]] | None
) -> None:
    result = sample.query(text, pruning=pruning)
    first = result.candidates[0]
    objects = sorted({o for s, r, o in sample_world.facts if (s, r) == (first.subject, first.relation)})
    assert [answer.id for answer in result.answers] == objects
    assert answers is None or [(answer.id, answer.name) for answer in result.answers] == answers


def test_a_literal_answers_with_its_words(tiny: KnowledgeBase) -> None:
    (answer,) = Answerer(tiny).query("what chromosome is titin on").answers
    assert (answer.id, answer.name) == ('"2"@en', "2")


def test_an_object_without_a_name_answers_with_its_id_alone(tiny: KnowledgeBase) -> None:
    (answer,) = Answerer(tiny).query("time zone of City of Light").answers
    assert (answer.id, answer.name) == ("m.09unnamed", None)


def test_an_id_with_a_space_is_an_id(tiny: KnowledgeBase) -> None:
    (first,) = Answerer(tiny).query("one prefix of many words " * 24 + "first", pruning="n-gram+").candidates
    assert (first.subject, first.relation) == ("an id, with a space", "music.album.artist")


def test_a_subject_known_by_an_alias_alone_is_named_by_it(
    make_kb: Callable[[str, World], Any], backend: str, new_world: type[World]
) -> None:
    kb = make_kb(backend, new_world(facts=(("a", "r", "b"),), names=(("b", "Bob"),), aliases=(("a", "Al"),)))
    (found,) = Answerer(kb).query("al").candidates
    assert (found.subject_name, found.matched_name) == ("Al", "Al")


def test_a_relation_seen_once_can_be_asked_for(tiny: KnowledgeBase) -> None:
    first = Answerer(tiny).query("which chromosome has titin").candidates[0]
    assert first.relation == "biology.gene.chromosome"


def test_pruners_and_scorers_are_made_once(tiny: KnowledgeBase) -> None:
    answerer = Answerer(tiny)
    assert answerer.pruner("n-gram") is answerer.pruner("n-gram")
    assert answerer.scorer("lexical") is answerer.scorer("lexical")


def test_top_limits_the_candidates_and_none_keeps_them_all(sample: Answerer) -> None:
    whole = sample.query("who wrote it or hamlet", top=None)
    assert len(whole.candidates) > 10
    assert sample.query("who wrote it or hamlet", top=3).candidates == whole.candidates[:3]
    assert sample.query("who wrote it or hamlet").candidates == whole.candidates[:10]


def test_a_result_tells_its_time_in_milliseconds(sample: Answerer) -> None:
    assert 0 < sample.query("who wrote it").milliseconds < 10_000


@pytest.mark.parametrize(
    ("asked", "message"), [({"pruning": "no-pruner"}, "'no-pruner'"), ({"scorer": "no-such"}, "'no-such'")]
)
def test_an_unknown_pruner_or_scorer_is_named(sample: Answerer, asked: dict[str, Any], message: str) -> None:
    with pytest.raises(UnknownPlugin, match=message):
        sample.query("who wrote it", **asked)


def test_a_scorer_that_is_no_class_is_broken(sample: Answerer) -> None:
    with pytest.raises(BrokenPlugin, match="no class"):
        sample.query("who wrote it", scorer="kbtools.results:JSON_VERSION")


def test_a_scorer_may_be_given_by_its_module(sample: Answerer) -> None:
    given = sample.query("who wrote it", scorer="kbtools.scorers.lexical:LexicalScorer")
    named = sample.query("who wrote it")
    assert given.candidates == named.candidates
    assert given.scorer == "kbtools.scorers.lexical:LexicalScorer"


def test_there_must_be_a_knowledge_base_to_open(tmp_path: Path) -> None:
    with pytest.raises(KBMissing, match="kbtools index"):
        open_kb(tmp_path / "absent.kb")
    with pytest.raises(KBMissing, match="not a knowledge base"):
        open_kb(tmp_path)


def test_an_unknown_backend_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnknownPlugin, match=r"known: .*embedded"):
        open_kb(tmp_path, backend="sqlite")
    with pytest.raises(BrokenPlugin, match="no class"):
        open_kb(tmp_path, backend="kbtools.results:JSON_VERSION")
