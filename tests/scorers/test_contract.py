"""Whether every relation scorer keeps the contract that plugins are held to."""

import pytest

from kbtools.errors import BrokenPlugin
from kbtools.plugins import SCORERS, list_plugins
from kbtools.scorers.check import check_scorer

pytest.importorskip("torch", reason="networks need torch: pip install 'kbtools[cpu]'")


@pytest.mark.parametrize("name", list(list_plugins(SCORERS)))
def test_the_contract_is_kept(name: str) -> None:
    claims = list(check_scorer(name))

    assert len(claims) >= 7


class Positional:
    """A scorer that breaks the contract: the score depends on the place in the batch."""

    def __init__(self, relations: object) -> None:
        self.count = len(list(relations))  # type: ignore[call-overload]

    def score(self, asked: list[object]) -> list[list[float]]:
        return [[float(place)] * self.count for place in range(len(asked))]


def test_a_broken_claim_is_named() -> None:
    with pytest.raises(BrokenPlugin, match="the size of a batch changes no score"):
        list(check_scorer(f"{__name__}:Positional"))


class Rebuilt:
    """A scorer that its folder alone can make."""

    @classmethod
    def load(cls, folder: object, kb: object, *, device: str = "cpu") -> "Rebuilt":
        return cls()


NO_CLASS = "a string"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        pytest.param("Rebuilt", "is rebuilt by its `load` alone", id="load"),
        pytest.param("NO_CLASS", "is no class", id="string"),
    ],
)
def test_what_the_suite_cannot_make_is_refused(name: str, message: str) -> None:
    with pytest.raises(BrokenPlugin, match=message):
        list(check_scorer(f"{__name__}:{name}"))
