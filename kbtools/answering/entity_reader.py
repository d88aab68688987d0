"""Entities written out as records with their names, types and facts, and the look-up of names."""

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise

import numpy as np

from kbtools.answering.explaining import MATCHES
from kbtools.answering.limits import TOP, read_count, read_limit, require_text
from kbtools.answering.name_candidates import NameCandidates, link_name, link_similar_names, rank_by_name, whole
from kbtools.answering.records import Entity, EntityMatch, Fact, Facts, LookupResult
from kbtools.answering.result_writing import write_answers
from kbtools.answering.results import Answer, Candidate, Named
from kbtools.errors import UnknownEntity, UnknownType
from kbtools.kb.contract import KnowledgeBase
from kbtools.kb.ids import canonical_id, canonical_property, is_literal, literal_text, other_spellings
from kbtools.kb.language_tags import UND
from kbtools.kb.rows import EntityRows
from kbtools.linking.strict import link_inverted
from kbtools.text.normaliser import normal_form
from kbtools.text.rungs import Rung

_ANY_TOPIC = "m.01"
"""A Freebase topic, beside which `/book/book` is read as Freebase's `book.book`."""


class EntityReader:
    """A reader of the entities of a knowledge base, by id or by name, with a cache of type names."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb = kb
        self.type_labels: dict[int, Named] = {}

    @cached_property
    def type_rows(self) -> dict[str, int]:
        return {type_id: row for row, type_id in enumerate(self.kb.types)}

    def row_of(self, entity_id: str) -> int:
        """Return the row of an id in any spelling; raise UnknownEntity if there is none."""
        require_text(entity_id, "id")
        rows = self.kb.rows([canonical_id(entity_id), *other_spellings(entity_id)])
        row = next((row for row in rows if row is not None), None)
        if row is None:
            raise UnknownEntity(f"no entity has the id {entity_id!r}; kbtools lookup finds ids by names", id=entity_id)
        return row

    def type_row(self, type_id: str) -> int:
        """Return the row of a type; raise UnknownType if no entity has it."""
        require_text(type_id, "type")
        freebase = canonical_property(type_id, beside=_ANY_TOPIC)
        for spelling in (canonical_id(type_id), freebase, *other_spellings(type_id)):
            if spelling in self.type_rows:
                return self.type_rows[spelling]
        raise UnknownType(f"no entity has the type {type_id!r}; kbtools show prints the types of one", type=type_id)

    def labels(self, entities: EntityRows) -> list[Named]:
        """Return ids and names; the text of a literal is its name."""
        return [
            Named(entity_id, literal_text(entity_id) if name is None and is_literal(entity_id) else name)
            for entity_id, name in zip(self.kb.ids(entities), self.kb.names(entities), strict=True)
        ]

    def types_of(self, entities: EntityRows) -> list[tuple[Named, ...]]:
        """Return the types of each entity, with a name if the type is also an entity."""
        grouped = self.kb.types_of(entities)
        types = grouped.values.tolist()
        new = sorted(set(types) - self.type_labels.keys())
        self.type_labels.update(zip(new, self.named_types([self.kb.types[kind] for kind in new]), strict=True))
        labels = [self.type_labels[kind] for kind in types]
        return [tuple(labels[first:last]) for first, last in pairwise(grouped.starts.tolist())]

    def named_types(self, ids: Sequence[str]) -> list[Named]:
        """Return types with a name for each that is also an entity."""
        rows = self.kb.rows(ids)
        names = iter(self.kb.names(np.array([row for row in rows if row is not None], dtype=np.uint32)))
        return [Named(id, None if row is None else next(names)) for id, row in zip(ids, rows, strict=True)]

    def entity(self, entity_id: str) -> Entity:
        """Return the record of an entity; raise UnknownEntity if there is none."""
        row = self.row_of(entity_id)
        rows = np.array([row], dtype=np.uint32)
        (label,), (types,) = self.labels(rows), self.types_of(rows)
        (entity_names,) = self.kb.names_of(rows)
        names = [name.text for name in entity_names]
        incoming = self.kb.incoming_counts(rows)
        return Entity(
            id=label.id,
            name=label.name,
            names=tuple(names[:1]),
            aliases=tuple(names[1:]),
            types=types,
            facts_out=int(self.kb.fact_counts(rows)[0]),
            facts_in=None if incoming is None else int(incoming[0]),
            prior=self.prior(row, names),
            description=self.kb.descriptions(rows)[0],
            languages={name.text: tuple(tag for tag in name.languages if tag != UND) for name in entity_names}
            if self.kb.manifest.languages
            else {},
        )

    def prior(self, row: int, names: Sequence[str]) -> float | None:
        """Return p(entity | its name) as in a look-up of the name, None without a name."""
        bearers = rank_by_name(self.kb, link_name(self.kb, names[0])) if names else None
        if bearers is None or row not in bearers.entities:
            return None
        return round(float(bearers.prior.values[bearers.entities == row][0]), 6)

    def relations_of(self, entity_id: str) -> set[int]:
        """Return the relations with an entity as subject."""
        return set(self.kb.relations_of(np.array([self.row_of(entity_id)], dtype=np.uint32)).values.tolist())

    def answers(self, candidate: Candidate, *, limit: int | None) -> tuple[tuple[Answer, ...], int]:
        """Return the first objects of a candidate that is not inverse, and their total."""
        pair = self.row_of(candidate.subject), self.kb.relations.index(candidate.relation)
        return write_answers(self.kb, self.kb.objects_of([pair])[0], limit=limit)

    def facts(self, entity_id: str, *, reverse: bool, limit: int | None, offset: int) -> Facts:
        """Return facts of an entity in row order; raise UnknownEntity if there is none."""
        row = self.row_of(entity_id)
        limit = read_limit(limit, "limit")
        offset = read_count(offset, "offset", zero="the first")
        rows = np.array([row], dtype=np.uint32)
        (here,) = self.labels(rows)
        if reverse:
            (incoming,) = self.kb.subjects_of(rows)
            relations, others = incoming.relations, incoming.subjects
        else:
            _, relations, others = self.kb.facts_of(rows).T
        shown = slice(offset, None if limit is None else offset + limit)
        relation_ids, names, facts = self.kb.relations, self.kb.relation_names, []
        for relation, there in zip(
            relations[shown].tolist(), self.labels(others[shown].astype(np.uint32)), strict=True
        ):
            subject, target = (there, here) if reverse else (here, there)
            facts.append(Fact(subject, Named(relation_ids[relation], names[relation]), target))
        return Facts(here.id, reverse, len(relations), offset, tuple(facts))

    def lookup(self, name: str, *, type: str | None = None, limit: int | None = TOP) -> LookupResult:
        """Return the bearers of a name, strict or else fuzzy; raise UnknownType if no entity has the type."""
        require_text(name, "name")
        limit = read_limit(limit, "limit")
        of_type = None if type is None else self.type_row(type)
        bearers = rank_by_name(self.kb, link_name(self.kb, name), of_type=of_type)
        if not len(bearers.entities):
            (inverted,) = link_inverted(self.kb, [[whole(name, normal_form(name))]])
            bearers = rank_by_name(self.kb, inverted, of_type=of_type)
        if not len(bearers.entities):
            bearers = rank_by_name(self.kb, link_similar_names(self.kb, name), of_type=of_type)
        return LookupResult(name, type, self.matches(name, bearers, limit=limit))

    def matches(self, words: str, bearers: NameCandidates, *, limit: int | None) -> tuple[EntityMatch, ...]:
        """Return the first bearers of some words as records."""
        entities = bearers.entities[:limit]
        labels, types = self.labels(entities), self.types_of(entities)
        described = self.kb.descriptions(entities)
        scored = zip(labels, types, described, bearers.links[:limit], bearers.scores(limit), strict=True)
        matches = []
        for place, (label, kinds, description, link, score) in enumerate(scored):
            reasons = [f"{words!r} {MATCHES[link.rung.label].format(name=link.name)}"]
            if link.rung is Rung.FUZZY:
                reasons.append(f"similarity {link.similarity:.1f} of 100")
            matches.append(
                EntityMatch(
                    id=label.id,
                    name=label.name,
                    matched_name=link.name,
                    rung=link.rung.label,
                    similarity=round(link.similarity, 4),
                    prior=round(float(bearers.prior.values[place]), 6),
                    score=round(score, 4),
                    types=kinds,
                    reasons=(*reasons, bearers.prior.reason(place)),
                    description=description,
                )
            )
        return tuple(matches)
