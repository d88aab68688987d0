"""Indexes of a knowledge base: their names, settings and mappings; the mappings are files of this package."""

import json
from dataclasses import asdict, dataclass, field
from importlib.resources import files
from typing import Any

import msgspec

from kbtools.errors import KBUnusable

MAPPING_VERSION = 3
"""Stored in every index: another version of kbtools refuses what it cannot read."""

OWNER = "kbtools"
"""The key of an index's `_meta` that marks it as ours."""

ENTITIES, NAMES, VECTORS, BUILDS = "entities", "names", "vectors", "builds"
"""The roles of indexes: each has a mapping of its own."""

ROLES = (ENTITIES, NAMES)
"""The roles that every version of a knowledge base has; vectors are optional."""


@dataclass(frozen=True, slots=True)
class IndexSettings:
    """Settings of loaded indexes; without `replicas`, one copy if there is a node for it."""

    shards: int = 1
    replicas: int | None = None
    refresh: str = "1s"
    codec: str = "default"


def index_name(kb: str, version: int, role: str) -> str:
    return f"kbtools-{kb}-{version:06d}-{role}"


def role_of(index: str) -> str:
    """Return the role in the name of one of our indexes."""
    return index.rpartition("-")[2]


def number_of(index: str) -> int:
    """Return the version number in the name of one of our indexes."""
    number = index.split("-")[-2:-1]
    return int(number[0]) if number and number[0].isdecimal() else 0


def loading_alias(index: str) -> str:
    """Return the alias that a loader writes through, so that a deleted index is an error and not recreated."""
    return f"{index}-loading"


def read_mapping(role: str) -> dict[str, Any]:
    """Read the settings and mapping of a role; the caller may modify them."""
    file = files("kbtools.indexers.elastic") / "mappings" / f"{role}.json"
    return dict(json.loads(file.read_text(encoding="utf-8")))


def index_body(role: str, *, kb: str, version: int, settings: IndexSettings) -> dict[str, Any]:
    """Return the request that creates an index for loading: no replica, no refresh."""
    body = read_mapping(role)
    body["settings"]["index"] |= {
        "number_of_shards": settings.shards,
        "number_of_replicas": 0,
        "refresh_interval": "-1",
        "codec": settings.codec,
    }
    body["mappings"]["_meta"] = IndexMark(kb, version, MAPPING_VERSION, complete=False).to_meta()
    body["aliases"] = {loading_alias(index_name(kb, version, role)): {}}
    return body


def final_settings(settings: IndexSettings) -> dict[str, Any]:
    """Return the settings of a loaded index."""
    if settings.replicas is None:
        return {"index": {"refresh_interval": settings.refresh, "auto_expand_replicas": "0-1"}}
    return {"index": {"refresh_interval": settings.refresh, "number_of_replicas": settings.replicas}}


@dataclass(frozen=True, slots=True)
class IndexMark:
    """The mark in an index's `_meta` that identifies its owner."""

    kb: str
    version: int
    mapping: int
    complete: bool
    origin: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, index: Any) -> "IndexMark | None":
        """Read the mark from the description of an index; None if it has none, or one that is not ours."""
        index = index if isinstance(index, dict) else {}
        record = ((index.get("mappings") or {}).get("_meta") or {}).get(OWNER)
        try:
            return msgspec.convert(record, cls)
        except msgspec.ValidationError:
            return None

    def to_meta(self) -> dict[str, Any]:
        """Return the mark as `_meta`, without empty fields."""
        return {OWNER: {name: value for name, value in asdict(self).items() if value not in ("", {})}}


def check_mapping_version(index: str, version: Any) -> None:
    """Raise an error for an index of another mapping version."""
    if version != MAPPING_VERSION:
        raise KBUnusable(
            f"{index}: found mapping version {version!r}, this kbtools reads version {MAPPING_VERSION}; load the "
            "knowledge base again with kbtools load, or use the version of kbtools that wrote it",
            found=version,
            index=index,
        )
