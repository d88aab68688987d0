"""Faster frozen dataclasses: a question creates about thirty, with two hundred fields."""

from collections.abc import Callable
from dataclasses import fields
from typing import Any, Generic, Self, TypeVar, overload

_Record = TypeVar("_Record")
_Value = TypeVar("_Value")


def quick_record(cls: type[_Record]) -> type[_Record]:
    """Replace the `__init__` of a frozen dataclass by one that takes half the time; it must not have default factories.

    The `__init__` of a frozen dataclass calls `object.__setattr__` for each field. This one writes to the slots, or to
    `__dict__` without them. Arguments, defaults and `__post_init__` are unchanged.
    """
    original: Any = cls.__init__
    names = [field.name for field in fields(cls)]  # type: ignore[arg-type] # a dataclass
    scope: dict[str, Any] = {}
    if hasattr(cls, "__slots__"):
        scope |= {f"set_{name}": getattr(cls, name).__set__ for name in names}
        lines = [f"set_{name}(self, {name})" for name in names]
    else:
        lines = [f"self.__dict__.update({', '.join(f'{name}={name}' for name in names)})"]
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    # Generated as dataclasses does it, since a loop over the fields would be slower than both.
    exec(f"def __init__(self, {', '.join(names)}):\n    " + "\n    ".join(lines), scope)
    init: Callable[..., None] = scope["__init__"]
    for name in ("__defaults__", "__annotations__", "__module__", "__qualname__"):
        setattr(init, name, getattr(original, name))
    cls.__init__ = init  # type: ignore[method-assign]
    return cls


class computed_once(Generic[_Value]):
    """A property that caches its value without the lock that `functools.cached_property` has before Python 3.12."""

    def __init__(self, compute: Callable[[Any], _Value]) -> None:
        self.compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, record: None, owner: type) -> Self: ...

    @overload
    def __get__(self, record: object, owner: type) -> _Value: ...

    def __get__(self, record: object, owner: type) -> _Value | Self:
        if record is None:
            return self
        # An instance attribute takes precedence from now on.
        value = record.__dict__[self.name] = self.compute(record)
        return value
