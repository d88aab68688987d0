"""Answer questions over large knowledge bases: index, prune, rank, answer."""

from importlib import import_module
from typing import TYPE_CHECKING

from kbtools.version import __version__

if TYPE_CHECKING:
    from kbtools.answering import Answerer
    from kbtools.answering import open_kb as open
    from kbtools.results import Answer, Candidate, Mention, Result

__all__ = ["Answer", "Answerer", "Candidate", "Mention", "Result", "__version__", "open"]

HOMES = {"Answerer": "answering", "open": "answering"} | dict.fromkeys(
    ("Answer", "Candidate", "Mention", "Result"), "results"
)


def __getattr__(name: str) -> object:
    """Import what is asked for when it is asked for, so that `kbtools --help` loads no more than it needs."""
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"kbtools.{HOMES[name]}"), "open_kb" if name == "open" else name)
