"""How ids are spelt: one canonical form for every way that Freebase's files write an id.

`www.freebase.com/m/0abc`, `<fb:m.0abc>`, `/m/0abc` and `http://rdf.freebase.com/ns/m.0abc` are all
`m.0abc`; relations and types follow the same rule (`/people/person/gender` is `people.person.gender`). Any other
id is kept as it is. An object may be a literal instead, spelt as in N-Triples: `"1984"@en`.
"""

import re

FREEBASE_NAMESPACE = "http://rdf.freebase.com/ns/"
SLASHED_PREFIX = re.compile(r"^(?:https?://)?(?:www\.)?freebase\.com/")
DOTTED_PREFIXES = (FREEBASE_NAMESPACE, "fb:", "ns:")
BARE_MID = re.compile(r"(?:/[mg]/|m/0|g/1)[0-9a-z_]+")
PROPERTY = re.compile(r"/[a-z0-9_]+(?:/[a-z0-9_]+)+(?:\./[a-z0-9_]+(?:/[a-z0-9_]+)+)*")
TAIL = re.compile(r"(?:@([A-Za-z0-9-]+)|\^\^\S+)?")
ESCAPE = re.compile(
    r"\\(?:u([dD][89abAB][0-9A-Fa-f]{2})\\u([dD][c-fC-F][0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))",
    re.DOTALL,
)
ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "b": "\b", "f": "\f", '"': '"', "'": "'", "\\": "\\"}


def canonical_id(spelling: str) -> str:
    """Reduce any Freebase spelling of an id to its dotted form; leave other ids alone."""
    if spelling.startswith("<") and spelling.endswith(">"):
        spelling = spelling[1:-1]
    slashed = SLASHED_PREFIX.match(spelling)
    if slashed:
        return spelling[slashed.end() :].replace("/", ".")
    for prefix in DOTTED_PREFIXES:
        if spelling.startswith(prefix):
            return spelling[len(prefix) :]
    if BARE_MID.fullmatch(spelling) or PROPERTY.fullmatch(spelling):
        return spelling.strip("/").replace("/", ".")
    return spelling


def split_literal(spelling: str) -> tuple[str, str | None] | None:
    """Take a literal apart into its words, still escaped, and its language; nothing if it is no literal."""
    end = spelling.rfind('"')
    tail = TAIL.fullmatch(spelling, end + 1)
    if end < 1 or not spelling.startswith('"') or tail is None:
        return None
    return spelling[1:end], tail[1]


def is_literal(entity_id: str) -> bool:
    """Tell whether an object is a literal in N-Triples spelling rather than an entity."""
    return entity_id.startswith('"') and split_literal(entity_id) is not None


def literal_text(literal: str) -> str:
    """Give the words of a literal without its quotes, escapes, language and datatype."""
    parts = split_literal(literal)
    return literal if parts is None else unescape(parts[0])


def unescape(text: str) -> str:
    """Undo the escapes of N-Triples, pairs of surrogates among them; a backslash that starts none of them stays."""
    return ESCAPE.sub(unescape_one, text) if "\\" in text else text


def unescape_one(match: re.Match[str]) -> str:
    high, low, short, long, single = match.groups()
    if single is not None:
        return ESCAPED.get(single, match.group())
    if high is not None:
        return chr(0x10000 + (int(high, 16) - 0xD800 << 10) + int(low, 16) - 0xDC00)
    code = int(short or long, 16)
    return chr(code) if code < 0x110000 and not 0xD800 <= code < 0xE000 else match.group()
