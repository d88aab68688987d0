"""Records that fill their own fields are, but for the time that takes, what dataclasses makes."""

import inspect
import pickle
from dataclasses import FrozenInstanceError, asdict, dataclass, replace
from functools import cached_property

import pytest

from kbtools.quick_records import quick_record


@dataclass(frozen=True, slots=True)
class Plain:
    """A record with slots, a default, and a field that is changed when it is made."""

    name: str
    words: tuple[str, ...]
    length: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "length", len(self.words))


@quick_record
@dataclass(frozen=True, slots=True)
class Quick:
    """The same, made sooner."""

    name: str
    words: tuple[str, ...]
    length: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "length", len(self.words))


@quick_record
@dataclass(frozen=True)
class Counted:
    """A record without slots, which keeps what it has computed."""

    values: tuple[int, ...]

    @cached_property
    def computed(self) -> list[int]:
        """Give the values."""
        return list(self.values)


def test_a_quick_record_is_the_same_record() -> None:
    plain, quick = Plain("a", ("b", "c")), Quick("a", words=("b", "c"))

    assert asdict(plain) == asdict(quick) == {"name": "a", "words": ("b", "c"), "length": 2}
    assert repr(quick) == repr(plain).replace("Plain", "Quick")
    assert inspect.signature(Quick) == inspect.signature(Plain)
    assert quick == Quick("a", ("b", "c")) != Quick("b", ("b", "c"))
    assert hash(quick) == hash(pickle.loads(pickle.dumps(quick)))
    assert replace(quick, words=()).length == 0


def test_a_quick_record_cannot_be_changed_and_names_what_it_lacks() -> None:
    quick = Quick("a", ())

    with pytest.raises(FrozenInstanceError):
        quick.name = "b"  # type: ignore[misc]
    with pytest.raises(TypeError, match=r"Quick.__init__\(\) missing 1 required positional argument: 'words'"):
        Quick("a")  # type: ignore[call-arg]


def test_what_is_computed_is_computed_once() -> None:
    record = Counted((1, 2))

    assert record.computed is record.computed
    assert record.computed == [1, 2]
    assert record == Counted((1, 2))
