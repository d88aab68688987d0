"""Figures while training count a tie as its expected value."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from kbtools.kb.contract import KnowledgeBase
from kbtools.scorers.fitting.measures import Namesakes, first_share, measure_relations, relation_marks
from kbtools.scorers.fitting.splits import Examples
from kbtools.text.ngrams import Ngram
from kbtools.text.question import MarkedQuestion, Question

QUESTION = MarkedQuestion(Question.read("who wrote it"), 10, 12)


def examples(*, subjects: Sequence[int], relations: Sequence[int]) -> Examples:
    questions = [QUESTION] * len(subjects)
    rows = np.array(subjects, dtype=np.int64), np.array(relations, dtype=np.int64)
    return Examples(questions, [None] * len(subjects), *rows, unknown=0, digest="")


def test_a_tie_for_the_first_relation_counts_one_of_those_tied() -> None:
    scores = np.array([[1.0, 1.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, 0.0], [0.0, 1.0, 1.0]])

    assert first_share(scores, [0, 1, 2, 0]) == pytest.approx((1 / 2 + 0 + 1 / 3 + 0) / 4)


def test_a_relation_that_the_subject_lacks_is_never_right() -> None:
    scores = np.array([[3.0, 1.0], [1.0, 3.0]], dtype=np.float32)

    figures = measure_relations(scores, examples(subjects=[0, 1], relations=[1, 0]), np.array([[0, 1], [0, 0]]) > 0)

    assert figures == {"of all relations": 0.0, "given the subject": 0.5}


def test_relations_are_marked_for_each_subject_and_none_for_an_unknown_one(tiny_memory: KnowledgeBase) -> None:
    subjects = np.array([2, -1, 0], dtype=np.int64)

    marks = relation_marks(tiny_memory, subjects, len(tiny_memory.relations))

    assert [np.flatnonzero(row).tolist() for row in marks[[0, 2]]] == [
        sorted(tiny_memory.relations_of(np.array([row], dtype=np.uint32)).values.tolist()) for row in (2, 0)
    ]
    assert not marks[1].any()


class Known:
    """A subject scorer with one score for each entity row."""

    def __init__(self, scores: dict[int, float]) -> None:
        self.scores = scores

    def score(self, questions: Sequence[MarkedQuestion], *, which: np.ndarray, subjects: np.ndarray) -> np.ndarray:
        return np.array([self.scores[int(row)] for row in subjects])


def test_namesakes_are_several_bearers_of_the_mention_with_the_gold_relation(tiny_memory: KnowledgeBase) -> None:
    first, second, lodz = map(int, tiny_memory.rows(["m.01paris", "m.02paris", "m.04lodz"]))
    relations = [tiny_memory.relations.index(name) for name in ("location.containedby", "location.time_zone")]
    forms = ("unknown", "paris", "paris", "lodz", "paris")
    mentions = [None, *(Ngram(form, 0, 0, 0, 4) for form in forms)]
    gold = examples(
        subjects=[first, first, first, first, lodz, lodz],
        relations=[relations[0], relations[0], relations[0], relations[1], relations[0], relations[0]],
    )

    namesakes = Namesakes.find(tiny_memory, replace(gold, mentions=mentions))

    assert namesakes.rows == [2]
    assert [rows.tolist() for rows in namesakes.entities] == [sorted((first, second))]


def test_namesakes_that_tie_but_for_rounding_count_one_of_those_tied() -> None:
    bearers = [np.array(rows, dtype=np.uint32) for rows in ([3, 4], [5, 6, 7], [8, 9])]
    namesakes = Namesakes(examples(subjects=[3, 5, 9], relations=[0, 0, 0]), [0, 1, 2], bearers)

    share = namesakes.share_told_apart(Known({3: 1.0, 4: 1.0 + 5e-10, 5: 0.0, 6: 1.0, 7: 0.0, 8: 0.0, 9: 1.0}))

    assert share == pytest.approx((1 / 2 + 0 + 1) / 3)
