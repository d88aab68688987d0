"""The words in the name of a relation or type, and the words of a question for the kind of its answer."""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from urllib.parse import unquote

from kbtools.text.function_words import CONTEXT_WORDS, FUNCTION_WORDS
from kbtools.text.normaliser import fold, split_words

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_PARTS = re.compile(r"[/.#:]+")
_CAMEL = re.compile(r"(?<=[a-z0-9]{2})(?=[A-Z])|(?<=[A-Za-z0-9])(?=[A-Z][a-z])|_")
"""The borders of words inside a part, besides punctuation: `birthPlace`, `HTMLPage`, `place_of_birth`, but not `pH`."""

_WORDS_REMEMBERED = 50_000
"""Names whose words are cached: the relations and types of several knowledge bases."""

_SUFFIXES = (
    *("", "s", "es", "e", "ed", "d", "er", "r", "ers", "or", "ors", "ing", "ings", "ion", "ions", "ation", "ations"),
    *("ition", "ment", "ly", "y", "ies", "al", "ity", "n", "en", "ian", "ist", "ists", "ness", "ship"),
)
"""Endings of English words: `published`, `publisher` and `publishing` are forms of one word."""

_SHORTEST_STEM = 4
"""Fewest letters of a stem; shorter ones are shared by unrelated words."""

_STEM = 5
"""Letters that forms of one word share, as in the lexical scorer."""

SYMBOL = "\0"
"""The placeholder of the mention among the words of a question."""

OPENERS = frozenset("find give list name what whats which who whom whos".split())
ARTICLES = frozenset("a an another any one some the".split())
_PERSONS = frozenset("someone who whom whos".split())
AIDS = frozenset("did do does had has have".split())
PLACES = frozenset("as at for from in off on to under with within".split())
_COPULAS = frozenset("are is me was were".split())
_KINDS = frozenset("example kind kinds name names of sort type types".split())

_MEANT = {
    "actor": "person", "band": "artist group", "book": "work written", "books": "work written",
    "cities": "citytown location", "city": "citytown location", "game": "videogame", "games": "videogame",
    "movie": "film", "movies": "film", "musician": "artist", "people": "person", "person": "human people",
    "singer": "artist", "show": "program", "song": "composition recording track",
    "songs": "composition recording track", "town": "citytown location", "where": "city country location place region",
    "who": "actor artist author human people person politician",
}  # fmt: skip
"""Words for kinds of answers, and the corresponding words of types."""


_ABBREVIATIONS = {
    "acct": "account", "addr": "address", "amt": "amount", "avg": "average", "cust": "customer", "dept": "department",
    "desc": "description", "dist": "distance", "dob": "date of birth", "dod": "date of death", "elev": "elevation",
    "emp": "employee", "est": "established", "ht": "height", "lang": "language", "lat": "latitude", "len": "length",
    "lng": "longitude", "loc": "location", "lon": "longitude", "max": "maximum", "mfr": "manufacturer",
    "mgr": "manager", "min": "minimum", "nr": "number", "num": "number", "org": "organization", "pct": "percentage",
    "pob": "place of birth", "pop": "population", "pts": "points", "qty": "quantity", "tel": "telephone",
    "temp": "temperature", "univ": "university", "vol": "volume", "wt": "weight", "yr": "year",
    "mon": "monday", "tue": "tuesday", "tues": "tuesday", "wed": "wednesday", "thu": "thursday", "thur": "thursday",
    "thurs": "thursday", "fri": "friday", "sat": "saturday", "sun": "sunday", "jan": "january", "feb": "february",
    "mar": "march", "apr": "april", "jun": "june", "jul": "july", "aug": "august", "sep": "september",
    "sept": "september", "oct": "october", "nov": "november", "dec": "december",
}  # fmt: skip
"""Words that the headers of tables abbreviate; of these, only `mon` is in a relation of FBSQ."""


def spelt_parts(name: str) -> list[list[str]]:
    """Return the parts of a name as `relation_parts` does, with the meaning behind each abbreviation: `mgr manager`."""
    return [
        [spelt for word in part for spelt in (word, *_ABBREVIATIONS.get(word, "").split())]
        for part in relation_parts(name)
    ]


def relation_parts(name: str) -> list[list[str]]:
    """Return the parts of a name, each as words; the last part is the most specific.

    `people.person.place_of_birth` has the parts people, person and place of birth. A URL has only its last part:
    `http://dbpedia.org/ontology/birthPlace` is birth place.
    """
    if _SCHEME.match(name):
        name = unquote(re.split(r"[/#]", name.rstrip("/#"))[-1])
    parts = (_split_part(part) for part in _PARTS.split(name))
    return [list(part) for part in parts if part]


@lru_cache(_WORDS_REMEMBERED)
def _split_part(part: str) -> tuple[str, ...]:
    """Return the words of a part, cached since thousands of relations share domains and types."""
    return tuple(split_words(fold(_CAMEL.sub(" ", part))))


def relation_words(name: str) -> list[str]:
    """Return the words of all parts of a name in order, empty if it has no letter or digit."""
    return list(_split_once(name))


@lru_cache(_WORDS_REMEMBERED)
def _split_once(name: str) -> tuple[str, ...]:
    """Return the words of a name, cached since linking and several scorers need them."""
    return tuple(word for part in relation_parts(name) for word in part)


def words_of_all(names: Iterable[str]) -> frozenset[str]:
    """Return the words of several names."""
    return frozenset().union(*map(_split_once, names))


def stems_of(word: str) -> set[str]:
    """Return a word, and the word without each ending that it has."""
    cut = (word[: len(word) - len(suffix)] for suffix in _SUFFIXES if word.endswith(suffix))
    return {word} | {stem for stem in cut if len(stem) >= _SHORTEST_STEM}


def stems(words: Iterable[str]) -> set[str]:
    return {word[:_STEM] for word in words}


def kind_stems(kinds: Iterable[str]) -> set[str]:
    """Return the stems of kinds of answers, and of the corresponding words of types."""
    spoken = {form for kind in kinds for form in (kind, kind.removesuffix("s"))}
    return stems(spoken) | stems(meant for kind in spoken for meant in _MEANT.get(kind, "").split())


def answer_kinds(words: Sequence[str]) -> set[str]:
    """Return the words for the kind of answer: `films` in `what films did X direct`.

    They follow the question word or an article (`what is a film by X`); who and where are kinds themselves.
    """
    kinds = {"who" if word in _PERSONS else word for word in words if word in _PERSONS or word == "where"}
    start = next((at for at, word in enumerate(words) if word in OPENERS), len(words))
    near = True  # right after the question word or an article
    for at, word in enumerate(words[start + 1 :], start + 1):
        possessive = word == SYMBOL and words[at + 1 : at + 2] == ["s"]
        if word in ARTICLES or (word == "s" and words[at - 1] == SYMBOL):
            near = True
        elif word in _KINDS or possessive or (word == SYMBOL and near):
            continue
        elif word == "by" or word == SYMBOL or word in PLACES | AIDS | CONTEXT_WORDS:
            break
        elif words[at - 1] in _COPULAS and words[at + 1 : at + 2] == ["by"]:
            break  # `who is managed by X`
        elif word in FUNCTION_WORDS:
            near = near and word in _COPULAS
        else:
            return kinds | set(words[at : at + _run_length(words[at:])]) if near else kinds
    return kinds


def _run_length(words: Sequence[str]) -> int:
    """Return the number of words before the first that ends a noun phrase."""
    stops = FUNCTION_WORDS | CONTEXT_WORDS | {SYMBOL}
    return next((at for at, word in enumerate(words) if word in stops), len(words))
