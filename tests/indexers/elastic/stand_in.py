"""A stand-in for a cluster: the few actions of Elasticsearch that kbtools uses, over documents in memory.

It has one node and one shard. Like a real one it searches what was refreshed alone, refuses unknown fields, and changes
a document of notes only for a writer that has seen its last change.
"""

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from fnmatch import fnmatch
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import numpy as np
from rapidfuzz.distance import OSA

Source = dict[str, Any]
HELLO = {"name": "small", "version": {"number": "9.5.4"}, "tagline": "You Know, for Search"}


class Refused(Exception):
    """An answer other than 200, with the type of its error."""

    def __init__(self, status: int, kind: str, **facts: str) -> None:
        super().__init__(kind)
        error = {"type": kind, "reason": kind, **facts}
        self.answer = status, {"error": {"root_cause": [error], **error}, "status": status}


class Index:
    """The documents of an index: `stored` by id, and `seen` by searches."""

    def __init__(self, body: dict[str, Any]) -> None:
        self.settings = {"index.number_of_replicas": "1"}
        self.set(body.get("settings", {}))
        self.mappings: dict[str, Any] = body.get("mappings", {})
        self.aliases: dict[str, Any] = dict(body.get("aliases", {}))
        self.stored: dict[str, Source] = {}
        self.seen: dict[str, Source] = {}
        self.changes: dict[str, int] = {}
        self.deleted = 0

    def set(self, settings: dict[str, Any], prefix: str = "") -> None:
        for name, value in settings.items():
            key = f"{prefix}{name}"
            if isinstance(value, dict):
                self.set(value, f"{key}.")
            elif value is None:
                self.settings.pop(key, None)
            else:
                self.settings[key] = str(value).lower() if isinstance(value, bool) else str(value)

    def put(self, key: str, source: Source | None) -> None:
        """Store a document, or delete it."""
        known = self.mappings.get("properties", {})
        if source and self.mappings.get("dynamic") == "strict" and (more := source.keys() - known.keys()):
            raise Refused(400, "strict_dynamic_mapping_exception", field=min(more))
        self.deleted += self.stored.pop(key, None) is not None
        self.changes[key] = self.changes.get(key, -1) + 1
        if source is not None:
            self.stored[key] = source

    @property
    def copies_missing(self) -> int:
        follows = self.settings.get("index.auto_expand_replicas", "false") != "false"
        return 0 if follows else int(self.settings["index.number_of_replicas"])


class StandIn:
    """A cluster of indexes by name; `reply` answers one request."""

    def __init__(self) -> None:
        self.indexes: dict[str, Index] = {}
        self.lock = threading.Lock()

    def reply(self, method: str, path: str, body: bytes) -> tuple[int, object]:
        parts = urlsplit(path)
        names = [unquote(name) for name in parts.path.strip("/").split("/")]
        with self.lock:
            try:
                return 200, self.answer(method, names, dict(parse_qsl(parts.query)), body)
            except Refused as error:
                return error.answer
            except Exception as error:  # a request that the stand-in does not know: no test is to wait for it
                return 501, {"error": {"type": "unknown to the stand-in", "reason": f"{method} {path}: {error!r}"}}

    def answer(self, method: str, names: list[str], params: dict[str, str], body: bytes) -> Any:
        lines = [json.loads(line) for line in body.splitlines()] if names[-1] in ("_bulk", "_msearch") else []
        given: dict[str, Any] = json.loads(body) if body and not lines else {}
        match method, names:
            case _, [""]:
                return HELLO
            case _, ["_cluster", "health", *some]:
                return self.health(self.find(some[0]) if some else self.indexes)
            case _, ["_cat", "indices", pattern]:
                return [self.row(name, index) for name, index in self.find(pattern).items()]
            case _, ["_nodes", "http"]:
                return {"nodes": {"one": {"http": {"max_content_length_in_bytes": 100 * 1024 * 1024}}}}
            case _, ["_nodes", "stats", "process"]:
                return {"nodes": {}}
            case _, ["_tasks", _]:
                return {"completed": True}
            case _, ["_alias", alias]:
                return self.aliased(alias)
            case _, ["_aliases"]:
                for action in given["actions"]:
                    self.change_alias(*action.popitem())
                return {"acknowledged": True}
            case _, ["_msearch"]:
                return {"responses": [self.try_search(*pair) for pair in zip(lines[::2], lines[1::2], strict=True)]}
            case _, [*some, "_bulk"]:
                return self.store("".join(some), lines)
            case "PUT", [name]:
                return self.create(name, Index(given))
            case "DELETE", [name]:
                for own in self.find(name):
                    del self.indexes[own]
                return {"acknowledged": True}
            case _, [name] | [name, "_mapping"] if method == "GET":
                return {
                    own: {"aliases": index.aliases, "mappings": index.mappings}
                    for own, index in self.find(name).items()
                }
            case "GET", [name, "_settings", *_]:
                return {own: {"settings": index.settings} for own, index in self.find(name).items()}
            case _, [name, "_doc", key]:
                return self.note(method, name, key, given, params)
            case _, [name, "_clone", to]:
                return self.copy(self.indexes[name], to, given)
        every = list(self.find(names[0]).values())
        for index in every:
            match names[1:]:
                case ["_mapping"]:
                    index.mappings |= given
                case ["_settings"]:
                    index.set(given)
                case ["_block", "write"]:
                    index.set({"index.blocks.write": True})
                case ["_refresh"]:
                    index.seen = dict(index.stored)
                case ["_forcemerge"]:
                    index.deleted = 0
        match names[1:]:
            case ["_search"]:
                return search(every[0], given)
            case ["_count"]:
                return {"count": search(every[0], given | {"size": 0})["hits"]["total"]["value"], "_shards": {}}
            case ["_mget"]:
                docs = [(key, every[0].stored.get(key)) for key in given["ids"]]
                return {"docs": [{"_id": key, "found": own is not None, "_source": own} for key, own in docs]}
            case ["_stats", *_]:
                deleted = sum(index.deleted for index in every)
                size = sum(len(json.dumps(index.stored)) for index in every)
                totals = {"docs": {"deleted": deleted}, "store": {"size_in_bytes": size}}
                return {"_all": {"primaries": totals}, "indices": {}}
        return {"task": "one"}

    # Indexes

    def find(self, names: str) -> dict[str, Index]:
        """Find indexes by names, aliases and patterns with commas between."""
        found: dict[str, Index] = {}
        for name in names.split(","):
            own = {
                index_name: index
                for index_name, index in self.indexes.items()
                if any(fnmatch(known, name) for known in (index_name, *index.aliases))
            }
            if not own and "*" not in name:
                raise Refused(404, "index_not_found_exception", index=name)
            found |= own
        return found

    def create(self, name: str, index: Index) -> Source:
        if name in self.indexes:
            raise Refused(400, "resource_already_exists_exception", index=name)
        self.indexes[name] = index
        return {"acknowledged": True}

    def copy(self, base: Index, to: str, given: dict[str, Any]) -> Source:
        index = Index({"mappings": json.loads(json.dumps(base.mappings)), **given})
        index.stored, index.seen = dict(base.stored), dict(base.stored)
        return self.create(to, index)

    def aliased(self, pattern: str) -> Source:
        found = {
            name: {"aliases": {alias: {} for alias in index.aliases if fnmatch(alias, pattern)}}
            for name, index in self.indexes.items()
        }
        found = {name: own for name, own in found.items() if own["aliases"]}
        if not found and "*" not in pattern:
            raise Refused(404, "aliases_not_found_exception")
        return found

    def change_alias(self, kind: str, action: dict[str, Any]) -> None:
        for index in self.find(action["index"]).values():
            index.aliases.pop(action["alias"], None)
            if kind == "add":
                index.aliases[action["alias"]] = {}

    def health(self, indexes: dict[str, Index]) -> Source:
        missing = sum(index.copies_missing for index in indexes.values())
        return {
            "status": "yellow" if missing else "green",
            "number_of_data_nodes": 1,
            "unassigned_shards": missing,
            "unassigned_primary_shards": 0,
            "initializing_shards": 0,
            "indices": {name: {"active_shards": 1} for name in indexes},
        }

    def row(self, name: str, index: Index) -> Source:
        size = len(json.dumps(index.stored))
        return {
            "index": name, "health": "yellow" if index.copies_missing else "green", "docs.count": len(index.stored),
            "store.size": size, "pri.store.size": size, "pri": 1, "rep": index.settings["index.number_of_replicas"],
        }  # fmt: skip

    # Documents

    def note(self, method: str, name: str, key: str, source: Source, params: dict[str, str]) -> Source:
        """Read or change one document, if the writer has seen its last change."""
        (index,) = self.find(name).values()
        last, known = index.changes.get(key, -1), key in index.stored
        if method == "GET" or (method == "DELETE" and not known):
            if not known:
                raise Refused(404, "not_found")
            return {"found": True, "_source": index.stored[key], "_seq_no": last, "_primary_term": 1}
        if (params.get("op_type") == "create" and known) or int(params.get("if_seq_no", last)) != last:
            raise Refused(409, "version_conflict_engine_exception")
        index.put(key, source if method == "PUT" else None)
        return {"_seq_no": index.changes[key], "_primary_term": 1}

    def store(self, target: str, lines: list[dict[str, Any]]) -> Source:
        items: list[Source] = []
        waiting = iter(lines)
        for action in waiting:
            ((kind, about),) = action.items()
            source = next(waiting) if kind == "index" else None
            try:
                own = target or about["_index"]
                (index,) = (index for name, index in self.indexes.items() if own in (name, *index.aliases))
                if index.settings.get("index.blocks.write") == "true":
                    raise Refused(403, "cluster_block_exception")
                index.put(about["_id"], source)
                items.append({kind: {"status": 200}})
            except ValueError:
                items.append({kind: {"status": 404, "error": {"type": "index_not_found_exception"}}})
            except Refused as error:
                items.append({kind: error.answer[1]})
        return {"errors": any("error" in own for item in items for own in item.values()), "items": items}

    def try_search(self, head: dict[str, Any], body: dict[str, Any]) -> Any:
        try:
            (index,) = self.find(head["index"]).values()
            return search(index, body)
        except Refused as error:
            return error.answer[1]


def search(index: Index, body: dict[str, Any]) -> Source:
    """Answer a search: matches by score, or in the order asked for."""
    if "knn" in body:
        return nearest(index, body)
    score = scored(body.get("query", {"match_all": {}}))
    scores = {key: own for key, source in index.seen.items() if (own := score({"_id": key, **source}))}
    found = sorted(scores, key=lambda key: (-scores[key], key))
    if "sort" in body:
        places = {key: [index.seen[key][field] for field in body["sort"]] for key in found}
        found = sorted((key for key in found if places[key] > body.get("search_after", [])), key=places.__getitem__)
    hits = [hit(key, index.seen[key], body) for key in found[: body.get("size", 10)]]
    matching = [index.seen[key] for key in scores]
    totals = {name: total(matching, what) for name, what in body.get("aggs", {}).items()}
    return answered(hits, len(scores)) | {"aggregations": totals}


def nearest(index: Index, body: dict[str, Any]) -> Source:
    query = np.array(body["knn"]["query_vector"])
    scores = {
        key: float(1 + query @ own / np.linalg.norm(query) / np.linalg.norm(own)) / 2
        for key, source in index.seen.items()
        if len(own := np.array(source["vector"]))
    }
    best = sorted(scores, key=lambda key: -scores[key])[: body["size"]]
    return answered([hit(key, index.seen[key], body) | {"_score": scores[key]} for key in best], len(best))


def answered(hits: list[Source], count: int) -> Source:
    return {"timed_out": False, "_shards": {"failed": 0}, "hits": {"total": {"value": count}, "hits": hits}}


def hit(key: str, source: Source, body: dict[str, Any]) -> Source:
    fields = {name: [source[name]] for name in body.get("docvalue_fields", ()) if name in source}
    wanted = body.get("_source", True)
    own = {name: source[name] for name in wanted if name in source} if isinstance(wanted, list) else source
    return {"_id": key, "_source": own, "fields": fields, "sort": [source.get(name) for name in body.get("sort", ())]}


def total(sources: Iterable[Source], what: dict[str, Any]) -> Source:
    """Sum up what a search found."""
    ((kind, of),) = what.items()
    if kind == "filters":  # of one term each
        fields = {field for query in of["filters"].values() for field in query["term"]}
        counts = Counter((field, term) for own in sources for field in fields for term in set(terms_of(own, field)))
        pairs = {name: next(iter(query["term"].items())) for name, query in of["filters"].items()}
        return {"buckets": {name: {"doc_count": counts[pair]} for name, pair in pairs.items()}}
    if kind == "filter":
        score = scored(of)
        return {"doc_count": sum(bool(score(source)) for source in sources)}
    values = [value for source in sources for value in terms_of(source, of["field"])]
    return {"value": sum(values) if kind == "sum" else len(values)}


def scored(query: dict[str, Any]) -> Callable[[Source], float]:
    """Return the score of a document under a query, 0 if it does not match."""
    ((kind, of),) = query.items()
    if kind == "match_all":
        return lambda source: 1.0
    if kind == "constant_score":
        return scored(of["filter"])
    if kind == "bool":
        each = list(map(scored, of["should"]))
        return lambda source: sum(score(source) for score in each)
    if kind == "exists":
        return lambda source: float(of["field"] in source)
    ((field, wanted),) = of.items()
    if kind == "ids":
        return scored({"terms": {"_id": wanted}})
    if kind == "fuzzy":
        text, edits = wanted["value"], wanted["fuzziness"]
        return lambda source: float(any(OSA.distance(text, own) <= edits for own in terms_of(source, field)))
    if kind == "match":
        shared = set(terms_of({"form": wanted}, field))
        return lambda source: len(shared & (own := set(terms_of(source, field)))) / (len(shared | own) or 1)
    terms = set(wanted if kind == "terms" else [wanted])
    return lambda source: float(not terms.isdisjoint(terms_of(source, field)))


def terms_of(source: Source, field: str) -> list[Any]:
    if field == "words":
        return f"{source.get('form', '')} {source.get('words', '')}".split()
    if field == "trigrams":
        form = source.get("form", "")
        return [form[place : place + 3] for place in range(len(form) - 2)]
    value = source.get(field, [])
    return value if isinstance(value, list) else [value]
