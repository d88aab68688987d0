"""The options of questions and of look-ups, one list of each for asking one and for asking many."""

from collections.abc import Mapping
from typing import TypedDict

from kbtools.errors import BadArgument
from kbtools.ranking.confidence import Calibration


class QueryOptions(TypedDict, total=False):
    """The options of a question; `Answerer.query` says what each is, and what is left out has its default."""

    pruning: str | None
    scorer: str | None
    subject: str | None
    ranker: str | None
    type: str | None
    lang: str | None
    inverse: bool
    top: int | None
    answers: int | None
    abstain: float | None
    calibration: Calibration | None


class LookupOptions(TypedDict, total=False):
    """The options of a look-up by name."""

    type: str | None
    lang: str | None
    limit: int | None


def require_options(options: Mapping[str, object]) -> None:
    """Check the options of a question: TypeError for one that there is not, BadArgument for an unclear direction."""
    known = QueryOptions.__annotations__
    for name in options:
        if name not in known:
            raise TypeError(f"query takes no option {name!r}; it takes {', '.join(known)}")
    inverse = options.get("inverse", False)
    if not isinstance(inverse, bool):
        raise BadArgument(f"inverse is True or False, found {inverse!r}", name="inverse")
