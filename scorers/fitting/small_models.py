"""Small untrained models of plugins, which contract suites check."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kbtools.kb.contract import KnowledgeBase
from kbtools.ranking.model_store import Stamp
from kbtools.ranking.models import ENTITIES, model_folder
from kbtools.scorers.fitting.splits import Examples, Splits
from kbtools.scorers.fitting.training import change_known, load_trainable
from kbtools.scorers.fitting.training_loop import SelfFitting
from kbtools.scorers.networks.training_settings import TrainingSettings, TransESettings
from kbtools.text.ngrams import ngrams
from kbtools.text.question import MarkedQuestion

SMALL = {"dim": 8, "words_dim": 6, "hidden": 4, "known_words": 0, "words": "random", "negatives": 4, "seed": 7}


def small_model(plugin: Any, kb: KnowledgeBase, questions: Sequence[MarkedQuestion]) -> Any:
    """Build a small model by the plugin's own task; it knows the words of the first questions.

    The model is untrained, unless it has no network: such a model does not exist before it is fitted.
    """
    with tempfile.TemporaryDirectory() as models:
        task = small_task(plugin, kb, questions, models=Path(models))
        if isinstance(task, SelfFitting):
            task.fit(lambda epoch: None)
        folder = Path(models, "model")
        task.save(folder, Stamp("small"))
        return plugin.load(folder, kb)


def small_task(plugin: Any, kb: KnowledgeBase, questions: Sequence[MarkedQuestion], *, models: Path) -> Any:
    """Build the task of a plugin that knows the words of the first questions, and vectors that it may start from."""
    examples = read_marked(kb, questions[:3])
    settings = change_known(getattr(plugin, "settings", TrainingSettings()), SMALL)
    vectors = load_trainable(ENTITIES, "transe").task(kb, None, TransESettings(), models=models)
    vectors.save(model_folder(models, ENTITIES, "transe"), Stamp("transe"))
    return plugin.task(kb, Splits(examples, examples), settings, models=models)


def read_marked(kb: KnowledgeBase, questions: Sequence[MarkedQuestion]) -> Examples:
    """Annotate marked questions with the first entity of the mention and its first relation."""
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
