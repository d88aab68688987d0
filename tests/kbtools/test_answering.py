"""Answering: from a question to its answers, and what a caller may get wrong."""

import gc
import json
import os
import pickle
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kbtools
from kbtools.answering.answerer import Answerer, open_kb
from kbtools.answering.explaining import explain
from kbtools.answering.query_options import QueryOptions
from kbtools.errors import (
    BadArgument,
    BrokenPlugin,
    IncomingMissing,
    KBMissing,
    KBUnusable,
    ModelMissing,
    ModelUnusable,
    UnknownDevice,
    UnknownPlugin,
)
from kbtools.indexers.folder.memory import MemoryKB
from kbtools.kb.contract import KnowledgeBase
from kbtools.ranking.system import System
from kbtools.ranking.trained import read_systems
from kbtools.ranking.weights import DEFAULT, EQUATION_4, PRESETS, WITH_SUBJECT, Weights
from kbtools.text.question import MarkedQuestion, Question
from tests.conftest import World
from tests.work import calls_of

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
    system, other = answerer.system(pruning="n-gram"), answerer.system(pruning="n-gram", subject="fact-count")
    assert answerer.opened(system) is answerer.opened(answerer.system(pruning="n-gram"))
    assert answerer.opened(system).pruner is answerer.opened(other).pruner
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
    with pytest.raises(BrokenPlugin, match="not a class"):
        sample.query("who wrote it", scorer="kbtools.answering.results:JSON_VERSION")


def test_a_scorer_may_be_given_by_its_module(sample: Answerer) -> None:
    given = sample.query("who wrote it", scorer="kbtools.scorers.relations.lexical:LexicalScorer")
    named = sample.query("who wrote it")
    assert given.candidates == named.candidates
    assert given.scorer == "kbtools.scorers.relations.lexical:LexicalScorer"


def test_there_must_be_a_knowledge_base_to_open(tmp_path: Path) -> None:
    with pytest.raises(KBMissing, match="kbtools index"):
        open_kb(tmp_path / "absent.kb")
    with pytest.raises(KBMissing, match="not a knowledge base"):
        open_kb(tmp_path)


def test_an_unknown_backend_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnknownPlugin, match=r"known: .*embedded"):
        open_kb(tmp_path, backend="sqlite")
    with pytest.raises(BrokenPlugin, match="not a class"):
        open_kb(tmp_path, backend="kbtools.answering.results:JSON_VERSION")


def test_zero_and_none_give_all_candidates(sample: Answerer) -> None:
    whole = sample.query("who wrote it or hamlet", top=None)
    assert sample.query("who wrote it or hamlet", top=0).candidates == whole.candidates


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"top": -1}, "top is a whole number, 0 for all, found -1"),
        ({"top": 2.5}, "top is a whole number, 0 for all, found 2.5"),
        ({"top": True}, "top is a whole number, 0 for all, found True"),
        ({"answers": -3}, "answers is a whole number, 0 for all, found -3"),
        ({"answers": "all"}, "answers is a whole number, 0 for all, found 'all'"),
        ({"abstain": float("nan")}, "abstain is a confidence from 0 to 1, found nan"),
        ({"abstain": 1.5}, "abstain is a confidence from 0 to 1, found 1.5"),
        ({"abstain": "0.5"}, "abstain is a confidence from 0 to 1, found '0.5'"),
        ({"pruning": 1}, r"pruning is a name \(str\), found 1"),
        ({"scorer": ["lexical"]}, r"scorer is a name \(str\), found \['lexical'\]"),
        ({"subject": 0}, r"subject is a name \(str\), found 0"),
        ({"text": None}, "a question is a str, found None"),
        ({"text": b"who"}, "a question is a str, found b'who'"),
    ],
)
def test_an_argument_that_cannot_be_is_one_sentence(
    tiny_memory: KnowledgeBase, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(BadArgument, match=f"^{message}$"):
        Answerer(tiny_memory).query(**({"text": "who"} | arguments))


def test_questions_are_not_one_text(tiny_memory: KnowledgeBase) -> None:
    with pytest.raises(BadArgument, match="found one str; use query"):
        Answerer(tiny_memory).query_many("who")


def test_a_folder_of_models_or_a_device_that_is_not_there_is_refused(sample_path: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelMissing, match="no folder of models; make one with kbtools train"):
        open_kb(sample_path, models=tmp_path / "none")
    with pytest.raises(UnknownDevice, match="no device 'gpu'; known: cpu"):
        open_kb(sample_path, device="gpu")


def test_a_question_is_asked_with_what_training_chose(sample_memory: Answerer, tmp_path: Path) -> None:
    read_systems(tmp_path).choose(System("n-gram+", ("lexical",), "fact-count", None, WITH_SUBJECT))
    answerer = Answerer(sample_memory.kb, models=tmp_path)

    chosen = answerer.query("who wrote it")
    named = answerer.query("who wrote it", pruning="n-gram", subject="popularity")

    assert (chosen.pruning, chosen.scorer, chosen.subject_scorer) == ("n-gram+", "lexical", "fact-count")
    assert (named.pruning, named.scorer, named.subject_scorer) == ("n-gram", "lexical", None)


@pytest.mark.parametrize("name", ["systems.msgpack", "contents.msgpack"])
def test_a_record_of_the_models_that_is_gone_is_named(sample_memory: Answerer, tmp_path: Path, name: str) -> None:
    read_systems(tmp_path).choose(System("n-gram", ("lexical",), "popularity", None, DEFAULT))
    Answerer(sample_memory.kb, models=tmp_path)
    (tmp_path / name).unlink()

    with pytest.raises(ModelUnusable, match=rf"{name}: a file of kbtools train is missing"):
        Answerer(sample_memory.kb, models=tmp_path)


def test_pruners_read_the_tagger_that_training_chose(sample_memory: Answerer, tmp_path: Path) -> None:
    read_systems(tmp_path).choose(System("focused", ("lexical",), "popularity", "crf", DEFAULT))

    answerer, other = (Answerer(sample_memory.kb, models=tmp_path, tagger=tagger) for tagger in (None, "bigru-crf"))

    assert [one.system(pruning="focused-k").guide for one in (answerer, other)] == ["crf", "bigru-crf"]


def test_a_damaged_record_of_what_training_chose_names_its_cure(sample_memory: Answerer, tmp_path: Path) -> None:
    read_systems(tmp_path).choose(System("n-gram", ("lexical",), "popularity", None, DEFAULT))
    (tmp_path / "systems.msgpack").write_bytes(b"x")

    with pytest.raises(ModelUnusable, match=r"systems\.msgpack: damaged.*run kbtools train ranking again"):
        Answerer(sample_memory.kb, models=tmp_path)


@pytest.mark.parametrize("text", ["it's " * 400, "a.b.c. " * 300, "who 's it' of harry potter's " * 70])
def test_a_question_twice_as_long_is_twice_the_work(tiny_memory: KnowledgeBase, text: str) -> None:
    answerer, results = Answerer(tiny_memory), []
    answerer.query("who")

    assert calls_of(lambda: results.append(answerer.query(text * 2))) < 2.5 * calls_of(answerer.query, text)
    assert results[0].unread == 0


@pytest.mark.parametrize("text", ["it's " * 20_000, "¿Qué? " * 10_000])
def test_a_long_question_is_read_up_to_a_limit_that_is_told(
    sample_memory: Answerer, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("text.question", "answering.explaining"):
        monkeypatch.setattr(f"kbtools.{module}.MOST_RUNS", 1_000)

    result = sample_memory.query("who wrote hamlet " + text, top=0)

    assert "Hamlet" in {one.subject_name for one in result.candidates}
    assert 50_000 < result.unread < len(text) - 1_000
    most = "only the first 1,000 words and marks are read, or in scripts without spaces 2,000 letters"
    assert f"{most}: {result.unread:,} characters were not read" in explain(result)


def test_a_question_of_as_many_runs_as_are_read_is_read_whole() -> None:
    assert [Question.read("zebra " * count).unread for count in (9_999, 10_000, 10_001)] == [0, 0, 5]


def test_a_mention_is_scored_beside_the_words_within_reach() -> None:
    words = [f"w{number}" for number in range(200)]
    text = " ".join(words)
    start = text.index("w100")

    marked = MarkedQuestion(Question.read(text), start, start + 4)

    assert marked.words(symbol="-") == [*words[36:100], "-", *words[101:165]]
    assert marked.context() == words[36:100] + words[101:165]


def test_an_answerer_is_pickled_by_path(sample_path: Path, tmp_path: Path) -> None:
    read_systems(tmp_path).choose(System("n-gram+", ("lexical",), "popularity", None, DEFAULT))
    answerer = open_kb(sample_path, models=tmp_path)
    expected = answerer.query("who wrote it")

    copied = pickle.loads(pickle.dumps(answerer))

    found = copied.query("who wrote it")

    assert replace(found, milliseconds=None) == replace(expected, milliseconds=None)


def test_a_closed_answerer_holds_no_file_and_refuses_questions(sample_path: Path, tmp_path: Path) -> None:
    shutil.copytree(sample_path, tmp_path / "copy.kb")
    gc.collect()  # so that no file of an earlier test is closed meanwhile
    before = len(os.listdir("/proc/self/fd"))
    with open_kb(tmp_path / "copy.kb") as answerer:
        answerer.query("who wrote frankenstien")

    assert len(os.listdir("/proc/self/fd")) == before
    with pytest.raises(KBUnusable, match="the knowledge base is closed; open it again"):
        answerer.query("who wrote it")


def test_models_may_hold_weights_for_every_query(sample_memory: Answerer, tmp_path: Path) -> None:
    system = System("n-gram", ("lexical",), "type-count", None, PRESETS[EQUATION_4])
    read_systems(tmp_path).choose(system)
    chosen = System("n-gram+", ("lexical",), "popularity", None, Weights(mention=0.5))
    read_systems(tmp_path).keep(chosen)

    answerer = Answerer(sample_memory.kb, models=tmp_path)
    first = answerer.query("who wrote it").candidates[0]

    assert answerer.system() == system
    assert answerer.system(pruning="n-gram", subject="popularity").weights == PRESETS[EQUATION_4]
    assert answerer.system(pruning="n-gram+", subject="popularity") == chosen
    assert first.score == pytest.approx(first.parts["relation"] + first.parts["subject"], abs=1e-6)


def test_one_and_many_take_the_same_options(sample_memory: Answerer) -> None:
    options: QueryOptions = {"pruning": "n-gram", "top": 2, "answers": 1, "inverse": True}
    question = "what films did stanley kubrick direct"
    (one,) = sample_memory.query_many([question], **options)
    assert replace(one, milliseconds=0) == replace(sample_memory.query(question, **options), milliseconds=0)


@pytest.mark.parametrize("ask", [Answerer.query, Answerer.query_many])
def test_an_option_that_there_is_not_is_a_type_error(sample_memory: Answerer, ask: Callable[..., object]) -> None:
    with pytest.raises(TypeError, match="query takes no option 'tpo'; it takes pruning, scorer"):
        ask(sample_memory, ["who wrote it"], tpo=1)
    with pytest.raises(TypeError, match="tpo"):
        sample_memory.lookup("Paris", tpo=1)  # type: ignore[call-arg]


def test_a_direction_is_true_or_false(sample_memory: Answerer) -> None:
    with pytest.raises(BadArgument, match="inverse is True or False, found 'yes'"):
        sample_memory.query("who wrote it", inverse="yes")  # type: ignore[arg-type]


def test_a_reversible_answerer_is_pickled_and_shares_the_weights_of_the_other(sample_path: Path) -> None:
    answerer = open_kb(sample_path)
    both = answerer.both_ways()
    answerer.parts.keep(answerer.system().weighted(Weights(rung=0.7)))
    assert both.query("who wrote it").weights["rung"] == 0.7
    copy = pickle.loads(pickle.dumps(both))
    assert copy.query("what orbits the sun").answers_total == 4
    assert copy.both_ways() is copy


def test_a_backend_without_incoming_facts_refuses_to_read_backwards() -> None:
    class Outgoing(MemoryKB):
        def incoming_counts(self, entities: object) -> None:
            return None

    answerer = Answerer(Outgoing([("a", "r", "b")], [("a", "Alpha")]))
    assert answerer.query("what of alpha").answers_total == 1
    with pytest.raises(IncomingMissing, match="cannot read facts backwards"):
        answerer.query("what of alpha", inverse=True)


def test_a_type_bounds_what_is_read_backwards(sample_memory: Answerer) -> None:
    result = sample_memory.query("what is paris the capital of", inverse=True, type="location.citytown", top=0)
    assert {candidate.subject for candidate in result.candidates} <= {"m.05qtj", "m.0kba002"}
    assert [answer.name for answer in result.answers] == ["France"]


@pytest.mark.parametrize("number", [np.int64(1), np.uint8(1), np.int32(1)])
def test_whole_numbers_of_numpy_are_limits(sample_memory: Answerer, number: Any) -> None:
    assert len(sample_memory.query("who wrote it", top=number, answers=number).candidates) == 1
    assert len(sample_memory.lookup("paris", limit=number).matches) == 1
    facts = sample_memory.facts("m.0jt90f5", reverse=True, limit=number, offset=number)
    assert (len(facts.facts), facts.offset) == (1, 1)
    assert json.loads(json.dumps(facts.to_json()))["offset"] == 1


@pytest.mark.parametrize("number", [np.float32(0.5), np.float64(0.5), 0.5])
def test_numbers_of_numpy_are_thresholds(sample_memory: Answerer, number: Any) -> None:
    assert sample_memory.query("who wrote it", abstain=number).confidence is not None
    assert sample_memory.link("Stephen King wrote It", threshold=number).mentions


@pytest.mark.parametrize("number", [True, np.True_, float("nan"), "0.5", -0.1, 1.1, [0.5]])
def test_what_is_no_threshold_is_one_sentence(sample_memory: Answerer, number: Any) -> None:
    with pytest.raises(BadArgument, match="abstain is a confidence from 0 to 1, found"):
        sample_memory.query("who wrote it", abstain=number)
    with pytest.raises(BadArgument, match="threshold is a score from 0 to 1, found"):
        sample_memory.link("Stephen King wrote It", threshold=number)


@pytest.mark.parametrize("texts", [None, 3, b"who wrote it"])
def test_what_holds_no_texts_is_one_sentence(sample_memory: Answerer, texts: Any) -> None:
    with pytest.raises(BadArgument, match="questions come as a list or another iterable, found "):
        sample_memory.query_many(texts)
    with pytest.raises(BadArgument, match="names come as a list or another iterable, found "):
        sample_memory.lookup_many(texts)


@pytest.mark.parametrize("path", [None, 3, b"sample.kb", ["sample.kb"]])
def test_what_is_no_path_is_one_sentence(path: Any) -> None:
    with pytest.raises(BadArgument, match="path is a str or a Path, found"):
        open_kb(path)
    with pytest.raises(BadArgument, match="out is a str or a Path, found"):
        kbtools.index(out=path, names=[("a", "Alpha")])


@pytest.mark.parametrize("result", [None, {"question": "who"}, "who"])
def test_what_is_no_result_is_not_explained(result: Any) -> None:
    with pytest.raises(BadArgument, match="explain takes a Result, as returned by query, found"):
        explain(result)


def test_what_is_no_system_is_one_sentence(sample_memory: Answerer) -> None:
    with pytest.raises(BadArgument, match=r"system is a System, as returned by Answerer.system, found 'x'"):
        sample_memory.query("who wrote it", system="x")  # type: ignore[arg-type]
    with pytest.raises(BadArgument, match="pass a system or names of its parts"):
        sample_memory.query("who wrote it", system=sample_memory.system(), scorer="lexical")


def test_a_system_answers_as_the_names_of_its_parts(sample_memory: Answerer) -> None:
    system = sample_memory.system(pruning="n-gram", scorer="static", subject="none")
    result = sample_memory.query("who wrote it", system=system)
    assert (result.pruning, result.scorer, result.weights) == ("n-gram", "static", system.counting())


@pytest.mark.parametrize("inverse", [False, True])
def test_a_plugin_that_is_no_scorer_at_all_is_broken(sample_memory: Answerer, inverse: bool) -> None:
    with pytest.raises(BrokenPlugin, match=r"scorer \w+ failed: AttributeError.*'str' object has no attribute 'score'"):
        sample_memory.query("who wrote it", scorer="json:dumps", inverse=inverse)
    with pytest.raises(BrokenPlugin, match=r"scorer \w+ failed: AttributeError.* has no attribute 'score'"):
        sample_memory.query("who wrote it", subject="builtins:id", inverse=inverse)


TOGETHER = ["who wrote dune", "zebra crossing", "?!", "what is the capital of france", "who is the author of dune"]


@pytest.mark.parametrize("subject", ["popularity", "type-count"])
def test_questions_asked_together_have_the_results_of_each_alone(sample_memory: Answerer, subject: str) -> None:
    together = list(sample_memory.query_many(TOGETHER, subject=subject))

    alone = [sample_memory.query(text, subject=subject) for text in TOGETHER]
    assert [replace(result, milliseconds=0.0) for result in together] == [
        replace(result, milliseconds=0.0) for result in alone
    ]


def test_a_scorer_is_asked_once_about_questions_that_come_together(sample_memory: Answerer) -> None:
    asked = []

    class Listening:
        def score(self, questions: Sequence[MarkedQuestion]) -> np.ndarray:
            asked.append(len(questions))
            return np.zeros((len(questions), len(sample_memory.kb.relations)))

    sample_memory.parts.scorers["listening"] = Listening()

    results = list(sample_memory.query_many(TOGETHER, scorer="listening", inverse=False))

    assert len(results) == len(TOGETHER)
    assert len(asked) == 1
    del sample_memory.parts.scorers["listening"]
