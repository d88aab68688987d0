"""The description of a knowledge base, and the pruners and scorers available to requests: by name, with models."""

from pathlib import PurePath
from typing import Any

from kbtools.answering.answerer import Answerer
from kbtools.answering.explaining import PARTS
from kbtools.answering.query_options import NAMES
from kbtools.answering.results import JSON_VERSION
from kbtools.entry_points import PRUNERS, SCORERS, Offer, list_offers, load_class
from kbtools.errors import BadArgument, KBToolsError, VectorsMissing
from kbtools.kb.language_tags import UND
from kbtools.kb.manifest import STATISTICS
from kbtools.kb.views import has_incoming
from kbtools.pruning.pruners import guide_of
from kbtools.ranking.contracts import ZeroShot
from kbtools.ranking.models import RELATION, SUBJECT, TAGGER, model_folder
from kbtools.version import __version__


def kb_info(name: str, answerer: Answerer) -> dict[str, Any]:
    """Describe a knowledge base; of its sources only the names are shown."""
    manifest = answerer.kb.manifest
    return {
        "name": name,
        "kbtools": __version__,
        "json_version": JSON_VERSION,
        "digest": manifest.digest,
        "built": manifest.built,
        "bytes": sum(manifest.files.values()),
        "counts": {
            kind: {"raw": count.raw, "duplicate": count.duplicate, "unique": count.unique}
            for kind, count in manifest.shown_counts.items()
        },
        "statistics": {
            key: {"count": manifest.statistics[key], "label": label}
            for key, label in STATISTICS.items()
            if key in manifest.statistics
        },
        "sources": [
            {
                "name": PurePath(source.path).name,
                "kind": source.kind,
                "bytes": source.bytes,
                "lines": source.lines,
                "skipped": [{"kind": kind, "count": count} for kind, count, _ in source.skipped],
            }
            for source in manifest.sources
        ],
        "languages": sorted(set(manifest.languages) - {UND}),
        "vectors": _vectors_record(answerer),
        "incoming": has_incoming(answerer.kb),
        "taught": len(answerer.teaching.newest()),
        **choices(answerer),
        "defaults": _defaults(answerer),
        "parts": PARTS,
    }


def _defaults(answerer: Answerer) -> dict[str, str | None]:
    """Return the default parts of the system."""
    system, parts = answerer.system(), answerer.parts
    return {
        "pruning": system.pruner,
        "scorer": system.scorer,
        "subject": system.subject_scorer,
        "tagger": parts.tagger,
        "weights": parts.preset,
        "ranker": None,
    }


def _vectors_record(answerer: Answerer) -> dict[str, Any] | None:
    """Describe the vectors of the entities; None if there are none that can be read."""
    try:
        vectors = answerer.kb.vectors()
    except KBToolsError:
        return None
    return {"count": len(vectors), "dim": vectors.dim, "subject": vectors.origin.subject}


_AVERAGED = 4
"""Most scorers that a request may average: each combination stays in memory."""


def check_choice(arguments: dict[str, Any]) -> None:
    """Raise BadArgument for a plugin given as module:Class, and for averaging a scorer with itself."""
    for name in NAMES:
        if ":" in arguments.get(name, ""):
            raise BadArgument(
                f"{name} must be the name of a plugin; module:Class works only on the command line", name=name
            )
    scorers = [scorer.strip() for scorer in arguments.get("scorer", "").split(",")]
    if len(scorers) > _AVERAGED or len(set(scorers)) < len(scorers):
        raise BadArgument(f"scorer is at most {_AVERAGED} names, each once, with commas between", name="scorer")


def choices(answerer: Answerer) -> dict[str, list[str]]:
    """Return the pruners, relation scorers and subject scorers that work with the available models."""
    models = answerer.models
    offers = list_offers()

    def trained(part: str, name: str) -> bool:
        return models is not None and model_folder(models, part, name).is_dir()

    def usable(pruner: str) -> bool:
        try:
            guide = guide_of(load_class(PRUNERS, pruner))
        except KBToolsError:  # One that cannot be loaded must not hide the others.
            return False
        if guide == "tagger":
            return trained(TAGGER, answerer.tagger)
        return guide is None or (models is not None and _has_vectors(answerer))

    def answers(offer: Offer, part: str) -> bool:
        return not offer.needs or trained(part, offer.name) or (part == RELATION and _needs_no_training(offer.name))

    def scorers(kind: str, part: str) -> list[str]:
        return [offer.name for offer in offers if offer.kind == kind and answers(offer, part)]

    return {
        "pruners": [offer.name for offer in offers if offer.kind == "pruner" and usable(offer.name)],
        "scorers": scorers("relation scorer", RELATION),
        "subjects": scorers("subject scorer", SUBJECT),
    }


def _needs_no_training(scorer: str) -> bool:
    """Return whether a relation scorer, given its extra, works untrained."""
    try:
        plugin = load_class(SCORERS, scorer)
        return isinstance(plugin, ZeroShot) and bool(plugin.origin())
    except KBToolsError:
        return False


def _has_vectors(answerer: Answerer) -> bool:
    try:
        return len(answerer.kb.vectors()) > 0
    except VectorsMissing:
        return False
