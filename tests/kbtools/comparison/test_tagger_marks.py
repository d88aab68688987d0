"""Taggers are judged by whole mentions, once, and over the questions whose mention is known."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from kbtools.answering.answerer import Answerer
from kbtools.answering.gold import find_gold
from kbtools.answering.questions import AnnotatedQuestion
from kbtools.comparison.experiment import Request, compare
from kbtools.comparison.gold_pools import mark_mentions
from kbtools.comparison.grid import Grid
from kbtools.comparison.report_files import taggers_sections
from kbtools.comparison.run_folder import Run
from kbtools.comparison.summary import make_report
from kbtools.pruning.pruners import word_places
from kbtools.text.question import Question

LINES = (
    "m.078ffw\tbook.written_work.author\tm.042xh\twho wrote harry potter",
    "m.078ffw\tbook.written_work.author\tm.042xh\tharry potter was written by whom",
    "m.078ffw\tbook.written_work.author\tm.042xh\twho wrote it",
    "m.nobody\tbook.written_work.author\tm.042xh\twho wrote harry potter",
)


class LastTwo:
    """Mark the last two words of every question."""

    asked = 0

    def __init__(self, kb: object) -> None:
        pass

    def spans(self, questions: Sequence[Question]) -> list[np.ndarray]:
        type(self).asked += len(questions)
        found = [np.full((len(word_places(one)),) * 2, -np.inf) for one in questions]
        for spans in found:
            spans[-2, -1] = 0.0
        return found


@pytest.fixture
def judged(sample_memory: Answerer, request_for: Callable[..., Request], tmp_path: Path) -> Callable[[], Run]:
    """Compare with a focused pruner under a tagger that marks the last two words."""
    (tmp_path / "questions.txt").write_text("\n".join(LINES), encoding="utf-8")
    answerer = Answerer(sample_memory.kb, tagger="last-two")
    answerer.parts.make_tagger = lambda name: LastTwo(answerer.kb)  # type: ignore[method-assign]
    request = request_for(questions=tmp_path / "questions.txt", grid=Grid(("focused",)))
    return lambda: compare(answerer, request)


def test_a_mention_counts_if_it_is_marked_exactly(judged: Callable[[], Run]) -> None:
    columns = judged().taggers["last-two"]

    assert columns["labelled"].tolist() == [1, 1, 0, 0]
    assert columns["right"].tolist() == [1, 0, 0, 0]


def test_questions_are_marked_some_at_a_time_as_at_once(
    sample_memory: Answerer, monkeypatch: pytest.MonkeyPatch
) -> None:
    gold = find_gold(sample_memory.kb, [AnnotatedQuestion(*line.split("\t")) for line in LINES])
    monkeypatch.setattr("kbtools.comparison.gold_pools._TAGGED_AT_ONCE", 3)
    done: list[int] = []

    marks = mark_mentions(sample_memory.kb, LastTwo(sample_memory.kb), gold, done.append)

    assert (marks["labelled"].tolist(), marks["right"].tolist()) == ([1, 1, 0, 0], [1, 0, 0, 0])
    assert done == [3, 4]


def test_the_report_says_how_many_mentions_a_tagger_finds(judged: Callable[[], Run]) -> None:
    (section,) = taggers_sections(make_report(judged()))

    assert section.rows == [["last-two", "50.0 (1 of 2)"]]


def test_a_tagger_is_judged_once(judged: Callable[[], Run]) -> None:
    judged()
    asked = LastTwo.asked

    judged()

    assert LastTwo.asked == asked


def test_without_a_focused_pruner_no_tagger_is_judged(sample_run: Run) -> None:
    assert sample_run.taggers == {}
