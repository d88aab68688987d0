"""The contract of knowledge bases, wherever they live: the seam between pruning, ranking and storage."""

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
"""Letters inserted, left out or exchanged between a misspelling and the name, two of them swapped being two."""

ABSENT = -1
"""The row, in an array of rows, of an id that a knowledge base does not hold."""


MATCH_FORMS = tuple(Form)


def match_kind(form: Form, *, is_alias: bool) -> int:
    """Return the number of a kind of match in four bits: by form, names before aliases."""
    return 2 * form + is_alias


class NameMatch(NamedTuple):
    """A name as it is spelt in the knowledge base, the form that it was found by, and the entities that have it.

    Entities that have it as an alias, beside a name of their own, are in a match of their own.
    """

    name: str
    form: Form
    entities: EntityRows
    is_alias: bool = False

    @classmethod
    def of_kind(cls, kind: int, name: str, entities: EntityRows) -> "NameMatch":
        """Make a match of a kind, as `match_kind` numbers them."""
        return cls(name, MATCH_FORMS[kind >> 1], entities, is_alias=bool(kind & 1))


@dataclass(frozen=True, slots=True)
class SimilarName:
    """A normal form close to another; similarity is 0 to 100, higher is closer.

    It is rapidfuzz's ratio, raised where a name that is less likely to be meant has a higher one.
    """

    form: str
    similarity: float


@dataclass(frozen=True, slots=True)
class NearEntity:
    """An entity near another, and the cosine: at most 1, higher is nearer."""

    entity_row: int
    cosine: float


class KnowledgeBase(Protocol):
    """Names, facts and types of entities; every method takes many at once, and every array of rows may be empty.

    A backend writes the members down to `names_of`; `BackendDefaults` has the others.
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
        """Return the names stored under each form; forms without any are left out."""
        ...

    def similar(
        self, forms: Sequence[str], *, limit: int = 20, cutoff: float = 80.0, edits_only: bool = False
    ) -> list[list[SimilarName]]:
        """Return for each form the normal forms that it may be a misspelling of, the likeliest first.

        They are those as similar as the cutoff and those at most EDITS edits away; digits are never exchanged. The form
        itself is left out, and so is every name longer than `similarity.LONGEST_NAME`. With `edits_only`, only forms at
        most EDITS edits away are listed, which an index of edits finds faster. Among many names that is also the
        default where one of them is close, as `similarity.closest` decides.
        """
        ...

    def name_frequency(self, words: Sequence[str]) -> list[int]:
        """Count, for each word, the distinct normal forms that contain it."""
        ...

    def relations_of(self, entities: EntityRows) -> Grouped:
        """Return the relations that each entity is a subject of, once each, ascending."""
        ...

    def types_of(self, entities: EntityRows) -> Grouped:
        """Return the types of each entity, ascending."""
        ...

    def objects_of(self, pairs: Sequence[tuple[int, int]]) -> list[EntityRows]:
        """Return the objects of each pair of a subject and a relation, ascending."""
        ...

    def fact_counts(self, entities: EntityRows) -> NDArray[np.int64]:
        """Count the facts that each entity is the subject of."""
        ...

    def names_of(self, entities: EntityRows) -> list[list[SpokenName]]:
        """Return every name and alias of each entity with its languages, names first."""
        ...

    @property
    def relation_names(self) -> Sequence[str | None]:
        """Return the names of the relations, by row; None if there is only an id. `SpokenText` has the languages."""
        ...

    def entity_rows(self) -> EntityRows:
        """Return the rows of all entities, ascending; deleted entities leave their rows unused."""
        ...

    def names(self, entities: EntityRows) -> list[str | None]:
        """Return the name of each entity: its first name, else its first alias, else None."""
        ...

    def descriptions(self, entities: EntityRows) -> list[str | None]:
        """Return the one-line description of each entity, None for an entity without one."""
        ...

    def facts_of(self, entities: EntityRows) -> NDArray[np.int64]:
        """Return the facts of entities in their order, then by relation and object: (facts, 3), as rows."""
        ...

    def incoming_counts(self, entities: EntityRows) -> NDArray[np.int64] | None:
        """Count the facts that each entity is the object of; None without an index from objects to facts."""
        ...

    def incoming_relations_of(self, entities: EntityRows) -> Grouped:
        """Return the relations that each entity is an object of, once each, ascending."""
        ...

    def subjects_of(self, entities: EntityRows) -> list[IncomingFacts]:
        """Return the facts that each entity is the object of; raise IncomingMissing without an index of them."""
        ...

    def name_counts(self, form: str, entities: EntityRows) -> NDArray[np.int64] | None:
        """Return how often a normal form meant each entity, by the counts that came with the knowledge base.

        The empty form stands for every name. None without counts of the form.
        """
        ...

    def likely_runs(self, words: Sequence[str], lengths: frozenset[int]) -> list[tuple[int, int]]:
        """Return the runs of words of some lengths, as (first, last), that may be stored forms.

        The shorter come first, then those that begin earlier. No stored form is missing; runs that a backend can
        exclude faster than by a look-up are.
        """
        ...

    def forms_with_prefix(self, prefix: str, *, limit: int) -> list[str]:
        """Return the first normal forms that begin with a prefix, in order; none if a backend cannot list them."""
        ...

    def parts_of(self, matches: Sequence[NameMatch], tags: frozenset[str]) -> list[NDArray[np.uint8]]:
        """Return, for each entity of each match, whether its name is a NAME, an ALIAS or NO_NAME in some languages."""
        ...

    def vectors(self) -> "VectorIndex":
        """Open the vectors of its entities (`kbtools index vectors`); raise VectorsMissing if there are none."""
        ...

    def close(self) -> None:
        """Release files and connections; the knowledge base is not used afterwards."""
        ...


def relation_texts(kb: KnowledgeBase) -> list[str]:
    """Return the text of each relation, by row: its name, else its id."""
    return [name or relation for name, relation in zip(kb.relation_names, kb.relations, strict=True)]


def find_rows(kb: KnowledgeBase, ids: Sequence[str]) -> NDArray[np.int64]:
    """Return the rows of ids as an array, ABSENT for an unknown one: (ids,)."""
    return np.array([ABSENT if row is None else row for row in kb.rows(ids)], dtype=np.int64)


def indexed_nearest(kb: KnowledgeBase, entity_row: int, *, top: int) -> list[NearEntity]:
    """List the entities nearest to one, itself left out, by falling cosine.

    Raises VectorsMissing where the knowledge base or the entity has none.
    """
    index = kb.vectors()
    vector = index.vector(entity_row)
    if vector is None:
        raise VectorsMissing(f"entity {kb.ids(np.array([entity_row], dtype=np.uint32))[0]!r} has no vector")
    neighbours = index.nearest(vector[None], limit=top + 1)
    pairs = zip(neighbours.rows[0].tolist(), neighbours.cosines[0].tolist(), strict=True)
    return [NearEntity(row, cosine) for row, cosine in pairs if row != entity_row][:top]


class BackendDefaults:
    """The members that a backend need not write.

    Every row up to the last is an entity's. There are no names of relations, no descriptions, no vectors, no prefixes,
    and no index from objects to facts.
    """

    @property
    def relation_names(self: KnowledgeBase) -> Sequence[str | None]:
        return (None,) * len(self.relations)

    def entity_rows(self: KnowledgeBase) -> EntityRows:
        return np.arange(self.manifest.counts["entities"].unique, dtype=np.uint32)

    def names(self: KnowledgeBase, entities: EntityRows) -> list[str | None]:
        return [names[0].text if names else None for names in self.names_of(entities)]

    def descriptions(self, entities: EntityRows) -> list[str | None]:
        return [None] * len(entities)

    def facts_of(self: KnowledgeBase, entities: EntityRows) -> NDArray[np.int64]:
        grouped = self.relations_of(entities)
        subjects = np.repeat(entities, np.diff(grouped.starts)).tolist()
        pairs = list(zip(subjects, grouped.values.tolist(), strict=True))
        facts = [(s, r, o) for (s, r), objects in zip(pairs, self.objects_of(pairs), strict=True) for o in objects]
        return np.array(facts, dtype=np.int64).reshape(-1, 3)

    def incoming_counts(self, entities: EntityRows) -> NDArray[np.int64] | None:
        return None

    def incoming_relations_of(self: KnowledgeBase, entities: EntityRows) -> Grouped:
        incoming = [facts.relations for facts in self.subjects_of(entities)]
        sizes = np.array([len(relations) for relations in incoming], dtype=np.int64)
        owners = np.repeat(np.arange(len(entities)), sizes)
        values = np.concatenate([np.empty(0, dtype=np.uint32), *incoming]).astype(np.uint32)
        # The relations of an entity ascend, so that each first stands where it differs from the one before.
        first = np.ones(len(values), dtype=np.bool_)
        first[1:] = (values[1:] != values[:-1]) | (owners[1:] != owners[:-1])
        counts = np.bincount(owners[first], minlength=len(entities))
        return Grouped(np.concatenate(([0], np.cumsum(counts, dtype=np.int64))), values[first])

    def subjects_of(self, entities: EntityRows) -> list[IncomingFacts]:
        raise IncomingMissing("this backend has no index from objects to facts; kbtools index creates one in a folder")

    def name_counts(self, form: str, entities: EntityRows) -> NDArray[np.int64] | None:
        return None

    def likely_runs(self, words: Sequence[str], lengths: frozenset[int]) -> list[tuple[int, int]]:
        return every_run(words, lengths)

    def forms_with_prefix(self, prefix: str, *, limit: int) -> list[str]:
        return []

    def parts_of(self: KnowledgeBase, matches: Sequence[NameMatch], tags: frozenset[str]) -> list[NDArray[np.uint8]]:
        entities = np.unique(np.concatenate([np.empty(0, dtype=np.uint32), *(match.entities for match in matches)]))
        names = dict(zip(entities.tolist(), self.names_of(entities), strict=True))
        return [
            np.array([part_among(names[row], match.name, tags) for row in match.entities.tolist()], np.uint8)
            for match in matches
        ]

    def vectors(self) -> "VectorIndex":
        raise VectorsMissing("this backend stores no entity vectors")

    def close(self) -> None:
        """Do nothing: there is nothing to release."""
