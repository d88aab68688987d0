"""Whether figures mean what they say: hand-made cases, slow twins, and ids that carry no meaning."""

import math
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbtools.answering import Answerer
from kbtools.comparison.experiment import Request, compare
from kbtools.comparison.figures import quotient, run_figures
from kbtools.comparison.grid import Cell, Grid
from kbtools.comparison.lost_questions import Cause, find_causes
from kbtools.comparison.run_folder import Run
from kbtools.comparison.significance import Resamples, compare_cells, interval, mcnemar
from kbtools.kb.contract import KnowledgeBase
from kbtools.kb.ids import canonical_id
from kbtools.questions import AnnotatedQuestion, read_annotated
from tests.conftest import World

GRID = Grid(("n-gram", "n-gram+"))

ID_DEPENDENT = {"ties_first_by_id", "ties_last_by_id"}
"""Controls that show what breaking ties by id would do."""

TIMED = {"milliseconds"}

ONE, OTHER = Cell("n-gram", "lexical", "none"), Cell("n-gram+", "lexical", "none")

OUTCOME = {"strict": 0.0, "object": 0.0, "recalled": 1, "tied": 1, "right_relations": 0}


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=12))
def test_resampled_sums_are_those_of_a_plain_loop(values: list[int]) -> None:
    resamples = Resamples(len(values), rounds=5)

    sums = resamples.sums(np.array([values], dtype=np.float64).T)

    expected = [sum(int(count) * value for count, value in zip(row, values, strict=True)) for row in resamples.counts]
    assert sums[:, 0] == pytest.approx(expected)


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=12), st.sampled_from([0.0, 0.5, 0.95, 1.0]))
def test_resampled_quantiles_are_those_of_the_drawn_values(values: list[int], share: float) -> None:
    resamples = Resamples(len(values), rounds=5)

    quantiles = resamples.quantiles(np.array(values, dtype=np.float64), share)

    expected = [np.quantile(np.repeat(values, row), share) for row in resamples.counts]
    assert quantiles == pytest.approx(expected)


def test_every_resample_draws_as_many_questions() -> None:
    assert Resamples(7, rounds=9).counts.sum(axis=1).tolist() == [7] * 9


def test_the_same_seed_draws_the_same_questions() -> None:
    assert (Resamples(20).counts == Resamples(20).counts).all()


def test_an_interval_narrows_with_the_number_of_questions() -> None:
    few, many = (interval(Resamples(n).sums(np.tile([[0.0], [1.0]], (n // 2, 1)))[:, 0] / n) for n in (40, 4000))

    assert few[0] < many[0] < 0.5 < many[1] < few[1]


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
        **{
            kind: tuple((renamed(entity), text) for entity, text in getattr(sample_world, kind))
            for kind in ("names", "types", "aliases")
        },
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
