"""Train a subject scorer from question files into a folder: what `kbtools train subject` does."""

import hashlib
import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from kbtools.errors import BrokenPlugin
from kbtools.kb.contract import KnowledgeBase
from kbtools.plugins import SUBJECT_SCORERS, load_plugin
from kbtools.ranking.models import ENTITIES, SUBJECT, model_folder, plugin_folder
from kbtools.scorers.checkpoint import digest_rows
from kbtools.scorers.devices import resolve_device
from kbtools.scorers.entity_vectors import RandomVectorScorer
from kbtools.scorers.settings import Settings, TransESettings
from kbtools.scorers.subject import TypeVectorScorer
from kbtools.scorers.subject_task import SubjectTask
from kbtools.scorers.train import fit_model
from kbtools.scorers.training import Report, Splits, TrainedModel, fingerprint, finished
from kbtools.scorers.transe import TransE, TranslatingTask, entity_count, load_vectors, read_triples, save_vectors
from kbtools.scorers.type_task import TypeTask
from kbtools.scorers.words import load_words


def train_subject(
    kb: KnowledgeBase,
    splits: Splits,
    *,
    subject: str,
    settings: Settings,
    models: Path,
    device: str = "cpu",
    report: Report = lambda epoch: None,
) -> TrainedModel:
    """Train a subject scorer by its name: type vectors by the type-wise cross entropy, others by the hinge.

    It goes on, is left alone and replaces its folder as `train_relation` does.
    """
    plugin = load_plugin(SUBJECT_SCORERS, subject)
    if not (isinstance(plugin, type) and issubclass(plugin, TypeVectorScorer | RandomVectorScorer)):
        raise BrokenPlugin(f"subject scorer {subject!r} has no network to train", name=subject)
    folder = plugin_folder(models, SUBJECT, subject, plugin)
    made_of = fingerprint(kb, splits, settings.to_record(), f"{SUBJECT}/{subject} {digest_rows(kb.types)}")
    figures = finished(folder, made_of)
    if figures is not None:
        return TrainedModel(subject, folder, figures, fresh=False)
    on = resolve_device(device)
    words = load_words(settings.source.words)
    texts = [plugin.text(asked) for asked in splits.train.asked]
    told: dict[str, Any] = {"texts": texts, "words": words, "seed": settings.fit.seed}
    made: TypeVectorScorer | RandomVectorScorer
    task: TypeTask | SubjectTask
    if issubclass(plugin, TypeVectorScorer):
        made = plugin.new(settings.encoder, rows=kb.types, **told)
        made.kb = kb
        task = TypeTask(made, kb=kb, train=splits.train, valid=splits.valid)
    else:
        vectors = load_vectors(model_folder(models, ENTITIES, plugin.starts_from), kb) if plugin.starts_from else None
        config = settings.encoder if vectors is None else replace(settings.encoder, dim=vectors.shape[1])
        made = plugin.new(config, kb=kb, vectors=vectors, **told)
        task = SubjectTask(made, settings.objective, kb=kb, train=splits.train, valid=splits.valid)
    made.network.to(on)
    figures = fit_model(task, settings.fit, folder, save=made.save, plugin=subject, made_of=made_of, report=report)
    return TrainedModel(subject, folder, figures, fresh=True)


def train_transe(
    kb: KnowledgeBase,
    *,
    settings: TransESettings,
    models: Path,
    device: str = "cpu",
    report: Report = lambda epoch: None,
) -> TrainedModel:
    """Train vectors of entities over the facts of a knowledge base, for the subject scorer `transe`."""
    folder = model_folder(models, ENTITIES, "transe")
    record = json.dumps(settings.to_record(), sort_keys=True) + kb.manifest.digest
    made_of = hashlib.sha256(record.encode()).hexdigest()
    figures = finished(folder, made_of)
    if figures is not None:
        return TrainedModel("transe", folder, figures, fresh=False)
    on = resolve_device(device)
    triples = read_triples(kb)
    torch.manual_seed(settings.fit.seed)
    network = TransE(entity_count(kb), len(kb.relations), dim=settings.vectors.dim).to(on)
    task = TranslatingTask(network, triples, margin=settings.vectors.margin)
    save = partial(save_vectors, kb=kb, network=network)
    figures = fit_model(task, settings.fit, folder, save=save, plugin="transe", made_of=made_of, report=report)
    return TrainedModel("transe", folder, figures, fresh=True)
