"""Whether training in bfloat16 keeps what must be exact: losses and gradients in float32, close to those without."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kbtools.kb.contract import KnowledgeBase

pytest.importorskip("torch", reason="networks need torch: pip install 'kbtools[cpu]'")

import torch

from kbtools.scorers.bigru import BiGRUScorer
from kbtools.scorers.embed_avg import EmbedAverageScorer
from kbtools.scorers.entity_vectors import RandomVectorScorer
from kbtools.scorers.ltg_cnn import LetterTrigramScorer
from kbtools.scorers.optimisers import make_optimisers
from kbtools.scorers.profiles import relation_settings
from kbtools.scorers.relation import RelationNetwork
from kbtools.scorers.settings import EncoderConfig, ObjectiveConfig, change_settings
from kbtools.scorers.subject import TypeVectorScorer
from kbtools.scorers.subject_task import SubjectTask
from kbtools.scorers.tagger import BiGRUTagger
from kbtools.scorers.tagging import TaggingTask, label_questions
from kbtools.scorers.tasks import RelationTask
from kbtools.scorers.train import Task
from kbtools.scorers.training import Splits, train_relation
from kbtools.scorers.transe import TransE, TranslatingTask, entity_count, read_triples
from kbtools.scorers.type_task import TypeTask
from kbtools.scorers.words import load_words

CONFIG = EncoderConfig(dim=16, words_dim=16, hidden=16, dropout=0.0, word_dropout=0.0)


def told(splits: Splits) -> dict[str, Any]:
    texts = [asked.words() for asked in splits.train.asked]
    return {"texts": texts, "words": load_words("random"), "seed": 1}


def relation_task(scorer: type[RelationNetwork], objective: str, kb: KnowledgeBase, splits: Splits) -> Task:
    made = scorer.new(CONFIG, rows=kb.relations, **told(splits))
    config = ObjectiveConfig(objective=objective, negatives=64)
    return RelationTask(made, config, kb=kb, train=splits.train, valid=splits.valid)


def type_task(kb: KnowledgeBase, splits: Splits) -> Task:
    made = TypeVectorScorer.new(CONFIG, rows=kb.types, **told(splits))
    return TypeTask(made, kb=kb, train=splits.train, valid=splits.valid)


def subject_task(kb: KnowledgeBase, splits: Splits) -> Task:
    made = RandomVectorScorer.new(CONFIG, kb=kb, **told(splits))
    return SubjectTask(made, ObjectiveConfig(negatives=64), kb=kb, train=splits.train, valid=splits.valid)


def tagging_task(kb: KnowledgeBase, splits: Splits) -> Task:
    made = BiGRUTagger.new(CONFIG, kb=kb, **told(splits))
    return TaggingTask(made, train=label_questions(made, splits.train), valid=label_questions(made, splits.valid))


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
    settings = change_settings(relation_settings("best", "bigru"), small | {"learning_rate": 0.02})
    exact = change_settings(settings, {"amp": False})
    told: dict[str, Any] = {"scorer": "bigru", "models": tmp_path}
    losses: list[float] = []

    train_relation(sample_kb, splits, settings=settings, report=lambda epoch: losses.append(epoch.loss), **told)
    train_relation(sample_kb, splits, settings=exact, report=lambda epoch: losses.append(epoch.loss), **told)

    assert losses[5] < 0.9 * losses[0]
    assert losses[:6] != losses[6:]
    assert losses[:6] == pytest.approx(losses[6:], rel=0.1)
