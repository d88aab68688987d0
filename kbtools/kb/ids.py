"""Spellings of ids: one canonical form for Freebase's, all others kept as they are.

These are Freebase's, for the topic `m.0abc` and the relation `film.film.genre`:

- its addresses, with any path: `www.freebase.com/m/0abc`, `http://rdf.freebase.com/ns/m.0abc`, `<fb:m.0abc>`;
- its topics: `/m/0abc`, `m/0abc`, `/g/1abc`, `fb:m.0abc`, `ns:m.0abc`;
- its relations and types: `fb:film.film.genre`, `ns:film.film.genre`, and `/film/film/genre` beside the id of a topic
  (`canonical_property`), since alone it may be anybody's path.

An object may be a literal instead, spelt as in N-Triples: `"1984"@en`.
"""

import re

FREEBASE_NAMESPACE = "http://rdf.freebase.com/ns/"
_SITE = re.compile(r"(?:https?://)?(?:www\.)?freebase\.com/")
TOPIC = re.compile(r"[mg]\.[01][0-9a-z_]+")
# Only what a MID begins with, `m/0` and `g/1`: alone, `/m/x` may be anybody's path.
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
"""The prefixes under which files of questions write ids of DBpedia and of common vocabularies."""

# Behind the closing quote of a literal: its language, or its datatype.
_TAIL = re.compile(r"(?:@([A-Za-z0-9-]+)|\^\^\S+)?")
# A pair of surrogates first, which is one character, then the other escapes of N-Triples, then any.
_ESCAPE = re.compile(
    r"\\(?:u([dD][89abAB][0-9A-Fa-f]{2})\\u([dD][c-fC-F][0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))",
    re.DOTALL,
)
_ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "b": "\b", "f": "\f", '"': '"', "'": "'", "\\": "\\"}


def canonical_id(spelling: str) -> str:
    """Reduce any of Freebase's spellings of an id to its dotted form; leave other ids alone."""
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
    """Reduce the id of a relation or a type: beside the canonical id of a topic, `/film/film/genre` is Freebase's."""
    if TOPIC.fullmatch(beside) and _PROPERTY.fullmatch(spelling):
        return spelling.removeprefix("/").replace("/", ".")
    return canonical_id(spelling)


def is_freebase(spelling: str) -> bool:
    """Return whether a spelling is an id of a Freebase topic, or an address there."""
    return canonical_id(spelling) != spelling or TOPIC.fullmatch(spelling) is not None


def other_spellings(spelling: str) -> list[str]:
    """List other ways to write an id: Wikidata's numbers short and in full, names with the usual prefixes in full."""
    if number := WIKIDATA.fullmatch(spelling):
        return [f"{prefix}{number[1]}" for prefix in ("", *_WIKIDATA_PREFIXES)]
    prefix, colon, name = spelling.partition(":")
    return [f"{NAMESPACES[prefix]}{name}"] if colon and prefix in NAMESPACES else []


def split_literal(spelling: str) -> tuple[str, str | None] | None:
    """Split a literal into its words, still escaped, and its language; None if it is no literal."""
    end = spelling.rfind('"')
    tail = _TAIL.fullmatch(spelling, end + 1)
    if end < 1 or not spelling.startswith('"') or tail is None:
        return None
    return spelling[1:end], tail[1]


def is_literal(entity_id: str) -> bool:
    """Return whether an object is a literal in N-Triples spelling rather than an entity."""
    return entity_id.startswith('"') and split_literal(entity_id) is not None


def literal_text(literal: str) -> str:
    """Return the words of a literal without its quotes, escapes, language and datatype."""
    parts = split_literal(literal)
    return literal if parts is None else unescape(parts[0])


def unescape(text: str) -> str:
    """Undo the escapes of N-Triples, pairs of surrogates among them; a backslash that starts none of them stays."""
    return _ESCAPE.sub(_unescape_one, text) if "\\" in text else text


def _unescape_one(match: re.Match[str]) -> str:
    high, low, short, long, single = match.groups()
    if single is not None:
        return _ESCAPED.get(single, match.group())
    if high is not None:
        return chr(0x10000 + (int(high, 16) - 0xD800 << 10) + int(low, 16) - 0xDC00)
    # No character has such a number: the escape stays as it is spelt.
    code = int(short or long, 16)
    return chr(code) if code < 0x110000 and not 0xD800 <= code < 0xE000 else match.group()
