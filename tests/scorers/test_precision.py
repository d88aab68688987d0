"""Training in bfloat16 keeps what must be exact: losses and gradients in float32, close to those without."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kbtools.kb.contract import KnowledgeBase
from kbtools.ranking.models import RELATION

pytest.importorskip("torch", reason="networks need torch: pip install 'kbtools[train]'")

import torch

from kbtools.scorers.fitting.measures import Callbacks
from kbtools.scorers.fitting.profiles import profile_settings
from kbtools.scorers.fitting.splits import Splits
from kbtools.scorers.fitting.training import train
from kbtools.scorers.fitting.training_loop import Task, make_optimisers
from kbtools.scorers.networks.training_settings import EncoderConfig, ObjectiveConfig, change_settings
from kbtools.scorers.networks.words import load_words
from kbtools.scorers.relations.relation import BiGRUScorer, EmbedAverageScorer, LetterTrigramScorer, RelationNetwork
from kbtools.scorers.relations.relation_training import RelationTask
from kbtools.scorers.subjects.entity_vectors import RandomVectorScorer
from kbtools.scorers.subjects.subject import TypeVectorScorer
from kbtools.scorers.subjects.subject_training import SubjectTask, TypeTask
from kbtools.scorers.subjects.transe import TransE, TranslatingTask, read_triples
from kbtools.scorers.subjects.vector_files import entity_count
from kbtools.scorers.taggers.tagger import BiGRUTagger
from kbtools.scorers.taggers.tagger_training import TaggingTask

CONFIG = EncoderConfig(dim=16, words_dim=16, hidden=16, dropout=0.0, word_dropout=0.0)


def untrained(splits: Splits) -> dict[str, Any]:
    texts = [question.words() for question in splits.train.questions]
    return {"texts": texts, "words": load_words("random"), "seed": 1}


def relation_task(network: type[RelationNetwork], objective: str, kb: KnowledgeBase, splits: Splits) -> Task:
    scorer = network.new(CONFIG, rows=kb.relations, **untrained(splits))
    config = ObjectiveConfig(objective=objective, negatives=64)
    return RelationTask(scorer, config, kb=kb, splits=splits)


def type_task(kb: KnowledgeBase, splits: Splits) -> Task:
    scorer = TypeVectorScorer.new(CONFIG, rows=kb.types, **untrained(splits))
    return TypeTask(scorer, kb=kb, splits=splits)


def subject_task(kb: KnowledgeBase, splits: Splits) -> Task:
    scorer = RandomVectorScorer.new(CONFIG, kb=kb, **untrained(splits))
    return SubjectTask(scorer, ObjectiveConfig(negatives=64), kb=kb, splits=splits)


def tagging_task(kb: KnowledgeBase, splits: Splits) -> Task:
    tagger = BiGRUTagger.new(CONFIG, kb=kb, **untrained(splits))
    return TaggingTask(tagger, splits)


def translating_task(kb: KnowledgeBase, splits: Splits) -> Task:
    torch.manual_seed(1)
    return TranslatingTask(TransE(entity_count(kb), len(kb.relations), dim=16), read_triples(kb), margin=1.0)


TASKS = {
    "embed-avg": partial(relation_task, EmbedAverageScorer, "hinge"),
    "ltg-cnn": partial(relation_task, LetterTrigramScorer, "cross-entropy"),
    "bigru": partial(relation_task, BiGRUScorer, "cross-entropy"),
    "types": type_task,
    "subjects": subject_task,
    "tags": tagging_task,
    "transe": translating_task,
}


@pytest.mark.parametrize("make", [pytest.param(make, id=name) for name, make in TASKS.items()])
def test_bfloat16_keeps_losses_and_gradients_in_float32(
    sample_kb: KnowledgeBase, splits: Splits, make: Callable[..., Task]
) -> None:
    task = make(sample_kb, splits)
    rows = np.flatnonzero(task.lengths == task.lengths[0])
    make_optimisers(task.network.train(), name="adam", lr=0.1, momentum=0.9)

    torch.manual_seed(2)
    exact = task.loss(rows)
    torch.manual_seed(2)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rounded = task.loss(rows)
    rounded.sum().backward()

    assert rounded.dtype == torch.float32
    assert torch.allclose(rounded, exact, rtol=0.01, atol=0.01)
    gradients = [parameter.grad for parameter in task.network.parameters()]
    assert {(gradient.dtype, bool(gradient.to_dense().isfinite().all())) for gradient in gradients} == {
        (torch.float32, True)
    }


def test_mixed_precision_learns_what_full_precision_does(
    sample_kb: KnowledgeBase, splits: Splits, tmp_path: Path
) -> None:
    small = {"words": "random", "dim": 16, "words_dim": 16, "hidden": 16, "epochs": 6, "batch": 16, "amp": True}
    settings = change_settings(profile_settings("best", RELATION, "bigru"), small | {"learning_rate": 0.02})
    exact = change_settings(settings, {"amp": False})
    where: dict[str, Any] = {"part": RELATION, "name": "bigru", "models": tmp_path}
    losses: list[float] = []
    callbacks = Callbacks(lambda epoch: losses.append(epoch.loss))

    train(sample_kb, splits, settings=settings, callbacks=callbacks, **where)
    train(sample_kb, splits, settings=exact, callbacks=callbacks, **where)

    assert losses[5] < 0.9 * losses[0]
    assert losses[:6] != losses[6:]
    assert losses[:6] == pytest.approx(losses[6:], rel=0.1)
