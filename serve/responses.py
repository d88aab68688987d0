"""Answers and errors over HTTP: each error has the same message as on the command line."""

import json
import logging
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from kbtools import errors
from kbtools.answering.results import JSON_VERSION, UNLESS_ASKED, Record, Result
from kbtools.errors import KBToolsError

logger = logging.getLogger(__name__)

_STATUSES: tuple[tuple[type[KBToolsError], int], ...] = (
    (errors.RequestTooLarge, 413),
    (errors.RequestTooSlow, 408),
    (errors.AnswerTooSlow, 504),
    (errors.ServerBusy, 503),
    (errors.RequestForbidden, 403),
    (errors.UnknownEntity, 404),
    (errors.VectorsMissing, 404),
    (errors.BadArgument, 400),
    (errors.BadQuestions, 400),
    (errors.UnknownPlugin, 400),
    (errors.UnknownType, 400),
    (errors.UnknownLanguage, 400),
    (errors.ModelMissing, 400),
    (errors.MissingDependency, 501),
    (errors.IncomingMissing, 501),
    (errors.ServerError, 502),
)
"""The status of each error, by the first class that fits; any other error is the server's fault."""

_JSON, JSON_LINES = "application/json", "application/jsonl"


def json_bytes(record: object) -> bytes:
    """Return JSON in UTF-8; an unpaired surrogate, which UTF-8 cannot hold, becomes a question mark."""
    try:
        return msgspec.json.encode(record, enc_hook=_plain_text)
    except UnicodeEncodeError:
        return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")


def _plain_text(value: object) -> str:
    """Return a text in several languages as a plain string; raise TypeError for anything else."""
    if not isinstance(value, str):
        raise TypeError(f"{type(value).__name__} cannot be written as JSON")
    return str(value)


def record_bytes(record: Result | Record) -> bytes:
    """Return the JSON of a record without building dictionaries, which would take a quarter of a question's time."""
    written = {field.name: getattr(record, field.name) for field in fields(record)}
    written = {name: value for name, value in written.items() if value is not None or name not in UNLESS_ASKED}
    return json_bytes({"json_version": JSON_VERSION, **written})


def json_response(record: object, status: int = 200) -> Response:
    return json_bytes_response(json_bytes(record), status)


def json_bytes_response(written: bytes, status: int = 200) -> Response:
    return Response(written, status, media_type=_JSON)


def error_record(error: KBToolsError) -> dict[str, Any]:
    return {"error": {"kind": type(error).__name__, "message": str(error)}}


def error_response(request: Request, error: Exception) -> Response:
    """Answer with the message of an error; unexpected errors are logged, and their text is not shown."""
    if not isinstance(error, KBToolsError):
        logger.error("%s %s: %s", request.method, ascii(request.url.path), ascii(error))
        logger.debug("the error above", exc_info=error)
        return json_response(
            {"error": {"kind": "InternalError", "message": "the server failed; its log says why"}}, 500
        )
    status = next((status for kind, status in _STATUSES if isinstance(error, kind)), 500)
    response = json_response(error_record(error), status)
    if status in (408, 413):  # The rest of the body is still to come.
        response.headers["connection"] = "close"
    if status == 503:
        response.headers["retry-after"] = "1"
    return response


def http_error_response(status: int, detail: str, headers: Mapping[str, str]) -> Response:
    """Answer with an HTTP error such as an unknown path or method."""
    response = json_response({"error": {"kind": "HTTPError", "message": detail.lower()}}, status)
    response.headers.update(headers)
    return response
