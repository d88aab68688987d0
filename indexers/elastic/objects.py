"""The objects of facts: read by subject and relation, a few subjects at once, remembered."""

from collections.abc import Sequence

import numpy as np

from kbtools.errors import KBUnusable
from kbtools.indexers.elastic.cache import Cache
from kbtools.indexers.elastic.entities import Entities
from kbtools.indexers.elastic.queries import cut
from kbtools.kb.rows import EntityRows

REMEMBERED = 500

AT_ONCE = 20
"""Entities whose objects come in one answer; each may have some megabytes of them."""


class Objects:
    """Read the objects of pairs of an entity and a relation, by row."""

    def __init__(self, entities: Entities) -> None:
        self.entities, self.catalog = entities, entities.catalog
        self.known: Cache[tuple[int, int], EntityRows] = Cache(REMEMBERED)

    def of(self, entity: int, relation: int) -> EntityRows:
        pair = entity, relation
        known = self.known.get(pair)
        found = self.fetch([pair]).get(pair) if known is None else known
        return np.empty(0, dtype=np.uint32) if found is None else found

    def expect(self, pairs: Sequence[tuple[int, int]]) -> None:
        """Fetch the objects of pairs that are not remembered."""
        self.fetch(self.known.missing(pairs))

    def fetch(self, pairs: Sequence[tuple[int, int]]) -> dict[tuple[int, int], EntityRows]:
        """Fetch the objects of pairs: a request for their ids, and one for what is to be known of them."""
        known = dict(
            zip([entity for entity, _ in pairs], self.entities.at([entity for entity, _ in pairs]), strict=True)
        )
        wanted = [pair for pair in pairs if pair[1] in known[pair[0]].relations]
        ids: dict[tuple[int, int], list[str]] = {}
        for chunk in cut(wanted, AT_ONCE):
            sources = self.lists([entity for entity, _ in chunk])
            ids |= {pair: sources[pair[0]].get(self.catalog.relations[pair[1]], []) for pair in chunk}
        rows = dict(
            zip(every := list({one for found in ids.values() for one in found}), self.entities.rows(every), strict=True)
        )
        objects: dict[tuple[int, int], EntityRows] = {}
        for pair, found in ids.items():
            targets = [row for one in found if (row := rows[one]) is not None]
            if len(targets) != len(found):
                raise KBUnusable(
                    f"{self.catalog.kb}: an object of {known[pair[0]].id} is missing; load it again",
                    name=self.catalog.kb,
                )
            objects[pair] = np.array(sorted(targets), dtype=np.uint32)
            self.known.put(pair, objects[pair])
        return objects

    def lists(self, entities: Sequence[int]) -> dict[int, dict[str, list[str]]]:
        """Read the ids of objects by entity and relation."""
        lists: dict[int, dict[str, list[str]]] = {}
        sources = self.entities.documents(
            [str(entity) for entity in dict.fromkeys(entities)], ["row", "parts", "objects"]
        )
        further = [part for source in sources for part in self.entities.part_documents(source, ["row", "objects"])]
        for source in sources + further:
            for relation, targets in source.get("objects", ()):
                lists.setdefault(source["row"], {}).setdefault(relation, []).extend(targets)
        return lists
