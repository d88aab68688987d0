"""The manifest of a knowledge base: its counts, sources and versions, and what its build left out."""

from dataclasses import asdict, dataclass, field
from typing import Any

from kbtools.errors import KBUnusable
from kbtools.text.normaliser import NORMALISER_VERSION
from kbtools.text.readings import NO_VARIANTS, Table

FORMAT_NAME = "kbtools-kb"
FORMAT_VERSION = 1
"""Rises when a folder of an older build cannot be read any more."""


@dataclass(frozen=True, slots=True)
class Count:
    """A number of rows as they were read, and without repetitions."""

    raw: int
    unique: int

    @property
    def duplicate(self) -> int:
        return self.raw - self.unique


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file that went in: its size in bytes, its SHA-256, its lines, the kinds that were left out of it, and notes."""

    path: str
    kind: str
    bytes: int
    sha256: str
    lines: int
    skipped: tuple[tuple[str, int, str], ...] = ()
    notes: tuple[str, ...] = ()


SEGMENT = "segment"
"""The folder inside that of a knowledge base in which its updates are, until they are merged."""


UPDATE, MERGE = "update", "merge"
"""The entries of a history: changes, and updates that became part of the build."""


@dataclass(frozen=True, slots=True)
class Change:
    """An entry of the history: an update, from which sources and with how many changes of each kind, or a merge.

    `before` and `after` are the digests of the content; `bytes` is the size of what was written.
    """

    action: str
    when: str
    before: str
    after: str
    sources: tuple[str, ...] = ()
    counts: dict[str, int] = field(default_factory=dict)
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class Manifest:
    """The account of a build; `digest` is equal for equal content, in any order of the sources.

    `files` holds the bytes of each file, `checksums` the SHA-256. Where
    updates are yet to be merged, the digest is that of the build with that of the updates.
    """

    digest: str
    counts: dict[str, Count]
    sources: tuple[SourceFile, ...]
    lengths: tuple[int, ...]
    statistics: dict[str, int]
    files: dict[str, int] = field(default_factory=dict)
    checksums: dict[str, str] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    built: str = ""
    history: tuple[Change, ...] = ()
    languages: dict[str, int] = field(default_factory=dict)
    """The number of names in each language, by its tag; empty if no name has a language."""
    normaliser: int = NORMALISER_VERSION

    @property
    def variants(self) -> Table:
        """Return the owner's table of other ways to write words, empty without one."""
        return self.options.get("variants") or NO_VARIANTS

    @property
    def is_updated(self) -> bool:
        """Return whether there are updates beside the build."""
        return any(name.startswith(f"{SEGMENT}/") for name in self.files)

    @property
    def pending(self) -> tuple[Change, ...]:
        """Return the updates that are not merged yet, the oldest first."""
        merges = [place for place, change in enumerate(self.history, 1) if change.action == MERGE]
        return self.history[merges[-1] if merges else 0 :]

    @property
    def lineage(self) -> tuple[str, ...]:
        """Return the digests of all states since entities were last numbered: that of the build first, its own last."""
        return (*(change.before for change in self.pending), self.digest)

    def to_record(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> "Manifest":
        """Rebuild a manifest; raise KBUnusable where the normaliser is another one."""
        if record["normaliser"] != NORMALISER_VERSION:
            raise KBUnusable(
                f"built with normaliser version {record['normaliser']}, this kbtools has version {NORMALISER_VERSION}; "
                "index again",
                found=record["normaliser"],
            )
        # msgpack gives lists where the record had tuples.
        sources = tuple(
            SourceFile(
                **{
                    **source,
                    "skipped": tuple(tuple(skip) for skip in source["skipped"]),
                    "notes": tuple(source["notes"]),
                }
            )
            for source in record["sources"]
        )
        counts = {kind: Count(**count) for kind, count in record["counts"].items()}
        history = tuple(Change(**{**change, "sources": tuple(change["sources"])}) for change in record["history"])
        lengths = tuple(record["lengths"])
        return cls(**{**record, "sources": sources, "counts": counts, "history": history, "lengths": lengths})
