"""Frozen dataclasses that are made sooner: a question makes thirty of them, with some two hundred fields."""

from collections.abc import Callable
from dataclasses import fields
from typing import Any, Generic, Self, TypeVar, overload

_Record = TypeVar("_Record")
_Value = TypeVar("_Value")


def quick_record(cls: type[_Record]) -> type[_Record]:
    """Make a frozen dataclass fill its fields itself, in half the time; one with a default factory cannot.

    The `__init__` of a frozen dataclass sets each field by its name through `object.__setattr__`. This one writes to
    the slots, or to `__dict__` where there are none. Its arguments, defaults and `__post_init__` stay what they are.
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
    # Written out as dataclasses writes its own: a loop over the fields would take longer than both.
    exec(f"def __init__(self, {', '.join(names)}):\n    " + "\n    ".join(lines), scope)
    made: Callable[..., None] = scope["__init__"]
    for name in ("__defaults__", "__annotations__", "__module__", "__qualname__"):
        setattr(made, name, getattr(original, name))
    cls.__init__ = made  # type: ignore[method-assign]
    return cls


class computed_once(Generic[_Value]):
    """A property that keeps its value, as `functools.cached_property` does, which takes a lock before Python 3.12."""

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
        # Found there from now on, before this is asked.
        value = record.__dict__[self.name] = self.compute(record)
        return value
