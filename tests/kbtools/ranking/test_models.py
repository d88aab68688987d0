"""Scorers are made from what plugins offer, and what is wrong with one is said."""

import sys

import numpy as np
import pytest

from kbtools.answering.answerer import Answerer
from kbtools.entry_points import SCORERS, list_offers, load_plugin
from kbtools.errors import BrokenPlugin, MissingDependency
from kbtools.kb.contract import KnowledgeBase
from kbtools.ranking.models import make_relation_scorer


def test_the_built_in_scorers_are_offered_as_anyones() -> None:
    offers = {offer.name: offer for offer in list_offers() if offer.kind == "relation scorer"}

    assert {"lexical", "embed-avg", "ltg-cnn", "ltg-cnn+", "bigru", "bigru+"} <= set(offers)
    assert offers["bigru"].needs == ("kbtools[train]",)
    assert offers["lexical"].needs == ()


def test_a_missing_torch_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [
        name for name in sys.modules if name == "kbtools.scorers.relations.relation" or name.startswith("torch")
    ]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "kbtools.scorers.networks.network", None)
    monkeypatch.setattr("kbtools.entry_points.import_module", no_torch)

    with pytest.raises(MissingDependency, match=r"needs torch; install it with pip install .*\[train\]'"):
        load_plugin(SCORERS, "bigru")


def no_torch(module: str) -> None:
    raise ModuleNotFoundError("No module named 'torch'", name="torch")


class Short:
    """A scorer that forgets relations."""

    def __init__(self, relations: object) -> None: ...

    def score(self, questions: list[object]) -> object:
        return np.zeros((len(questions), 1))


class Nothing(Short):
    """A scorer whose scores are no numbers."""

    def __init__(self, relations: list[str]) -> None:
        self.count = len(relations)

    def score(self, questions: list[object]) -> object:
        return np.full((len(questions), self.count), np.nan)


class Failing(Short):
    """A scorer that fails."""

    def score(self, questions: list[object]) -> object:
        raise RuntimeError("out of luck")


class Unmade:
    """A scorer that cannot be made."""

    def __init__(self) -> None: ...


@pytest.mark.parametrize(
    ("scorer", "message"),
    [
        pytest.param("Short", r"gave scores \(1, 1\), expected \(1, 45\)", id="shape"),
        pytest.param("Nothing", "not finite", id="nan"),
        pytest.param("Failing", r"Failing failed: RuntimeError\('out of luck'\)", id="raises"),
    ],
)
def test_a_scorer_that_breaks_its_contract_is_named(sample_memory: Answerer, scorer: str, message: str) -> None:
    with pytest.raises(BrokenPlugin, match=message):
        sample_memory.query("who wrote dune", scorer=f"{__name__}:{scorer}")


def test_a_scorer_that_cannot_be_made_is_named(tiny_memory: KnowledgeBase) -> None:
    with pytest.raises(BrokenPlugin, match="Unmade' cannot be made: TypeError"):
        make_relation_scorer(f"{__name__}:Unmade", tiny_memory)
