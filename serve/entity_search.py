"""Candidates of reconciliation, by id, by name, or by the values that facts must have."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from kbtools.answering.answerer import Answerer
from kbtools.answering.bearers import STEP
from kbtools.answering.records import EntityMatch
from kbtools.errors import IncomingMissing, UnknownType
from kbtools.kb.ids import canonical_id, is_literal
from kbtools.serve.live_kb import Edition
from kbtools.serve.reconciliation_queries import PropertyValue, ReconciliationQuery
from kbtools.text.normaliser import normal_form
from kbtools.text.rungs import Rung

RERANKED = 25
"""Candidates that types and properties re-rank, where the query gives any: namesakes beyond these are lost."""

FARTHEST = 60.0
"""Similarity of the farthest name, 0 to 100. Of 1,500 misspelt titles 2.3 % have nothing at 80, where links end."""

SUBJECTS = 200
"""Subjects that are found by a value alone."""


def find_matches(edition: Edition, query: ReconciliationQuery) -> list[EntityMatch]:
    """Find what may be meant: by id, by name among the types and, unless they are strict, beyond; else by values."""
    answerer = edition.answerer
    if not query.text.strip():
        return matches_by_value(edition, query.properties)
    by_id = matches_by_id(answerer, [query.text.strip()])
    if by_id:
        return by_id
    # Two at least: a name that two entities bear is no match.
    limit = max(query.limit, RERANKED if query.types or query.properties else 2)
    matches: dict[str, EntityMatch] = {}
    for type_id in query.types:
        try:
            of_type = answerer.lookup(query.text, type=type_id, limit=limit).matches
        except UnknownType:
            continue
        matches |= {match.id: match for match in of_type}
    if not query.types or query.strictness == "should":
        matches = {match.id: match for match in answerer.lookup(query.text, limit=limit).matches} | matches
    return list(matches.values()) or matches_afar(answerer, query.text, limit=limit)


def matches_afar(answerer: Answerer, text: str, *, limit: int) -> list[EntityMatch]:
    """Find what resembles a name less than a link may: somebody looks at candidates, and none of these is certain."""
    matches: dict[str, EntityMatch] = {}
    for name in answerer.kb.similar([normal_form(text)], limit=limit, cutoff=FARTHEST)[0]:
        score = (100.0 - STEP * (Rung.FUZZY - 1)) * name.similarity / 100.0
        for match in answerer.lookup(name.form, limit=limit).matches:
            far = replace(match, rung=Rung.FUZZY.label, similarity=name.similarity, score=round(score, 4))
            matches.setdefault(match.id, far)
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
                    description=entity.description,
                )
            )
    return matches


def matches_by_value(edition: Edition, properties: Sequence[PropertyValue]) -> list[EntityMatch]:
    """Find entities by values alone: the subjects of facts whose object is a value, or bears it as its name.

    They have no name to be compared by: all of their score is the agreement of values.
    """
    answerer = edition.answerer
    subjects: dict[str, None] = {}
    for constraint in properties:
        for value in constraint.values:
            if value.entity_id:
                objects = [value.entity_id]
            else:
                objects = [match.id for match in answerer.lookup(value.text, limit=RERANKED).matches]
            for object_id in objects:
                subjects |= dict.fromkeys(subjects_of(edition, object_id, constraint.relation))
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
        (facts,) = kb.subjects_of(np.array([row], dtype=np.uint32))
    except IncomingMissing:
        return []
    return kb.ids(facts.subjects[facts.relations == relation_row][:SUBJECTS])
