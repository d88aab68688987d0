"""The deadline of the job that runs in this thread, checked in long loops."""

from contextvars import ContextVar
from time import monotonic

from kbtools.errors import AnswerTooSlow

_DEADLINE: ContextVar[tuple[float, float]] = ContextVar("DEADLINE")
"""The end time of this thread's job, and the seconds it was given."""


def set_deadline(seconds: float, *, since: float) -> None:
    """Set the deadline of this thread's job to some seconds after `since`."""
    _DEADLINE.set((since + seconds, seconds))


def check_time() -> None:
    """Raise AnswerTooSlow after the deadline of this thread's job, if it has one."""
    end, seconds = _DEADLINE.get((float("inf"), 0.0))
    if monotonic() >= end:
        raise too_slow(seconds)


def too_slow(seconds: float) -> AnswerTooSlow:
    return AnswerTooSlow(f"no answer within {seconds:g} seconds; request less at a time", seconds=seconds)
