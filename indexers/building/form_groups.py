"""The values of the exact index: for each form a run of 32-bit numbers, one group per spelling.

A group is `kind << 28 | n`, the row of the name, n entities.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kbtools.indexers.folder.form_store import KIND_SHIFT, NORMAL

WORD_COUNTS = pa.schema({"word": pa.string(), "names": pa.uint32()})


@dataclass(frozen=True, slots=True, eq=False)
class FormGroups:
    """Ascending forms, the value of each, and the kind and the row of the first name in it."""

    forms: pa.StringArray
    values: list[bytes]
    kinds: NDArray[np.uint8]
    names: NDArray[np.uint32]

    def normal(self) -> tuple[pa.StringArray, NDArray[np.uint32]]:
        """Return the forms that are the normal form of a name, and the row of such a name."""
        mask = self.kinds <= NORMAL
        return self.forms.filter(pa.array(mask)), self.names[mask]


def group_forms(batches: Iterable[pa.RecordBatch]) -> Iterator[FormGroups]:
    """Turn rows sorted by form, kind, text and entity into one value per form."""
    rest: list[pa.RecordBatch] = []
    for batch in batches:
        if not batch.num_rows:
            continue
        # The last form of a batch may go on in the next one.
        last = batch.num_rows - pc.sum(pc.equal(batch.column(0), batch.column(0)[-1])).as_py()
        if last or (rest and rest[0].column(0)[0] != batch.column(0)[0]):
            yield group_rows(pa.Table.from_batches([*rest, batch.slice(0, last)]))
            rest = []
        rest.append(batch.slice(last))
    if rest:
        yield group_rows(pa.Table.from_batches(rest))


def group_rows(table: pa.Table) -> FormGroups:
    """Lay out the values of whole forms."""
    forms, kinds, texts, entities, names = (column.combine_chunks() for column in table.columns)
    kinds, entities, names = (column.to_numpy() for column in (kinds, entities, names))
    rows = len(kinds)
    new_form = differs(forms)
    # Rows come sorted, so that a group ends where another kind or spelling begins.
    new_group = new_form | differs(texts)
    new_group[1:] |= kinds[1:] != kinds[:-1]
    firsts, group = np.flatnonzero(new_group), np.cumsum(new_group)
    values = np.empty(rows + 2 * len(firsts), dtype="<u4")
    values[np.arange(rows) + 2 * group] = entities
    headers = firsts + 2 * np.arange(len(firsts))
    values[headers] = kinds[firsts].astype(np.uint32) << KIND_SHIFT | np.diff(firsts, append=rows).astype(np.uint32)
    values[headers + 1] = names[firsts]
    first_rows = np.flatnonzero(new_form)
    edges = np.append(first_rows + 2 * (group[first_rows] - 1), len(values)) * values.itemsize
    data = values.tobytes()
    return FormGroups(
        forms.filter(pa.array(new_form)),
        [data[start:end] for start, end in pairwise(edges.tolist())],
        kinds[first_rows],
        names[first_rows],
    )


def differs(texts: pa.StringArray) -> NDArray[np.bool_]:
    """Return which texts differ from the one before; the first one does."""
    other = pc.not_equal(texts.slice(1), texts.slice(0, len(texts) - 1)).to_numpy(zero_copy_only=False)
    return np.concatenate([np.ones(1, dtype=bool), other])


def count_words(forms: pa.StringArray) -> pa.Table:
    """Count the forms that hold each word; a word that a form has twice is counted once."""
    lists = pc.split_pattern(forms, " ")
    words = pc.list_flatten(lists).dictionary_encode()
    owners, codes = (np.asarray(column).astype(np.uint64) for column in (pc.list_parent_indices(lists), words.indices))
    # `np.unique`, which takes fifty times as long.
    pairs = np.sort(owners << np.uint64(32) | codes)
    distinct = pairs[np.diff(pairs, prepend=~pairs[:1]) != 0]
    counts = np.bincount(distinct.astype(np.uint32), minlength=len(words.dictionary))
    return pa.table([words.dictionary, pa.array(counts, pa.uint32())], schema=WORD_COUNTS)
