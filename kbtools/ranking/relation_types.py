"""The types of what stands on either side of a relation, told by the facts of some entities."""

from collections.abc import Sequence

import numpy as np

from kbtools.kb.contract import KnowledgeBase
from kbtools.kb.rows import EntityRows
from kbtools.kb.views import BothWays
from kbtools.text.answer_kinds import stems
from kbtools.text.relation_words import relation_parts

BLOCKS, BLOCK = 64, 64
"""Blocks of entities, and entities in each: 35 ms on FBSQ, where they have facts of two thirds of the relations."""


def subject_types(kb: BothWays) -> dict[int, set[str]]:
    """Give the stems of the types that at least half of a relation's subjects have.

    The subjects of an inverse relation are the objects of the one that it inverts.
    """
    entities = sample_entities(kb)
    relations, types = kb.relations_of(entities), kb.types_of(entities)
    subjects = np.bincount(relations.values, minlength=len(kb.relations))
    # For every entity, for every relation it has, for every type it has: one number that says relation and type.
    typed = [
        np.add.outer(
            relations.values[relations.starts[at] : relations.starts[at + 1]].astype(np.int64) * len(kb.types),
            types.values[types.starts[at] : types.starts[at + 1]].astype(np.int64),
        ).reshape(-1)
        for at in range(len(entities))
    ]
    pairs, counts = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *typed]), return_counts=True)
    usual = [divmod(pair, len(kb.types)) for pair in pairs[2 * counts >= subjects[pairs // len(kb.types)]].tolist()]
    words = type_words(kb, sorted({kind for _, kind in usual}))
    stems_of: dict[int, set[str]] = {}
    for relation, kind in usual:
        stems_of.setdefault(relation, set()).update(words[kind])
    return stems_of


def sample_entities(kb: KnowledgeBase) -> EntityRows:
    """Give the rows of some entities in blocks, which lie together on a disk, all of a small knowledge base."""
    entities = kb.entity_rows()
    starts = np.linspace(0, max(len(entities) - BLOCK, 0), BLOCKS).astype(np.int64)
    places = np.unique(np.add.outer(starts, np.arange(BLOCK)))
    rows: EntityRows = entities[places[places < len(entities)]]
    return rows


def type_words(kb: KnowledgeBase, types: Sequence[int]) -> dict[int, set[str]]:
    """Give the stems of the words of types: of the name where a type is an entity as well, else of its id."""
    ids = [kb.types[kind] for kind in types]
    rows = kb.rows(ids)
    names = iter(kb.names(np.array([row for row in rows if row is not None], dtype=np.uint32)))
    texts = [type_id if row is None else next(names) or type_id for type_id, row in zip(ids, rows, strict=True)]
    return {kind: stems((relation_parts(text) or [[]])[-1]) for kind, text in zip(types, texts, strict=True)}
