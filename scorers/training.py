"""Train a model from question files into a folder: what `kbtools train` does, callable from Python."""

import hashlib
import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kbtools.errors import BrokenPlugin, ModelError
from kbtools.kb.contract import KnowledgeBase
from kbtools.plugins import SCORERS, load_plugin
from kbtools.ranking.model_store import Stamp, read_model
from kbtools.ranking.models import RELATION, model_folder
from kbtools.scorers.checkpoint import digest_rows
from kbtools.scorers.devices import resolve_device
from kbtools.scorers.distributed import check_agreement
from kbtools.scorers.examples import Examples, check_labels, read_examples
from kbtools.scorers.relation import RelationNetwork
from kbtools.scorers.settings import Settings
from kbtools.scorers.tasks import RelationTask
from kbtools.scorers.train import Epoch, fit_model
from kbtools.scorers.words import load_words

logger = logging.getLogger(__name__)

Report = Callable[[Epoch], None]


@dataclass(frozen=True, slots=True)
class TrainedModel:
    """A model that a training made, or found made: its folder, and its figures on the validation split."""

    name: str
    folder: Path
    figures: dict[str, float]
    fresh: bool


@dataclass(frozen=True, slots=True, eq=False)
class Splits:
    """The questions to learn from, and those to measure on while learning."""

    train: Examples
    valid: Examples

    @classmethod
    def read(cls, kb: KnowledgeBase, *, train: Path, valid: Path) -> "Splits":
        """Read both files; raise BadQuestions or InputError where one cannot be used."""
        splits = cls(read_examples(kb, train), read_examples(kb, valid))
        check_labels(splits.train.relations, train)
        return splits


def fingerprint(kb: KnowledgeBase, splits: Splits, settings: dict[str, Any], kind: str) -> str:
    """Tell one training from another: by its settings, its questions, and the tables and names of the KB."""
    parts = [
        kind,
        json.dumps(settings, sort_keys=True),
        splits.train.digest,
        splits.valid.digest,
        digest_rows(kb.relations),
        kb.manifest.digest,
    ]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def finished(folder: Path, made_of: str) -> dict[str, float] | None:
    """Give the figures of a model that the same training made before; nothing if there is none."""
    try:
        stamp = read_model(folder).stamp
    except ModelError:  # missing, damaged or of another version: the training makes it anew
        stamp = Stamp("")
    made = stamp.made_of == made_of
    check_agreement(int(made))
    return stamp.figures if made else None


def train_relation(
    kb: KnowledgeBase,
    splits: Splits,
    *,
    scorer: str,
    settings: Settings,
    models: Path,
    device: str = "cpu",
    report: Report = lambda epoch: None,
) -> TrainedModel:
    """Train a relation scorer by its name.

    A training that was killed goes on where it was; one that is done is not done again. The model's folder is
    replaced when the training has ended, never before.
    """
    plugin = load_plugin(SCORERS, scorer)
    if not (isinstance(plugin, type) and issubclass(plugin, RelationNetwork)):
        raise BrokenPlugin(f"scorer {scorer!r} has no network to train (it is no RelationNetwork)", name=scorer)
    folder = model_folder(models, RELATION, scorer)
    made_of = fingerprint(kb, splits, settings.to_record(), f"{RELATION}/{scorer}")
    figures = finished(folder, made_of)
    if figures is not None:
        return TrainedModel(scorer, folder, figures, fresh=False)
    on = resolve_device(device)
    made = plugin.new(
        settings.encoder,
        rows=kb.relations,
        texts=[plugin.text(asked) for asked in splits.train.asked],
        words=load_words(settings.source.words),
        seed=settings.fit.seed,
    )
    made.network.to(on)
    task = RelationTask(made, settings.objective, kb=kb, train=splits.train, valid=splits.valid)
    figures = fit_model(task, settings.fit, folder, save=made.save, plugin=scorer, made_of=made_of, report=report)
    return TrainedModel(scorer, folder, figures, fresh=True)
