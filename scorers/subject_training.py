"""Train a subject scorer from question files into a folder: what `kbtools train subject` does."""

import shutil
from pathlib import Path

from kbtools.errors import BrokenPlugin
from kbtools.knowledge import KnowledgeBase
from kbtools.models import SUBJECT, model_folder
from kbtools.plugins import SUBJECT_SCORERS, load_plugin
from kbtools.scorers.checkpoint import digest_rows
from kbtools.scorers.devices import resolve_device
from kbtools.scorers.settings import PlainSettings
from kbtools.scorers.subject import TypeVectorScorer
from kbtools.scorers.train import fit
from kbtools.scorers.training import Report, Splits, TrainedModel, fingerprint, finished
from kbtools.scorers.type_task import TypeTask
from kbtools.scorers.words import load_words


def train_subject(
    kb: KnowledgeBase,
    splits: Splits,
    *,
    subject: str,
    settings: PlainSettings,
    models: Path,
    device: str = "cpu",
    report: Report = lambda epoch: None,
) -> TrainedModel:
    """Train a subject scorer by its name, with the type-wise cross entropy.

    It goes on, is left alone and replaces its folder as `train_relation` does.
    """
    plugin = load_plugin(SUBJECT_SCORERS, subject)
    if not (isinstance(plugin, type) and issubclass(plugin, TypeVectorScorer)):
        raise BrokenPlugin(f"subject scorer {subject!r} has no network to train", name=subject)
    folder = model_folder(models, SUBJECT, plugin.model or subject)
    made_of = fingerprint(kb, splits, settings.to_record(), plugin.kind() + digest_rows(kb.types))
    figures = finished(folder, made_of)
    if figures is not None:
        return TrainedModel(subject, folder, figures, fresh=False)
    on = resolve_device(device)
    made = plugin.new(
        settings.encoder,
        rows=kb.types,
        texts=[plugin.text(asked) for asked in splits.train.asked],
        words=load_words(settings.source.words),
        seed=settings.fit.seed,
    )
    made.network.to(on)
    made.kb = kb
    state = folder.with_name(f".{folder.name}.training")
    task = TypeTask(made, kb=kb, train=splits.train, valid=splits.valid)
    epochs = fit(task, settings.fit, state=state, made_of=made_of, report=report)
    figures = {**epochs[-1].figures, "seconds": sum(epoch.seconds for epoch in epochs)}
    made.save(folder, made_of=made_of, figures=figures)
    shutil.rmtree(state, ignore_errors=True)
    return TrainedModel(subject, folder, figures, fresh=True)
