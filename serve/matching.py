"""Reconciliation: from a name, types and values of properties to ranked candidates, a match where one is certain."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rapidfuzz import fuzz

from kbtools.answering import Answerer
from kbtools.errors import IncomingMissing, UnknownType
from kbtools.kb.ids import canonical_id, is_literal, literal_text
from kbtools.records import EntityMatch, Named
from kbtools.serve.live_kb import Edition
from kbtools.serve.reconciliation_queries import PropertyValue, ReconciliationQuery
from kbtools.text.normaliser import normal_form

RERANKED = 25
"""Candidates that types and properties re-rank, where the query gives any: namesakes beyond these are lost."""

PROPERTY_WEIGHT = 0.4
"""The weight of a property beside the name's 1: that of Wikidata's reconciliation service."""

OTHER_TYPE = 0.7
"""What a candidate without the type keeps of its score under `should`: below a like name with the type."""

AGREED = 0.95
"""Agreement from which a value is the same: one letter in twenty may differ."""

OBJECTS, SUBJECTS = 1_000, 200
"""Objects of a candidate that a value is compared with, and subjects that are found by a value alone."""

CERTAIN_RUNGS = frozenset({"exact", "case", "accents", "punctuation", "apostrophe", "id"})
"""Rungs on which a name is the same name: neither a variant of it nor one that resembles it."""


@dataclass(frozen=True, slots=True)
class Scored:
    """An entity with what speaks for it; `typed` is missing where no type was asked, agreements are 0 to 1."""

    match: EntityMatch
    typed: bool | None = None
    agreements: tuple[tuple[str, float], ...] = ()

    @property
    def score(self) -> float:
        """Join the score of the name with the agreements, 0 to 100."""
        total = self.match.score + sum(100 * PROPERTY_WEIGHT * agreement for _, agreement in self.agreements)
        score = total / (1 + PROPERTY_WEIGHT * len(self.agreements))
        return round(score * (OTHER_TYPE if self.typed is False else 1), 4)

    @property
    def may_be_certain(self) -> bool:
        agreed = all(agreement >= AGREED for _, agreement in self.agreements)
        return self.match.rung in CERTAIN_RUNGS and self.typed is not False and agreed

    def features(self) -> list[dict[str, Any]]:
        """List the parts of the score, each under an id of its own."""
        features: dict[str, Any] = {
            "name_score": self.match.score,
            "name_similarity": self.match.similarity,
            "same_name": self.match.rung in CERTAIN_RUNGS,
            "prior": self.match.prior,
        }
        if self.typed is not None:
            features["type_match"] = self.typed
        for relation, agreement in self.agreements:
            features[f"property:{relation}"] = round(agreement, 4)
        return [{"id": name, "value": value} for name, value in features.items()]


def reconcile(edition: Edition, query: ReconciliationQuery) -> list[dict[str, Any]]:
    """Rank the candidates of a query, best first; ties by id."""
    matches = find_matches(edition, query)
    scored = [compare(edition, match, query) for match in matches]
    if query.types and query.strictness != "should":
        scored = [candidate for candidate in scored if candidate.typed]
    scored.sort(key=lambda candidate: (-candidate.score, candidate.match.id))
    certain = [candidate for candidate in scored if candidate.may_be_certain]
    return [
        {
            "id": candidate.match.id,
            "name": candidate.match.name or candidate.match.id,
            "type": [type_record(kind) for kind in candidate.match.types],
            "score": candidate.score,
            "features": candidate.features(),
            "match": certain == [candidate] and candidate is scored[0],
        }
        for candidate in scored[: query.limit]
    ]


def type_record(kind: Named) -> dict[str, str]:
    return {"id": kind.id, "name": kind.name or kind.id}


def find_matches(edition: Edition, query: ReconciliationQuery) -> list[EntityMatch]:
    """Find what may be meant: by id, by name among the types and, unless they are strict, beyond; else by values."""
    answerer = edition.answerer
    if not query.text.strip():
        return matches_by_value(edition, query.properties)
    by_id = matches_by_id(answerer, [query.text.strip()])
    if by_id:
        return by_id
    limit = max(query.limit, RERANKED)
    matches: dict[str, EntityMatch] = {}
    for type_id in query.types:
        try:
            found = answerer.lookup(query.text, type=type_id, limit=limit).matches
        except UnknownType:
            continue
        matches |= {match.id: match for match in found}
    if not query.types or query.strictness == "should":
        matches = {match.id: match for match in answerer.lookup(query.text, limit=limit).matches} | matches
    return list(matches.values())


def matches_by_id(answerer: Answerer, ids: Iterable[str]) -> list[EntityMatch]:
    """Take entities by their ids, those that there are."""
    known = [spelling for spelling in map(canonical_id, ids) if not is_literal(spelling)]
    rows = answerer.kb.rows(known)
    matches = []
    for spelling, row in zip(known, rows, strict=True):
        if row is not None:
            entity = answerer.entity(spelling)
            matches.append(
                EntityMatch(
                    id=entity.id,
                    name=entity.name,
                    matched_name=entity.name or entity.id,
                    rung="id",
                    similarity=100.0,
                    prior=1.0,
                    score=100.0,
                    types=entity.types,
                    reasons=("the query is its id",),
                )
            )
    return matches


def matches_by_value(edition: Edition, properties: Sequence[PropertyValue]) -> list[EntityMatch]:
    """Find entities by values alone: the subjects of facts whose object is a value, or bears it as its name.

    They have no name to be compared by: all of their score is the agreement of values.
    """
    answerer = edition.answerer
    subjects: dict[str, None] = {}
    for asked in properties:
        for value in asked.values:
            if value.entity_id:
                objects = [value.entity_id]
            else:
                objects = [match.id for match in answerer.lookup(value.text, limit=RERANKED).matches]
            for object_id in objects:
                subjects |= dict.fromkeys(subjects_of(edition, object_id, asked.relation))
    matches = matches_by_id(answerer, list(subjects)[:SUBJECTS])
    return [replace(match, rung="value", score=0.0, similarity=0.0) for match in matches]


def subjects_of(edition: Edition, object_id: str, relation: str) -> list[str]:
    """List the subjects of a relation to an object; none where the backend cannot tell."""
    kb = edition.answerer.kb
    relation_row = edition.vocabulary.relation_rows.get(relation)
    (row,) = kb.rows([canonical_id(object_id)])
    if relation_row is None or row is None:
        return []
    try:
        facts = kb.subjects_of(row)
    except IncomingMissing:
        return []
    return kb.ids(facts.subjects[facts.relations == relation_row][:SUBJECTS])


def compare(edition: Edition, match: EntityMatch, query: ReconciliationQuery) -> Scored:
    """Compare a candidate with the types and the properties of a query."""
    borne = {kind.id for kind in match.types}
    typed = None
    if query.types:
        typed = borne.issuperset(query.types) if query.strictness == "all" else not borne.isdisjoint(query.types)
    agreements = tuple((asked.relation, agreement(edition, match.id, asked)) for asked in query.properties)
    return Scored(match, typed, agreements)


def agreement(edition: Edition, entity_id: str, asked: PropertyValue) -> float:
    """Say how far a fact of an entity agrees with one of the values, 0 to 1."""
    kb = edition.answerer.kb
    relation = edition.vocabulary.relation_rows.get(asked.relation)
    (row,) = kb.rows([entity_id])
    if relation is None or row is None:
        return 0.0
    objects = kb.objects_of(row, relation)[:OBJECTS]
    ids, names = kb.ids(objects), kb.names(objects)
    best = 0.0
    for value in asked.values:
        if value.entity_id and canonical_id(value.entity_id) in ids:
            return 1.0
        form = normal_form(value.text)
        for object_id, name in zip(ids, names, strict=True):
            if value.text and value.text == object_id:
                return 1.0
            text = name or (literal_text(object_id) if is_literal(object_id) else "")
            if form and text:
                best = max(best, fuzz.ratio(form, normal_form(text)) / 100)
    return best
