"""Parameters of a request, from its address or body: limited in size and time, and checked by a struct."""

import asyncio
import json
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Struct, ValidationError, convert
from msgspec.json import schema

from kbtools.errors import BadArgument, RequestTooLarge, RequestTooSlow

if TYPE_CHECKING:  # `kbtools reconcile` imports this module without a server.
    from starlette.requests import Request

BODY_BYTES = 1 << 20
"""Largest body: ten thousand questions of a hundred bytes."""

_DRAINED_BYTES = 32 << 20
"""Largest body that is read to its end so that its sender receives the error; longer ones are cut off."""

BODY_SECONDS = 10.0
"""Most seconds for a body to arrive."""

TEXT_CHARACTERS = 10_000
"""Most characters of a question or name: more than ten times the longest name of Freebase."""


async def read_parameters(request: "Request", kind: type[Struct]) -> dict[str, Any]:
    """Read the parameters of a GET from its address, or of a POST from its JSON; omitted ones are left out.

    Raises BadArgument that names a missing, unknown or mistyped parameter, RequestTooLarge for a too long one.
    """
    posted = request.method == "POST"
    raw: Mapping[str, Any] = await _read_object(request) if posted else request.query_params
    values = {name: value for name, value in raw.items() if value is not None}
    schemas, required = parameter_schemas(kind)
    for name in values.keys() - schemas.keys():
        raise BadArgument(f"no parameter {name!r}; known: {', '.join(schemas)}", name=name)
    for name in required:
        if name not in values:
            raise BadArgument(f"{name} is missing: {schemas[name]['description']}", name=name)
    try:
        record = convert(values, kind, strict=posted)
    except ValidationError as error:
        # The message states what is expected, then where: "Expected `int` <= 10 - at `$.limit`".
        name = str(error).split("`")[-2].removeprefix("$.").partition("[")[0]
        raise _fault_of(name, values[name], schemas[name], str(error)) from error
    return {name: value for name in schemas if (value := getattr(record, name)) is not UNSET}


@cache
def parameter_schemas(kind: type[Struct]) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Return the schema of each parameter of a struct, and the names of the required ones."""
    described = schema(kind)["$defs"][kind.__name__]
    return described["properties"], described["required"]


def _fault_of(name: str, value: Any, expected: dict[str, Any], message: str) -> BadArgument | RequestTooLarge:
    """Return an error that describes what is wrong with a value."""
    if "regex" in message:
        return BadArgument(f"the {name.removesuffix('s')} is empty", name=name)
    if "of length" in message and expected["type"] == "array" and "array" in message:
        return RequestTooLarge(f"{name} has {len(value):,} values, at most {expected['maxItems']:,} in a request")
    if "of length" in message:
        most = expected.get("items", expected)["maxLength"]
        longest = max(map(len, value)) if isinstance(value, list) else len(value)
        return RequestTooLarge(f"{name} has {longest:,} characters, at most {most:,}")
    sentence = {
        "string": "a text",
        "array": "a list of texts",
        "integer": f"a whole number from {expected.get('minimum')} to {expected.get('maximum', 0):,}",
        "number": f"a number from {expected.get('minimum', 0):g} to {expected.get('maximum', 0):g}",
        "boolean": "true or false",
    }[expected["type"]]
    return BadArgument(f"{name} must be {sentence}, found {shortened(value)}", name=name)


def shortened(value: object) -> str:
    """Return a value of any length, shortened and quoted."""
    text = json.dumps(value, ensure_ascii=False, default=repr).encode(errors="replace").decode()
    return text if len(text) <= 100 else text[:100] + "…"


async def _read_object(request: "Request") -> dict[str, Any]:
    """Return the JSON object in a body."""
    value = parse_json(await read_body(request), "the body")
    if not isinstance(value, dict):
        raise BadArgument(f"the body must be a JSON object, found {shortened(value)}")
    return value


def _mended(value: Any) -> Any:
    """Return JSON with a question mark for each unpaired surrogate."""
    if isinstance(value, dict):
        return {_mended(name): _mended(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_mended(part) for part in value]
    return value.encode(errors="replace").decode() if isinstance(value, str) else value


def parse_json(text: bytes | str, what: str) -> Any:
    """Parse JSON; raise BadArgument if it is invalid, nested too deep, or has extreme numbers."""
    try:
        return _mended(json.loads(text))
    except RecursionError as error:
        raise BadArgument(f"{what} is JSON that is nested too deeply") from error
    except ValueError as error:
        raise BadArgument(f"{what} is not JSON: {ascii(str(error))[1:-1]}") from error


async def read_body(request: "Request", *, most: int = BODY_BYTES) -> bytes:
    """Return a body; raise RequestTooLarge beyond the limit, RequestTooSlow if it does not arrive in time."""
    body = bytearray()
    received = 0
    expected = request.headers.get("content-length", "")
    if expected.isdigit() and int(expected) > _DRAINED_BYTES:
        raise RequestTooLarge(f"the body has {int(expected):,} bytes, at most {most:,}")
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for chunk in request.stream():
                received += len(chunk)
                if received <= most:
                    body += chunk
                elif received > _DRAINED_BYTES:
                    break
    except TimeoutError as error:
        raise RequestTooSlow(f"the body did not arrive within {BODY_SECONDS:g} seconds") from error
    if received > most:
        raise RequestTooLarge(f"the body has more than {most:,} bytes")
    return bytes(body)
