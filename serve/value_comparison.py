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


def likeness(first: Comparable, second: Comparable, *, cutoff: float) -> float:
    """Return the agreement of two values, 0 to 1; 0 for names that agree less than `cutoff`."""
    if first.date and second.date:
        return float(all(mine == theirs for mine, theirs in zip(first.date, second.date, strict=False)))
    if first.point and second.point:
        return max(0.0, 1 - _distance(first.point, second.point) / _FAR)
    if first.identifier and first.identifier == second.identifier:
        return 1.0
    if first.number is not None and second.number is not None:
        return float(first.number == second.number and (first.unit == second.unit or not (first.unit and second.unit)))
    if not first.form or not second.form:
        return 0.0
    return fuzz.ratio(first.form, second.form, score_cutoff=100 * cutoff) / 100


def _distance(first: tuple[float, float], second: tuple[float, float]) -> float:
    """Return the kilometres between two points, each a latitude and a longitude in degrees."""
    (north, east), (other_north, other_east) = map(radians, first), map(radians, second)
    half = sin((other_north - north) / 2) ** 2 + cos(north) * cos(other_north) * sin((other_east - east) / 2) ** 2
    return 2 * _EARTH * asin(sqrt(min(1.0, max(0.0, half))))
