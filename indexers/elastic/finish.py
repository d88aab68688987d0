"""Finish a load: its counts are checked against the source, its settings restored, and readers switched to it."""

import logging

from kbtools.errors import BulkFailed
from kbtools.indexers.build import BuildProgress
from kbtools.indexers.elastic.claims import Build, drop_notes
from kbtools.indexers.elastic.cluster import Cluster
from kbtools.indexers.elastic.forms import count_normal_forms
from kbtools.indexers.elastic.mapping import ENTITIES, NAMES, OWNER, ROLES, final_settings, make_mark
from kbtools.indexers.elastic.options import LoadOptions
from kbtools.indexers.elastic.versions import (
    Version,
    check_alias,
    delete_versions,
    index_name,
    list_versions,
    switch,
)
from kbtools.indexers.embedded import EmbeddedKB

logger = logging.getLogger(__name__)


def finish(kb: EmbeddedKB, cluster: Cluster, build: Build, options: LoadOptions, watch: BuildProgress) -> None:
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
