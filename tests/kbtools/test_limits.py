"""Limits, shares and texts are checked where they are given, and a deadline where it passes."""

from contextvars import copy_context
from time import monotonic
from typing import Any

import numpy as np
import pytest

from kbtools.answering.limits import (
    ANSWERS,
    DOUBTFUL,
    TOP,
    Limits,
    read_count,
    read_limit,
    read_share,
    require_text,
    require_texts,
)
from kbtools.deadline import check_time, set_deadline
from kbtools.errors import AnswerTooSlow, BadArgument


@pytest.mark.parametrize(
    ("limit", "read"), [(None, None), (0, None), (1, 1), (7, 7), (np.int64(3), 3), (np.int8(0), None)]
)
def test_a_limit_of_0_or_none_is_none(limit: int | None, read: int | None) -> None:
    assert read_limit(limit, "top") == read
    assert type(read_limit(limit, "top")) in (int, type(None))


@pytest.mark.parametrize("limit", [-1, 1.0, True, False, "3", np.float64(2), np.int64(-1)])
def test_a_limit_that_is_no_count_is_refused(limit: Any) -> None:
    with pytest.raises(BadArgument, match="top is a whole number, 0 for all") as error:
        read_limit(limit, "top")
    assert error.value.facts["name"] == "top"


def test_a_count_of_0_is_0() -> None:
    assert read_count(0, "offset", zero="the first") == 0
    with pytest.raises(BadArgument, match="0 for the first"):
        read_count(None, "offset", zero="the first")


@pytest.mark.parametrize(("share", "read"), [(0, 0.0), (1, 1.0), (0.25, 0.25), (np.float32(0.5), 0.5)])
def test_a_share_is_from_0_to_1(share: Any, read: float) -> None:
    assert read_share(share, "abstain", what="confidence") == read
    assert type(read_share(share, "abstain", what="confidence")) is float


@pytest.mark.parametrize("share", [-0.1, 1.1, True, "0.5", float("nan"), None])
def test_what_is_no_share_is_refused(share: Any) -> None:
    with pytest.raises(BadArgument, match="abstain is a confidence from 0 to 1"):
        read_share(share, "abstain", what="confidence")


def test_limits_are_read_together() -> None:
    assert Limits() == Limits(TOP, ANSWERS, None) == Limits(10, 20)
    assert Limits(0, 0, 1) == Limits(None, None, 1.0)
    assert DOUBTFUL == 0.15
    for wrong in ({"top": -1}, {"answers": -1}, {"abstain": 2}):
        with pytest.raises(BadArgument, match=next(iter(wrong))):
            Limits(**wrong)


def test_texts_come_as_several_texts() -> None:
    require_texts(iter(["a"]), "texts", what="questions", single="query")
    require_text("", "text")
    for wrong, advice in (("a", "one str; use query"), (b"a", "found b'a'"), (7, "found 7"), (None, "found None")):
        with pytest.raises(BadArgument, match=f"questions come as a list or another iterable, .*{advice}"):
            require_texts(wrong, "texts", what="questions", single="query")
    with pytest.raises(BadArgument, match="text is a str, found b'a'"):
        require_text(b"a", "text")  # type: ignore[arg-type]


def test_a_deadline_that_has_passed_ends_the_job_of_its_context_alone() -> None:
    def late() -> None:
        set_deadline(2.5, since=monotonic() - 3)
        check_time()

    def early() -> None:
        set_deadline(60, since=monotonic() - 30)
        check_time()

    with pytest.raises(AnswerTooSlow, match=r"no answer within 2\.5 seconds") as error:
        copy_context().run(late)
    copy_context().run(early)
    check_time()
    assert error.value.facts["seconds"] == 2.5
