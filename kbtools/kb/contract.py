"""The contract of every knowledge base, between pruning and ranking on one side and storage on the other."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from kbtools.errors import IncomingMissing, VectorsMissing
from kbtools.kb.language_tags import SpokenName, part_among
from kbtools.kb.manifest import Manifest
from kbtools.kb.rows import EntityRows, Grouped, IncomingFacts
from kbtools.text.ngrams import every_run
from kbtools.text.rungs import Form

if TYPE_CHECKING:
    from kbtools.kb.vector_index import VectorIndex

EDITS = 2
"""The most letters inserted, removed or exchanged in a misspelling; swapping two letters counts as two."""

ABSENT = -1
"""The row, in an array of rows, of an unknown id."""

MATCH_FORMS = tuple(Form)


def match_kind(form: Form, *, is_alias: bool) -> int:
    """Return the number of a kind of match in four bits: by form, names before aliases."""
    return 2 * form + is_alias


class NameMatch(NamedTuple):
    """A name as the knowledge base spells it, the form it was found by, and the entities with that name.

    Entities that have it as an alias, and another name, are in a separate match.
    """

    name: str
    form: Form
    entities: EntityRows
    is_alias: bool = False

    @classmethod
    def of_kind(cls, kind: int, name: str, entities: EntityRows) -> "NameMatch":
        """Return a match of a kind, as numbered by `match_kind`."""
        return cls(name, MATCH_FORMS[kind >> 1], entities, is_alias=bool(kind & 1))


@dataclass(frozen=True, slots=True)
class SimilarName:
    """A normal form close to another; similarity is 0 to 100, higher is closer.

    It is rapidfuzz's ratio, raised if a less likely name has a higher one.
    """

    form: str
    similarity: float


@dataclass(frozen=True, slots=True)
class NearEntity:
    """An entity near another one, and their cosine: at most 1, higher is nearer."""

    entity_row: int
    cosine: float


class BackendDefaults(Protocol):
    """Members of a knowledge base that a backend inherits.

    By default all rows up to the last are entities, and there are no names of relations, no descriptions, no vectors,
    no prefixes and no index from objects to facts.
    """

    @property
    def relation_names(self: "KnowledgeBase") -> Sequence[str | None]:
        """Return the names of the relations, by row, None for one without; `SpokenText` has several languages."""
        return (None,) * len(self.relations)

    def entity_rows(self: "KnowledgeBase") -> EntityRows:
        """Return the rows of all entities, ascending; rows of deleted entities are unused."""
        return np.arange(self.manifest.counts["entities"].unique, dtype=np.uint32)

    def names(self: "KnowledgeBase", entities: EntityRows) -> list[str | None]:
        """Return the name of each entity: its first name, else its first alias, else None."""
        return [names[0].text if names else None for names in self.names_of(entities)]

    def descriptions(self, entities: EntityRows) -> list[str | None]:
        """Return the one-line description of each entity, None for an entity without one."""
        return [None] * len(entities)

    def facts_of(self: "KnowledgeBase", entities: EntityRows) -> NDArray[np.int64]:
        """Return the facts of entities in the order given, then by relation and object: (facts, 3), as rows."""
        grouped = self.relations_of(entities)
        subjects = np.repeat(entities, np.diff(grouped.starts)).tolist()
        pairs = list(zip(subjects, grouped.values.tolist(), strict=True))
        facts = [(s, r, o) for (s, r), objects in zip(pairs, self.objects_of(pairs), strict=True) for o in objects]
        return np.array(facts, dtype=np.int64).reshape(-1, 3)

    def incoming_counts(self, entities: EntityRows) -> NDArray[np.int64] | None:
        """Return the number of facts with each entity as object, None without an index of them."""
        return None

    def incoming_relations_of(self: "KnowledgeBase", entities: EntityRows) -> Grouped:
        """Return the distinct relations with each entity as object, ascending."""
        incoming = [facts.relations for facts in self.subjects_of(entities)]
        sizes = np.array([len(relations) for relations in incoming], dtype=np.int64)
        owners = np.repeat(np.arange(len(entities)), sizes)
        values = np.concatenate([np.empty(0, dtype=np.uint32), *incoming]).astype(np.uint32)
        # The relations of an entity ascend, so a distinct one differs from the one before.
        first = np.ones(len(values), dtype=np.bool_)
        first[1:] = (values[1:] != values[:-1]) | (owners[1:] != owners[:-1])
        counts = np.bincount(owners[first], minlength=len(entities))
        return Grouped(np.concatenate(([0], np.cumsum(counts, dtype=np.int64))), values[first])

    def subjects_of(self, entities: EntityRows) -> list[IncomingFacts]:
        """Return the facts with each entity as object; raise IncomingMissing without an index of them."""
        raise IncomingMissing("this backend has no index from objects to facts; kbtools index creates one in a folder")

    def name_counts(self, form: str, entities: EntityRows) -> NDArray[np.int64] | None:
        """Return how often a normal form meant each entity, from the counts in the knowledge base.

        The empty form means any name. None if there are no counts of the form.
        """
        return None

    def likely_runs(self, words: Sequence[str], lengths: frozenset[int]) -> list[tuple[int, int]]:
        """Return the runs of words of some lengths, as (first, last), that may be stored forms.

        They are sorted by length, then by place. Every stored form is included; a backend may exclude others if that is
        faster than a look-up.
        """
        return every_run(words, lengths)

    def forms_with_prefix(self, prefix: str, *, limit: int) -> list[str]:
        """Return the first normal forms with a prefix, in order, empty if a backend cannot list them."""
        return []

    def parts_of(self: "KnowledgeBase", matches: Sequence[NameMatch], tags: frozenset[str]) -> list[NDArray[np.uint8]]:
        """Return, for each entity of each match, whether its name is a NAME, an ALIAS or NO_NAME in some languages."""
        entities = np.unique(np.concatenate([np.empty(0, dtype=np.uint32), *(match.entities for match in matches)]))
        names = dict(zip(entities.tolist(), self.names_of(entities), strict=True))
        return [
            np.array([part_among(names[row], match.name, tags) for row in match.entities.tolist()], np.uint8)
            for match in matches
        ]

    def vectors(self) -> "VectorIndex":
        """Return the vectors of its entities (`kbtools index vectors`); raise VectorsMissing if there are none."""
        raise VectorsMissing("this backend stores no entity vectors")

    def close(self) -> None:
        """Release files and connections, by default none; the knowledge base cannot be used afterwards."""
        return


class KnowledgeBase(BackendDefaults, Protocol):
    """Names, facts and types of entities; every method takes many at once, and arrays of rows may be empty.

    A backend inherits `BackendDefaults`, and implements the members that are declared here.
    """

    @property
    def manifest(self) -> Manifest: ...

    @property
    def relations(self) -> Sequence[str]:
        """Return the ids of the relations, by row."""
        ...

    @property
    def types(self) -> Sequence[str]:
        """Return the ids of the types, by row."""
        ...

    def rows(self, ids: Sequence[str]) -> list[int | None]:
        """Return the rows of canonical ids, None for an unknown one; a merged id has the row of its survivor."""
        ...

    def ids(self, entities: EntityRows) -> list[str]:
        """Return the ids of entities."""
        ...

    def lookup(self, forms: Sequence[str]) -> Mapping[str, Sequence[NameMatch]]:
        """Return the names stored under each form, without forms that have none."""
        ...

    def similar(
        self, forms: Sequence[str], *, limit: int = 20, cutoff: float = 80.0, edits_only: bool = False
    ) -> list[list[SimilarName]]:
        """Return, for each form, the normal forms that it may be a misspelling of, the likeliest first.

        They are at least as similar as the cutoff, or at most EDITS edits away; digits must be equal. The form itself
        and names longer than `similarity.LONGEST_NAME` are left out. With `edits_only`, only forms within EDITS edits
        are returned, which an index of edits finds faster; among very many names this is also the default if one is
        close, see `similarity.edits_suffice`.
        """
        ...

    def name_frequency(self, words: Sequence[str]) -> list[int]:
        """Return, for each word, the number of distinct normal forms that contain it."""
        ...

    def relations_of(self, entities: EntityRows) -> Grouped:
        """Return the distinct relations with each entity as subject, ascending."""
        ...

    def types_of(self, entities: EntityRows) -> Grouped:
        """Return the types of each entity, ascending."""
        ...

    def objects_of(self, pairs: Sequence[tuple[int, int]]) -> list[EntityRows]:
        """Return the objects of each pair of a subject and a relation, ascending."""
        ...

    def fact_counts(self, entities: EntityRows) -> NDArray[np.int64]:
        """Return the number of facts with each entity as subject."""
        ...

    def names_of(self, entities: EntityRows) -> list[list[SpokenName]]:
        """Return every name and alias of each entity with its languages, names first."""
        ...


def relation_texts(kb: KnowledgeBase) -> list[str]:
    """Return the text of each relation, by row: its name, or else its id."""
    return [name or relation for name, relation in zip(kb.relation_names, kb.relations, strict=True)]


def find_rows(kb: KnowledgeBase, ids: Sequence[str]) -> NDArray[np.int64]:
    """Return the rows of ids as an array, ABSENT for an unknown one: (ids,)."""
    return np.array([ABSENT if row is None else row for row in kb.rows(ids)], dtype=np.int64)


def indexed_nearest(kb: KnowledgeBase, entity_row: int, *, top: int) -> list[NearEntity]:
    """Return the entities nearest to a given one, without itself, by falling cosine.

    Raises VectorsMissing if the knowledge base or the entity has no vectors.
    """
    index = kb.vectors()
    vector = index.vector(entity_row)
    if vector is None:
        raise VectorsMissing(f"entity {kb.ids(np.array([entity_row], dtype=np.uint32))[0]!r} has no vector")
    neighbours = index.nearest(vector[None], limit=top + 1)
    pairs = zip(neighbours.rows[0].tolist(), neighbours.cosines[0].tolist(), strict=True)
    return [NearEntity(row, cosine) for row, cosine in pairs if row != entity_row][:top]
