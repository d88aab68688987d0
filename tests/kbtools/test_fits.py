"""A part of a record from an untrusted file fits an annotation or does not."""

from dataclasses import dataclass
from typing import Any, TypedDict

import pytest

from kbtools.record_files import fits


@dataclass
class Point:
    x: int
    name: str | None


class Shape(TypedDict):
    points: list[Point]


GOOD = {"x": 1, "name": None}


@pytest.mark.parametrize(
    ("value", "kind", "fit"),
    [
        (GOOD, Point, True),
        ({"x": 1, "name": "a"}, Point, True),
        ({"x": 1}, Point, False),
        (GOOD | {"y": 2}, Point, False),
        (GOOD | {"x": "1"}, Point, False),
        (GOOD | {"name": 7}, Point, False),
        ([1, None], Point, False),
        ({"points": [GOOD, GOOD]}, Shape, True),
        ({"points": [GOOD, {}]}, Shape, False),
        ({"points": GOOD}, Shape, False),
        ({}, Shape, False),
        ([], list[int], True),
        ((1, 2), list[int], True),
        ([1, "2"], list[int], False),
        ([1, 2], tuple[int, ...], True),
        ([1, "a"], tuple[int, str], True),
        (["a", 1], tuple[int, str], False),
        ([1], tuple[int, str], False),
        ("ab", tuple[str, str], False),
        ({"a": 1}, dict[str, int], True),
        ({"a": "1"}, dict[str, int], False),
        ({1: 1}, dict[str, int], False),
        ([], dict[str, int], False),
        (1, int, True),
        (True, int, False),
        (1.0, int, False),
        (1, float, True),
        (1.5, float, True),
        (True, float, False),
        (float("nan"), float, False),
        (float("inf"), float, False),
        ("a", str, True),
        (b"a", str, False),
        (True, bool, True),
        (1, bool, False),
        (None, int | None, True),
        ("a", int | None, False),
        (object(), Any, True),
    ],
)
def test_a_value_fits_its_annotation(value: object, kind: Any, fit: bool) -> None:
    assert fits(value, kind) is fit
