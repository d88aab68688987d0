"""Loading an embedded knowledge base into a cluster: a new version, checked, then switched to in one call."""

import logging
from dataclasses import dataclass
from typing import Any

from kbtools.errors import BulkFailed, Unreachable, WrongFormat
from kbtools.indexers.building.build import BuildProgress
from kbtools.indexers.elastic.build_notes import Build, drop_notes, ensure_control, read_note, read_parts
from kbtools.indexers.elastic.claims import begin, claim
from kbtools.indexers.elastic.cluster import Cluster
from kbtools.indexers.elastic.load_job import LoadJob, LoadOptions
from kbtools.indexers.elastic.mapping import (
    ENTITIES,
    MAPPING_VERSION,
    NAMES,
    ROLES,
    Mark,
    final_settings,
    index_name,
)
from kbtools.indexers.elastic.name_documents import count_normal_forms
from kbtools.indexers.elastic.versions import (
    Version,
    check_alias,
    check_name,
    delete_versions,
    list_versions,
    switch,
)
from kbtools.indexers.folder.embedded import EmbeddedKB
from kbtools.indexers.folder.kb_folder import require_intact
from kbtools.kb.manifest import Manifest

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Loaded:
    """The outcome of a load: the version, whether it was made now, whether readers see it, copies still to be made."""

    manifest: Manifest
    version: int
    fresh: bool
    current: bool
    documents: int = 0
    copies_missing: int = 0


def load(kb: EmbeddedKB, cluster: Cluster, name: str, *, options: LoadOptions, watch: BuildProgress) -> Loaded:
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
    if current and not options.force and holds(cluster, current, kb.manifest):
        return Loaded(kb.manifest, current.number, fresh=False, current=True)
    # Every byte is read once here: a damaged folder would be loaded for hours before its counts do not match.
    require_intact(kb.path, kb.manifest)
    ensure_control(cluster)
    wait = options.patience.sleep
    build = begin(cluster, name, digest, parts=options.parts, settings=options.settings, wait=wait)
    own_claim = claim(cluster, name, options.part, wait=wait)
    job = LoadJob(kb, cluster, build, claim=own_claim, options=options, watch=watch)
    try:
        job.load()
        own_claim.write(done=True)
    finally:
        own_claim.release(**job.note_fields())
    parts = enumerate(read_parts(cluster, name, build.parts), 1)
    waiting = [number for number, part in parts if not (part and part.done)]
    documents = own_claim.progress.documents
    if waiting and read_note(cluster, name):
        logger.info("parts %s are not loaded yet", waiting)
        return Loaded(kb.manifest, build.version, fresh=True, current=False, documents=documents)
    missing = finish(kb, cluster, build, options, watch)
    return Loaded(kb.manifest, build.version, fresh=True, current=True, documents=documents, copies_missing=missing)


def holds(cluster: Cluster, version: Version, manifest: Manifest) -> bool:
    """Tell whether a load of this content would make the same version again."""
    if version.mapping != MAPPING_VERSION or not set(ROLES) <= version.indexes.keys():
        return False
    answer = cluster.ask(
        "GET", f"/{version.indexes[ENTITIES]}/_doc/manifest", to="read the manifest", missing_ok=True,
    )  # fmt: skip
    record = ((answer or {}).get("_source") or {}).get("catalog", {}).get("manifest", {})
    return bool(record.get("digest") == manifest.digest and record.get("languages", {}) == manifest.languages)


def finish(kb: EmbeddedKB, cluster: Cluster, build: Build, options: LoadOptions, watch: BuildProgress) -> int:
    """Check a loaded version, restore its settings, switch to it, remove older ones beyond `keep`.

    Gives the number of copies that are still to be made.
    """
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
    missing = wait_for_copies(cluster, build.kb, both, options)
    mark = Mark(build.kb, build.version, MAPPING_VERSION, complete=True)
    cluster.ask(
        "PUT", f"/{both}/_mapping", {"_meta": mark.to_meta()}, to="mark the version as complete", patience=patience
    )
    # Looked at again just before the switch: the name may have been taken while the load ran.
    versions = list_versions(cluster, build.kb)
    check_alias(cluster, build.kb)
    switch(cluster, build.kb, Version(build.kb, build.version, indexes), versions)
    older = [version for version in versions if version.complete and version.number < build.version]
    deleted = delete_versions(cluster, older[: max(0, len(older) - options.keep)])
    drop_notes(cluster, build.kb, build.parts)
    also = f", deleted {', '.join(deleted)}" if deleted else ""
    watch.done("switch", f"{build.kb} is version {build.version}{also}")
    return missing


def check_counts(kb: EmbeddedKB, cluster: Cluster, build: Build, indexes: dict[str, str]) -> None:
    """Compare the counts of a version with the source; if they differ, the next run loads everything again."""
    counts, statistics = kb.manifest.counts, kb.manifest.statistics
    expected = {
        "entities": counts["entities"].unique,
        "facts": counts["facts"].unique,
        "facts of subjects": counts["facts"].unique,
        "incoming facts": counts["facts"].unique,
        "facts of objects": counts["facts"].unique,
        "names": counts["names"].unique,
        "types": counts["types"].unique - statistics["types_of_unknown_entities"],
        "forms": count_normal_forms(kb),
    }
    stored = count_stored(cluster, indexes)
    if stored != expected:
        differ = {kind: (stored[kind], count) for kind, count in expected.items() if stored[kind] != count}
        drop_notes(cluster, build.kb, build.parts)
        shares = ", ".join(f"{there:,} of {here:,} {kind}" for kind, (there, here) in differ.items())
        raise BulkFailed(
            f"{cluster.connection.where}: version {build.version} of {build.kb!r} holds {shares}; a node may have "
            "lost its data; run the same command to load again, and kbtools remove --unfinished to drop what is left",
            counts=differ,
        )


def count_stored(cluster: Cluster, indexes: dict[str, str]) -> dict[str, int]:
    """Count entities, facts, names, types and forms of a version."""
    sums = {name: {"sum": {"field": name}} for name in ("facts", "facts_in", "held", "held_in", "named")}
    body = {
        "size": 0,
        "query": {"exists": {"field": "part"}},
        "aggs": {"whole": {"filter": {"term": {"part": 0}}}, "types": {"value_count": {"field": "types"}}, **sums},
    }
    answer = cluster.ask(
        "POST", f"/{indexes[ENTITIES]}/_search", body, to="count the entities",
        params={"allow_partial_search_results": "false"},
    )  # fmt: skip
    counts = answer["aggregations"]
    forms = cluster.ask("GET", f"/{indexes[NAMES]}/_count", to="count the names")
    return {
        "entities": counts["whole"]["doc_count"],
        "facts": int(counts["held"]["value"]),
        "facts of subjects": int(counts["facts"]["value"]),
        "incoming facts": int(counts["held_in"]["value"]),
        "facts of objects": int(counts["facts_in"]["value"]),
        "names": int(counts["named"]["value"]),
        "types": counts["types"]["value"],
        "forms": forms["count"],
    }


def wait_for_copies(cluster: Cluster, kb: str, indexes: str, options: LoadOptions) -> int:
    """Wait until the copies of shards are made; give how many are not when patience ends, or for want of nodes.

    Raises Unreachable where a shard itself is away by then.
    """

    def is_settled(health: dict[str, Any]) -> bool:
        too_few_nodes = int(health["number_of_data_nodes"]) <= (options.settings.replicas or 0)
        return health["status"] == "green" or (too_few_nodes and health["status"] == "yellow")

    health = cluster.health(indexes, until=is_settled, patience=options.patience)
    if health is None or health["status"] == "red":
        raise Unreachable(
            f"{cluster.connection.where}: shards of {indexes} are away, the cluster's health is red; start the nodes "
            "that are down, then run the same command to go on",
            index=indexes,
        )
    missing = int(health["initializing_shards"] + health["unassigned_shards"])
    if missing:
        logger.warning("%s: %d copies of shards are still to be made", kb, missing)
    return missing
