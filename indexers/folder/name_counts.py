"""Look-up of `kbtools index --counts`, how often names mean entities; and the ranks of an entity's names, which only
updates store: otherwise they follow from order and languages.
"""

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kbtools.indexers.readers.labels import ALIAS, LAST_RANK
from kbtools.kb.language_tags import SpokenName
from kbtools.kb.rows import EntityRows


def count_key(form: str) -> int:
    """Hash a normal form to 64 bits; the empty form, which stands for every name, is 0."""
    return int.from_bytes(hashlib.blake2b(form.encode(), digest_size=8).digest(), "little") if form else 0


def counts_at(columns: dict[str, NDArray[np.generic]], form: str, entities: EntityRows) -> NDArray[np.int64] | None:
    """Return the counts of entities under a form, from columns sorted by key and entity; None if it has no counts."""
    among = form_range(columns, form)
    counted = columns["count.entity"][among]
    if not len(counted):
        return None
    places = np.minimum(np.searchsorted(counted, entities), len(counted) - 1)
    return np.where(counted[places] == entities, columns["count.count"][among][places], 0).astype(np.int64)


def form_range(columns: dict[str, NDArray[np.generic]], form: str) -> slice:
    """Return the range of the counts of a form."""
    keys = columns["count.key"]
    key = np.uint64(count_key(form)) if len(keys) else np.uint64(0)
    return slice(*(int(np.searchsorted(keys, key, side=side)) for side in ("left", "right")))


def rank_names(names: Sequence[SpokenName], flags: Sequence[bool]) -> list[tuple[SpokenName, int]]:
    """Return the names of an entity, aliases last, with their ranks; a name in any language is not an alias.

    With several languages only their order is known: among aliases, a new language begins where texts stop ascending.
    """
    ranks, rank = [0] * len(names), 1
    for place in range(1, len(names)):
        rank += bool(flags[place - 1] and names[place].text < names[place - 1].text)
        ranks[place] = rank if flags[place] else 0
    last = [ALIAS if flag and known in (0, rank) else known for flag, known in zip(flags, ranks, strict=True)]
    return [(name, min(known, LAST_RANK) if name.name_in else known) for name, known in zip(names, last, strict=True)]
