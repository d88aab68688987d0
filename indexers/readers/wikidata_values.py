"""Records of Wikidata's JSON dump, and its values as objects of facts: entities as ids, all else as plain literals.

The records have only the parts that a knowledge base keeps; the parser skips the others. They are exempt from garbage
collection, since no record refers to itself.
"""

import re
from collections.abc import Callable
from typing import Annotated, Any, TypeVar
from urllib.parse import unquote

from msgspec import Meta, Struct

ENTITY = "http://www.wikidata.org/entity/"
_EARTH = "Q2"
_XSD = "http://www.w3.org/2001/XMLSchema#"
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"})
_TIME = re.compile(r"([+-]?)(\d+)-(\d\d)-(\d\d)T.*")
_POINT = re.compile(r"(?:<(\S+)> )?Point\((\S+) (\S+)\)", re.IGNORECASE)
_COMMONS = ("http://commons.wikimedia.org/wiki/Special:FilePath/", "http://commons.wikimedia.org/data/main/")

_DECADE, _CENTURY, _YEAR, _MONTH, _DAY = 8, 7, 9, 10, 11
"""Wikibase's precision of times."""

_YEAR_DIGITS = 4
"""Least number of digits of a year."""

_T = TypeVar("_T")
Members = dict[str, _T] | Annotated[list[_T], Meta(max_length=0)]
"""The members of an object by name; the dump writes an empty object as an empty array."""


class WikidataValue(Struct, gc=False, rename={"numeric_id": "numeric-id"}):
    """The parts of a value of any known type, unchecked."""

    id: Any = None
    numeric_id: Any = None
    time: Any = None
    precision: Any = None
    amount: Any = None
    unit: Any = None
    text: Any = None
    language: Any = None
    latitude: Any = None
    longitude: Any = None
    globe: Any = None


class Term(Struct, gc=False):
    """A label, a description or an alias."""

    value: str


class DataValue(Struct, gc=False):
    """A value with the name of its type."""

    type: Any = None
    value: WikidataValue | str | float | bool | list[Any] | None = None


class Snak(Struct, gc=False):
    """A property with its value, or without one."""

    snaktype: str
    datavalue: DataValue | None = None


class Statement(Struct, gc=False):
    """A snak with its rank."""

    mainsnak: Snak
    rank: str = "normal"


class Sitelink(Struct, gc=False):
    """A page about an entity; only their number is used."""


class WikidataEntity(Struct, gc=False):
    """An entity, or a redirect to one."""

    id: str = ""
    type: str = "item"
    labels: Members[Term] = []
    aliases: Members[list[Term]] = []
    descriptions: Members[Term] = []
    claims: Members[list[Statement]] = []
    sitelinks: Members[Sitelink] = []
    entity: str | None = None
    redirect: str | None = None


def _spell_entity(value: WikidataValue) -> str:
    """Write an entity as its id."""
    if value.id is None:
        return f"Q{value.numeric_id:d}"
    if not value.id or not isinstance(value.id, str):
        raise ValueError("no id")
    return value.id


def literal(text: str) -> str:
    """Write text as a literal of N-Triples."""
    if not text.strip():
        raise ValueError("an empty text")
    # Four searches for a letter take half the time of one by a pattern.
    if '"' in text or "\\" in text or "\n" in text or "\r" in text:
        text = text.translate(_ESCAPES)
    return f'"{text}"'


def _spell_time(time: str, precision: int) -> str:
    """Write a time with its known precision: a day, month or year, or `1950s`, `20th century` as text."""
    parts = _TIME.fullmatch(time)
    if parts is None:
        raise ValueError("no time")
    sign, digits, month, day = parts.groups()
    year = f"{int(digits):04d}" if len(digits) != _YEAR_DIGITS else digits
    sign = "-" if sign == "-" else ""
    if precision >= _DAY and day != "00":
        return f'"{sign}{year}-{month}-{day}"^^<{_XSD}date>'
    if precision >= _MONTH and month != "00":
        return f'"{sign}{year}-{month}"^^<{_XSD}gYearMonth>'
    if precision >= _YEAR:
        return f'"{sign}{year}"^^<{_XSD}gYear>'
    return _spell_age(int(digits), precision, " BCE" if sign else "")


def _spell_age(year: int, precision: int, era: str) -> str:
    """Write a decade, a century, a millennium, or a number of years."""
    if precision == _DECADE:
        return f'"{year // 10 * 10}s{era}"'
    if precision == _CENTURY:
        return f'"{_ordinal((year + 99) // 100)} century{era}"'
    return (
        f'"about {year:,} years{era}"'
        if precision < _CENTURY - 1
        else f'"{_ordinal((year + 999) // 1000)} millennium{era}"'
    )


def _ordinal(number: int) -> str:
    """Return 1st, 2nd, 3rd, 4th, 11th and so on."""
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _spell_quantity(amount: str, unit: str) -> str:
    """Write an amount; its unit is the datatype until the build knows the unit's name."""
    float(amount)
    datatype = f"{_XSD}decimal" if unit == "1" else f"{ENTITY}{unit.rpartition('/')[2]}"
    return f'"{amount.removeprefix("+")}"^^<{datatype}>'


def _spell_place(latitude: float, longitude: float, globe: str) -> str:
    """Write coordinates as latitude, longitude; a globe other than the Earth follows them as a unit would."""
    text = f'"{_spell_number(latitude)}, {_spell_number(longitude)}"'
    world = globe.rpartition("/")[2]
    return text if world in (_EARTH, "") else f"{text}^^<{ENTITY}{world}>"


def _spell_number(number: float) -> str:
    return repr(float(number)).removesuffix(".0")


def spell_typed(text: str, datatype: str) -> str:
    """Write a literal of the RDF dump as the JSON dump's value, as far as RDF has the same information.

    RDF gives every time to the day, and counts a year 0 before Christ, which the JSON dump does not.
    """
    if datatype == f"{_XSD}dateTime" and (time := _TIME.fullmatch(text)):
        sign, year = time[1], int(time[2])
        if sign == "-" or not year:
            sign, year = "-", year + 1
        return _spell_time(f"{sign}{year:04d}-{time[3]}-{time[4]}T", _DAY)
    if datatype == f"{_XSD}decimal":
        return _spell_quantity(text, "1")
    if datatype.endswith("#wktLiteral") and (point := _POINT.fullmatch(text)):
        return _spell_place(float(point[3]), float(point[2]), point[1] or "")
    return literal(text)


def spell_address(iri: str) -> str:
    """Write an IRI other than an entity's as in the JSON dump: the name of a file on Commons, or an address as text."""
    for prefix in _COMMONS:
        if iri.startswith(prefix):
            return literal(unquote(iri.removeprefix(prefix)).replace("_", " "))
    return literal(iri)


SPELLINGS: dict[str, Callable[[Any], str]] = {
    "wikibase-entityid": _spell_entity,
    "string": literal,
    "time": lambda value: _spell_time(value.time, value.precision),
    "quantity": lambda value: _spell_quantity(value.amount, value.unit),
    "monolingualtext": lambda value: f"{literal(value.text)}@" + value.language,
    "globecoordinate": lambda value: _spell_place(value.latitude, value.longitude, value.globe),
}
"""The writer of each type of value as an object, by the name of the type.

Each raises AttributeError, TypeError or ValueError for a value without its parts.
"""
