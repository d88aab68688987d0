"""The SPARQL query that fetches the objects of a pair from an endpoint: Freebase's, Wikidata's, or any other."""

import re

from kbtools.ids import FREEBASE_NAMESPACE, is_literal

WIKIDATA_ENTITY = "http://www.wikidata.org/entity/"
WIKIDATA_DIRECT = "http://www.wikidata.org/prop/direct/"
FORBIDDEN = re.compile(r'[\x00-\x20<>"{}|^`\\]')
"""What an IRI may not hold in SPARQL (IRIREF in the grammar of SPARQL 1.1)."""

ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


def iri(entity_id: str, *, namespace: str) -> str:
    """Write an id as an IRI reference; what the grammar forbids is percent-encoded."""
    full = entity_id if ABSOLUTE.match(entity_id) else namespace + entity_id
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
