"""Parameters of a request, from its address or its body: bounded in size and time, and checked by one table."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from starlette.requests import Request

from kbtools.errors import BadArgument, RequestTooLarge, RequestTooSlow

BODY_BYTES = 1 << 20
"""Bytes of a body: ten thousand questions of a hundred bytes."""

DRAINED_BYTES = 32 << 20
"""Bytes of a body that are read to its end, so that its sender sees why it is refused; of a longer one no more."""

BODY_SECONDS = 10.0
"""Seconds that a body may take to arrive."""

TEXT_CHARACTERS = 10_000
"""Characters of a question or a name: more than ten times the longest name of Freebase."""

Kind = Literal["text", "count", "share", "flag", "texts"]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A named value of a request: a text, a whole number, a number from 0 to 1, true or false, or a list of texts."""

    name: str
    kind: Kind
    help: str
    required: bool = False
    least: int = 0
    most: int = 1_000
    longest: int = TEXT_CHARACTERS


async def read_parameters(request: Request, parameters: Sequence[Parameter]) -> dict[str, Any]:
    """Read the parameters of a GET from its address, of a POST from its JSON; those not given are left out.

    Raises BadArgument that names what is missing, unknown or of another kind.
    """
    posted = request.method == "POST"
    raw: Mapping[str, Any] = await read_object(request) if posted else request.query_params
    known = {parameter.name: parameter for parameter in parameters}
    values = {}
    for name, value in raw.items():
        if name not in known:
            expected = ", ".join(known)
            raise BadArgument(f"no parameter {name!r}; known: {expected}", name=name)
        if value is not None:
            values[name] = checked(known[name], value if posted else spoken(known[name], value))
    for parameter in parameters:
        if parameter.required and parameter.name not in values:
            raise BadArgument(f"{parameter.name} is missing: {parameter.help}", name=parameter.name)
    return values


def spoken(parameter: Parameter, text: str) -> Any:
    """Turn the text of an address into what JSON would say; what is none of it stays a text."""
    if parameter.kind == "flag":
        return {"true": True, "1": True, "false": False, "0": False}.get(text.lower(), text)
    if parameter.kind in ("count", "share"):
        try:
            return json.loads(text) if len(text) < 30 else text
        except ValueError:
            return text
    return text


def checked(parameter: Parameter, value: Any) -> Any:
    """Check a value by its parameter; raise BadArgument for another kind, RequestTooLarge for a long text."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    match parameter.kind:
        case "text" if isinstance(value, str):
            return checked_text(parameter, value)
        case "texts" if isinstance(value, list) and all(isinstance(text, str) for text in value):
            if len(value) > parameter.most:
                raise RequestTooLarge(f"{parameter.name} holds {len(value):,}, at most {parameter.most:,} in a request")
            return [checked_text(parameter, text) for text in value]
        case "count" if isinstance(value, int) and number and parameter.least <= value <= parameter.most:
            return value
        case "share" if number and 0 <= value <= 1:
            return value
        case "flag" if isinstance(value, bool):
            return value
    expected = {
        "text": "a text",
        "texts": "a list of texts",
        "count": f"a whole number from {parameter.least} to {parameter.most:,}",
        "share": "a number from 0 to 1",
        "flag": "true or false",
    }[parameter.kind]
    raise BadArgument(f"{parameter.name} is {expected}, found {shortened(value)}", name=parameter.name)


def checked_text(parameter: Parameter, text: str) -> str:
    """Refuse an empty text and one that is too long; halves of characters become question marks, as in a terminal."""
    if not text.strip():
        raise BadArgument(f"the {parameter.name.removesuffix('s')} is empty", name=parameter.name)
    if len(text) > parameter.longest:
        raise RequestTooLarge(f"{parameter.name} has {len(text):,} characters, at most {parameter.longest:,}")
    return text.encode(errors="replace").decode()


def shortened(value: object) -> str:
    """Quote a value of any length."""
    text = json.dumps(value, ensure_ascii=False, default=repr).encode(errors="replace").decode()
    return text if len(text) <= 100 else text[:100] + "…"


async def read_object(request: Request) -> dict[str, Any]:
    """Read a body that is a JSON object."""
    value = parse_json(await read_body(request), "the body")
    if not isinstance(value, dict):
        raise BadArgument(f"the body is a JSON object, found {shortened(value)}")
    return value


def parse_json(text: bytes | str, what: str) -> Any:
    """Parse JSON; raise BadArgument for what is none, and for numbers and depths that no one means."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadArgument(f"{what} is no JSON: {ascii(str(error))[1:-1]}") from error


async def read_body(request: Request, *, most: int = BODY_BYTES) -> bytes:
    """Read a body; raise RequestTooLarge beyond the limit, RequestTooSlow for one that does not arrive."""
    body = bytearray()
    received = 0
    expected = request.headers.get("content-length", "")
    if expected.isdigit() and int(expected) > DRAINED_BYTES:
        raise RequestTooLarge(f"the body has {int(expected):,} bytes, at most {most:,}")
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for chunk in request.stream():
                received += len(chunk)
                if received <= most:
                    body += chunk
                elif received > DRAINED_BYTES:
                    break
    except TimeoutError as error:
        raise RequestTooSlow(f"the body did not arrive within {BODY_SECONDS:g} seconds") from error
    if received > most:
        raise RequestTooLarge(f"the body has more than {most:,} bytes")
    return bytes(body)
