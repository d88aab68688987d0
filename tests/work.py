"""How much work something is, as a number that no other program on the machine changes."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def calls_of(work: Callable[..., object], *arguments: object, **options: object) -> int:
    """Count the calls of Python's and C's functions that it makes: time would say how busy the machine is as well."""
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
