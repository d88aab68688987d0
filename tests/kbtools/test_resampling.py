"""Resampled sums and quantiles are those of the drawn values, and intervals hold the middle of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbtools.answering import resampling
from kbtools.answering.resampling import Resamples, interval, mean_interval


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


def test_an_interval_holds_the_middle_95_per_cent() -> None:
    assert interval(np.arange(1001.0)) == (25, 975)
    assert interval(np.array([1.0, np.nan])) == (1, 1)
    assert np.isnan(interval(np.array([np.nan, np.inf]))).all()


def test_intervals_hold_95_per_cent_of_a_thousand_resamples() -> None:
    assert (resampling.LEVEL, resampling.ROUNDS, len(Resamples(2).counts)) == (95.0, 1_000, 1_000)


def test_rounds_are_summed_in_parts_as_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.arange(12.0).reshape(6, 2)
    whole = Resamples(6, rounds=7).sums(values)
    monkeypatch.setattr(resampling, "_ROUNDS_AT_ONCE", 3)

    assert Resamples(6, rounds=7).sums(values).tolist() == whole.tolist()
    assert Resamples(6, rounds=7, seed=1).sums(values).tolist() != whole.tolist()


def test_the_interval_of_a_mean_is_that_of_its_resamples() -> None:
    values = np.array([0.0, 1.0, 1.0, 0.5])

    assert mean_interval(values) == interval(Resamples(4).sums(values[:, None])[:, 0] / 4)
