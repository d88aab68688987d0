"""The manifest of a knowledge base as text for people: counts, and what was left out."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby

from kbtools.kb.language_tags import UND
from kbtools.kb.manifest import UPDATE, Change, Manifest

LATEST = 10
"""Updates and merges that are shown a line each."""

STATISTICS = {
    "relations": "relations",
    "types": "types",
    "pairs": "subject-relation pairs",
    "forms": "forms of names",
    "descriptions": "entities with a description",
    "subjects": "entities that are the subject of a fact",
    "objects": "entities that are the object of a fact",
    "subjects_of_no_fact": "entities that are the subject of no fact",
    "entities_without_facts": "entities in no fact at all",
    "entities_without_names": "entities without a name",
    "entities_without_types": "entities without a type",
    "types_of_unknown_entities": "types of entities that have neither fact nor name, left out",
}


def counts_report(manifest: Manifest) -> str:
    """Lay out raw, duplicate and unique counts, a line each."""
    lines = [f"{'':10}{'raw':>14}{'duplicate':>14}{'unique':>14}"]
    for kind, count in manifest.counts.items():
        lines.append(f"{kind:10}{count.raw:>14,}{count.duplicate:>14,}{count.unique:>14,}")
    return "\n".join(lines)


def skipped_report(manifest: Manifest) -> str:
    """Lay out every kind of line that was left out with its first example, and every note; empty if there is none."""
    lines = [
        f"skipped {count:,} of {source.lines:,} lines: {kind}; first: {example}\n"
        for source in manifest.sources
        for kind, count, example in source.skipped
    ]
    return "".join(lines + [f"noticed at {note}\n" for source in manifest.sources for note in source.notes])


def statistics_report(manifest: Manifest) -> str:
    """Lay out what else was counted."""
    counted = ((manifest.statistics.get(name, 0), label) for name, label in STATISTICS.items())
    return "\n".join(f"{count:>14,}  {label}" for count, label in counted)


def languages_report(manifest: Manifest) -> str:
    """Lay out the number of names in each language, the commonest first; empty where none has one."""
    tags = [tag for tag in manifest.languages if tag != UND]
    counted = [f"{manifest.languages[tag]:,} {tag}" for tag in tags]
    counted += [f"{manifest.languages[UND]:,} without a language"] if UND in manifest.languages else []
    return f"names in {len(tags)} language{'s' * (len(tags) != 1)}: {', '.join(counted)}\n" if tags else ""


def history_report(manifest: Manifest) -> str:
    """Lay out updates and merges, the oldest first: a line each of the last ones, the earlier updates summed up."""
    earlier, latest = manifest.history[:-LATEST], manifest.history[-LATEST:]
    runs = (list(changes) for _, changes in groupby(earlier, key=lambda change: change.action == UPDATE))
    lines = [line for run in runs for line in run_lines(run)]
    return "".join(f"{line}\n" for line in [*lines, *map(change_line, latest)])


def run_lines(changes: Sequence[Change]) -> list[str]:
    """Sum up successive updates; a single one, and merges, have a line each."""
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
    """Write numbers of changes as people read them."""
    return ", ".join(f"{count:,} {kind if count != 1 else singular(kind)}" for kind, count in counts.items())


def singular(kind: str) -> str:
    """Write a kind of change for one: `entity added` for `entities added`."""
    things, _, done = kind.partition(" ")
    return f"{'entity' if things == 'entities' else things.removesuffix('s')} {done}"


def size_text(size: int) -> str:
    """Write bytes as people read them."""
    value = float(size)
    for unit in ("B", "KB", "MB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.2f} GB"
