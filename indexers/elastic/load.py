"""Load an embedded knowledge base into a cluster: a new version, checked, then switched to in one call."""

import logging
from dataclasses import dataclass

from kbtools.errors import WrongFormat
from kbtools.indexers.build import BuildProgress
from kbtools.indexers.elastic.builds import begin
from kbtools.indexers.elastic.claims import claim, ensure_control, read_note, read_parts
from kbtools.indexers.elastic.cluster import Cluster
from kbtools.indexers.elastic.finish import finish
from kbtools.indexers.elastic.mapping import ENTITIES, MAPPING_VERSION, ROLES
from kbtools.indexers.elastic.options import LoadOptions as LoadOptions
from kbtools.indexers.elastic.run import Run
from kbtools.indexers.elastic.versions import Version, check_alias, check_name, list_versions
from kbtools.indexers.embedded import EmbeddedKB
from kbtools.kb.manifest import Manifest

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a load came to: the version, whether it was made now, and whether readers see it."""

    manifest: Manifest
    version: int
    fresh: bool
    current: bool
    documents: int = 0


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
