"""A knowledge base whose facts are read both ways: every relation has an inverse, from its objects to its subjects.

Whatever works on a knowledge base works on this view of one: an inverse relation is a relation of its own, behind
those that are stored, and its objects are the subjects of the relation that it inverts.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kbtools.errors import IncomingMissing
from kbtools.kb.contract import KnowledgeBase
from kbtools.kb.manifest import Manifest
from kbtools.kb.rows import EntityRows, Grouped
from kbtools.kb.view import View

MARK = "^"
"""Before the id of a relation, its inverse, as in a path of SPARQL."""


class BothWays(View):
    """A view of a knowledge base with the inverse of relation r as relation r + n, where n are stored.

    Raises IncomingMissing where the knowledge base has no index from objects to facts.
    """

    def __init__(self, kb: KnowledgeBase) -> None:
        super().__init__(kb)
        self.stored = len(kb.relations)
        if not has_incoming(kb):
            raise IncomingMissing(
                "facts are not read backwards here: this backend has no index from objects to facts; "
                "kbtools index makes one in its folder"
            )

    @cached_property
    def manifest(self) -> Manifest:
        """Give the manifest under a digest of its own, so that no result is taken for one of the stored facts alone."""
        digest = hashlib.sha256(f"both ways {self.kb.manifest.digest}".encode()).hexdigest()
        return replace(self.kb.manifest, digest=digest)

    @cached_property
    def relations(self) -> Sequence[str]:
        return (*self.kb.relations, *(MARK + relation for relation in self.kb.relations))

    @cached_property
    def relation_names(self) -> Sequence[str | None]:
        return tuple(self.kb.relation_names) * 2

    def relations_of(self, entities: EntityRows) -> Grouped:
        """List the relations of each entity, then the inverses of those that it is an object of."""
        both = (self.kb.relations_of(entities), self.kb.incoming_relations_of(entities))
        groups = []
        for place in range(len(entities)):
            stored, incoming = (grouped.values[slice(*grouped.starts[place : place + 2])] for grouped in both)
            groups += [stored, incoming + np.uint32(self.stored)]
        sizes = [len(group) for group in groups]
        starts = np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)[1::2]))
        return Grouped(starts, np.concatenate([np.empty(0, dtype=np.uint32), *groups]).astype(np.uint32))

    def objects_of(self, entity: int, relation: int) -> EntityRows:
        """List the objects of a relation, or under its inverse the subjects that have the entity as an object."""
        if relation < self.stored:
            return self.kb.objects_of(entity, relation)
        facts = self.kb.subjects_of(entity)
        # Of the type of the column, which would be copied whole otherwise.
        first, last = np.searchsorted(
            facts.relations, np.arange(2, dtype=np.uint32) + np.uint32(relation - self.stored)
        )
        return facts.subjects[first:last]

    def fact_counts(self, entities: EntityRows) -> NDArray[np.int64]:
        """Count the facts that each entity is the subject or the object of."""
        incoming = self.kb.incoming_counts(entities)
        assert incoming is not None  # as seen at the beginning
        return self.kb.fact_counts(entities) + incoming

    def expect_objects(self, pairs: Sequence[tuple[int, int]]) -> None:
        self.kb.expect_objects([pair for pair in pairs if pair[1] < self.stored])
        self.kb.expect_subjects(list(dict.fromkeys(entity for entity, relation in pairs if relation >= self.stored)))


def has_incoming(kb: KnowledgeBase) -> bool:
    """Tell whether a knowledge base has an index from objects to facts."""
    return kb.incoming_counts(np.empty(0, dtype=np.uint32)) is not None


def read_direction(kb: KnowledgeBase, relation: int) -> tuple[int, bool]:
    """Give the stored relation that a row stands for, and whether it is read backwards."""
    if isinstance(kb, BothWays) and relation >= kb.stored:
        return relation - kb.stored, True
    return relation, False
