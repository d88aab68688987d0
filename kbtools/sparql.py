"""The SPARQL query that fetches the objects of a pair from an endpoint: Freebase's, Wikidata's, or any other."""

import re

from kbtools.kb.ids import FREEBASE_NAMESPACE, is_literal

WIKIDATA_ENTITY = "http://www.wikidata.org/entity/"
WIKIDATA_DIRECT = "http://www.wikidata.org/prop/direct/"
FORBIDDEN = re.compile(
    r"[^A-Za-z0-9._~:/?#@!$&'()*+,;=%\-\xa0-\ud7ff\uf900-\ufdcf\ufdf0-\uffef\U00010000-\U000dffff]"
    r"|%(?![0-9A-Fa-f]{2})|[\U0001fffe-\U0001ffff]"
)
"""What an IRI may not hold (RFC 3987), brackets in all places; endpoints refuse more than SPARQL's grammar does."""

ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


def iri(entity_id: str, *, namespace: str) -> str:
    """Write an id as an IRI reference; what the grammar forbids is percent-encoded."""
    full = entity_id if ABSOLUTE.match(entity_id) else namespace + entity_id.replace("#", "%23")
    return "<" + FORBIDDEN.sub(lambda found: "".join(f"%{byte:02X}" for byte in found.group().encode()), full) + ">"


def object_query(subject: str, relation: str) -> str:
    """Write the query for every object of a subject and a relation.

    Ids of Wikidata's shape go to Wikidata's namespaces, whole IRIs stay, all others are Freebase's. A relation
    through a mediator (`a..b`) is a path of two steps.
    """
    if re.fullmatch(r"Q\d+", subject) and re.fullmatch(r"P\d+", relation):
        subject_iri, path = iri(subject, namespace=WIKIDATA_ENTITY), iri(relation, namespace=WIKIDATA_DIRECT)
    else:
        subject_iri = iri(subject, namespace=FREEBASE_NAMESPACE)
        steps = [relation] if ABSOLUTE.match(relation) else relation.split("..")
        path = "/".join(iri(step, namespace=FREEBASE_NAMESPACE) for step in steps)
    if is_literal(subject):
        raise ValueError(f"{subject!r} is a literal and has no facts")
    return f"SELECT ?object WHERE {{ {subject_iri} {path} ?object }}"
