"""The options of questions and look-ups: their names, types and checks, and how signatures show them."""

from collections.abc import Callable, Mapping
from inspect import Parameter, Signature, signature
from typing import Any, TypedDict, TypeVar

from kbtools.errors import BadArgument
from kbtools.ranking.parts import PartNames
from kbtools.ranking.system import System

_F = TypeVar("_F", bound=Callable[..., Any])

NAMES = tuple(PartNames.__annotations__)
"""The options that name parts of a system."""


class QueryOptions(PartNames, total=False):
    """The options of a question, described in `Answerer.query`; an absent one has its default."""

    system: System | None
    type: str | None
    lang: str | None
    inverse: bool | None
    top: int | None
    answers: int | None
    abstain: float | None


class LookupOptions(TypedDict, total=False):
    """The options of a look-up by name."""

    type: str | None
    lang: str | None
    limit: int | None


def with_options(options: type, **defaults: object) -> Callable[[_F], _F]:
    """Return a decorator that shows options in the signature of a method; the default is None unless given."""

    def decorate(method: _F) -> _F:
        parameters = list(signature(method).parameters.values())[:-1]
        hints = options.__annotations__
        parameters += [
            Parameter(name, Parameter.KEYWORD_ONLY, default=defaults.get(name), annotation=hints[name])
            for name in hints
        ]
        method.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        return method

    return decorate


def require_options(options: Mapping[str, object]) -> None:
    """Raise TypeError for an unknown option of a question, BadArgument for a bad system or direction."""
    known = QueryOptions.__annotations__
    for name in options:
        if name not in known:
            raise TypeError(f"query takes no option {name!r}; it takes {', '.join(known)}")
    system = options.get("system")
    if not isinstance(system, System | None):
        raise BadArgument(f"system is a System, as returned by Answerer.system, found {system!r}", name="system")
    if system and any(options.get(name) is not None for name in NAMES):
        raise BadArgument(f"pass a system or names of its parts ({', '.join(NAMES)}), not both", name="system")
    inverse = options.get("inverse")
    if not isinstance(inverse, bool | None):
        raise BadArgument(f"inverse is True or False, found {inverse!r}", name="inverse")
