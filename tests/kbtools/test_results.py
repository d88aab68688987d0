"""The JSON contract: the same keys and types for every pruner and backend, offsets into the question as given."""

import copy
import json
import math
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, asdict, replace
from pathlib import Path
from typing import Any

import pytest

import kbtools
from kbtools.answering.answerer import Answerer
from kbtools.answering.explaining import explain
from kbtools.answering.questions import read_annotated
from kbtools.answering.results import Answer, Candidate, Mention, Named, Result
from kbtools.errors import BadArgument, UnknownType
from kbtools.kb.contract import KnowledgeBase
from kbtools.ranking.weights import Weights
from kbtools.text.rungs import Rung

every_pruner = pytest.mark.parametrize("pruning", ["n-gram", "n-gram+", "n-gram-idf"])

RESULT = {
    "json_version": int,
    "question": str,
    "unread": int,
    "pruning": str,
    "tagger": str | None,
    "scorer": str,
    "subject_scorer": str | None,
    "weights": dict,
    "type": str | None,
    "candidates": list,
    "tied": int,
    "without_facts": list,
    "answers": list,
    "answers_total": int,
    "milliseconds": float,
    "inverse": bool,
    "confidence": float,
    "answered": bool,
    "doubtful": bool,
    "readings": list,
    "readings_total": int,
    "ranker": str,
    "bearers_left_out": int,
}
CANDIDATE = {
    "subject": str,
    "subject_name": str | None,
    "types": list,
    "relation": str,
    "relation_name": str | None,
    "score": float,
    "mention": dict,
    "matched_name": str,
    "rung": str,
    "parts": dict,
    "inverse": bool,
    "subject_description": str | None,
}
MENTION = {"text": str, "start": int, "end": int}
READING = {"text": str, "answers": list, "answers_total": int}
ANSWER = {"id": str, "name": str | None}
PARTS = ["relation", "mention", "rung", "similarity", "popularity"]
CHANGES: list[Callable[[Any], object]] = [
    lambda numbers: numbers.__setitem__("rung", 1.0),
    lambda numbers: numbers.__delitem__("rung"),
    lambda numbers: numbers.__ior__({}),
    lambda numbers: numbers.clear(),
    lambda numbers: numbers.pop("rung"),
    lambda numbers: numbers.popitem(),
    lambda numbers: numbers.setdefault("rung", 1.0),
    lambda numbers: numbers.update(rung=1.0),
]
QUESTIONS = [
    "who created the character harry potter",
    "where is nizke tatry",
    "Who directed Pirates of the Carribean",
    "where was red cloud born",
    "what chromosome is titin on",
    "where is springfield",
    "?",
    "",
]


def records(answerer: Answerer, pruning: str) -> list[dict[str, Any]]:
    """Give what a program reads: results after a trip through JSON."""
    return [json.loads(json.dumps(answerer.query(text, pruning=pruning, top=None).to_json())) for text in QUESTIONS]


def check(record: dict[str, Any], keys: dict[str, Any]) -> None:
    assert list(record) == list(keys)
    assert {key: value for key, value in record.items() if not isinstance(value, keys[key])} == {}


@every_pruner
def test_every_record_has_the_keys_and_types_of_the_contract(sample: Answerer, pruning: str) -> None:
    for record in records(sample, pruning):
        check(record, RESULT)
        assert (record["json_version"], record["pruning"], record["scorer"]) == (1, pruning, "lexical")
        assert (record["subject_scorer"], record["tagger"]) == (None, None)
        for candidate in record["candidates"]:
            check(candidate, CANDIDATE)
            check(candidate["mention"], MENTION)
            assert list(candidate["parts"]) == PARTS
            assert all(isinstance(value, float) and math.isfinite(value) for value in candidate["parts"].values())
            assert candidate["rung"] in {rung.label for rung in Rung}
        for reading in record["readings"]:
            check(reading, READING)
        for answers in [record["answers"], *(reading["answers"] for reading in record["readings"])]:
            for answer in answers:
                check(answer, ANSWER)


@every_pruner
def test_a_record_says_whether_facts_were_read_backwards(sample_memory: Answerer, pruning: str) -> None:
    question = "what films did steven spielberg direct"
    record = json.loads(json.dumps(sample_memory.query(question, pruning=pruning, inverse=True).to_json()))
    check(record, RESULT)
    first = record["candidates"][0]
    check(first, CANDIDATE)
    assert (first["relation"], first["inverse"], record["inverse"]) == ("film.film.directed_by", True, True)
    assert [answer["name"] for answer in record["answers"]] == ["Jaws"]
    ordinary = sample_memory.query(question, pruning=pruning, inverse=False).to_json()
    assert not any([ordinary["inverse"], *(one["inverse"] for one in ordinary["candidates"])])


@every_pruner
def test_a_score_is_the_sum_of_its_parts_within_rounding(sample: Answerer, examples: Path, pruning: str) -> None:
    for gold in read_annotated(examples / "sample.test.txt"):
        for found in sample.query(gold.text, pruning=pruning, top=None).candidates:
            assert found.score == pytest.approx(sum(found.parts.values()), abs=4e-6)


@every_pruner
def test_candidates_come_best_first_and_tied_counts_the_first_score(
    sample: Answerer, examples: Path, pruning: str
) -> None:
    for gold in read_annotated(examples / "sample.test.txt"):
        result = sample.query(gold.text, pruning=pruning, top=None)
        places = [(-found.score, found.subject, found.relation) for found in result.candidates]
        assert places == sorted(places)
        assert len(places) == len(set(places))
        assert result.tied == sum(place[0] == places[0][0] for place in places)


@every_pruner
@pytest.mark.parametrize(
    ("before", "mention"),
    [
        ("\U0001f600\U0001f3fd who made ", "Björk"),
        ("𝒲here is ", "Nízke Tatry"),
        ("e\u0301te\u0301: ", "Harder.....Faster"),
        ("\u202bwhat is\u202c ", "C++"),
        ("ﬁnd ", "七人の侍"),
        ("  \t", "Sasha Vujačić"),
    ],
)
def test_offsets_are_characters_of_the_question_as_given(
    sample: Answerer, pruning: str, before: str, mention: str
) -> None:
    text = f"{before}{mention}\U0001f600 then"
    found = [one for one in sample.query(text, pruning=pruning, top=None).candidates if one.mention.text == mention]
    assert {(one.mention.start, one.mention.end) for one in found} == {(len(before), len(before) + len(mention))}


@every_pruner
def test_the_text_of_a_mention_is_what_its_offsets_cut_out(sample: Answerer, examples: Path, pruning: str) -> None:
    for gold in read_annotated(examples / "sample.train.txt"):
        for found in sample.query(gold.text, pruning=pruning, top=None).candidates:
            assert found.mention.text == gold.text[found.mention.start : found.mention.end] != ""


def test_a_question_without_candidates_gives_empty_lists(sample: Answerer) -> None:
    record = sample.query("zebra crossing").to_json() | {"milliseconds": 0.0}
    assert record == {
        "json_version": 1,
        "question": "zebra crossing",
        "unread": 0,
        "pruning": "n-gram-idf",
        "tagger": None,
        "scorer": "lexical",
        "subject_scorer": None,
        "weights": {"relation": 1.0, "mention": 1.0, "rung": 0.2, "similarity": 1.0, "popularity": 0.15},
        "type": None,
        "candidates": (),
        "tied": 0,
        "without_facts": (),
        "answers": (),
        "answers_total": 0,
        "milliseconds": 0.0,
        "inverse": False,
        "confidence": 0.0,
        "answered": False,
        "doubtful": True,
        "readings": (),
        "readings_total": 0,
        "ranker": "weighted-sum",
        "bearers_left_out": 0,
    }
    assert json.dumps(record).count("[]") == 4


def test_the_python_api_gives_the_same_record_as_frozen_dataclasses(sample_path: Path) -> None:
    result = kbtools.open(sample_path).query("who wrote it")
    assert isinstance(result, kbtools.Result)
    assert isinstance(result.candidates[0], kbtools.Candidate)
    assert isinstance(result.candidates[0].mention, kbtools.Mention)
    assert isinstance(result.answers[0], kbtools.Answer)
    assert result.to_json().items() <= ({"json_version": 1} | asdict(result)).items()
    with pytest.raises(FrozenInstanceError):
        result.tied = 7  # type: ignore[misc]


def test_a_record_can_be_rebuilt_from_its_json(sample: Answerer) -> None:
    result = sample.query("who created the character harry potter")
    record = json.loads(json.dumps(result.to_json(), ensure_ascii=False))
    candidates = tuple(
        Candidate(**(one | {"mention": Mention(**one["mention"]), "types": tuple(one["types"])}))
        for one in record["candidates"]
    )
    answers = tuple(Answer(**one) for one in record["answers"])
    del record["json_version"]
    rebuilt = {"candidates": candidates, "answers": answers, "without_facts": (), "readings": ()}
    assert Result(**(record | rebuilt)) == result


def test_a_result_cannot_be_changed_and_has_a_hash(sample: Answerer) -> None:
    result = sample.query("who wrote it")
    for numbers in (result.weights, result.candidates[0].parts):
        for change in CHANGES:
            with pytest.raises(TypeError, match="a result cannot be changed"):
                change(numbers)
    assert len({result, replace(result), pickle.loads(pickle.dumps(result)), copy.deepcopy(result)}) == 1
    assert len({result, replace(result, tied=7)}) == 2


def test_two_systems_never_give_one_record(sample_memory: Answerer) -> None:
    other = Answerer(sample_memory.kb)
    other.parts.keep(other.system().weighted(Weights(mention=0.5)))
    results = [
        sample_memory.query("?", top=1),
        other.query("?", top=1),
        sample_memory.query("?", top=1, subject="fact-count"),
        sample_memory.query("?", top=1, pruning="n-gram"),
    ]
    assert len({json.dumps(result.to_json() | {"milliseconds": 0}) for result in results}) == 4


def test_the_names_of_a_question_that_are_subjects_of_no_fact_are_told(tiny: KnowledgeBase) -> None:
    result = Answerer(tiny).query("what is atlantis")
    assert (result.candidates, result.without_facts) == ((), (Named("m.19atlantis", "Atlantis"),))
    assert "the question names Atlantis (m.19atlantis), for which the knowledge base has no fact" in explain(result)


@pytest.mark.parametrize(("answers", "given"), [(1, 1), (2, 2), (20, 3), (0, 3), (None, 3)])
def test_answers_are_limited_and_counted(tiny: KnowledgeBase, answers: int | None, given: int) -> None:
    result = Answerer(tiny).query("what genre is ac/dc", answers=answers)
    assert [answer.id for answer in result.answers] == ["m.0gblues", "m.0ghard", "m.0grock"][:given]
    assert result.answers_total == 3


def test_a_candidate_has_the_types_of_its_subject_and_the_name_of_its_relation(
    sample: Answerer,
) -> None:
    first = sample.query("who created the character harry potter").candidates[0]
    assert first.types == tuple(sorted(first.types)) != ()
    assert first.relation_name is None


def test_subjects_of_other_types_are_out(tiny: KnowledgeBase) -> None:
    answerer = Answerer(tiny)
    towns = answerer.query("where is paris", type="location.citytown", top=0)
    topics = answerer.query("where is paris", type="common.topic", top=0)
    assert {candidate.subject for candidate in towns.candidates} == {"m.01paris", "m.02paris"}
    assert {candidate.subject for candidate in topics.candidates} == {"m.01paris"}
    assert answerer.query("what genre is ac/dc", type="common.topic").candidates == ()
    with pytest.raises(UnknownType, match=r"no entity has the type 'no\.type'"):
        answerer.query("where is paris", type="no.type")
    with pytest.raises(BadArgument, match="type is a str, found 7"):
        answerer.query("where is paris", type=7)  # type: ignore[arg-type]
