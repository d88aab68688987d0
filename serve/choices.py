"""The pruners and scorers that can be chosen in a request: by name, and with models where they need some."""

from typing import Any

from kbtools.answering.answerer import Answerer
from kbtools.entry_points import PRUNERS, SCORERS, Offer, list_offers, load_class
from kbtools.errors import BadArgument, KBToolsError, VectorsMissing
from kbtools.pruning.pruners import guide_of
from kbtools.ranking.contracts import ZeroShot
from kbtools.ranking.models import RELATION, SUBJECT, TAGGER, model_folder

AVERAGED = 4
"""Scorers that a request may average: each combination stays in memory."""


def check_choice(arguments: dict[str, Any]) -> None:
    """Refuse what would import a module by its path, or average a scorer with itself; raise BadArgument."""
    for name in ("pruning", "scorer", "subject", "ranker"):
        if ":" in arguments.get(name, ""):
            raise BadArgument(f"{name} is the name of a plugin here; module:Class is for the command line", name=name)
    scorers = [scorer.strip() for scorer in arguments.get("scorer", "").split(",")]
    if len(scorers) > AVERAGED or len(set(scorers)) < len(scorers):
        raise BadArgument(f"scorer is at most {AVERAGED} names, each once, with commas between", name="scorer")


def choices(answerer: Answerer) -> dict[str, list[str]]:
    """List the pruners, relation scorers and subject scorers that answer with the models at hand."""
    models = answerer.models
    offers = list_offers()

    def trained(part: str, name: str) -> bool:
        return models is not None and model_folder(models, part, name).is_dir()

    def usable(pruner: str) -> bool:
        try:
            guide = guide_of(load_class(PRUNERS, pruner))
        except KBToolsError:  # one that cannot be loaded takes nothing from the others
            return False
        if guide == "tagger":
            return trained(TAGGER, answerer.tagger)
        return guide is None or (models is not None and has_vectors(answerer))

    def answers(offer: Offer, part: str) -> bool:
        return not offer.needs or trained(part, offer.name) or (part == RELATION and needs_no_training(offer.name))

    def scorers(kind: str, part: str) -> list[str]:
        return [offer.name for offer in offers if offer.kind == kind and answers(offer, part)]

    return {
        "pruners": [offer.name for offer in offers if offer.kind == "pruner" and usable(offer.name)],
        "scorers": scorers("relation scorer", RELATION),
        "subjects": scorers("subject scorer", SUBJECT),
    }


def needs_no_training(scorer: str) -> bool:
    """Tell whether a relation scorer whose extra is installed answers before any training."""
    try:
        plugin = load_class(SCORERS, scorer)
        return isinstance(plugin, ZeroShot) and bool(plugin.origin())
    except KBToolsError:
        return False


def has_vectors(answerer: Answerer) -> bool:
    try:
        return len(answerer.kb.vectors()) > 0
    except VectorsMissing:
        return False
