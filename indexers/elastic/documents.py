"""Documents of an index, and the terms that they are found by."""

import hashlib
import json
from dataclasses import dataclass

from kbtools.linking.similarity import LONGEST_NAME

LONGEST_TERM = 480
"""Bytes of a form that is a term as it is; of a longer one the term is a hash.

The cluster's own limit is 32,766. 480 is about the key length of LMDB, 511, beyond which the embedded index hashes too.
"""

LONGEST_ID = 8000
"""Characters of an id that is a term as it is: four bytes each at most, so that 32,766 bytes hold them."""

encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False).encode


@dataclass(frozen=True, slots=True)
class Document:
    """A document by its id, as JSON, empty where it is to go; once it is stored, everything before row `done` is."""

    key: str
    source: bytes
    done: int

    def lines(self) -> bytes:
        """Write the two lines of a bulk request, or the one that deletes the document."""
        if not self.source:
            return b'{"delete":{"_id":"%s"}}\n' % self.key.encode()
        return b'{"index":{"_id":"%s"}}\n%s\n' % (self.key.encode(), self.source)


def term_of(form: str) -> str:
    """Give the term that a form is looked up by."""
    if len(form) * 4 > LONGEST_TERM:  # a character takes four bytes at most: short forms need no encoding
        form_bytes = form.encode()
        if len(form_bytes) > LONGEST_TERM:
            return "\0" + hashlib.sha256(form_bytes).hexdigest()
    return form


def id_field(entity_id: str) -> tuple[str, str]:
    """Give the field and the term that an id is looked up by."""
    if len(entity_id) <= LONGEST_ID:
        return "id", entity_id
    return "hashed_id", id_hash(entity_id)


def id_hash(entity_id: str) -> str:
    """Give the term of an id that is too long, or that was merged into another."""
    return hashlib.sha256(entity_id.encode()).hexdigest()


def word_term(word: str) -> str:
    """Give the term that a word is counted by; the whitespace tokenizer cuts what is longer than 255 characters."""
    return word if len(word) <= LONGEST_NAME else hashlib.sha256(word.encode()).hexdigest()


def is_counted(word: str) -> bool:
    """Tell whether names are counted by a word."""
    return bool(word) and len(word.encode()) <= LONGEST_TERM
