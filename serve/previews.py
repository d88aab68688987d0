"""Small HTML about an entity, for the windows of reconciliation clients; all that a knowledge base holds is escaped."""

from html import escape

from kbtools.answering.answerer import Answerer

WIDTH, HEIGHT = 420, 300
"""Pixels of the window that the manifest asks for."""

FACTS = 8
NAMES = 6

STYLE = "body{font:14px/1.4 system-ui,sans-serif;margin:8px}h1{font-size:16px;margin:0 0 4px}p{margin:4px 0}"
STYLE_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""The policy of a preview: clients on other sites show it in a frame, and nothing in it runs."""


def preview_page(answerer: Answerer, entity_id: str) -> str:
    """Write the page of an entity; raise UnknownEntity."""
    entity = answerer.entity(entity_id)
    return small_page(entity.name or entity.id, summary(answerer, entity_id))


def small_page(title: str, body: str) -> str:
    """Write a page with a title, which is escaped, and a body of HTML."""
    return (
        f'<!doctype html><html><head><meta charset="utf-8"><title>{escape(title)}</title><style>{STYLE}</style></head>'
        f"<body>{body}</body></html>"
    )


def summary(answerer: Answerer, entity_id: str) -> str:
    """Write the names, types and some facts of an entity; raise UnknownEntity."""
    entity = answerer.entity(entity_id)
    lines = [f'<h1 dir="auto">{escape(entity.name or entity.id)}</h1><p>{escape(entity.id)}</p>']
    if entity.description:
        lines.append(f'<p dir="auto">{escape(entity.description)}</p>')
    others = [name for name in (*entity.names, *entity.aliases) if name != entity.name][:NAMES]
    if others:
        lines.append(f'<p dir="auto">{escape(", ".join(others))}</p>')
    if entity.types:
        lines.append(f"<p>{escape(', '.join(kind.name or kind.id for kind in entity.types))}</p>")
    for fact in answerer.facts(entity_id, limit=FACTS).facts:
        relation, value = fact.relation.name or fact.relation.id, fact.object.name or fact.object.id
        lines.append(f'<p>{escape(relation)}: <bdi dir="auto">{escape(value)}</bdi></p>')
    return "".join(lines)
