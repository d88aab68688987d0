"""The usual heads of columns, in tables of a knowledge base and of questions alike."""

import re
from collections.abc import Sequence

USUAL = {
    "subject": ("subject", "subj", "head", "s"),
    "relation": ("relation", "rel", "predicate", "pred", "property", "p"),
    "object": ("object", "obj", "tail", "o"),
    "entity": ("entity", "id", "subject"),
    "language": ("language", "lang"),
    "name": ("name", "label", "title"),
    "alias": ("alias", "aliases"),
    "description": ("description",),
    "type": ("type", "types", "class"),
    "old": ("old", "from", "id"),
    "new": ("new", "to", "target"),
}

SUFFIX = re.compile(r"(?<=.)[_ ]?(id|uri|iri)$")
"""The ending of heads such as `subject_id` and `relation uri`."""

_TRIPLE = ("subject", "relation", "object")

ENTITY_ROLES = {
    "id": r"id|qid|mid|identifier|entity|subject|key|code|uri|iri",
    "name": r"name|label",
    "alias": r"(.* )?(alias(es)?|synonyms?|also known as|aka|short names?|acronym|abbreviation)( .*)?",
    "type": r"types?|class|instance of",
    "description": r"descriptions?|summary|abstract",
}
"""The heads of the columns of an entity, as `plain_head` writes them."""

NAME_HEADS = (r"title|full name|titel|bezeichnung|nom|nombre", r"(.* )?names?( .*)?")
"""Heads of names that count where no column is called name or label, the first to be preferred."""


def plain_head(head: str) -> str:
    """Return a head in lower case, its words with one space between."""
    return " ".join(re.findall(r"\w+", head.casefold().replace("_", " ")))


def entity_role(head: str) -> str:
    """Return the part that a column with such a head usually has in a table of entities, empty for a value."""
    plain = plain_head(head)
    return next((role for role, heads in ENTITY_ROLES.items() if re.fullmatch(heads, plain)), "")


def is_header(cells: Sequence[str], *, least: int = 2) -> bool:
    """Return whether at least so many of the first three cells of a line are heads of a triple."""
    # Two of three, since a word such as `s` may be an id.
    heads = [SUFFIX.sub("", cell.strip().casefold()) for cell in cells[:3]]
    return sum(head in USUAL[column] for head, column in zip(heads, _TRIPLE, strict=False)) >= least
