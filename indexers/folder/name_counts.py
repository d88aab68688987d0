"""Counts of how often names mean entities, `kbtools index --counts`: how they are looked up."""

import hashlib

import numpy as np
from numpy.typing import NDArray

from kbtools.kb.rows import EntityRows


def count_key(form: str) -> int:
    """Hash a normal form to 64 bits; the empty form, which stands for every name, is 0."""
    return int.from_bytes(hashlib.blake2b(form.encode(), digest_size=8).digest(), "little") if form else 0


def counts_at(columns: dict[str, NDArray[np.generic]], form: str, entities: EntityRows) -> NDArray[np.int64] | None:
    """Find the counts of entities under a form in columns sorted by key and entity; nothing where no count has it."""
    among = form_range(columns, form)
    counted = columns["count.entity"][among]
    if not len(counted):
        return None
    places = np.minimum(np.searchsorted(counted, entities), len(counted) - 1)
    return np.where(counted[places] == entities, columns["count.count"][among][places], 0).astype(np.int64)


def form_range(columns: dict[str, NDArray[np.generic]], form: str) -> slice:
    """Find the range of the counts of a form."""
    keys = columns["count.key"]
    key = np.uint64(count_key(form)) if len(keys) else np.uint64(0)
    return slice(*(int(np.searchsorted(keys, key, side=side)) for side in ("left", "right")))
