"""Records of a line of Wikidata's JSON dump: the parts that a knowledge base keeps; the parser skips the others.

The collector of garbage need not look at them: no record leads back to itself.
"""

from typing import Annotated, Any, TypeVar

from msgspec import Meta, Struct

T = TypeVar("T")
Members = dict[str, T] | Annotated[list[T], Meta(max_length=0)]
"""An object by the names of its members; the dump writes an empty one as an empty array."""


class Value(Struct, gc=False, rename={"numeric_id": "numeric-id"}):
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
    value: Value | str | float | bool | list[Any] | None = None


class Snak(Struct, gc=False):
    """A property with its value, or without one."""

    snaktype: str
    datavalue: DataValue | None = None


class Statement(Struct, gc=False):
    """A snak with its rank."""

    mainsnak: Snak
    rank: str = "normal"


class Sitelink(Struct, gc=False):
    """A page of an entity, of which only the number counts."""


class Entity(Struct, gc=False):
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
