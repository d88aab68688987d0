"""The types and relations of a knowledge base as others choose among them: by prefix, by frequency, by type."""

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
    """Types and relations with their names and how often a sample of the entities bears them."""

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
        """Return entities from the whole range of rows, ascending."""
        entities = self.kb.entity_rows()
        places = np.linspace(0, max(0, len(entities) - 1), min(len(entities), _SAMPLED)).astype(np.int64)
        return entities[np.unique(places)]

    @cached_property
    def borne_together(self) -> NDArray[np.int64]:
        """List (type, relation, entities of the sample that bear both), ascending: (pairs, 3)."""
        rows = self.sample
        types, relations = self.kb.types_of(rows), self.kb.relations_of(rows)
        # For each entity, for each of its types, for each of its relations: the pair.
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
        """Weigh each type by its pairs with relations: types that only topics without facts bear stand last."""
        return np.bincount(
            self.borne_together[:, 0], weights=self.borne_together[:, 2], minlength=len(self.kb.types)
        ).astype(np.int64)

    @cached_property
    def relation_counts(self) -> NDArray[np.int64]:
        return np.bincount(
            self.borne_together[:, 1], weights=self.borne_together[:, 2], minlength=len(self.kb.relations)
        ).astype(np.int64)

    def frequent_types(self, limit: int) -> list[str]:
        """List the most frequent types, those of equal frequency by id."""
        order = np.lexsort((np.arange(len(self.type_counts)), -self.type_counts))
        return [self.kb.types[row] for row in order[:limit]]

    def relations_of_type(self, type_id: str) -> list[str]:
        """List the relations that entities of a type bear, the frequent first, those of equal frequency by row."""
        type_row = self.type_rows.get(type_id)
        if type_row is None:
            return []
        pairs = self.borne_together[self.borne_together[:, 0] == type_row]
        return [self.kb.relations[row] for row in pairs[np.argsort(-pairs[:, 2], kind="stable"), 1]]

    def find_types(self, prefix: str) -> list[str]:
        """List the types whose id or a word of it begins with a text, the frequent first."""
        rows = _completions(prefix, self.kb.types, self.kb.types, self.type_counts)
        return [self.kb.types[row] for row in rows]

    def find_relations(self, prefix: str, view: KnowledgeBase | None = None) -> list[str]:
        """List the relations whose id or name in a view, or a word of it, begins with a text, the frequent first."""
        names = relation_texts(view or self.kb)
        return [self.kb.relations[row] for row in _completions(prefix, self.kb.relations, names, self.relation_counts)]


def _completions(prefix: str, ids: Sequence[str], names: Sequence[str], counts: NDArray[np.int64]) -> list[int]:
    """Find the rows that a text begins, first by id or name, then by an inner word; of each the frequent first."""
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
    """Divide an id or a name into lower-case words: `book.written_work` is `book written work`."""
    return normal_form(text.replace("_", " "))
