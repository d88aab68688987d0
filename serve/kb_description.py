"""A description of a knowledge base and of what can be asked of it, for programs and for the page."""

from pathlib import PurePath
from typing import Any

from kbtools.answering.answerer import Answerer
from kbtools.answering.explaining import PARTS
from kbtools.answering.results import JSON_VERSION
from kbtools.errors import KBToolsError
from kbtools.kb.language_tags import UND
from kbtools.kb.manifest_report import STATISTICS
from kbtools.kb.views import has_incoming
from kbtools.serve.choices import choices
from kbtools.version import __version__


def kb_info(name: str, answerer: Answerer) -> dict[str, Any]:
    """Describe a knowledge base; of its sources no more is told than their names."""
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
            for kind, count in manifest.counts.items()
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
        "vectors": vectors_record(answerer),
        "incoming": has_incoming(answerer.kb),
        **choices(answerer),
        "defaults": defaults(answerer),
        "parts": PARTS,
    }


def defaults(answerer: Answerer) -> dict[str, str | None]:
    """Name the parts of the system of a question that names none."""
    system, parts = answerer.system(), answerer.parts
    return {
        "pruning": system.pruner,
        "scorer": system.scorer,
        "subject": system.subject_scorer,
        "tagger": parts.tagger,
        "weights": parts.preset,
        "ranker": None,
    }


def vectors_record(answerer: Answerer) -> dict[str, Any] | None:
    """Describe the vectors of the entities; nothing where there are none, or none that can be read here."""
    try:
        vectors = answerer.kb.vectors()
    except KBToolsError:
        return None
    return {"count": len(vectors), "dim": vectors.dim, "subject": vectors.origin.subject}
