"""The mappings and settings that kbtools makes indexes with: versioned files of this package."""

import json
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from kbtools.errors import KBUnusable

MAPPING_VERSION = 2
"""Goes into every index: another version of kbtools refuses what it cannot read."""

OWNER = "kbtools"
"""The key of an index's `_meta` that marks it as ours."""

ENTITIES, NAMES, VECTORS, BUILDS = "entities", "names", "vectors", "builds"
ROLES = (ENTITIES, NAMES)


@dataclass(frozen=True, slots=True)
class Settings:
    """What the cluster is told of a knowledge base's indexes; without `replicas`, one where there is a node for it."""

    shards: int = 1
    replicas: int | None = None
    refresh: str = "1s"
    codec: str = "default"


def read_mapping(role: str) -> dict[str, Any]:
    """Read the settings and mapping of a role, fresh for the caller to fill in."""
    file = files("kbtools.indexers.elastic") / "mappings" / str(MAPPING_VERSION) / f"{role}.json"
    return dict(json.loads(file.read_text(encoding="utf-8")))


def index_body(role: str, *, kb: str, version: int, token: str, settings: Settings) -> dict[str, Any]:
    """Write the request that creates an index for loading: no replica, no refresh."""
    body = read_mapping(role)
    body["settings"]["index"] |= {
        "number_of_shards": settings.shards,
        "number_of_replicas": 0,
        "refresh_interval": "-1",
        "codec": settings.codec,
    }
    body["mappings"]["_meta"] = {OWNER: make_mark(kb, version, complete=False) | {"token": token}}
    body["aliases"] = {loading_alias(f"kbtools-{kb}-{version:06d}-{role}"): {}}
    return body


def make_mark(kb: str, version: int, *, complete: bool) -> dict[str, Any]:
    """Write what marks an index as ours."""
    return {"kb": kb, "version": version, "mapping": MAPPING_VERSION, "complete": complete}


def loading_alias(index: str) -> str:
    """Name the alias that a loader writes through, so that a deleted index is an error and not made anew."""
    return f"{index}-loading"


def final_settings(settings: Settings) -> dict[str, Any]:
    """Write the settings of an index that is loaded."""
    if settings.replicas is None:
        return {"index": {"refresh_interval": settings.refresh, "auto_expand_replicas": "0-1"}}
    return {"index": {"refresh_interval": settings.refresh, "number_of_replicas": settings.replicas}}


def check_mapping_version(index: str, found: Any) -> None:
    """Refuse an index of another mapping version."""
    if found != MAPPING_VERSION:
        raise KBUnusable(
            f"{index}: found mapping version {found!r}, this kbtools reads version {MAPPING_VERSION}; load the "
            "knowledge base again with kbtools load, or use the version of kbtools that wrote it",
            found=found,
            index=index,
        )
