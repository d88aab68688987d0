"""Figures mean what they say: hand-made cases, slow twins, and ids that carry no meaning."""

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kbtools.answering.answerer import Answerer
from kbtools.answering.questions import AnnotatedQuestion, read_annotated
from kbtools.answering.resampling import Resamples, interval
from kbtools.comparison.column_store import Columns
from kbtools.comparison.experiment import Request, compare
from kbtools.comparison.figures import MEASURES, Figure, cell_figures, quotient, run_figures
from kbtools.comparison.gold_pools import count_namesakes
from kbtools.comparison.grid import Cell, Grid
from kbtools.comparison.lost_questions import Cause, find_causes
from kbtools.comparison.run_folder import Run
from kbtools.comparison.significance import compare_cells, mcnemar
from kbtools.comparison.summary import show, show_interval
from kbtools.kb.contract import KnowledgeBase
from kbtools.kb.ids import canonical_id
from kbtools.ranking.pools import Pools
from tests.conftest import World

GRID = Grid(("n-gram", "n-gram+"))

ID_DEPENDENT = {"ties_first_by_id", "ties_last_by_id"}
"""Controls that show what breaking ties by id would do."""

TIMED = {"milliseconds"}

ONE, OTHER = Cell("n-gram", "lexical", "none"), Cell("n-gram+", "lexical", "none")

OUTCOME = {"strict": 0.0, "object": 0.0, "recalled": 1, "tied": 1, "right_relations": 0}


def test_a_share_of_nothing_is_no_number() -> None:
    nothing = np.zeros(3)

    figure = quotient(nothing, nothing, resampled=(np.zeros(5), np.zeros(5)))

    assert math.isnan(figure.value)
    assert math.isnan(figure.low)
    assert figure.whole == 0


@pytest.mark.parametrize(
    ("won", "lost", "expected"),
    [(0, 0, 1.0), (1, 0, 1.0), (3, 3, 1.0), (0, 5, 2 / 32), (1, 5, 2 * 7 / 64), (5, 1, 2 * 7 / 64)],
)
def test_mcnemar_is_a_fair_coin(won: int, lost: int, expected: float) -> None:
    assert mcnemar(won, lost) == pytest.approx(expected)


def test_a_sure_difference_is_sure_by_both_tests() -> None:
    values = {ONE: np.ones(200), OTHER: np.array([1.0, 0.0] * 100)}

    (found,) = compare_cells(values, Resamples(200))

    assert (found.difference, found.won, found.lost) == (0.5, 100, 0)
    assert 0.4 < found.low < 0.5 < found.high < 0.6
    assert found.mcnemar < 0.001
    assert found.bootstrap < 0.01


def test_a_cell_is_not_better_than_itself() -> None:
    values = {ONE: np.array([1.0, 0.5, 0.0]), OTHER: np.array([1.0, 0.5, 0.0])}

    (found,) = compare_cells(values, Resamples(3))

    assert (found.difference, found.low, found.high, found.mcnemar, found.bootstrap) == (0, 0, 0, 1, 1)


def test_ties_are_won_and_lost_in_shares() -> None:
    (found,) = compare_cells({ONE: np.array([1.0, 0.0]), OTHER: np.array([0.5, 0.25])}, Resamples(2))

    assert (found.won, found.lost) == (0.5, 0.25)


@pytest.mark.parametrize(
    ("outcome", "fault", "linkable", "cause"),
    [
        ({"strict": 1.0, "right_relations": 1}, 0, True, Cause.NONE),
        ({"recalled": 0}, 1, False, Cause.UNKNOWN_SUBJECT),
        ({"recalled": 0}, 2, True, Cause.UNKNOWN_RELATION),
        ({"recalled": 0}, 3, True, Cause.NO_SUCH_FACT),
        ({"recalled": 0}, 4, False, Cause.UNNAMED_SUBJECT),
        ({"recalled": 0}, 0, False, Cause.MENTION_NOT_LINKED),
        ({"recalled": 0, "object": 1.0}, 0, True, Cause.PRUNED_AWAY),
        ({"strict": 0.5, "tied": 2, "right_relations": 2}, 0, True, Cause.NAMESAKE_TIE),
        ({"strict": 0.5, "tied": 2, "right_relations": 1}, 0, True, Cause.RELATION_TIE),
        ({"object": 1.0}, 0, True, Cause.OBJECT_RIGHT),
        ({}, 0, True, Cause.WRONG_RELATION),
        ({"right_relations": 1}, 0, True, Cause.WRONG_SUBJECT),
        ({"right_relations": 1}, 0, False, Cause.WRONG_SUBJECT),
    ],
)
def test_a_lost_question_has_one_cause(outcome: dict[str, float], fault: int, linkable: bool, cause: Cause) -> None:
    outcomes = {name: np.array([value]) for name, value in (OUTCOME | outcome).items()}

    found = find_causes(outcomes, fault=np.array([fault], dtype=np.int8), linkable=np.array([linkable]))

    assert found.tolist() == [cause]


def test_causes_add_up_to_what_is_lost(sample_run: Run) -> None:
    found = run_figures(sample_run, Resamples(len(sample_run)))

    lost = [sum(cost for _, cost in one.causes.values()) for one in found]
    assert lost == pytest.approx([36 * (1 - one.figures["accuracy"].value) for one in found])
    for one in found:
        causes = sample_run.causes(one.cell)
        assert {cause: count for cause, (count, _) in one.causes.items()} == {
            cause: np.count_nonzero(causes == cause) for cause in Cause if cause is not Cause.NONE
        }
        assert one.questions == 36


def test_every_value_lies_in_its_interval(sample_run: Run) -> None:
    found = run_figures(sample_run, Resamples(len(sample_run)))

    outside = [
        (one.cell, name, figure)
        for one in found
        for name, figure in one.figures.items()
        if not math.isnan(figure.value) and not figure.low - 1e-9 <= figure.value <= figure.high + 1e-9
    ]
    assert outside == []


def test_single_and_multi_subject_questions_make_up_the_recalled(sample_run: Run) -> None:
    found = run_figures(sample_run, Resamples(len(sample_run)))

    wholes = [(one.figures["single_subject"].whole or 0) + (one.figures["multi_subject"].whole or 0) for one in found]
    assert wholes == [one.figures["recall"].part for one in found]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_renaming_every_id_changes_no_figure(
    sample_run: Run,
    sample_world: World,
    sample_questions: Path,
    make_kb: Callable[..., KnowledgeBase],
    tmp_path: Path,
    seed: int,
) -> None:
    before = list(read_annotated(sample_questions))
    renamed = new_names(sample_world, before, seed)
    world = replace(
        sample_world,
        facts=tuple((renamed(s), r, renamed(o)) for s, r, o in sample_world.facts),
        names=tuple((renamed(entity), text) for entity, text in sample_world.names),
        types=tuple((renamed(entity), text) for entity, text in sample_world.types),
        aliases=tuple((renamed(entity), text) for entity, text in sample_world.aliases),
    )
    lines = ["\t".join([renamed(one.subject), one.relation, renamed(one.object), one.text]) for one in before]
    (tmp_path / "renamed.txt").write_text("\n".join(lines), encoding="utf-8")
    answerer = Answerer(make_kb("memory", world))
    request = Request(tmp_path / "renamed.txt", tmp_path / "run", GRID, Path("renamed.kb"))

    after = compare(answerer, request)

    assert values(after) == pytest.approx(values(sample_run))


def new_names(world: World, questions: list[AnnotatedQuestion], seed: int) -> Callable[[str], str]:
    """Shuffle the ids of entities among themselves; literals keep their spelling."""
    used = {canonical_id(entity) for s, _, o in world.facts for entity in (s, o)}
    used |= {canonical_id(entity) for pairs in (world.names, world.types, world.aliases) for entity, _ in pairs}
    used |= {one for question in questions for one in (question.subject, question.object)}
    ids = sorted(entity for entity in used if not entity.startswith('"'))
    new = [f"m.new{at:05}" for at in range(len(ids))]
    random.Random(seed).shuffle(new)
    table = dict(zip(ids, new, strict=True))
    return lambda entity: table.get(canonical_id(entity), entity)


def values(run: Run) -> dict[tuple[str, ...], float]:
    """List every figure, bound and cause that is no time and that does not ask for ids."""
    found = {}
    for one in run_figures(run, Resamples(len(run))):
        for name, figure in one.figures.items():
            if name not in ID_DEPENDENT | TIMED:
                found |= {
                    (*one.cell, name, "value"): figure.value,
                    (*one.cell, name, "low"): figure.low,
                    (*one.cell, name, "high"): figure.high,
                }
        found |= {(*one.cell, cause.label, "lost"): lost for cause, (_, lost) in one.causes.items()}
    return found


ZERO = ("strict", "object", "given_subject", "bound", "oracle", "first", "last", "pool", "milliseconds")

WHOLE: dict[str, float] = dict.fromkeys(ZERO, 0.0) | {"recalled": 1, "subjects": 1, "subject_kept": 1}
"""The outcomes of a question that is recalled, with one subject, and lost."""


def share(name: str, *outcomes: Mapping[str, float]) -> tuple[float, float]:
    """Give the numerator and the denominator of a figure of some questions."""
    columns = {key: np.array([{**WHOLE, **outcome}[key] for outcome in outcomes]) for key in WHOLE}
    of = MEASURES[name].of
    assert callable(of)
    part, whole = of(columns)
    return float(part.sum()), float(whole.sum())


def test_subject_counts_are_taken_within_the_recalled() -> None:
    lost = {"recalled": 0, "subjects": 1, "strict": 0.0}
    outcomes = [{"strict": 1.0}, {"strict": 0.5}, lost, {"subjects": 2, "strict": 1.0}, lost | {"subjects": 3}]

    assert share("single_subject", *outcomes) == (1.5, 2)
    assert share("multi_subject", *outcomes) == (1.0, 1)


def test_a_pool_without_subjects_is_neither_single_nor_multi() -> None:
    empty = {"recalled": 0, "subjects": 0}

    assert share("single_subject", empty) == share("multi_subject", empty) == (0, 0)


def test_relations_are_counted_where_the_subject_was_kept() -> None:
    outcomes = [{"given_subject": 0.5}, {"given_subject": 0.0}, {"subject_kept": 0.0}]

    assert share("relation_given_subject", *outcomes) == (0.5, 2)


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("accuracy", "strict"),
        ("object_accuracy", "object"),
        ("recall", "recalled"),
        ("ambiguity_bound", "bound"),
        ("oracle", "oracle"),
        ("ties_first_by_id", "first"),
        ("ties_last_by_id", "last"),
        ("pool_mean", "pool"),
        ("milliseconds", "milliseconds"),
    ],
)
def test_other_figures_are_over_all_questions(name: str, column: str) -> None:
    lost = dict.fromkeys(WHOLE, 0)

    assert share(name, lost | {column: 1}, lost, lost) == (1, 3)


def test_quantiles_of_pools_are_those_of_numpy(sample_run: Run) -> None:
    for found in run_figures(sample_run, Resamples(len(sample_run))):
        pool = sample_run.cells[found.cell]["pool"]
        assert found.figures["pool_median"].value == np.median(pool)
        assert found.figures["pool_p95"].value == np.quantile(pool, 0.95)


def test_shares_are_shown_in_per_cent_and_sizes_as_numbers() -> None:
    numbers = {"pool_mean", "pool_p95", "milliseconds"}
    figure = Figure(2.345, 1.23, 2.56)

    shown = {name: (show(name, figure), show_interval(name, figure)) for name in MEASURES}

    assert shown == {
        **dict.fromkeys(MEASURES, ("234.5", "123.0-256.0")),
        **dict.fromkeys(numbers, ("2.3", "1.2-2.6")),
        "pool_median": ("2", "1.2-2.6"),
    }


def test_questions_without_candidates_are_counted(sample_run: Run) -> None:
    cell, columns = next(iter(sample_run.cells.items()))
    emptied = Columns(
        "print", {**columns.arrays, "pool": np.where(np.arange(36) < 5, 0, columns["pool"])}, columns.facts
    )

    assert cell_figures(replace(sample_run, cells={cell: emptied}), cell, Resamples(36)).unanswered == 5


def test_pairs_are_compared_on_the_same_resamples() -> None:
    worse = np.array([1.0, 0.0] * 500)
    better = np.minimum(worse + np.array(([0.0] * 99 + [1.0]) * 10), 1)

    (found,) = compare_cells({ONE: better, OTHER: worse}, Resamples(1000))

    assert found.won == 10
    assert 0.003 < found.low < found.difference == 0.01 < found.high < 0.018


def test_a_difference_that_no_resample_turns_is_as_sure_as_the_rounds_allow() -> None:
    (found,) = compare_cells({ONE: np.ones(9), OTHER: np.zeros(9)}, Resamples(9, rounds=99))

    assert found.bootstrap == 2 / 100


def test_differences_are_resampled_in_pairs() -> None:
    generator, resamples = np.random.default_rng(1), Resamples(50)
    one, other = generator.random(50), generator.random(50)

    (found,) = compare_cells({ONE: one, OTHER: other}, resamples)

    assert (found.low, found.high) == pytest.approx(interval(resamples.sums((one - other)[:, None])[:, 0] / 50))


@pytest.mark.parametrize(
    "different", ["", "link_start", "link_end", "link_rung", "link_similarity", "link_weight", "relation"]
)
def test_namesakes_are_linked_alike_and_have_the_relation(different: str) -> None:
    zero = np.zeros(2, dtype=np.int64)
    pools = Pools(
        counts={"link": np.array([2]), "mention": np.array([1]), "subject": np.array([2]), "relation": np.array([2]),
                "pair": np.array([2])},
        link_start=zero, link_end=zero + 4, link_rung=zero + 7, link_similarity=np.full(2, 90.0),
        link_weight=np.zeros(2), link_confidence=np.ones(2), mention_start=zero[:1], mention_end=zero[:1] + 4,
        subject=np.array([5, 6], dtype=np.uint32), subject_link=np.array([0, 1]), subject_mention=zero,
        subject_facts=zero + 1, relation=np.array([3, 4], dtype=np.uint32), pair_subject=np.array([0, 1]),
        pair_relation=np.array([0, different == "relation"], dtype=np.int64),
    )  # fmt: skip
    if different.startswith("link"):
        pools = replace(pools, **{different: getattr(pools, different) + np.array([0, 1])})

    assert count_namesakes(pools).tolist() == ([1, 1] if different else [2, 2])


def test_large_splits_are_tested_exactly() -> None:
    assert mcnemar(2000, 1900) == pytest.approx(0.11289, abs=1e-5)


def test_given_pairs_are_compared_and_else_all() -> None:
    third = ONE._replace(subject="type-count")
    values = {cell: np.array([at % 2, 1.0]) for at, cell in enumerate((ONE, OTHER, third))}

    found = compare_cells(values, Resamples(2), [(third, ONE)])

    assert [(pair.one, pair.other) for pair in found] == [(third, ONE)]
    assert [(pair.one, pair.other) for pair in compare_cells(values, Resamples(2))] == [
        (ONE, OTHER), (ONE, third), (OTHER, third),
    ]  # fmt: skip
