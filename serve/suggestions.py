"""Completions while typing, and short HTML pages about entities, with every name escaped."""

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from kbtools.answering.answerer import Answerer
from kbtools.answering.records import EntityMatch
from kbtools.errors import UnknownEntity
from kbtools.kb.contract import KnowledgeBase
from kbtools.serve.live_kb import Edition
from kbtools.serve.matching import matches_by_id
from kbtools.text.normaliser import normal_form

SUGGESTED = 20
"""Suggestions per answer."""

LAST_SUGGESTED = 1_000
"""Largest cursor: all suggestions before it are computed too."""

_FORMS = 500
"""Names with a prefix among which those with the most facts are suggested."""

_SHORTEST_INSIDE = 3
"""Shortest prefix for which names with such an inner word are suggested: names are found by trigrams."""

_NOTABLE = 3


def suggest_entities(edition: Edition, prefix: str, *, cursor: int) -> list[dict[str, Any]]:
    """Suggest the entity with that id, those with that name, with a name or word with this prefix, and similar ones."""
    answerer = edition.answerer
    if not prefix.strip() or cursor >= LAST_SUGGESTED:
        return []
    last = cursor + SUGGESTED
    matches = matches_by_id(answerer, [prefix.strip()])
    named = answerer.lookup(prefix, limit=last).matches
    strict = [match for match in named if match.rung != "fuzzy"]
    matches += strict + matches_by_id(answerer, _entities_with_prefix(edition, prefix, limit=last))
    matches += [match for match in named if match.rung == "fuzzy"]
    distinct: dict[str, EntityMatch] = {}
    for match in matches:
        distinct.setdefault(match.id, match)
    return [_entity_suggestion(match) for match in list(distinct.values())[cursor:last]]


def _entities_with_prefix(edition: Edition, prefix: str, *, limit: int) -> list[str]:
    """Return the entities with a name that begins with a text, then those with an inner word that does.

    Those with the most facts come first, ties by row.
    """
    kb, form = edition.answerer.kb, normal_form(prefix)
    first = _entities_named(kb, kb.forms_with_prefix(form, limit=_FORMS), limit=limit)
    if len(first) >= limit or len(form) < _SHORTEST_INSIDE:
        return first
    similar = kb.similar([form], limit=_FORMS, cutoff=0.0)[0]
    return first + _entities_named(kb, [name.form for name in similar if f" {form}" in name.form], limit=limit)


def _entities_named(kb: KnowledgeBase, forms: Sequence[str], *, limit: int) -> list[str]:
    """Return the entities with one of some names, those with the most facts first, ties by row."""
    bearers = [match.entities for matches in kb.lookup(forms).values() for match in matches]
    if not bearers:
        return []
    rows = np.unique(np.concatenate(bearers))
    most_facts = np.argsort(-kb.fact_counts(rows), kind="stable")[:limit]
    return kb.ids(rows[most_facts])


def _entity_suggestion(match: EntityMatch) -> dict[str, Any]:
    types = match.types[:_NOTABLE]
    return {
        "id": match.id,
        "name": match.name or match.id,
        "description": match.description or ", ".join([match.id, *(kind.name or kind.id for kind in types)]),
        "notable": [kind.id for kind in types],  # OpenRefine joins them as texts when it matches a whole column.
    }


def suggest_types(edition: Edition, prefix: str, *, cursor: int) -> list[dict[str, Any]]:
    """Suggest types; for an empty text the most frequent."""
    types = edition.vocabulary.find_types(prefix)[cursor : cursor + SUGGESTED]
    return [{"id": kind.id, "name": kind.name or kind.id} for kind in edition.answerer.reader.named_types(types)]


def suggest_properties(edition: Edition, prefix: str, *, cursor: int) -> list[dict[str, Any]]:
    """Suggest relations; for an empty text the most frequent."""
    relations = edition.vocabulary.find_relations(prefix, edition.answerer.kb)[cursor : cursor + SUGGESTED]
    return [property_record(edition, relation) for relation in relations]


def propose_properties(edition: Edition, type_id: str, *, limit: int | None) -> list[dict[str, Any]]:
    """Suggest the relations of entities of a type, or without a type the most frequent of all."""
    vocabulary = edition.vocabulary
    relations = vocabulary.relations_of_type(type_id) if type_id else vocabulary.find_relations("", edition.answerer.kb)
    return [property_record(edition, relation) for relation in relations[:limit]]


def property_record(edition: Edition, relation: str) -> dict[str, Any]:
    """Return the record of a relation with its name, even if it does not exist."""
    row = edition.vocabulary.relation_rows.get(relation)
    return {"id": relation, "name": (row is not None and edition.answerer.kb.relation_names[row]) or relation}


def flyout(edition: Edition, kind: str, spelling: str) -> dict[str, str]:
    """Return the description shown next to a suggestion; raise UnknownEntity if it does not exist."""
    if kind == "entity":
        return {"id": spelling, "html": _summary(edition.answerer, spelling)}
    vocabulary = edition.vocabulary
    known = vocabulary.type_rows if kind == "type" else vocabulary.relation_rows
    if spelling not in known:
        raise UnknownEntity(f"no {kind} has the id {spelling!r}", entity=spelling)
    if kind == "property":
        name = property_record(edition, spelling)["name"]
        return {"id": spelling, "html": f"<p>{escape(name)}</p><p>{escape(spelling)}</p>"}
    relations = ", ".join(vocabulary.relations_of_type(spelling)[:_NOTABLE])
    return {"id": spelling, "html": f"<p>{escape(spelling)}</p><p>{escape(relations)}</p>"}


WIDTH, HEIGHT = 420, 300
"""Pixels of the preview window requested in the manifest."""

_FACTS = 8
_NAMES = 6

_STYLE = "body{font:14px/1.4 system-ui,sans-serif;margin:8px}h1{font-size:16px;margin:0 0 4px}p{margin:4px 0}"
STYLE_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""The policy of a preview: other sites may frame it, and nothing in it may run."""


def preview_page(answerer: Answerer, entity_id: str) -> str:
    """Return the page of an entity; raise UnknownEntity."""
    entity = answerer.entity(entity_id)
    return small_page(entity.name or entity.id, _summary(answerer, entity_id))


def small_page(title: str, body: str) -> str:
    """Return a page with a title, which is escaped, and a body of HTML."""
    return (
        f'<!doctype html><html><head><meta charset="utf-8"><title>{escape(title)}</title><style>{_STYLE}</style></head>'
        f"<body>{body}</body></html>"
    )


def _summary(answerer: Answerer, entity_id: str) -> str:
    """Return the names, types and some facts of an entity as HTML; raise UnknownEntity."""
    entity = answerer.entity(entity_id)
    lines = [f'<h1 dir="auto">{escape(entity.name or entity.id)}</h1><p>{escape(entity.id)}</p>']
    if entity.description:
        lines.append(f'<p dir="auto">{escape(entity.description)}</p>')
    others = [name for name in (*entity.names, *entity.aliases) if name != entity.name][:_NAMES]
    if others:
        lines.append(f'<p dir="auto">{escape(", ".join(others))}</p>')
    if entity.types:
        lines.append(f"<p>{escape(', '.join(kind.name or kind.id for kind in entity.types))}</p>")
    for fact in answerer.facts(entity_id, limit=_FACTS).facts:
        relation, value = fact.relation.name or fact.relation.id, fact.object.name or fact.object.id
        lines.append(f'<p>{escape(relation)}: <bdi dir="auto">{escape(value)}</bdi></p>')
    return "".join(lines)
