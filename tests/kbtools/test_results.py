"""The JSON contract: the same keys and types for every pruner and backend, offsets into the question as given."""

import json
import math
from dataclasses import FrozenInstanceError, asdict
from pathlib import Path
from typing import Any

import pytest

import kbtools
from kbtools.answering import Answerer
from kbtools.questions import read_annotated
from kbtools.results import Answer, Candidate, Mention, Result
from kbtools.text.rungs import Rung

every_pruner = pytest.mark.parametrize("pruning", ["n-gram", "n-gram+", "n-gram-idf"])

RESULT = {
    "question": str,
    "pruning": str,
    "scorer": str,
    "candidates": list,
    "tied": int,
    "answers": list,
    "milliseconds": float,
}
CANDIDATE = {
    "subject": str,
    "subject_name": str | None,
    "relation": str,
    "score": float,
    "mention": dict,
    "matched_name": str,
    "rung": str,
    "parts": dict,
}
MENTION = {"text": str, "start": int, "end": int}
ANSWER = {"id": str, "name": str | None}
PARTS = ["relation", "mention", "rung", "similarity", "popularity"]
QUESTIONS = [
    "who created the character harry potter",
    "where is nizke tatry",
    "Who directed Pirates of the Carribean",
    "where was red cloud born",
    "what chromosome is titin on",
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
        assert (record["pruning"], record["scorer"]) == (pruning, "lexical")
        for candidate in record["candidates"]:
            check(candidate, CANDIDATE)
            check(candidate["mention"], MENTION)
            assert list(candidate["parts"]) == PARTS
            assert all(isinstance(value, float) and math.isfinite(value) for value in candidate["parts"].values())
            assert candidate["rung"] in {rung.label for rung in Rung}
        for answer in record["answers"]:
            check(answer, ANSWER)


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
        "question": "zebra crossing",
        "pruning": "n-gram-idf",
        "scorer": "lexical",
        "candidates": (),
        "tied": 0,
        "answers": (),
        "milliseconds": 0.0,
    }
    assert json.dumps(record).count("[]") == 2


def test_the_python_api_gives_the_same_record_as_frozen_dataclasses(sample_path: Path) -> None:
    result = kbtools.open(sample_path).query("who wrote it")
    assert isinstance(result, kbtools.Result)
    assert isinstance(result.candidates[0], kbtools.Candidate)
    assert isinstance(result.candidates[0].mention, kbtools.Mention)
    assert isinstance(result.answers[0], kbtools.Answer)
    assert result.to_json() == asdict(result)
    with pytest.raises(FrozenInstanceError):
        result.tied = 7  # type: ignore[misc]


def test_a_record_can_be_rebuilt_from_its_json(sample: Answerer) -> None:
    result = sample.query("who created the character harry potter")
    record = json.loads(json.dumps(result.to_json(), ensure_ascii=False))
    candidates = tuple(Candidate(**(one | {"mention": Mention(**one["mention"])})) for one in record["candidates"])
    answers = tuple(Answer(**one) for one in record["answers"])
    assert Result(**(record | {"candidates": candidates, "answers": answers})) == result
