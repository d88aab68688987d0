"""The contract of knowledge bases, wherever they live: the seam between pruning, ranking and storage."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import Levenshtein

from kbtools.errors import IncomingMissing, VectorsMissing
from kbtools.kb.language_tags import UND
from kbtools.kb.manifest import Manifest
from kbtools.kb.rows import EntityRows, Grouped, IncomingFacts
from kbtools.kb.spoken_names import SpokenName, part_among
from kbtools.text.ngrams import every_run
from kbtools.text.question import Question
from kbtools.text.rungs import Form

if TYPE_CHECKING:
    from kbtools.kb.vector_index import VectorIndex

HINTED = 1_000
"""Pairs whose objects are asked for together: as many as a cluster answers in one request."""

EDITS = 2
"""Letters inserted, left out or exchanged between a misspelling and the name, two of them swapped being two."""

ABSENT = -1
"""The row, in an array of rows, of an id that a knowledge base does not hold."""


MATCH_FORMS = tuple(Form)


def match_kind(form: Form, *, is_alias: bool) -> int:
    """Number the kinds of matches in four bits: by form, names before aliases."""
    return 2 * form + is_alias


class NameMatch(NamedTuple):
    """A name as it is spelt in the knowledge base, the form that it was found by, and the entities that bear it.

    Those that bear it as an alias, beside a name of their own, have a match of their own.
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
    """A normal form close to another; similarity is 0 to 100, higher is closer."""

    form: str
    similarity: float


class KnowledgeBase(Protocol):
    """Names, facts and types of entities; every array of rows may be empty."""

    @property
    def manifest(self) -> Manifest: ...

    @property
    def relations(self) -> Sequence[str]:
        """Give the ids of the relations, by row."""
        ...

    @property
    def relation_names(self) -> Sequence[str | None]:
        """Give the names of the relations, by row; nothing for one that has only its id."""
        ...

    @property
    def types(self) -> Sequence[str]:
        """Give the ids of the types, by row."""
        ...

    def entity_rows(self) -> EntityRows:
        """List the rows of all entities, ascending; what was deleted leaves its row unused."""
        ...

    def lookup(self, forms: Sequence[str]) -> Mapping[str, Sequence[NameMatch]]:
        """Find the names stored under each form; a form that nothing is stored under is left out."""
        ...

    def likely_runs(self, words: Sequence[str], lengths: frozenset[int]) -> list[tuple[int, int]]:
        """List the runs of words, by their first and last, that may be stored forms: all of some lengths, or fewer.

        The shorter come first, then those that begin earlier. Whatever is stored is among them; what a backend can tell
        sooner than by a look-up is not.
        """
        ...

    def similar(self, form: str, *, limit: int = 20, cutoff: float = 80.0) -> list[SimilarName]:
        """Find the normal forms closest to one, closest first; digits are never exchanged.

        Of equal similarity those whose bearer has more names come first, where a backend can tell, then by form. The
        form itself is left out, and so is all that is longer than `similarity.LONGEST_NAME`. Among many names, those
        within EDITS edits are listed alone where one of them is close, as `similarity.closest` tells.
        """
        ...

    def within_edits(self, forms: Sequence[str], *, limit: int = 20, cutoff: float = 80.0) -> list[list[SimilarName]]:
        """Find for each form the similar forms that are EDITS edits from it at most, closest first.

        Most misspellings are such, and an index of edits finds them for all forms at once.
        """
        ...

    def forms_with_prefix(self, prefix: str, *, limit: int) -> list[str]:
        """List the normal forms that begin with a text, the first in order; none where a backend cannot tell."""
        ...

    def name_frequency(self, words: Sequence[str]) -> list[int]:
        """Count, for each word, the distinct normal forms that hold it."""
        ...

    def relations_of(self, entities: EntityRows) -> Grouped:
        """List the relations that each entity is a subject of, once each, ascending."""
        ...

    def objects_of(self, entity: int, relation: int) -> EntityRows:
        """List the objects of a subject and a relation, ascending."""
        ...

    def types_of(self, entities: EntityRows) -> Grouped:
        """List the types of each entity, ascending."""
        ...

    def fact_counts(self, entities: EntityRows) -> NDArray[np.int64]:
        """Count the facts that each entity is the subject of."""
        ...

    def incoming_counts(self, entities: EntityRows) -> NDArray[np.int64] | None:
        """Count the facts that each entity is the object of; nothing where there is no index from objects to facts."""
        ...

    def subjects_of(self, entity: int) -> IncomingFacts:
        """List the facts that an entity is the object of; raise IncomingMissing where there is no index of them."""
        ...

    def incoming_relations_of(self, entities: EntityRows) -> Grouped:
        """List the relations that each entity is an object of, once each, ascending."""
        ...

    def name_counts(self, form: str, entities: EntityRows) -> NDArray[np.int64] | None:
        """Tell how often a normal form meant each entity, by the counts that came with the knowledge base.

        The empty form stands for every name. Nothing where there are no counts of the form.
        """
        ...

    def ids(self, entities: EntityRows) -> list[str]:
        """Give the ids of entities."""
        ...

    def names(self, entities: EntityRows) -> list[str | None]:
        """Give the name of each entity: its first name, else its first alias, else nothing."""
        ...

    def aliases(self, entity: int) -> list[str]:
        """List every name and alias of an entity, names first."""
        ...

    def descriptions(self, entities: EntityRows) -> list[str | None]:
        """Give what is said of each entity in a line; nothing where there is none."""
        ...

    def spoken_names(self, entities: EntityRows) -> list[list[SpokenName]]:
        """List every name and alias of each entity with its languages, in the order of `aliases`."""
        ...

    def parts_of(self, matches: Sequence[NameMatch], tags: frozenset[str]) -> list[NDArray[np.uint8]]:
        """Tell whether the entities of each match bear its name in the languages of some tags, and as what.

        A part for each entity: a name, an alias, or none.
        """
        ...

    def facts_between(self, first: int, last: int) -> NDArray[np.int64]:
        """List the facts of the entities from row `first` up to `last`, by subject, relation and object: (facts, 3)."""
        ...

    def expect(self, questions: Sequence[Question]) -> None:
        """Hint that these questions come next, so that a remote backend can fetch what they need in few requests."""
        ...

    def expect_similar(self, forms: Sequence[str], *, limit: int = 20, cutoff: float = 80.0) -> None:
        """Hint that `similar` is asked for these forms next."""
        ...

    def expect_objects(self, pairs: Sequence[tuple[int, int]]) -> None:
        """Hint that `objects_of` is asked for these subjects and relations next."""
        ...

    def expect_subjects(self, entities: Sequence[int]) -> None:
        """Hint that `subjects_of` is asked for these entities next."""
        ...

    def vectors(self) -> "VectorIndex":
        """Open the vectors of its entities (`kbtools index vectors`); raise VectorsMissing where there are none."""
        ...

    def rows(self, ids: Sequence[str]) -> list[int | None]:
        """Find the rows of canonical ids, also of such as were merged into another; nothing for an unknown one."""
        ...

    def close(self) -> None:
        """Let go of files and connections; nothing is asked afterwards."""
        ...


def relation_texts(kb: KnowledgeBase) -> list[str]:
    """Give what there is to read of each relation, by row: its name, else its id."""
    return [name or relation for name, relation in zip(kb.relation_names, kb.relations, strict=True)]


def find_rows(kb: KnowledgeBase, ids: Sequence[str]) -> NDArray[np.int64]:
    """Find the rows of ids as an array, ABSENT for an unknown one: (ids,)."""
    return np.array([ABSENT if row is None else row for row in kb.rows(ids)], dtype=np.int64)


def keep_within_edits(form: str, similar: Sequence[SimilarName]) -> list[SimilarName]:
    """Keep the forms that are EDITS edits from one at most."""
    return [name for name in similar if Levenshtein.distance(form, name.form, score_cutoff=EDITS) <= EDITS]


class BackendDefaults:
    """Methods that a backend need not write: hints do nothing, and facts are found pair by pair.

    Every row up to the last is an entity's. There are no names of relations, no languages of names, no descriptions, no
    vectors, and no index from objects to facts.
    """

    def entity_rows(self: KnowledgeBase) -> EntityRows:
        return np.arange(self.manifest.counts["entities"].unique, dtype=np.uint32)

    @property
    def relation_names(self: KnowledgeBase) -> Sequence[str | None]:
        return (None,) * len(self.relations)

    def likely_runs(self, words: Sequence[str], lengths: frozenset[int]) -> list[tuple[int, int]]:
        return every_run(words, lengths)

    def within_edits(
        self: KnowledgeBase, forms: Sequence[str], *, limit: int = 20, cutoff: float = 80.0
    ) -> list[list[SimilarName]]:
        self.expect_similar(forms, limit=limit, cutoff=cutoff)
        return [keep_within_edits(form, self.similar(form, limit=limit, cutoff=cutoff)) for form in forms]

    def forms_with_prefix(self, prefix: str, *, limit: int) -> list[str]:
        return []

    def spoken_names(self: KnowledgeBase, entities: EntityRows) -> list[list[SpokenName]]:
        return [[SpokenName(text, (UND,)) for text in self.aliases(entity)] for entity in entities.tolist()]

    def parts_of(self: KnowledgeBase, matches: Sequence[NameMatch], tags: frozenset[str]) -> list[NDArray[np.uint8]]:
        entities = np.unique(np.concatenate([np.empty(0, dtype=np.uint32), *(match.entities for match in matches)]))
        # Asked for together: a cluster answers for all of them in one request.
        names = dict(zip(entities.tolist(), self.spoken_names(entities), strict=True))
        return [
            np.array([part_among(names[entity], match.name, tags) for entity in match.entities.tolist()], np.uint8)
            for match in matches
        ]

    def expect(self, questions: Sequence[Question]) -> None:
        """Do nothing: all is at hand."""

    def expect_similar(self, forms: Sequence[str], *, limit: int = 20, cutoff: float = 80.0) -> None:
        """Do nothing: all is at hand."""

    def expect_objects(self, pairs: Sequence[tuple[int, int]]) -> None:
        """Do nothing: all is at hand."""

    def expect_subjects(self, entities: Sequence[int]) -> None:
        """Do nothing: all is at hand."""

    def descriptions(self, entities: EntityRows) -> list[str | None]:
        return [None] * len(entities)

    def close(self) -> None:
        """Do nothing: there is nothing to let go of."""

    def vectors(self) -> "VectorIndex":
        raise VectorsMissing("this backend keeps no entity vectors")

    def incoming_counts(self, entities: EntityRows) -> NDArray[np.int64] | None:
        return None

    def subjects_of(self, entity: int) -> IncomingFacts:
        raise IncomingMissing("this backend has no index from objects to facts; kbtools index makes one in its folder")

    def incoming_relations_of(self: KnowledgeBase, entities: EntityRows) -> Grouped:
        incoming = [self.subjects_of(entity).relations for entity in entities.tolist()]
        # They ascend, so that each differs from the one before where it first stands.
        groups = [run[np.flatnonzero(np.diff(run.astype(np.int64), prepend=-1))] for run in incoming]
        starts = np.cumsum([0, *map(len, groups)], dtype=np.int64)
        return Grouped(starts, np.concatenate([np.empty(0, dtype=np.uint32), *groups]).astype(np.uint32))

    def name_counts(self, form: str, entities: EntityRows) -> NDArray[np.int64] | None:
        return None

    def facts_between(self: KnowledgeBase, first: int, last: int) -> NDArray[np.int64]:
        rows = self.entity_rows()
        subjects = rows[slice(*np.searchsorted(rows, (first, last)))]
        grouped = self.relations_of(subjects)
        pairs = list(zip(np.repeat(subjects, np.diff(grouped.starts)).tolist(), grouped.values.tolist(), strict=True))
        facts: list[tuple[int, int, int]] = []
        for start in range(0, len(pairs), HINTED):
            # Announced before they are read one by one: a cluster answers them all in one request.
            together = pairs[start : start + HINTED]
            self.expect_objects(together)
            facts += [(s, r, o) for s, r in together for o in self.objects_of(s, r).tolist()]
        return np.array(facts, dtype=np.int64).reshape(-1, 3)
