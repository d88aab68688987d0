"""The forms of a segment: of every form whose bearers changed all its names and bearers, and counts of words."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kbtools.indexers.building.form_groups import FormGroups
from kbtools.indexers.building.form_rows import form_rows
from kbtools.indexers.building.form_writer import FormWriter
from kbtools.indexers.folder.edit_index import hash_names, keys_and_rows
from kbtools.indexers.folder.embedded import EmbeddedKB
from kbtools.indexers.folder.form_store import ENTITIES, KIND_SHIFT, is_normal
from kbtools.indexers.folder.fuzzy_index import FuzzyWriter
from kbtools.indexers.folder.kb_folder import FORMS, FUZZY

WriteColumn = Callable[[str, Sequence[Any] | NDArray[Any]], None]


class Name(NamedTuple):
    """A name of an entity; the row of its text is its place among the names, behind those of the base."""

    text: str
    is_alias: bool
    entity: int


@dataclass(frozen=True, slots=True)
class FormChanges:
    """Forms that changed, in order, with the new value of each, empty where nobody bears it any more.

    `new` lists the normal forms that the base does not have as such, with the row of a name among those of the
    segment, `vanished` those that only the base has; `words` counts, for each word of either, the normal forms with it.
    """

    values: dict[str, bytes]
    new: dict[str, int]
    vanished: list[str]
    words: dict[str, int]
    names: int
    base_names: int
    forms: int
    lengths: frozenset[int]

    @classmethod
    def between(cls, kb: EmbeddedKB, changed: Sequence[int], names: Sequence[Name]) -> "FormChanges":
        """Compare the base with new names of entities, `changed` among them, whose names in the base go."""
        base_names = [text for row in changed for text in EmbeddedKB.aliases(kb, row)]
        bearers: dict[str, dict[tuple[int, str], list[tuple[int, int]]]] = defaultdict(lambda: defaultdict(list))
        first = len(kb.alias_texts)
        for form, kind, text, entity, row in rows_of(names, first=first):
            bearers[form][kind, text].append((entity, row))
        former = [Name(text, is_alias=False, entity=0) for text in base_names]
        forms = sorted({*bearers, *(form for form, *_ in rows_of(former, first=0))})
        gone = frozenset(changed)
        values, new, vanished, words, difference = {}, {}, [], Counter[str](), 0
        for form in forms:
            old = kb.forms.value(form)
            groups = {(kind, kb.alias_texts[row]): (row, kept) for kind, row, kept in remaining(old, gone)}
            for (kind, text), own in bearers.get(form, {}).items():
                row, kept = groups.get((kind, text), (own[0][1], []))
                groups[kind, text] = (row, sorted([*kept, *(entity for entity, _ in own)]))
            value = packed(groups)
            values[form] = value
            difference += bool(value) - bool(old)
            before, after = bool(old) and is_normal(old), bool(value) and is_normal(value)
            if before != after:
                words.update(dict.fromkeys(form.split(" "), 1 if after else -1))
            if after and not before:
                new[form] = min(row for (kind, _), own in bearers[form].items() if kind < 2 for _, row in own) - first
            elif before and not after:
                vanished.append(form)
        counts = dict(zip(words, kb.forms.name_frequency(list(words)), strict=True))
        return cls(
            values=values,
            new=new,
            vanished=vanished,
            words={word: counts[word] + change for word, change in sorted(words.items())},
            names=len(names),
            base_names=len(base_names),
            forms=len(kb.forms) + difference,
            lengths=frozenset(form.count(" ") + 1 for form, value in values.items() if value),
        )


def rows_of(names: Sequence[Name], *, first: int) -> Iterable[tuple[str, int, str, int, int]]:
    """Yield the forms of names: form, kind, text, entity, and the row of the text, counted from `first`."""
    columns = (
        pa.array([name.text for name in names], pa.string()),
        pa.array([name.is_alias for name in names], pa.bool_()),
        pa.array([name.entity for name in names], pa.uint32()),
    )
    return zip(*(column.to_pylist() for column in form_rows(*columns, first=first).columns), strict=True)


def remaining(value: bytes, gone: frozenset[int]) -> Iterable[tuple[int, int, list[int]]]:
    """Yield the groups of a value without some bearers: kind, row of the name, rows of those who are left."""
    numbers, position = np.frombuffer(value, dtype="<u4").tolist(), 0
    while position < len(numbers):
        header, row = numbers[position : position + 2]
        last = position + 2 + (header & ENTITIES)
        kept = [entity for entity in numbers[position + 2 : last] if entity not in gone]
        if kept:
            yield header >> KIND_SHIFT, row, kept
        position = last


def packed(groups: dict[tuple[int, str], tuple[int, list[int]]]) -> bytes:
    """Write groups as the exact index has them: by kind, then by spelling."""
    numbers: list[int] = []
    for (kind, _), (row, entities) in sorted(groups.items()):
        numbers += (kind << KIND_SHIFT | len(entities), row, *entities)
    return np.array(numbers, dtype="<u4").tobytes()


def write_forms(changes: FormChanges, folder: Path, write_column: WriteColumn) -> None:
    """Write the exact index of the changed forms, and the fuzzy and the edit index of the new ones."""
    new = (list(changes.new), np.array(list(changes.new.values()), dtype=np.uint32))
    words = pa.record_batch([list(changes.words), list(changes.words.values())], names=["word", "names"])
    with FormWriter(folder / FORMS) as exact, FuzzyWriter(folder / FUZZY, threads=1) as fuzzy:
        exact.write_forms([as_groups({form: value for form, value in changes.values.items() if value})])
        exact.write_words([words])
        exact.close()
        fuzzy.add(*new)
        fuzzy.close()
    write_edits(*new, changes.names, write_column)
    for name, forms in (("changed.forms", changes.values), ("vanished.forms", changes.vanished)):
        write_column(name, np.frombuffer("\0".join(forms).encode(), dtype=np.uint8))


def write_edits(forms: Sequence[str], rows: NDArray[np.uint32], names: int, write_column: WriteColumn) -> None:
    """Write the edit index of forms, each with the row of a name among so many."""
    keyed, signatures = [np.empty(0, dtype=np.uint64)], np.zeros(max(1, names), dtype=np.uint64)
    for keys, signed in hash_names(forms, rows):
        keyed.append(keys)
        signatures[signed["row"]] = signed["signature"]
    for part, column in zip(("key", "row"), keys_and_rows(np.concatenate(keyed)), strict=True):
        write_column(f"edit.{part}", column)
    write_column("edit.signature", signatures)


def as_groups(values: dict[str, bytes]) -> FormGroups:
    """Give values of forms, in order, as they are written."""
    heads = np.frombuffer(b"".join(value[:8] for value in values.values()), dtype="<u4").reshape(-1, 2)
    kinds, names = (heads[:, 0] >> KIND_SHIFT).astype(np.uint8), heads[:, 1].astype(np.uint32)
    return FormGroups(pa.array(list(values), pa.string()), list(values.values()), kinds, names)
