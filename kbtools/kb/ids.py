"""Spellings of ids: Freebase's have one canonical form, all others stay as they are.

Freebase's spellings of the topic `m.0abc` and the relation `film.film.genre` are:

- URLs with any path: `www.freebase.com/m/0abc`, `http://rdf.freebase.com/ns/m.0abc`, `<fb:m.0abc>`;
- topics: `/m/0abc`, `m/0abc`, `/g/1abc`, `fb:m.0abc`, `ns:m.0abc`;
- relations and types: `fb:film.film.genre`, `ns:film.film.genre`, and `/film/film/genre` beside the id of a topic
  (`canonical_property`), since it may be any path otherwise.

An object may also be a literal, spelt as in N-Triples: `"1984"@en`.
"""

import re
from contextlib import suppress
from urllib.parse import unquote

FREEBASE_NAMESPACE = "http://rdf.freebase.com/ns/"
_SITE = re.compile(r"(?:https?://)?(?:www\.)?freebase\.com/")
TOPIC = re.compile(r"[mg]\.[01][0-9a-z_]+")
# Only the beginnings of a MID, `m/0` and `g/1`, since `/m/x` may be any path.
_SLASHED_TOPIC = re.compile(r"/?(m/0|g/1)[0-9a-z_]+")
_PREFIXED = re.compile(rf"(?:fb|ns):({TOPIC.pattern}|[a-z0-9_]+(?:\.[a-z0-9_]+){{2,}})|fb:([a-z0-9_]+\.[a-z0-9_]+)")
_PROPERTY = re.compile(r"/[a-z0-9_]+(?:/[a-z0-9_]+)+(?:\./[a-z0-9_]+(?:/[a-z0-9_]+)+)*")
_ANGLED = re.compile(r"<([A-Za-z][A-Za-z0-9+.-]*:.*)?>", re.DOTALL)
_WIKIDATA_PREFIXES = ("http://www.wikidata.org/entity/", "http://www.wikidata.org/prop/direct/", "wd:", "wdt:")
WIKIDATA = re.compile(rf"(?:{'|'.join(map(re.escape, _WIKIDATA_PREFIXES))})?([QP][1-9][0-9]*)")
NAMESPACES = {
    "dbr": "http://dbpedia.org/resource/",
    "dbo": "http://dbpedia.org/ontology/",
    "dbp": "http://dbpedia.org/property/",
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "schema": "http://schema.org/",
}
"""The prefixes of DBpedia and common vocabularies in question files."""

# The language or datatype after the closing quote of a literal.
_TAIL = re.compile(r"(?:@([A-Za-z0-9-]+)|\^\^\S+)?")
# A pair of surrogates, which is one character, then other escapes of N-Triples, then any other.
_ESCAPE = re.compile(
    r"\\(?:u([dD][89abAB][0-9A-Fa-f]{2})\\u([dD][c-fC-F][0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))",
    re.DOTALL,
)
_ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "b": "\b", "f": "\f", '"': '"', "'": "'", "\\": "\\"}

PATH = r"^\S*://\S*[/#:](.)|^/\S*/(\S)|^(?:[a-z]\w*:)+(\S+$)"
"""What precedes the last part of an address, a path or a prefixed id, and the beginning of that part."""


def name_of_id(entity_id: str) -> str:
    """Return the words of an id, as its name; empty if it has no letter.

    >>> name_of_id("http://dbpedia.org/resource/Marie_Curie"), name_of_id("/c/en/hot_dog"), name_of_id("42")
    ('Marie Curie', 'hot dog', '')
    """
    part = re.sub(PATH, r"\1\2\3", entity_id, count=1, flags=re.ASCII)
    if "://" in entity_id:
        with suppress(UnicodeDecodeError):  # Old addresses escape letters of Latin-1.
            part = unquote(part, errors="strict")
    text = part.replace("_", " ").strip(" /#<>")
    return text if any(map(str.isalpha, text)) else ""


def canonical_id(spelling: str) -> str:
    """Return the dotted form of a Freebase id in any spelling; other ids are unchanged."""
    if spelling.startswith("<fb:") and spelling.endswith(">"):
        return spelling[4:-1]
    if _ANGLED.fullmatch(spelling):
        spelling = spelling[1:-1]
    if spelling.startswith(FREEBASE_NAMESPACE):
        return spelling[len(FREEBASE_NAMESPACE) :]
    if site := _SITE.match(spelling):
        return spelling[site.end() :].replace("/", ".")
    if _SLASHED_TOPIC.fullmatch(spelling):
        return spelling.removeprefix("/").replace("/", ".")
    if prefixed := _PREFIXED.fullmatch(spelling):
        return prefixed[1] or prefixed[2]
    return spelling


def canonical_property(spelling: str, *, beside: str) -> str:
    """Return the canonical id of a relation or type; next to the id of a topic, `/film/film/genre` is Freebase's."""
    if TOPIC.fullmatch(beside) and _PROPERTY.fullmatch(spelling):
        return spelling.removeprefix("/").replace("/", ".")
    return canonical_id(spelling)


def is_freebase(spelling: str) -> bool:
    """Return whether a spelling is an id or a URL of a Freebase topic."""
    return canonical_id(spelling) != spelling or TOPIC.fullmatch(spelling) is not None


def other_spellings(spelling: str) -> list[str]:
    """Return other spellings of an id: Wikidata's short and long forms, and common prefixes expanded."""
    if number := WIKIDATA.fullmatch(spelling):
        return [f"{prefix}{number[1]}" for prefix in ("", *_WIKIDATA_PREFIXES)]
    prefix, colon, name = spelling.partition(":")
    return [f"{NAMESPACES[prefix]}{name}"] if colon and prefix in NAMESPACES else []


def split_literal(spelling: str) -> tuple[str, str | None] | None:
    """Return the words of a literal, still escaped, and its language; None if it is not a literal."""
    end = spelling.rfind('"')
    tail = _TAIL.fullmatch(spelling, end + 1)
    if end < 1 or not spelling.startswith('"') or tail is None:
        return None
    return spelling[1:end], tail[1]


def is_literal(entity_id: str) -> bool:
    """Return whether an object is a literal in N-Triples spelling."""
    return entity_id.startswith('"') and split_literal(entity_id) is not None


def literal_text(literal: str) -> str:
    """Return the words of a literal without its quotes, escapes, language and datatype."""
    parts = split_literal(literal)
    return literal if parts is None else unescape(parts[0])


def unescape(text: str) -> str:
    """Return a text without the escapes of N-Triples; a backslash that starts no escape stays."""
    return _ESCAPE.sub(_unescape_one, text) if "\\" in text else text


def _unescape_one(match: re.Match[str]) -> str:
    high, low, short, long, single = match.groups()
    if single is not None:
        return _ESCAPED.get(single, match.group())
    if high is not None:
        return chr(0x10000 + (int(high, 16) - 0xD800 << 10) + int(low, 16) - 0xDC00)
    # An escape that is not a character stays as it is.
    code = int(short or long, 16)
    return chr(code) if code < 0x110000 and not 0xD800 <= code < 0xE000 else match.group()
