"""The end of the time that the job of this thread has; what computes for long looks at it in its loops."""

from contextvars import ContextVar
from time import monotonic

from kbtools.errors import AnswerTooSlow

_DEADLINE: ContextVar[tuple[float, float]] = ContextVar("DEADLINE")
"""When the job of this thread has to end, and the seconds that it was given."""


def set_deadline(seconds: float, *, since: float) -> None:
    """Set the deadline of this thread's job: some seconds from a moment on."""
    _DEADLINE.set((since + seconds, seconds))


def check_time() -> None:
    """Raise AnswerTooSlow once the time of the job is up; without a deadline there is all the time."""
    end, seconds = _DEADLINE.get((float("inf"), 0.0))
    if monotonic() >= end:
        raise too_slow(seconds)


def too_slow(seconds: float) -> AnswerTooSlow:
    return AnswerTooSlow(f"no answer within {seconds:g} seconds; request less at a time", seconds=seconds)
