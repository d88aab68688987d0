"""The types and relations of a knowledge base to choose from: by prefix, by frequency, by type."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kbtools.kb.contract import KnowledgeBase, relation_texts
from kbtools.kb.rows import EntityRows
from kbtools.text.normaliser import normal_form

_SAMPLED = 20_000
"""Entities by which types and relations are counted: enough to order the frequent ones, read in a tenth of a second."""


class Vocabulary:
    """Types and relations with their names and their frequency in a sample of the entities."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb = kb

    @cached_property
    def relation_rows(self) -> dict[str, int]:
        return {relation: row for row, relation in enumerate(self.kb.relations)}

    @cached_property
    def type_rows(self) -> dict[str, int]:
        return {type_id: row for row, type_id in enumerate(self.kb.types)}

    @cached_property
    def sample(self) -> EntityRows:
        """Return entities spread over all rows, ascending."""
        entities = self.kb.entity_rows()
        places = np.linspace(0, max(0, len(entities) - 1), min(len(entities), _SAMPLED)).astype(np.int64)
        return entities[np.unique(places)]

    @cached_property
    def borne_together(self) -> NDArray[np.int64]:
        """Return (type, relation, number of sampled entities with both), ascending: (pairs, 3)."""
        rows = self.sample
        types, relations = self.kb.types_of(rows), self.kb.relations_of(rows)
        # A pair for each entity, each of its types and each of its relations.
        relation_counts = np.diff(relations.starts)
        entity_of_type = np.repeat(np.arange(len(rows)), np.diff(types.starts))
        pairs_of_type = relation_counts[entity_of_type]
        ends = np.cumsum(pairs_of_type)
        within = np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - pairs_of_type, pairs_of_type)
        relation_of_pair = relations.values[np.repeat(relations.starts[entity_of_type], pairs_of_type) + within]
        type_of_pair = np.repeat(types.values, pairs_of_type)
        pairs = np.stack([type_of_pair, relation_of_pair], axis=1).astype(np.int64)
        distinct, counts = np.unique(pairs, axis=0, return_counts=True)
        return np.column_stack([distinct, counts]).reshape(-1, 3)

    @cached_property
    def type_counts(self) -> NDArray[np.int64]:
        """Weigh each type by its pairs with relations: types only of entities without facts come last."""
        return np.bincount(
            self.borne_together[:, 0], weights=self.borne_together[:, 2], minlength=len(self.kb.types)
        ).astype(np.int64)

    @cached_property
    def relation_counts(self) -> NDArray[np.int64]:
        return np.bincount(
            self.borne_together[:, 1], weights=self.borne_together[:, 2], minlength=len(self.kb.relations)
        ).astype(np.int64)

    def frequent_types(self, limit: int) -> list[str]:
        """Return the most frequent types, ties by id."""
        order = np.lexsort((np.arange(len(self.type_counts)), -self.type_counts))
        return [self.kb.types[row] for row in order[:limit]]

    def relations_of_type(self, type_id: str) -> list[str]:
        """Return the relations of entities of a type, most frequent first, ties by row."""
        type_row = self.type_rows.get(type_id)
        if type_row is None:
            return []
        pairs = self.borne_together[self.borne_together[:, 0] == type_row]
        return [self.kb.relations[row] for row in pairs[np.argsort(-pairs[:, 2], kind="stable"), 1]]

    def find_types(self, prefix: str) -> list[str]:
        """Return the types whose id, or a word of it, begins with a text, most frequent first."""
        rows = _completions(prefix, self.kb.types, self.kb.types, self.type_counts)
        return [self.kb.types[row] for row in rows]

    def find_relations(self, prefix: str, view: KnowledgeBase | None = None) -> list[str]:
        """Return the relations whose id or name in a view, or a word of it, begins with a text, most frequent first."""
        names = relation_texts(view or self.kb)
        return [self.kb.relations[row] for row in _completions(prefix, self.kb.relations, names, self.relation_counts)]


def _completions(prefix: str, ids: Sequence[str], names: Sequence[str], counts: NDArray[np.int64]) -> list[int]:
    """Return the rows that match a prefix, first by id or name, then by an inner word; each most frequent first."""
    form = _words(prefix)
    ranked = []
    for row, (known_id, name) in enumerate(zip(ids, names, strict=True)):
        id_words, name_words = _words(known_id), _words(name)
        if known_id == prefix or id_words.startswith(form) or name_words.startswith(form):
            ranked.append((known_id != prefix, 0, -int(counts[row]), row))
        elif f" {form}" in id_words or f" {form}" in name_words:
            ranked.append((True, 1, -int(counts[row]), row))
    return [rank[-1] for rank in sorted(ranked)]


def _words(text: str) -> str:
    """Split an id or a name into lower-case words: `book.written_work` is `book written work`."""
    return normal_form(text.replace("_", " "))
