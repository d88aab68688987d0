"""Load an embedded knowledge base into a cluster: a new version, checked, then switched to in one call."""

import json
import logging
import secrets
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from kbtools.errors import BulkFailed, ServerError, WrongFormat
from kbtools.indexers.build import Watch
from kbtools.indexers.elastic.bulk import IN_FLIGHT, MOST_DOCUMENTS, Rejected, Sender, Sent, read_largest
from kbtools.indexers.elastic.claims import (
    Build,
    Claim,
    Progress,
    Taken,
    claim,
    drop_notes,
    ensure_control,
    is_alive,
    locked,
    read_note,
    read_parts,
    write_note,
)
from kbtools.indexers.elastic.cluster import Cluster, Patience
from kbtools.indexers.elastic.documents import Document, EntityReader, catalog_documents
from kbtools.indexers.elastic.forms import count_normal_forms, form_documents
from kbtools.indexers.elastic.mapping import (
    ENTITIES,
    MAPPING_VERSION,
    NAMES,
    OWNER,
    ROLES,
    Settings,
    final_settings,
    index_body,
    make_mark,
)
from kbtools.indexers.elastic.versions import (
    Version,
    check_alias,
    check_name,
    delete_versions,
    index_name,
    list_versions,
    read_mark,
    switch,
)
from kbtools.indexers.embedded import EmbeddedKB
from kbtools.indexers.pages import release_pages
from kbtools.manifest import Manifest

logger = logging.getLogger(__name__)

PATIENCE = 300.0
"""Seconds for which a load stands a cluster that refuses or is away."""

NOTED = 1.0
"""Seconds between two notes of progress: what a killed load does again."""

RELEASED = 20_000
"""Documents after which the pages of the source are given back."""

KEPT = 1


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """How to load: part k of n, what the indexes are set to, how many older versions stay."""

    part: int = 1
    parts: int = 1
    settings: Settings = field(default_factory=Settings)
    keep: int = KEPT
    force: bool = False
    in_flight: int = IN_FLIGHT
    batch: int = MOST_DOCUMENTS
    segments: int | None = None
    rejected: Path | None = None
    patience: Patience = field(default_factory=lambda: Patience(total=PATIENCE))


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a load came to: the version, whether it was made now, and whether readers see it."""

    manifest: Manifest
    version: int
    fresh: bool
    current: bool
    documents: int = 0


def load(kb: EmbeddedKB, cluster: Cluster, name: str, *, options: LoadOptions, watch: Watch) -> Loaded:
    """Load a knowledge base under a name; go on where a killed load of the same content stopped.

    Readers of the name see the version before until this one is complete and its counts match. Raises BuildLocked
    while another process loads the name, BulkFailed for rejected documents and for counts that do not match.
    """
    check_name(name)
    cluster = cluster.as_patient_as(options.patience)
    if not 1 <= options.part <= options.parts:
        raise WrongFormat(f"part {options.part}/{options.parts}: expected k/n with 1 <= k <= n")
    check_alias(cluster, name)
    digest = kb.manifest.digest
    current = next((version for version in list_versions(cluster, name) if version.current), None)
    if current and not options.force and holds(cluster, current, digest):
        return Loaded(kb.manifest, current.number, fresh=False, current=True)
    ensure_control(cluster)
    build = begin(cluster, name, digest, options)
    held = claim(cluster, name, build, options.part, fresh=False, wait=options.patience.sleep)
    run = Run(kb, cluster, build, held, options, watch)
    try:
        run.load()
        held.write(done=True)
    finally:
        held.release(**run.confirmed())
    waiting = [part for part, told in enumerate(read_parts(cluster, name, build.parts), 1) if not (told and told.done)]
    documents = held.progress.documents
    if waiting and read_note(cluster, name):
        logger.info("parts %s are not loaded yet", waiting)
        return Loaded(kb.manifest, build.version, fresh=True, current=False, documents=documents)
    finish(kb, cluster, build, options, watch)
    return Loaded(kb.manifest, build.version, fresh=True, current=True, documents=documents)


def holds(cluster: Cluster, version: Version, digest: str) -> bool:
    """Tell whether a version is what a load of this content would make."""
    if version.mapping != MAPPING_VERSION or not set(ROLES) <= version.indexes.keys():
        return False
    told = cluster.ask(
        "GET", f"/{version.indexes[ENTITIES]}/_doc/manifest", to="read the manifest", missing_ok=True,
    )  # fmt: skip
    manifest = ((told or {}).get("_source") or {}).get("catalog", {}).get("manifest", {})
    return bool(manifest.get("digest") == digest)


def begin(cluster: Cluster, name: str, digest: str, options: LoadOptions) -> Build:
    """Join the build of this content that is under way or was killed, or begin a new version."""
    taken = 0
    while True:
        note = read_note(cluster, name)
        under_way = Build(**note[0]) if note else None
        versions = list_versions(cluster, name)
        if under_way:
            same = [version for version in versions if version.number == under_way.version]
            made = any(set(ROLES) <= version.indexes.keys() for version in same)
            if made and under_way == replace(under_way, digest=digest, parts=options.parts, mapping=MAPPING_VERSION):
                return under_way
            for theirs in read_parts(cluster, name, under_way.parts):
                if theirs and is_alive(cluster, name, theirs, options.patience.sleep):
                    raise locked(cluster, name, theirs)
        build = Build(name, 1 + max([taken, *(version.number for version in versions)]), digest, options.parts)
        made_here = create_indexes(cluster, build, options.settings)
        if made_here is None:
            taken = build.version
            continue
        try:
            write_note(cluster, name, name, asdict(build), note[1] if note else None)
        except Taken:
            told = read_note(cluster, name)
            if told is None or Build(**told[0]) != build:
                delete_versions(cluster, [made_here])
                continue
        for part in range(1, (under_way.parts if under_way else 0) + 1):
            cluster.ask("DELETE", f"/kbtools-builds/_doc/{name}%2F{part}", to="forget an older build", missing_ok=True)
        return build


def create_indexes(cluster: Cluster, build: Build, settings: Settings) -> Version | None:
    """Make the indexes of a version, or nothing where another loader was first."""
    token = secrets.token_hex(8)
    indexes = {role: index_name(build.kb, build.version, role) for role in ROLES}

    def create(role: str) -> bool:
        body = index_body(role, kb=build.kb, version=build.version, token=token, settings=settings)
        try:
            cluster.ask("PUT", f"/{indexes[role]}", body, to=f"create {indexes[role]}", params={"timeout": "60s"})
        except ServerError as error:
            if "resource_already_exists" not in str(error):
                raise
            return read_mark(cluster, indexes[role]).get("token") == token  # then only the first answer was lost
        return True

    made: dict[str, str] = {}
    with ThreadPoolExecutor(len(ROLES)) as pool:  # together, the cluster writes its state once
        try:
            for role, ours in zip(ROLES, pool.map(create, ROLES), strict=True):
                if ours:
                    made[role] = indexes[role]
        except ServerError:
            pool.shutdown()
            ours_now = {
                role: index for role, index in indexes.items() if read_mark(cluster, index).get("token") == token
            }
            delete_versions(cluster, [Version(build.kb, build.version, ours_now)])
            raise
    if made != indexes:
        delete_versions(cluster, [Version(build.kb, build.version, made)])
        return None
    return Version(build.kb, build.version, indexes, MAPPING_VERSION)


class Run:
    """One run of a loader over its part."""

    def __init__(
        self, kb: EmbeddedKB, cluster: Cluster, build: Build, held: Claim, options: LoadOptions, watch: Watch
    ) -> None:
        self.kb, self.cluster, self.build, self.held = kb, cluster, build, held
        self.options, self.watch = options, watch
        self.sender = Sender(
            cluster,
            patience=options.patience,
            in_flight=options.in_flight,
            most=options.batch,
            largest=read_largest(cluster),
        )
        self.progress: Progress = held.progress
        self.noted = time.monotonic()
        self.read = 0
        self.rejected_file = options.rejected or Path(f"{build.kb}.rejected.jsonl")

    def confirmed(self) -> dict[str, Any]:
        """Give what a note tells of the progress."""
        told = self.progress
        return {name: getattr(told, name) for name in ("entities", "names", "documents", "rejected", "kinds")}

    def load(self) -> None:
        """Send what is not confirmed yet; raise BulkFailed at the end if documents were rejected."""
        if self.progress.rejected:
            self.progress = replace(self.progress, entities=0, names=0, documents=0, rejected=0, kinds={})
        manifest, part, parts = self.kb.manifest, self.options.part, self.options.parts
        entities, forms = manifest.counts["entities"].unique, manifest.statistics["forms"]
        if part == 1:
            self.send(ENTITIES, catalog_documents(self.kb), lambda sent: {})
        first, last = part_of(entities, part, parts)
        begun = max(first, self.progress.entities)
        self.send(ENTITIES, EntityReader(self.kb).documents(begun, last), lambda sent: {"entities": sent.done})
        self.watch.done("load entities", f"{max(0, last - begun):,} of {entities:,} entities")
        first, last = part_of(forms, part, parts)
        begun = max(first, self.progress.names)
        self.send(NAMES, form_documents(self.kb, begun, last), lambda sent: {"names": sent.done})
        self.watch.done("load names", f"{max(0, last - begun):,} of {forms:,} forms of names")
        if self.progress.rejected:
            kinds = "; ".join(f"{kind}: {reason}" for kind, reason in self.progress.kinds.items())
            raise BulkFailed(
                f"{self.cluster.connection.where}: {self.progress.rejected:,} documents were rejected, the first of "
                f"each kind: {kinds}; all of them are in {self.rejected_file}, the knowledge base before stays",
                rejected=self.progress.rejected,
                kinds=self.progress.kinds,
            )

    def send(self, role: str, documents: Iterable[Document], place: Callable[[Sent], dict[str, int]]) -> None:
        """Send documents into the index of a role, noting what is confirmed."""

        def confirm(sent: Sent) -> None:
            self.keep(sent.rejected)
            kinds = dict(self.progress.kinds)
            for rejected in sent.rejected:
                kinds.setdefault(rejected.kind, f"document {rejected.key}: {rejected.reason}")
            self.progress = replace(
                self.progress,
                **place(sent),  # type: ignore[arg-type]
                documents=self.progress.documents + sent.documents,
                rejected=self.progress.rejected + len(sent.rejected),
                kinds=kinds,
            )
            self.read += sent.documents
            if self.read > RELEASED:
                self.read = 0
                release_pages(self.kb.path)
            if sent.rejected or time.monotonic() - self.noted > NOTED:
                self.note()
            self.watch.progress(role, sent.done)

        self.sender.send_all(index_name(self.build.kb, self.build.version, role), documents, confirm)
        self.note()

    def note(self) -> None:
        """Put on the cluster what is confirmed so far."""
        self.held.write(**self.confirmed())
        self.noted = time.monotonic()

    def keep(self, rejected: Iterable[Rejected]) -> None:
        """Append rejected documents to their file."""
        lines = [
            json.dumps({"_id": one.key, "reason": one.reason, "document": one.source.decode()}, ensure_ascii=False)
            for one in rejected
        ]
        if lines:
            with self.rejected_file.open("a", encoding="utf-8") as file:
                file.write("\n".join(lines) + "\n")


def part_of(rows: int, part: int, parts: int) -> tuple[int, int]:
    """Give the rows of part k of n."""
    return rows * (part - 1) // parts, rows * part // parts


def finish(kb: EmbeddedKB, cluster: Cluster, build: Build, options: LoadOptions, watch: Watch) -> None:
    """Check a loaded version, restore its settings, switch to it, remove what is beyond `keep`."""
    indexes = {role: index_name(build.kb, build.version, role) for role in ROLES}
    both = ",".join(indexes.values())
    patience = options.patience
    cluster.ask("POST", f"/{both}/_refresh", to="refresh the indexes", patience=patience)
    check_counts(kb, cluster, build, indexes)
    watch.done("check", "every count as in the source")
    cluster.ask(
        "PUT", f"/{both}/_settings", final_settings(options.settings), to="restore the settings", patience=patience
    )
    if options.segments:
        cluster.ask(
            "POST", f"/{both}/_forcemerge", to="merge segments", patience=patience,
            params={"max_num_segments": options.segments, "wait_for_completion": "false"},
        )  # fmt: skip
    wait_for_replicas(cluster, both, options)
    mark = make_mark(build.kb, build.version, complete=True)
    cluster.ask(
        "PUT", f"/{both}/_mapping", {"_meta": {OWNER: mark}}, to="mark the version as complete", patience=patience
    )
    versions = list_versions(cluster, build.kb)
    check_alias(cluster, build.kb)
    switch(cluster, build.kb, Version(build.kb, build.version, indexes), versions)
    older = [version for version in versions if version.complete and version.number < build.version]
    gone = delete_versions(cluster, older[: max(0, len(older) - options.keep)])
    drop_notes(cluster, build.kb, build.parts)
    watch.done("switch", f"{build.kb} is version {build.version}" + (f", deleted {', '.join(gone)}" if gone else ""))


def counted(cluster: Cluster, indexes: dict[str, str]) -> dict[str, int]:
    """Count what a version holds."""
    sums = {name: {"sum": {"field": name}} for name in ("facts", "held", "named")}
    body = {
        "size": 0,
        "query": {"exists": {"field": "part"}},
        "aggs": {"whole": {"filter": {"term": {"part": 0}}}, "types": {"value_count": {"field": "types"}}, **sums},
    }
    told = cluster.ask(
        "POST", f"/{indexes[ENTITIES]}/_search", body, to="count the entities",
        params={"allow_partial_search_results": "false"},
    )  # fmt: skip
    found = told["aggregations"]
    forms = cluster.ask("GET", f"/{indexes[NAMES]}/_count", to="count the names")
    return {
        "entities": found["whole"]["doc_count"],
        "facts": int(found["held"]["value"]),
        "facts of subjects": int(found["facts"]["value"]),
        "names": int(found["named"]["value"]),
        "types": found["types"]["value"],
        "forms": forms["count"],
    }


def check_counts(kb: EmbeddedKB, cluster: Cluster, build: Build, indexes: dict[str, str]) -> None:
    """Compare what the cluster holds with the source; if they differ, the next run loads everything again."""
    counts, statistics = kb.manifest.counts, kb.manifest.statistics
    expected = {
        "entities": counts["entities"].unique,
        "facts": counts["facts"].unique,
        "facts of subjects": counts["facts"].unique,
        "names": counts["names"].unique,
        "types": counts["types"].unique - statistics["types_of_unknown_entities"],
        "forms": count_normal_forms(kb),
    }
    found = counted(cluster, indexes)
    if found != expected:
        differ = {kind: (found[kind], count) for kind, count in expected.items() if found[kind] != count}
        drop_notes(cluster, build.kb, build.parts)
        told = ", ".join(f"{there:,} of {here:,} {kind}" for kind, (there, here) in differ.items())
        raise BulkFailed(
            f"{cluster.connection.where}: version {build.version} of {build.kb!r} holds {told}; a node may have "
            "lost its data; run the same command to load again, and kbtools remove --unfinished to drop what is left",
            counts=differ,
        )


def wait_for_replicas(cluster: Cluster, both: str, options: LoadOptions) -> None:
    """Wait until the copies are made, where there are nodes for them."""
    health = cluster.ask("GET", "/_cluster/health", to="read the cluster's health")
    nodes, replicas = health["number_of_data_nodes"], options.settings.replicas
    if replicas is not None and nodes <= replicas:
        logger.warning("%d replicas need %d nodes, the cluster has %d: some stay away", replicas, replicas + 1, nodes)
        return
    cluster.ask(
        "GET", f"/_cluster/health/{both}", to="wait for replicas", missing_ok=True,
        params={"wait_for_status": "green", "wait_for_no_initializing_shards": "true", "timeout": "20s"},
    )  # fmt: skip
