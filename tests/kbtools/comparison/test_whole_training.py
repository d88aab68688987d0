"""The training of a profile reports every model, and the better of the trained and the untrained system answers."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

from kbtools.answering.answerer import Answerer
from kbtools.answering.questions import read_gold
from kbtools.comparison import whole_training
from kbtools.comparison.untrained import Untrained
from kbtools.comparison.whole_training import Training, train
from kbtools.ranking.system import System
from kbtools.ranking.trained import read_systems
from kbtools.ranking.weights import DEFAULT
from tests.kbtools.comparison.test_system_training import KNOWING, TAUGHT, Knowing

CASCADE = System("n-gram", ("lexical", KNOWING), "fact-count", None, DEFAULT)
PLAIN = System("n-gram", ("lexical",), "popularity", None, DEFAULT)


@dataclass(frozen=True)
class Plan:
    """A profile whose system is given."""

    chosen: System
    weights: str | None = None
    in_doubt: tuple[str, ...] = ()

    def system(self, *, typed: bool) -> System:
        return self.chosen if typed else replace(self.chosen, subject="none")

    def scorers_in_doubt(self) -> list[str]:
        return list(self.in_doubt)


@dataclass(frozen=True)
class Callbacks:
    epoch: Any = lambda epoch: None


class Fitting:
    """A stand-in for the training of networks: two models, of which the first is trained before."""

    SILENT = Callbacks()
    Splits = SimpleNamespace(read=lambda kb, *, train, valid: (train, valid))
    PLANS: ClassVar = {
        "fixed": Plan(PLAIN, "equation-4"),
        "chosen": Plan(PLAIN),
        "doubting": Plan(CASCADE, None, (KNOWING,)),
    }

    def __init__(self) -> None:
        self.place, self.options = 0, dict[str, Any]()

    def rank(self) -> int:
        return self.place

    def train_profile(self, kb: Any, splits: Any, **options: Any) -> Iterator[Any]:
        self.options = options | {"kb": kb, "splits": splits}
        options["skip"]("left out")
        for name, epochs in (("old", 0), ("new", 2)):
            options["begin"](name)
            for number in range(epochs):
                options["callbacks"].epoch(SimpleNamespace(number=number + 1, loss=3.0 - number))
            yield SimpleNamespace(name=name, figures={"right": 0.5 + epochs, "seconds": epochs})


@pytest.fixture
def fitting(monkeypatch: pytest.MonkeyPatch) -> Fitting:
    fitting = Fitting()
    monkeypatch.setitem(sys.modules, "kbtools.scorers.fitting.training", fitting)
    return fitting


@pytest.fixture
def files(examples: Path) -> tuple[Path, Path]:
    return examples / "sample.train.txt", examples / "sample.valid.txt"


def test_every_model_and_epoch_is_reported(
    fitting: Fitting, sample_path: Path, files: tuple[Path, Path], tmp_path: Path
) -> None:
    heard: list[Any] = []

    done = train(
        sample_path,
        *map(str, files),
        out=tmp_path,
        profile="fixed",
        settings={"dim": 3},
        device="cuda",
        begin=lambda name: heard.append(f"begin {name}"),
        skip=heard.append,
        trained=lambda model: heard.append(f"trained {model.name}"),
        callbacks=Callbacks(lambda epoch: heard.append(epoch.loss)),
    )

    assert heard == ["left out", "begin old", "trained old", "begin new", 3.0, 2.0, "trained new"]
    options = fitting.options
    assert (options["splits"], options["models"], options["profile"]) == (files, tmp_path, "fixed")
    assert (options["changes"], options["device"]) == ({"dim": 3}, "cuda")
    assert ([model.name for model in done.models], done.folder) == (["old", "new"], tmp_path)
    assert {name: [epoch.number for epoch in own] for name, own in done.epochs.items()} == {"new": [1, 2]}
    # A profile with weights of its own is neither tuned nor compared.
    assert (done.system, done.tuning, done.untrained) == (PLAIN, None, None)
    assert read_systems(tmp_path).default == PLAIN


def test_a_training_is_shown_as_a_table_and_a_plot(
    fitting: Fitting, sample_memory: Answerer, files: tuple[Path, Path], tmp_path: Path
) -> None:
    for module in ("pandas", "matplotlib"):
        pytest.importorskip(module)
    done = train(sample_memory, *files, out=tmp_path, profile="fixed")

    assert done.to_frame().to_dict("list") == {
        "model": ["old", "old", "new", "new"],
        "figure": ["right", "seconds"] * 2,
        "value": [0.5, 0, 2.5, 2],
    }
    (line,) = done.plot().axes[0].get_lines()
    assert (line.get_label(), np.asarray(line.get_xydata()).tolist()) == ("new", [[1, 3], [2, 2]])
    assert list(Training(tmp_path, (), {}, PLAIN).to_frame().columns) == ["model", "figure", "value"]


@pytest.mark.parametrize("better", [True, False])
@pytest.mark.parametrize("profile", ["chosen", "doubting"])
def test_the_better_system_answers(
    fitting: Fitting,
    sample_memory: Answerer,
    files: tuple[Path, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    better: bool,
    profile: str,
) -> None:
    kb = sample_memory.kb
    monkeypatch.setattr(Knowing, "known", {one.text: one.relation for one in read_gold(files[1], kb)})
    untrained = replace(PLAIN, pruner="n-gram+")
    compared: list[Any] = []

    def measure(answerer: Answerer, trained: Any, *, learn: Any, valid: Any) -> Untrained:
        compared.extend([answerer.models, answerer.kb, trained.tolist(), learn, valid])
        return Untrained(untrained, 1, 0.5, 0.6, None, 0.1 if better else -0.1, 0.2)

    monkeypatch.setattr(whole_training, "measure_untrained", measure)
    ranker = TAUGHT if profile == "doubting" else "weighted-sum"

    done = train(Answerer(kb, trust_plugins=True), *files, out=tmp_path, profile=profile, ranker=ranker)

    assert done.tuning
    assert (done.tuning.system.ranker_name, done.tuning.system.deferred) == (
        (TAUGHT, (KNOWING,)) if profile == "doubting" else ("weighted-sum", ())
    )
    right = (done.tuning.ranker or done.tuning.weights).right
    assert compared == [None, kb, right.tolist(), read_gold(files[0], kb), read_gold(files[1], kb)]
    assert done.system == (untrained if better else done.tuning.system)
    chosen = read_systems(tmp_path).default
    assert chosen
    assert chosen.pruner == ("n-gram+" if better else "n-gram")
    opened = Answerer(kb, models=tmp_path, trust_plugins=True)
    assert opened.system(pruning="n-gram", scorer=done.tuning.system.scorer, subject=done.tuning.system.subject) == (
        done.tuning.system
    )


def test_only_the_first_of_several_processes_chooses(
    fitting: Fitting, sample_memory: Answerer, files: tuple[Path, Path], tmp_path: Path
) -> None:
    fitting.place = 1

    done = train(sample_memory, *files, out=tmp_path, profile="chosen")

    assert (len(done.models), done.tuning, done.untrained) == (2, None, None)
    assert list(tmp_path.iterdir()) == []


def test_without_types_no_subject_is_scored(
    fitting: Fitting, files: tuple[Path, Path], tmp_path: Path, make_kb: Any, sample_world: Any
) -> None:
    answerer = Answerer(make_kb("memory", replace(sample_world, types=())))

    done = train(answerer, *files, out=tmp_path, profile="fixed")

    assert done.system.subject == "none"
    assert np.count_nonzero(answerer.kb.types) == 0
