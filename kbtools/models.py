"""Where trained models lie, and how what a query names is made from them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from kbtools.errors import BrokenPlugin, KBToolsError, ModelMissing
from kbtools.knowledge import KnowledgeBase
from kbtools.plugins import SCORERS, SUBJECT_SCORERS, TAGGERS, load_plugin
from kbtools.scoring import Averaged, RelationScorer, SubjectScorer, Trained
from kbtools.tagging import Tagger

RELATION, SUBJECT, TAGGER, ENTITIES = "relation", "subject", "tagger", "entities"
"""Parts of a folder of models, each with a folder per model."""


def model_folder(models: Path, part: str, name: str) -> Path:
    """Say where the model of a plugin lies; of `module:Class` the colon becomes a dot."""
    return models / part / name.replace(":", ".")


def make_relation_scorer(
    names: str, kb: KnowledgeBase, *, models: Path | None = None, device: str = "cpu"
) -> RelationScorer:
    """Make a relation scorer by its name, or the average of several whose names commas divide.

    Raises UnknownPlugin, BrokenPlugin, MissingDependency, and ModelError where a trained one has no usable model.
    """
    made: list[RelationScorer] = [
        make_plugin(SCORERS, name.strip(), kb, part=RELATION, models=models, device=device, untrained=kb.relations)
        for name in names.split(",")
    ]
    return made[0] if len(made) == 1 else Averaged(made)


def make_subject_scorer(
    name: str, kb: KnowledgeBase, *, models: Path | None = None, device: str = "cpu"
) -> SubjectScorer:
    """Make a subject scorer by its name; raise as `make_relation_scorer` does."""
    made: SubjectScorer = make_plugin(
        SUBJECT_SCORERS, name, kb, part=SUBJECT, models=models, device=device, untrained=kb
    )
    return made


def make_tagger(name: str, kb: KnowledgeBase, *, models: Path | None = None, device: str = "cpu") -> Tagger:
    """Make a tagger by its name; raise as `make_relation_scorer` does."""
    made: Tagger = make_plugin(TAGGERS, name, kb, part=TAGGER, models=models, device=device, untrained=kb)
    return made


def make_plugin(
    group: str,
    name: str,
    kb: KnowledgeBase,
    *,
    part: str,
    models: Path | None,
    device: str,
    untrained: object,
) -> Any:
    """Make what a plugin offers: from its folder if it is trained, else from what an untrained one takes."""
    plugin = load_plugin(group, name)
    if not callable(plugin):
        raise BrokenPlugin(f"plugin {name!r} is no class", name=name)
    if not isinstance(plugin, Trained):
        return call(name, lambda: plugin(untrained))
    if models is None:
        raise ModelMissing(
            f"{name!r} is trained: name the folder that holds its model with --models, "
            f"or make one with kbtools train {part}",
            name=name,
        )
    folder = model_folder(models, part, getattr(plugin, "model", None) or name)
    return call(name, lambda: plugin.load(folder, kb, device=device))


def call(name: str, make: Callable[[], object]) -> object:
    """Make an object of a plugin; what goes wrong inside is named with the plugin."""
    try:
        return make()
    except KBToolsError:
        raise
    except Exception as error:
        raise BrokenPlugin(f"plugin {name!r} cannot be made: {error!r}", name=name) from error
