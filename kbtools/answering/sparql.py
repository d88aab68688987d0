"""The SPARQL query that fetches the answers of a pair from an endpoint of Freebase, Wikidata or another base."""

import re

from kbtools.answering.explaining import verdict
from kbtools.answering.results import Result
from kbtools.errors import NoIRI
from kbtools.kb.ids import FREEBASE_NAMESPACE, NAMESPACES, TOPIC, WIKIDATA, is_literal

_WIKIDATA_ENTITY = "http://www.wikidata.org/entity/"
_WIKIDATA_DIRECT = "http://www.wikidata.org/prop/direct/"
_FREEBASE_RELATION = re.compile(r"[a-z0-9_]+(\.[a-z0-9_]+)+(\.\.[a-z0-9_]+(\.[a-z0-9_]+)+)?")
_FORBIDDEN = re.compile(
    r"[^A-Za-z0-9._~:/?#@!$&'()*+,;=%\-\xa0-\ud7ff\uf900-\ufdcf\ufdf0-\uffef\U00010000-\U000dffff]"
    r"|%(?![0-9A-Fa-f]{2})|[\U0001fffe-\U0001ffff]"
)
"""Characters not allowed in an IRI (RFC 3987), and brackets, which endpoints also refuse."""

_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


def winner_query(result: Result) -> str:
    """Return the query for the winning pair, or a one-line comment that says why there is none."""
    if not result.candidates:
        return "# no candidates"
    if not result.answered:
        return f"# {verdict(result).rstrip(':')}"
    winner = result.candidates[0]
    try:
        return (subject_query if winner.inverse else object_query)(winner.subject, winner.relation)
    except NoIRI as error:
        return f"# {error}"


def object_query(subject: str, relation: str) -> str:
    """Return the query for all objects of a subject and a relation; raise NoIRI if either has no IRI.

    Whole IRIs are kept. A relation of a Freebase topic is Freebase's, and a mediator (`a..b`) becomes a path of two
    steps; a relation of a Wikidata entity is Wikidata's. Other ids have no namespace.
    """
    return f"SELECT ?object WHERE {{ {_subject_iri(subject)} {_relation_path(subject, relation)} ?object }}"


def subject_query(target: str, relation: str) -> str:
    """Return the query for all subjects of a relation and an object; raise NoIRI as `object_query` does."""
    return f"SELECT ?x WHERE {{ ?x {_relation_path(target, relation)} {_subject_iri(target)} }}"


def _subject_iri(subject: str) -> str:
    if is_literal(subject):
        raise NoIRI(f"{subject!r} is a literal and has no facts", id=subject)
    if full := _in_full(subject, _WIKIDATA_ENTITY):
        return _iri(full)
    if TOPIC.fullmatch(subject):
        return _iri(FREEBASE_NAMESPACE + subject)
    raise NoIRI(f"no query: {subject!r} is neither an IRI nor an id of Freebase or Wikidata", id=subject)


def _relation_path(subject: str, relation: str) -> str:
    full = _in_full(relation, _WIKIDATA_DIRECT)
    # A bare number is a Wikidata relation only beside a Wikidata entity.
    if full and (_ABSOLUTE.match(relation) or WIKIDATA.fullmatch(subject)):
        return _iri(full)
    if TOPIC.fullmatch(subject) and _FREEBASE_RELATION.fullmatch(relation):
        # A path of two steps, `a/b`, through the mediator.
        return "/".join(_iri(FREEBASE_NAMESPACE + step) for step in relation.split(".."))
    raise NoIRI(f"no query: {relation!r} is neither an IRI nor a relation of Freebase or Wikidata", id=relation)


def _in_full(spelling: str, wikidata: str) -> str | None:
    """Return the IRI of an id: Wikidata's, one with a common prefix (`dbr:Berlin`), or the id itself if it is one.

    None for any other id.
    """
    if "://" in spelling and _ABSOLUTE.match(spelling):
        return spelling
    if number := WIKIDATA.fullmatch(spelling):
        return wikidata + number[1]
    prefix, _, name = spelling.partition(":")
    if prefix in NAMESPACES:
        return NAMESPACES[prefix] + name
    return spelling if _ABSOLUTE.match(spelling) else None


def _iri(full: str) -> str:
    """Return an IRI reference with forbidden characters percent-encoded."""
    return "<" + _FORBIDDEN.sub(lambda match: "".join(f"%{byte:02X}" for byte in match.group().encode()), full) + ">"
