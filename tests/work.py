"""The amount of work, as a number that other programs on the machine do not affect."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def calls_of(work: Callable[..., object], *arguments: object, **options: object) -> int:
    """Count the calls of Python's and C's functions that it makes; time would depend on the load of the machine."""
    count = 0

    def note(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        work(*arguments, **options)
    finally:
        sys.setprofile(None)
    return count
