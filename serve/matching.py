"""Reconciliation: candidates by id, name or property values, ranked, with a match if one is certain."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kbtools.answering.answerer import Answerer
from kbtools.answering.name_candidates import STEP
from kbtools.answering.records import EntityMatch
from kbtools.deadline import check_time
from kbtools.errors import IncomingMissing, UnknownType
from kbtools.kb.ids import canonical_id, is_literal, literal_text
from kbtools.serve.live_kb import Edition
from kbtools.serve.reconciliation_queries import PropertyValue, ReconciliationQuery, Value
from kbtools.serve.value_comparison import Comparable, likeness, read_comparable
from kbtools.text.normaliser import normal_form
from kbtools.text.rungs import Rung

_PROPERTY_WEIGHT = 0.4
"""Weight of a property relative to the name's 1, as in Wikidata's reconciliation service."""

_OTHER_TYPE = 0.7
"""Factor for the score of a candidate of another type under `should`: below a similar name of the type."""

_AGREED = 0.95
"""Least agreement of equal values: one letter in twenty may differ."""

_OBJECTS = 1_000
"""Most objects of a candidate compared with a value."""

_CERTAIN_RUNGS = frozenset({"exact", "case", "accents", "punctuation", "apostrophe", "id"})
"""Rungs on which a name counts as equal: neither a variant nor merely similar."""

_FactValues = dict[tuple[str, str], list[tuple[str, Comparable]]]
"""Objects, as id and comparable text, by the ids of a subject and a relation."""


@dataclass(frozen=True, slots=True)
class _Scored:
    """An entity with its evidence; `typed` is None without a type constraint, agreements are 0 to 1."""

    match: EntityMatch
    typed: bool | None = None
    agreements: tuple[tuple[str, float], ...] = ()

    @property
    def score(self) -> float:
        """The score of the name combined with the agreements, 0 to 100."""
        total = self.match.score + sum(100 * _PROPERTY_WEIGHT * agreement for _, agreement in self.agreements)
        score = total / (1 + _PROPERTY_WEIGHT * len(self.agreements))
        return round(score * (_OTHER_TYPE if self.typed is False else 1), 4)

    @property
    def may_be_certain(self) -> bool:
        agreed = all(agreement >= _AGREED for _, agreement in self.agreements)
        return self.match.rung in _CERTAIN_RUNGS and self.typed is not False and agreed

    def features(self) -> list[dict[str, Any]]:
        """Return the parts of the score, each under an id of its own."""
        features: dict[str, Any] = {
            "name_score": self.match.score,
            "name_similarity": self.match.similarity,
            "same_name": self.match.rung in _CERTAIN_RUNGS,
            "prior": self.match.prior,
        }
        if self.typed is not None:
            features["type_match"] = self.typed
        for relation, agreement in self.agreements:
            features[f"property:{relation}"] = round(agreement, 4)
        return [{"id": name, "value": value} for name, value in features.items()]


def reconcile(edition: Edition, query: ReconciliationQuery) -> list[dict[str, Any]]:
    """Return the ranked candidates of a query, best first; ties by id."""
    check_time()
    matches = _find_matches(edition, query)
    known = _fact_values(edition, matches, query)
    scored = [_compare(match, query, known) for match in matches]
    if query.types and query.strictness != "should":
        scored = [candidate for candidate in scored if candidate.typed]
    scored.sort(key=lambda candidate: (-candidate.score, candidate.match.id))
    certain = [candidate for candidate in scored if candidate.may_be_certain]
    return [
        {
            "id": candidate.match.id,
            "name": candidate.match.name or candidate.match.id,
            **({"description": candidate.match.description} if candidate.match.description else {}),
            "type": [{"id": kind.id, "name": kind.name or kind.id} for kind in candidate.match.types],
            "score": candidate.score,
            "features": candidate.features(),
            "match": certain == [candidate] and candidate is scored[0],
        }
        for candidate in scored[: query.count]
    ]


def _fact_values(edition: Edition, matches: Sequence[EntityMatch], query: ReconciliationQuery) -> _FactValues:
    """Return the objects of a query's properties, by the candidate's id and the relation, in one look-up."""
    kb, relations = edition.answerer.kb, edition.vocabulary.relation_rows
    named = [prop.relation for prop in query.properties if prop.relation in relations]
    rows = kb.rows([match.id for match in matches]) if named else []
    pairs = {
        (match.id, relation): (row, relations[relation])
        for match, row in zip(matches if named else (), rows, strict=True)
        for relation in named
        if row is not None
    }
    values: _FactValues = {}
    for key, objects in zip(pairs, kb.objects_of(list(pairs.values())) if pairs else (), strict=True):
        check_time()
        first = objects[:_OBJECTS]
        values[key] = [
            (object_id, _comparable_object(object_id, name))
            for object_id, name in zip(kb.ids(first), kb.names(first), strict=True)
        ]
    return values


def _comparable_object(object_id: str, name: str | None) -> Comparable:
    """Return an object as comparable by its name or text; an id without a name can be a date or number, but no text."""
    known = read_comparable(name or literal_text(object_id))
    return known if name or is_literal(object_id) else replace(known, form="")


def _compare(match: EntityMatch, query: ReconciliationQuery, known: _FactValues) -> _Scored:
    """Compare a candidate with the types and the properties of a query."""
    borne = {kind.id for kind in match.types}
    typed = None
    if query.types:
        typed = borne.issuperset(query.types) if query.strictness == "all" else not borne.isdisjoint(query.types)
    agreements = tuple(
        (prop.relation, _agreement(known.get((match.id, prop.relation), ()), prop)) for prop in query.properties
    )
    return _Scored(match, typed, agreements)


def _agreement(objects: Sequence[tuple[str, Comparable]], constraint: PropertyValue) -> float:
    """Return the agreement of objects with the values, 0 to 1: for each value that of its nearest object, averaged."""
    nearest = [_nearest_object(objects, value) for value in constraint.values] if objects else []
    return sum(nearest) / len(nearest) if nearest else 0.0


def _nearest_object(objects: Sequence[tuple[str, Comparable]], value: Value) -> float:
    """Return the greatest agreement of an object with a value, 0 to 1."""
    check_time()
    own_id = canonical_id(value.entity_id) if value.entity_id else value.text
    if own_id and any(object_id == own_id for object_id, _ in objects):
        return 1.0
    wanted, best = read_comparable(value.text), 0.0
    for _, known in objects:
        best = max(best, likeness(wanted, known, cutoff=best))
    return best


_RERANKED = 25
"""Candidates reranked by types and properties, if the query has any: further namesakes are lost."""

_FARTHEST = 60.0
"""Least similarity of a name, 0 to 100. Of 1,500 misspelt titles 2.3 % find nothing at 80, the limit for links."""

_SUBJECTS = 200
"""Most subjects found by a value alone."""


def _find_matches(edition: Edition, query: ReconciliationQuery) -> list[EntityMatch]:
    """Return possible matches: by id, by name among the types and, unless they are strict, beyond; else by values."""
    answerer = edition.answerer
    if not query.text.strip():
        return _matches_by_value(edition, query.properties)
    by_id = matches_by_id(answerer, [query.text.strip()])
    if by_id:
        return by_id
    # At least two, to detect that two entities share a name.
    limit = max(query.count, _RERANKED if query.types or query.properties else 2)
    matches: dict[str, EntityMatch] = {}
    for type_id in query.types:
        check_time()
        try:
            of_type = answerer.lookup(query.text, type=type_id, limit=limit).matches
        except UnknownType:
            continue
        matches |= {match.id: match for match in of_type}
    if not query.types or query.strictness == "should":
        matches = {match.id: match for match in answerer.lookup(query.text, limit=limit).matches} | matches
    return list(matches.values()) or _matches_afar(answerer, query.text, limit=limit)


def _matches_afar(answerer: Answerer, text: str, *, limit: int) -> list[EntityMatch]:
    """Return entities whose names are less similar than links require: candidates for review, none of them certain."""
    matches: dict[str, EntityMatch] = {}
    for name in answerer.kb.similar([normal_form(text)], limit=limit, cutoff=_FARTHEST)[0]:
        check_time()
        score = (100.0 - STEP * (Rung.FUZZY - 1)) * name.similarity / 100.0
        for match in answerer.lookup(name.form, limit=limit).matches:
            far = replace(match, rung=Rung.FUZZY.label, similarity=name.similarity, score=round(score, 4))
            matches.setdefault(match.id, far)
    return list(matches.values())


def matches_by_id(answerer: Answerer, ids: Iterable[str]) -> list[EntityMatch]:
    """Return the entities with these ids, as far as they exist."""
    known = [spelling for spelling in map(canonical_id, ids) if not is_literal(spelling)]
    rows = answerer.kb.rows(known)
    matches = []
    for spelling, row in zip(known, rows, strict=True):
        if row is not None:
            check_time()
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
                    description=entity.description,
                )
            )
    return matches


def _matches_by_value(edition: Edition, properties: Sequence[PropertyValue]) -> list[EntityMatch]:
    """Return entities found by values alone: subjects of facts whose object is a value or has it as its name.

    There is no name to compare: their score is the agreement of the values.
    """
    answerer = edition.answerer
    subjects: dict[str, None] = {}
    for constraint, value in [(prop, value) for prop in properties for value in prop.values]:
        if len(subjects) >= _SUBJECTS:
            break
        check_time()
        if value.entity_id:
            objects = [value.entity_id]
        else:
            objects = [match.id for match in answerer.lookup(value.text, limit=_RERANKED).matches]
        for object_id in objects:
            check_time()
            subjects |= dict.fromkeys(_subjects_of(edition, object_id, constraint.relation))
    matches = matches_by_id(answerer, list(subjects)[:_SUBJECTS])
    return [replace(match, rung="value", score=0.0, similarity=0.0) for match in matches]


def _subjects_of(edition: Edition, object_id: str, relation: str) -> list[str]:
    """Return the subjects of a relation to an object; empty if the backend does not support it."""
    kb = edition.answerer.kb
    relation_row = edition.vocabulary.relation_rows.get(relation)
    (row,) = kb.rows([canonical_id(object_id)])
    if relation_row is None or row is None:
        return []
    try:
        (facts,) = kb.subjects_of(np.array([row], dtype=np.uint32))
    except IncomingMissing:
        return []
    return kb.ids(facts.subjects[facts.relations == relation_row][:_SUBJECTS])
