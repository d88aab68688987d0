"""How to load, and how long a load stands a cluster that is away."""

from dataclasses import dataclass, field
from pathlib import Path

from kbtools.indexers.elastic.bulk import IN_FLIGHT, MOST_DOCUMENTS
from kbtools.indexers.elastic.cluster import Patience
from kbtools.indexers.elastic.mapping import Settings

PATIENCE = 300.0
"""Seconds for which a load stands a cluster that refuses or is away."""

KEPT = 1


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """How to load: part k of n, what the indexes are set to, how many older versions stay."""

    part: int = 1
    parts: int = 1
    settings: Settings = field(default_factory=Settings)
    keep: int = KEPT
    force: bool = False
    in_flight: int = IN_FLIGHT
    batch: int = MOST_DOCUMENTS
    segments: int | None = None
    rejected: Path | None = None
    patience: Patience = field(default_factory=lambda: Patience(total=PATIENCE))
