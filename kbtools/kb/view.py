"""A view of a knowledge base: it answers as that does, but for what the kind of view answers otherwise."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from kbtools.kb.contract import KnowledgeBase, NameMatch, SimilarName
from kbtools.kb.manifest import Manifest
from kbtools.kb.rows import EntityRows, Grouped, IncomingFacts
from kbtools.kb.spoken_names import SpokenName
from kbtools.kb.vector_index import VectorIndex
from kbtools.text.question import Question


class View:
    """A view that changes nothing."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb = kb

    @property
    def manifest(self) -> Manifest:
        return self.kb.manifest

    @property
    def relations(self) -> Sequence[str]:
        return self.kb.relations

    @property
    def relation_names(self) -> Sequence[str | None]:
        return self.kb.relation_names

    @property
    def types(self) -> Sequence[str]:
        return self.kb.types

    def entity_rows(self) -> EntityRows:
        return self.kb.entity_rows()

    def lookup(self, forms: Sequence[str]) -> Mapping[str, Sequence[NameMatch]]:
        return self.kb.lookup(forms)

    def likely_runs(self, words: Sequence[str], lengths: frozenset[int]) -> list[tuple[int, int]]:
        return self.kb.likely_runs(words, lengths)

    def similar(self, form: str, *, limit: int = 20, cutoff: float = 80.0) -> list[SimilarName]:
        return self.kb.similar(form, limit=limit, cutoff=cutoff)

    def within_edits(self, forms: Sequence[str], *, limit: int = 20, cutoff: float = 80.0) -> list[list[SimilarName]]:
        return self.kb.within_edits(forms, limit=limit, cutoff=cutoff)

    def forms_with_prefix(self, prefix: str, *, limit: int) -> list[str]:
        return self.kb.forms_with_prefix(prefix, limit=limit)

    def name_frequency(self, words: Sequence[str]) -> list[int]:
        return self.kb.name_frequency(words)

    def relations_of(self, entities: EntityRows) -> Grouped:
        return self.kb.relations_of(entities)

    def objects_of(self, entity: int, relation: int) -> EntityRows:
        return self.kb.objects_of(entity, relation)

    def types_of(self, entities: EntityRows) -> Grouped:
        return self.kb.types_of(entities)

    def fact_counts(self, entities: EntityRows) -> NDArray[np.int64]:
        return self.kb.fact_counts(entities)

    def incoming_counts(self, entities: EntityRows) -> NDArray[np.int64] | None:
        return self.kb.incoming_counts(entities)

    def subjects_of(self, entity: int) -> IncomingFacts:
        return self.kb.subjects_of(entity)

    def incoming_relations_of(self, entities: EntityRows) -> Grouped:
        return self.kb.incoming_relations_of(entities)

    def name_counts(self, form: str, entities: EntityRows) -> NDArray[np.int64] | None:
        return self.kb.name_counts(form, entities)

    def ids(self, entities: EntityRows) -> list[str]:
        return self.kb.ids(entities)

    def names(self, entities: EntityRows) -> list[str | None]:
        return self.kb.names(entities)

    def aliases(self, entity: int) -> list[str]:
        return self.kb.aliases(entity)

    def descriptions(self, entities: EntityRows) -> list[str | None]:
        return self.kb.descriptions(entities)

    def spoken_names(self, entities: EntityRows) -> list[list[SpokenName]]:
        return self.kb.spoken_names(entities)

    def parts_of(self, matches: Sequence[NameMatch], tags: frozenset[str]) -> list[NDArray[np.uint8]]:
        return self.kb.parts_of(matches, tags)

    def facts_between(self, first: int, last: int) -> NDArray[np.int64]:
        return self.kb.facts_between(first, last)

    def expect(self, questions: Sequence[Question]) -> None:
        self.kb.expect(questions)

    def expect_similar(self, forms: Sequence[str], *, limit: int = 20, cutoff: float = 80.0) -> None:
        self.kb.expect_similar(forms, limit=limit, cutoff=cutoff)

    def expect_objects(self, pairs: Sequence[tuple[int, int]]) -> None:
        self.kb.expect_objects(pairs)

    def expect_subjects(self, entities: Sequence[int]) -> None:
        self.kb.expect_subjects(entities)

    def vectors(self) -> VectorIndex:
        return self.kb.vectors()

    def rows(self, ids: Sequence[str]) -> list[int | None]:
        return self.kb.rows(ids)

    def close(self) -> None:
        self.kb.close()
