"""Comparison of property values by kind: dates by precision, coordinates by distance, numbers, names."""

import re
from dataclasses import dataclass
from math import asin, cos, radians, sin, sqrt

from rapidfuzz import fuzz

from kbtools.text.normaliser import normal_form
from kbtools.text.rewritings import read_date

_DATE = re.compile(r"\+?(-?\d{4})(?:-(\d\d))?(?:-(\d\d))?(?:T[\d:.]+(?:Z|[+-]\d\d:?\d\d)?)?", re.ASCII)
"""A year, month or day, with an optional time, which is ignored: clients add midnight to a day."""

_POINT = re.compile(r"(?:Point\()?\s*(-?\d{1,3}(?:\.\d{1,20})?)\s*(,|\s)\s*(-?\d{1,3}(?:\.\d{1,20})?)\s*\)?", re.ASCII)
"""Latitude and longitude, or longitude and latitude as `Point(2.35 48.85)`."""

_NUMBER = re.compile(r"([+-]?(?:\d{1,3}(?:,\d{3})+|\d{1,30})(?:\.\d{1,30})?)\s*([^\W\d_]{0,12}|[%\u00b0])", re.ASCII)
"""A number with an optional unit, `1.96 metre`."""

_ADDRESS = re.compile(r"(?:https?:)?//(?:www\.)?|^www\.", re.IGNORECASE)
"""The beginning of a URL, which is ignored, as are trailing slashes."""

_IDENTIFIER = re.compile(r"(?=.*\d)[0-9A-Za-z]+(?:[ \u2010-\u2013-][0-9A-Za-z]+)*")
"""An ISBN, a telephone number or the like: hyphens and spaces are ignored."""

_LONGEST = 60
"""Most characters of a date, point or number: anything longer is a name."""

_FAR = 50.0
"""Kilometres from which two places do not agree at all; up to a twentieth of it they are the same place."""

_EARTH = 6_371.0
"""The radius of the earth in kilometres."""


@dataclass(frozen=True, slots=True)
class Comparable:
    """A text with its readings as a value."""

    form: str
    date: tuple[str, ...] = ()
    point: tuple[float, float] | None = None
    number: float | None = None
    unit: str = ""
    identifier: str = ""


def read_comparable(text: str) -> Comparable:
    """Read a text as a date, a point on earth, a number, an identifier or a name; a URL is its address."""
    text = text.strip()
    if address := _ADDRESS.match(text):
        text = text[address.end() :].rstrip("/")
    form = normal_form(text)
    if len(text) > _LONGEST:
        return Comparable(form)
    if date := _DATE.fullmatch(text):
        parts = tuple(part for part in date.groups() if part and part != "00")
        return Comparable(form, date=parts, number=float(text) if text.isdecimal() else None)
    if point := _POINT.fullmatch(text):
        numbers = float(point[1]), float(point[3])
        latitude, longitude = numbers[::-1] if text.startswith("Point") else numbers
        if ("." in text and point[2] == ",") or text.startswith("Point"):
            return Comparable(form, point=(latitude, longitude))
    if spelt := read_date(form):
        return Comparable(form, date=spelt)
    identifier = re.sub(r"[^\w]", "", text).casefold() if _IDENTIFIER.fullmatch(text) else ""
    if number := _NUMBER.fullmatch(text):
        value = float(number[1].replace(",", ""))
        return Comparable(form, number=value, unit=normal_form(number[2]), identifier=identifier)
    return Comparable(form, identifier=identifier)


def likeness(one: Comparable, other: Comparable, *, cutoff: float) -> float:
    """Return the agreement of two values, 0 to 1; 0 for names that agree less than `cutoff`."""
    if one.date and other.date:
        return float(all(mine == theirs for mine, theirs in zip(one.date, other.date, strict=False)))
    if one.point and other.point:
        return max(0.0, 1 - _distance(one.point, other.point) / _FAR)
    if one.identifier and one.identifier == other.identifier:
        return 1.0
    if one.number is not None and other.number is not None:
        return float(one.number == other.number and (one.unit == other.unit or not (one.unit and other.unit)))
    if not one.form or not other.form:
        return 0.0
    return fuzz.ratio(one.form, other.form, score_cutoff=100 * cutoff) / 100


def _distance(one: tuple[float, float], other: tuple[float, float]) -> float:
    """Return the kilometres between two points, each a latitude and a longitude in degrees."""
    (north, east), (other_north, other_east) = map(radians, one), map(radians, other)
    half = sin((other_north - north) / 2) ** 2 + cos(north) * cos(other_north) * sin((other_east - east) / 2) ** 2
    return 2 * _EARTH * asin(sqrt(min(1.0, max(0.0, half))))
