"""Evaluation: full denominators, ties as expected values, figures made by hand."""

from dataclasses import replace

import pytest
from evaluation import expected_accuracy, is_named, looser_share, mention_coverage, pruning_figures

from kbtools.answering.answerer import Answerer
from kbtools.answering.questions import AnnotatedQuestion
from kbtools.answering.results import Candidate, Mention, Result
from kbtools.kb.contract import KnowledgeBase


def asked(subject: str, text: str = "who", relation: str = "r") -> AnnotatedQuestion:
    return AnnotatedQuestion(subject, relation, "o", text)


def result(*subjects: str, tied: int) -> Result:
    candidates = tuple(
        Candidate(one, None, (), "r", None, 0.0, Mention("who", 0, 3), "Who", "case", {}) for one in subjects
    )
    return Result("who", 0, "n-gram", None, "lexical", None, {}, None, candidates, tied, (), (), 0, None)


@pytest.mark.parametrize(
    ("found", "gold", "expected"),
    [
        (result("a", "b", tied=1), asked("a"), 1),
        (result("a", "b", tied=1), asked("b"), 0),
        (result("a", "b", tied=2), asked("a"), 1 / 2),
        (result("a", "b", tied=2), asked("b"), 1 / 2),
        (result("a", "b", "c", tied=3), asked("c"), 1 / 3),
        (result("a", "b", "c", tied=2), asked("c"), 0),
        (result("a", tied=1), asked("a", relation="s"), 0),
        (result(tied=0), asked("a"), 0),
    ],
)
def test_a_tie_counts_as_its_expected_value(found: Result, gold: AnnotatedQuestion, expected: float) -> None:
    assert expected_accuracy([found], [gold]) == pytest.approx(expected)


def test_accuracy_is_a_share_of_all_questions() -> None:
    results = [result("a", tied=1), result("a", "b", tied=2), result(tied=0), result("b", tied=1)]
    assert expected_accuracy(results, [asked("a")] * 4) == pytest.approx(1.5 / 4)


def test_results_and_questions_must_be_as_many() -> None:
    with pytest.raises(ValueError, match="zip"):
        expected_accuracy([result("a", tied=1)], [])


def test_a_result_cut_inside_its_tie_is_refused() -> None:
    with pytest.raises(ValueError, match="2 of 3 tied candidates given; query with top=None"):
        expected_accuracy([result("a", "b", tied=3)], [asked("a")])


QUESTIONS = [
    asked("m.01paris", "where is paris", "location.containedby"),
    asked("m.01paris", "where is parsi", "location.containedby"),
    asked("m.07bowie", "who is david bowie", "music.artist.genre"),
    asked("m.10nameless", "where is paris", "location.containedby"),
    asked("m.unknown", "where is paris", "location.containedby"),
    asked("m.08acdc", "zebra", "music.artist.genre"),
]


def test_a_subject_is_named_if_it_has_a_name_or_an_alias(tiny: KnowledgeBase) -> None:
    named = [is_named(tiny, asked(one)) for one in ("m.01paris", "m.16orwell", "m.10nameless", "m.unknown")]
    assert named == [True, True, False, False]


def test_coverage_counts_named_subjects_that_link(tiny: KnowledgeBase) -> None:
    coverage = mention_coverage(tiny, QUESTIONS)
    assert (coverage.questions, coverage.named, coverage.strict, coverage.fuzzy) == (6, 4, 2, 3)


def test_pruning_figures_count_gold_pairs_of_named_subjects_and_every_pool(tiny: KnowledgeBase) -> None:
    figures = pruning_figures(Answerer(tiny), QUESTIONS, pruning="n-gram")
    assert (figures.questions, figures.named, figures.recalled) == (6, 4, 2)
    assert figures.mean_pool == pytest.approx((3 + 3 + 2 + 3 + 3 + 0) / 6)
    assert figures.median_pool == 3


def test_a_gold_pair_that_no_fact_states_is_not_recalled(tiny: KnowledgeBase) -> None:
    figures = pruning_figures(Answerer(tiny), [asked("m.01paris", "paris", "music.artist.genre")], pruning="n-gram")
    assert (figures.named, figures.recalled) == (1, 0)


def test_first_places_on_a_looser_rung_are_counted() -> None:
    def on(*rungs: str) -> Result:
        one = result("a", tied=1)
        return replace(one, candidates=tuple(replace(one.candidates[0], rung=rung) for rung in rungs))

    results = [on("case", "exact"), on("exact", "fuzzy"), on("case"), on("fuzzy", "near", "variant"), result(tied=0)]

    assert looser_share(results) == pytest.approx(2 / 4)
