"""The training of a profile, from its first model to its ranker: `kbtools train`, and `kbtools.train` in Python."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kbtools.answering.answerer import Answerer, open_kb
from kbtools.answering.frames import load
from kbtools.answering.questions import read_gold
from kbtools.comparison.pictures import new_figure
from kbtools.comparison.system_training import TrainedSystem, train_system
from kbtools.comparison.untrained import Untrained, measure_untrained
from kbtools.ranking.system import System
from kbtools.ranking.trained import read_systems

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True, eq=False)
class Training:
    """The models of a profile with their epochs, and the system made of them.

    `tuning` is the choice of its weights and ranker, None if the profile has fixed weights. `untrained` compares it
    with the untrained system, which becomes the default if it is better.
    """

    folder: Path
    models: tuple[Any, ...]
    epochs: Mapping[str, tuple[Any, ...]]
    system: System
    tuning: TrainedSystem | None = None
    untrained: Untrained | None = None

    def to_frame(self) -> Any:
        """Return a data frame with a row for each figure of a model; raise MissingDependency without pandas."""
        rows = [
            {"model": model.name, "figure": figure, "value": value}
            for model in self.models
            for figure, value in model.figures.items()
        ]
        return load("pandas").DataFrame(rows, columns=["model", "figure", "value"])

    def plot(self) -> "Figure":
        """Return a plot of the loss by epoch of each model trained in this call; raise MissingDependency."""
        figure = new_figure()
        axes = figure.add_subplot()
        for name, epochs in self.epochs.items():
            axes.plot([epoch.number for epoch in epochs], [epoch.loss for epoch in epochs], marker="o", label=name)
        axes.set(xlabel="epoch", ylabel="mean loss", title="Training")
        figure.legend(loc="outside lower center", ncols=2, fontsize=7)
        return figure


def train(
    kb: Answerer | str | Path,
    train: str | Path,
    valid: str | Path,
    *,
    out: str | Path,
    profile: str = "best",
    ranker: str | None = None,
    settings: Mapping[str, Any] | None = None,
    device: str = "cpu",
    begin: Callable[[str], None] = lambda name: None,
    skip: Callable[[str], None] = lambda reason: None,
    trained: Callable[[Any], None] = lambda model: None,
    callbacks: Any = None,
) -> Training:
    """Train a profile on files of annotated questions, and save it in the folder `out`.

    `settings` override settings of the profile by name. Models that are already trained are kept. Afterwards
    `kbtools.open(..., models=out)` uses the models. The callbacks report progress.
    """
    # Imported by name, since this package must not depend on networks.
    fitting = import_module("kbtools.scorers.fitting.training")
    callbacks = callbacks or fitting.SILENT
    answerer, folder = kb if isinstance(kb, Answerer) else open_kb(kb), Path(out)
    splits = fitting.Splits.read(answerer.kb, train=Path(train), valid=Path(valid))
    models: list[Any] = []
    epochs: dict[str, list[Any]] = {}
    names: list[str] = []

    def start(name: str) -> None:
        names.append(name)
        begin(name)

    def note(epoch: Any) -> None:
        epochs.setdefault(names[-1], []).append(epoch)
        callbacks.epoch(epoch)

    noted = replace(callbacks, epoch=note)
    options: dict[str, Any] = {"changes": settings, "device": device, "begin": start, "skip": skip, "callbacks": noted}
    for model in fitting.train_profile(answerer.kb, splits, profile=profile, models=folder, **options):
        models.append(model)
        trained(model)
    plan = fitting.PLANS[profile]
    system, tuning, untrained = plan.system(typed=bool(answerer.kb.types)), None, None
    if fitting.rank() == 0:  # only the first of several processes chooses
        read_systems(folder).choose(system)
        if not plan.weights:
            by_models = Answerer(answerer.kb, models=folder, device=device, trust_plugins=answerer.parts.trust_plugins)
            gold = read_gold(Path(valid), answerer.kb)
            tuning = train_system(by_models, gold, system, ranker=ranker, in_doubt=plan.scorers_in_doubt())
            system = tuning.system
            right, learn = (tuning.ranker or tuning.weights).right, read_gold(Path(train), answerer.kb)
            untrained = measure_untrained(Answerer(answerer.kb), right, learn=learn, valid=gold)
            if untrained.best != "trained":
                system = untrained.system
                read_systems(folder).choose(system)
    by_name = {name: tuple(model_epochs) for name, model_epochs in epochs.items()}
    return Training(folder, tuple(models), by_name, system, tuning, untrained)
