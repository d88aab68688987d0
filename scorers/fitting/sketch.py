"""A small model of a plugin that training makes, before any training: what contract suites check."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kbtools.kb.contract import KnowledgeBase
from kbtools.ranking.model_store import Stamp
from kbtools.ranking.models import ENTITIES, model_folder
from kbtools.scorers.entities.transe import TransE
from kbtools.scorers.fitting.splits import Examples, Splits
from kbtools.scorers.fitting.training import change_known
from kbtools.scorers.fitting.training_loop import SelfFitting
from kbtools.scorers.networks.training_settings import TrainingSettings, TransESettings
from kbtools.text.ngrams import ngrams
from kbtools.text.question import MarkedQuestion

SMALL = {"dim": 8, "words_dim": 6, "hidden": 4, "known_words": 0, "words": "random", "negatives": 4, "seed": 7}


def sketch(plugin: Any, kb: KnowledgeBase, questions: Sequence[MarkedQuestion]) -> Any:
    """Make a small model by the plugin's own task, the same every time; it knows the words of the first questions.

    The model is not trained, but for one without a network, which is nothing before it has learned.
    """
    with tempfile.TemporaryDirectory() as models:
        task = sketch_task(plugin, kb, questions, models=Path(models))
        if isinstance(task, SelfFitting):
            task.fit(lambda epoch: None)
        folder = Path(models, "model")
        task.save(folder, Stamp("sketch"))
        return plugin.load(folder, kb)


def sketch_task(plugin: Any, kb: KnowledgeBase, questions: Sequence[MarkedQuestion], *, models: Path) -> Any:
    """Make the task of a plugin that knows the words of the first questions, beside vectors that it may start from."""
    examples = read_marked(kb, questions[:3])
    settings = change_known(getattr(plugin, "settings", TrainingSettings()), SMALL)
    vectors = TransE.task(kb, None, TransESettings(), models=models)
    vectors.save(model_folder(models, ENTITIES, "transe"), Stamp("transe"))
    return plugin.task(kb, Splits(examples, examples), settings, models=models)


def read_marked(kb: KnowledgeBase, questions: Sequence[MarkedQuestion]) -> Examples:
    """Take marked questions for annotated ones, about the first bearer of the mention and its first relation."""
    mentions, subjects, relations = [], [], []
    for marked in questions:
        spans = ngrams(marked.question, lengths=kb.manifest.lengths)
        mention = next((span for span in spans if (span.start, span.end) == (marked.start, marked.end)), None)
        matches = kb.lookup([mention.form]).get(mention.form, ()) if mention else ()
        subject = int(matches[0].entities[0]) if matches else -1
        own = kb.relations_of(np.array([subject] if matches else [], dtype=np.uint32)).values
        mentions.append(mention)
        subjects.append(subject)
        relations.append(int(own[0]) if len(own) else 0)
    return Examples(list(questions), mentions, np.array(subjects), np.array(relations), 0, "")
