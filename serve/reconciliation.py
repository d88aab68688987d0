"""The Reconciliation Service API 0.2 over one knowledge base: manifest, queries, suggestions, previews, extension.

https://www.w3.org/community/reports/reconciliation/CG-FINAL-specs-0.2-20230410/
"""

import json
import re
from collections.abc import Callable, Mapping
from html import escape
from typing import Any, TypeVar
from urllib.parse import parse_qs, quote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from kbtools.errors import BadArgument, UnknownEntity
from kbtools.serve.extension import SETTINGS, extend
from kbtools.serve.live_kb import Edition, LiveKB
from kbtools.serve.matching import reconcile
from kbtools.serve.parameters import parse_json, read_body, shortened
from kbtools.serve.reconciliation_queries import BATCH, LOOKED_UP, read_batch, read_extension, read_single
from kbtools.serve.responses import json_response
from kbtools.serve.suggestions import (
    HEIGHT,
    LAST_SUGGESTED,
    STYLE_POLICY,
    SUGGESTED,
    WIDTH,
    flyout,
    preview_page,
    propose_properties,
    small_page,
    suggest_entities,
    suggest_properties,
    suggest_types,
)
from kbtools.serve.workers import Workers
from kbtools.version import __version__

_T = TypeVar("_T")

_CALLBACK = re.compile(r"[A-Za-z_$][\w$]*(\.[A-Za-z_$][\w$]*)*", re.ASCII)
"""Names of JavaScript functions that JSONP may call."""

_FORM_BYTES = 4 << 20
"""Largest batch in bytes: a name may be a cell of some pages, and a character takes up to nine bytes in a form."""

_LOOK_UP = 20
"""Characters of a question whose cost equals a look-up: batches of more than 25 go to the thread for long answers, and
OpenRefine sends ten queries at a time.
"""

_CELLS_AT_ONCE = 10
"""Cells of a data extension whose cost equals a look-up."""

_LONGEST_CALLBACK = 100
_MOST_PROPOSED = 1_000


class ReconciliationService:
    """The endpoints of the protocol under `/reconcile`."""

    def __init__(self, kb: LiveKB, workers: Workers) -> None:
        self.kb, self.workers = kb, workers

    def routes(self) -> list[Route]:
        return [
            Route("/reconcile", self.reconcile, methods=["GET", "POST"]),
            Route("/reconcile/", self.reconcile, methods=["GET", "POST"]),
            Route("/reconcile/suggest/{kind:str}", self.suggest),
            Route("/reconcile/flyout/{kind:str}", self.flyout),
            Route("/reconcile/properties", self.properties),
            Route("/reconcile/preview", self.preview),
        ]

    async def run(self, request: Request, job: Callable[[Edition], _T], *, look_ups: int = 1) -> _T:
        """Compute with the edition in the languages of a request."""
        lang = request.query_params.get("lang")
        characters = _LOOK_UP * look_ups
        return await self.workers.run_on(
            self.kb, lambda edition: job(edition.in_languages(lang)), characters=characters
        )

    async def answer(self, request: Request, job: Callable[[Edition], Any], *, look_ups: int = 1) -> Response:
        """Answer in JSON or, with a callback, as a script that calls it."""
        return _with_callback(request, await self.run(request, job, look_ups=look_ups))

    async def reconcile(self, request: Request) -> Response:
        """Return the manifest, or answer queries, or extend rows."""
        form = await _read_form(request)
        if "queries" in form:
            batch = read_batch(form["queries"])
            return await self.answer(
                request,
                lambda edition: {key: {"result": reconcile(edition, query)} for key, query in batch.items()},
                look_ups=sum(query.look_ups for query in batch.values()),
            )
        if "query" in form:  # The older form of the protocol: one query, or its text.
            text = form["query"]
            settings = {name: form[name] for name in ("type", "limit", "type_strict") if name in form}
            single = read_single(
                text if isinstance(text, dict) or text.lstrip()[:1] == "{" else {"query": text, **settings}
            )
            look_ups = single.look_ups
            return await self.answer(request, lambda edition: {"result": reconcile(edition, single)}, look_ups=look_ups)
        if "extend" in form:
            query = read_extension(form["extend"])
            look_ups = query.cells // _CELLS_AT_ONCE
            return await self.answer(request, lambda edition: extend(edition, query), look_ups=look_ups)
        if request.method == "POST":
            raise BadArgument("a POST needs queries or extend, as a form or as JSON")
        url, lang = _service_url(request), request.query_params.get("lang")
        return await self.answer(request, lambda edition: _service_manifest(self.kb.name, edition, url, lang=lang))

    async def suggest(self, request: Request) -> Response:
        """Return completions of a prefix."""
        suggest = {"entity": suggest_entities, "property": suggest_properties, "type": suggest_types}[_kind_of(request)]
        prefix = request.query_params.get("prefix", "").encode(errors="replace").decode()
        cursor = _whole_number(request, "cursor", default=0)
        look_ups = len(prefix) // LOOKED_UP + min(cursor, LAST_SUGGESTED) // SUGGESTED
        return await self.answer(
            request, lambda edition: {"result": suggest(edition, prefix, cursor=cursor)}, look_ups=look_ups
        )

    async def flyout(self, request: Request) -> Response:
        """Return a short description of a suggestion."""
        kind, spelling = _kind_of(request), _required_id(request)
        return await self.answer(request, lambda edition: flyout(edition, kind, spelling))

    async def properties(self, request: Request) -> Response:
        """Return suggested properties of a type."""
        type_id = request.query_params.get("type", "")
        limit = _whole_number(request, "limit", default=_MOST_PROPOSED)
        most = min(limit, _MOST_PROPOSED)

        def proposed(edition: Edition) -> dict[str, Any]:
            return {"properties": propose_properties(edition, type_id, limit=most), "type": type_id, "limit": limit}

        return await self.answer(request, proposed)

    async def preview(self, request: Request) -> Response:
        """Return a preview of an entity."""
        spelling, status = _required_id(request), 200
        try:
            html = await self.run(request, lambda edition: preview_page(edition.answerer, spelling))
        except UnknownEntity as error:  # Clients show any answer in a window, so errors are pages as well.
            status, html = 404, small_page("not found", f"<p>{escape(str(error))}</p>")
        headers = {"content-security-policy": STYLE_POLICY}
        return Response(html, status, media_type="text/html; charset=utf-8", headers=headers)


def _service_url(request: Request) -> str:
    """Return the address of the service as its client sees it, including any prefix."""
    root = quote(request.scope.get("root_path", ""))
    return f"{request.url.scheme}://{request.url.netloc}{root}/reconcile"


async def _read_form(request: Request) -> Mapping[str, Any]:
    """Return the parameters of a GET, the form of a POST, or its JSON: `{"queries": …}`, `{"extend": …}` or a batch."""
    if request.method != "POST":
        return request.query_params
    body = await read_body(request, most=_FORM_BYTES)
    if "json" in request.headers.get("content-type", ""):
        record = parse_json(body, "the body")
        if not isinstance(record, dict):
            raise BadArgument(f"the body must be an object of queries by key, found {shortened(record)}")
        return record if record.keys() in ({"queries"}, {"extend"}) else {"queries": record}
    try:
        fields = parse_qs(body.decode(), keep_blank_values=True, max_num_fields=20)
    except ValueError as error:
        raise BadArgument(f"the body is not a form: {ascii(str(error))[1:-1]}") from error
    return {name: values[-1] for name, values in fields.items()}


def _with_callback(request: Request, record: object) -> Response:
    """Answer in JSON or, with a callback, as a script that calls it; raise BadArgument for an invalid callback."""
    callback = request.query_params.get("callback")
    if callback is None:
        return json_response(record)
    if len(callback) > _LONGEST_CALLBACK or not _CALLBACK.fullmatch(callback):
        raise BadArgument(f"callback must be the name of a function, found {shortened(callback)}", name="callback")
    # ASCII with a leading comment, so that no client can mistake the name for the start of another file type.
    return Response(f"/**/{callback}({json.dumps(record)});", media_type="text/javascript; charset=utf-8")


def _kind_of(request: Request) -> str:
    kind: str = request.path_params["kind"]
    if kind not in ("entity", "property", "type"):
        raise BadArgument(f"no suggestions of {kind!r}; known: entity, property, type", name="kind")
    return kind


def _required_id(request: Request) -> str:
    value = request.query_params.get("id", "")
    if not value:
        raise BadArgument("id is missing", name="id")
    return value


def _whole_number(request: Request, name: str, *, default: int) -> int:
    text = request.query_params.get(name) or str(default)
    if not text.isdecimal() or len(text) > 9:
        raise BadArgument(f"{name} must be a whole number, found {shortened(text)}", name=name)
    return int(text)


_VERSIONS = ["0.2"]
_DEFAULT_TYPES = 10
_FREEBASE = re.compile(r"m\.0")


def _service_manifest(name: str, edition: Edition, url: str, *, lang: str | None) -> dict[str, Any]:
    """Return the service manifest; `url` is the service's address, and its addresses keep the languages `lang`."""
    first, further = (f"{mark}lang={quote(lang)}" if lang else "" for mark in "?&")
    kinds = ("entity", "property", "type")
    spaces = _identifier_spaces(edition, url)
    return {
        "versions": _VERSIONS,
        "name": f"{name} (kbtools)",
        **spaces,
        "serviceVersion": __version__,
        "defaultTypes": [
            {"id": type_id, "name": type_id} for type_id in edition.vocabulary.frequent_types(_DEFAULT_TYPES)
        ],
        "view": {"url": url.removesuffix("reconcile") + "#entity?id={{id}}"},
        "preview": {"url": f"{url}/preview?id={{{{id}}}}{further}", "width": WIDTH, "height": HEIGHT},
        "suggest": {
            kind: {
                "service_url": url,
                "service_path": f"/suggest/{kind}{first}",
                "flyout_service_url": url,
                "flyout_service_path": f"/flyout/{kind}?id=${{id}}{further}",
            }
            for kind in kinds
        },
        "extend": {
            "propose_properties": {"service_url": url, "service_path": f"/properties{first}"},
            "property_settings": SETTINGS,
        },
        "batchSize": BATCH,
    }


def _identifier_spaces(edition: Edition, url: str) -> dict[str, str]:
    """Return the identifier spaces: Freebase's for its ids, else those of this service."""
    kb = edition.answerer.kb
    if any(_FREEBASE.match(entity_id) for entity_id in kb.ids(kb.entity_rows()[:50])):
        return {
            "identifierSpace": "http://rdf.freebase.com/ns/",
            "schemaSpace": "http://rdf.freebase.com/ns/type.object.id",
        }
    return {"identifierSpace": f"{url}#entities", "schemaSpace": f"{url}#types"}
