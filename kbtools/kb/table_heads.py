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

TRIPLE = ("subject", "relation", "object")


def is_header(cells: Sequence[str], *, least: int = 2) -> bool:
    """Return whether at least so many of the first three cells of a line are heads of a triple."""
    # Two of three, since a word such as `s` may be an id.
    heads = [SUFFIX.sub("", cell.strip().casefold()) for cell in cells[:3]]
    return sum(head in USUAL[column] for head, column in zip(heads, TRIPLE, strict=False)) >= least
