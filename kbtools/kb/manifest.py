"""The manifest of a knowledge base: its counts, sources, versions and skipped input, also as text."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby
from typing import Any

from kbtools.errors import KBUnusable
from kbtools.kb.language_tags import UND
from kbtools.record_files import fits
from kbtools.text.normaliser import NORMALISER_VERSION
from kbtools.text.readings import NO_VARIANTS, Table

FORMAT_NAME = "kbtools-kb"
FORMAT_VERSION = 1
"""Rises when folders of older builds can no longer be read."""

SEGMENT = "segment"
"""The folder of updates inside a knowledge base until they are merged."""

UPDATE, MERGE = "update", "merge"
"""The actions in a history: changes, and merges of updates into the build."""

LATEST = 10
"""Updates and merges shown on a line each."""

STATISTICS = {
    "relations": "relations",
    "types": "types",
    "pairs": "subject-relation pairs",
    "forms": "forms of names",
    "descriptions": "entities with a description",
    "subjects": "entities that are the subject of a fact",
    "objects": "entities and values that are the object of a fact",
    "subjects_of_no_fact": "entities that are the subject of no fact",
    "entities_without_facts": "entities in no fact at all",
    "entities_without_names": "entities without a name",
    "entities_without_types": "entities without a type",
    "types_of_unknown_entities": "types of entities that have neither fact nor name, left out",
}

COUNTED = {"facts", "names", "types", "entities"}
"""The counts of every build."""


@dataclass(frozen=True, slots=True)
class Count:
    """A number of rows as read, and without repetitions."""

    raw: int
    unique: int

    @property
    def duplicate(self) -> int:
        return self.raw - self.unique


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A source: its size in bytes, its SHA-256, its number of lines, the kinds of lines skipped, and notes."""

    path: str
    kind: str
    bytes: int
    sha256: str
    lines: int
    skipped: tuple[tuple[str, int, str], ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Change:
    """An entry of the history: an update with its sources and the number of changes by kind, or a merge.

    `before` and `after` are digests of the content; `bytes` is the size written.
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
    """The record of a build; `digest` is equal for equal content, in any order of sources.

    `files` has the size of each file, `checksums` its SHA-256. `counts` of entities include literals. With unmerged
    updates, the digest combines those of the build and of the updates.
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
    def shown_counts(self) -> dict[str, Count]:
        """Return the counts for people, with literals counted apart from entities."""
        rows, values = self.counts["entities"].unique, self.statistics.get("values", 0)
        return self.counts | {"entities": Count(rows - values, rows - values), "values": Count(values, values)}

    @property
    def variants(self) -> Table:
        """Return the user's table of alternative spellings, empty without one."""
        return self.options.get("variants") or NO_VARIANTS

    @property
    def is_updated(self) -> bool:
        """Return whether there are unmerged updates."""
        return any(name.startswith(f"{SEGMENT}/") for name in self.files)

    @property
    def pending(self) -> tuple[Change, ...]:
        """Return the unmerged updates, oldest first."""
        merges = [place for place, change in enumerate(self.history, 1) if change.action == MERGE]
        return self.history[merges[-1] if merges else 0 :]

    @property
    def lineage(self) -> tuple[str, ...]:
        """Return the digests of all states since entities were last numbered, from the build to the present."""
        return (*(change.before for change in self.pending), self.digest)

    def to_record(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> "Manifest":
        """Return a manifest; raise KBUnusable for another normaliser, ValueError for an invalid record."""
        import msgspec  # Commands without a knowledge base need not wait for it.

        if record["normaliser"] != NORMALISER_VERSION:
            raise KBUnusable(
                f"built with normaliser version {record['normaliser']}, this kbtools has version {NORMALISER_VERSION}; "
                "index again",
                found=record["normaliser"],
            )
        whole = fits(record, cls) and record["counts"].keys() >= COUNTED
        if not whole or not {*STATISTICS, "values"} <= record["statistics"].keys():
            raise ValueError("a field is missing or has another type")
        return msgspec.convert(record, cls)


def counts_report(manifest: Manifest) -> str:
    """Return raw, duplicate and unique counts as text, a line each."""
    lines = [f"{'':10}{'raw':>14}{'duplicate':>14}{'unique':>14}"]
    for kind, count in manifest.shown_counts.items():
        lines.append(f"{kind:10}{count.raw:>14,}{count.duplicate:>14,}{count.unique:>14,}")
    return "\n".join(lines)


def skipped_report(manifest: Manifest) -> str:
    """Return each kind of skipped line with its first example, and each note, as text; empty without any."""
    lines = [
        f"{skipped_text(kind, count, source.lines)}; first: {example}\n"
        for source in manifest.sources
        for kind, count, example in source.skipped
    ]
    return "".join(lines + [f"noticed at {note}\n" for source in manifest.sources for note in source.notes])


def skipped_text(kind: str, count: int, lines: int) -> str:
    """Return how many lines of a kind were skipped, or how many names or cells of lines that were read."""
    if kind.startswith("name in a language"):
        return f"left out {count:,} of the names: {kind}"
    if kind.endswith(", left out"):
        return f"left out {count:,} of the cells: {kind.removesuffix(', left out')}"
    return f"skipped {count:,} of {lines:,} lines: {kind}"


def statistics_report(manifest: Manifest) -> str:
    """Return the other counts as text."""
    counted = ((manifest.statistics[name], label) for name, label in STATISTICS.items())
    return "\n".join(f"{count:>14,}  {label}" for count, label in counted)


def languages_report(manifest: Manifest) -> str:
    """Return the number of names in each language, most frequent first; empty without languages."""
    tags = [tag for tag in manifest.languages if tag != UND]
    counted = [f"{manifest.languages[tag]:,} {tag}" for tag in tags]
    counted += [f"{manifest.languages[UND]:,} without a language"] if UND in manifest.languages else []
    return f"names in {len(tags)} language{'s' * (len(tags) != 1)}: {', '.join(counted)}\n" if tags else ""


def history_report(manifest: Manifest) -> str:
    """Return updates and merges, oldest first: a line for each of the last ones, earlier updates summed up."""
    earlier, latest = manifest.history[:-LATEST], manifest.history[-LATEST:]
    runs = (list(changes) for _, changes in groupby(earlier, key=lambda change: change.action == UPDATE))
    lines = [line for run in runs for line in _run_lines(run)]
    return "".join(f"{line}\n" for line in [*lines, *map(change_line, latest)])


def _run_lines(changes: Sequence[Change]) -> list[str]:
    """Return the sum of successive updates; a single update, and each merge, has its own line."""
    if len(changes) == 1 or changes[0].action != UPDATE:
        return [change_line(change) for change in changes]
    counts: Counter[str] = Counter()
    for change in changes:
        counts.update(change.counts)
    return [f"{len(changes):,} updates from {changes[0].when} to {changes[-1].when}: {changes_text(counts)}"]


def change_line(change: Change) -> str:
    sources = f" from {', '.join(change.sources)}" if change.sources else ""
    return f"{change.action} {change.when}{sources}: {changes_text(change.counts) or size_text(change.bytes)}"


def changes_text(counts: Mapping[str, int]) -> str:
    """Return the numbers of changes as text."""
    return ", ".join(f"{count:,} {kind if count != 1 else _singular(kind)}" for kind, count in counts.items())


def _singular(kind: str) -> str:
    """Return the singular of a kind of change: `entity added` for `entities added`."""
    things, space, done = kind.partition(" ")
    return f"{'entity' if things == 'entities' else things.removesuffix('s')}{space}{done}"


def size_text(size: int) -> str:
    """Return a number of bytes as text."""
    value = float(size)
    for unit in ("B", "KB", "MB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.2f} GB"
