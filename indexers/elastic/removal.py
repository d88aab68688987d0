"""What may be deleted from a cluster: versions of a knowledge base that are ours and that nobody is building."""

from kbtools.errors import KBMissing, ServerError
from kbtools.indexers.elastic.claims import drop_notes, is_alive, locked, read_note, read_parts
from kbtools.indexers.elastic.cluster import Cluster
from kbtools.indexers.elastic.versions import (
    CONTROL,
    Version,
    check_alias,
    check_name,
    delete_versions,
    list_versions,
)


def choose_versions(cluster: Cluster, kb: str, *, number: int | None, unfinished: bool) -> list[Version]:
    """List what a removal is about: one version, the unfinished ones, or all of them."""
    check_name(kb)
    versions = list_versions(cluster, kb)
    if not versions:
        check_alias(cluster, kb)
        raise KBMissing(f"{cluster.connection.where}: kbtools has nothing under the name {kb!r}", name=kb)
    if unfinished:
        return [version for version in versions if not version.complete and not version.current]
    if number is None:
        return versions
    chosen = [version for version in versions if version.number == number]
    if not chosen:
        known = ", ".join(str(version.number) for version in versions)
        raise KBMissing(f"{kb}: no version {number}; there are {known}", name=kb)
    if chosen[0].current:
        raise ServerError(f"{kb}: version {number} is the current one; roll back first, or remove the whole", name=kb)
    return chosen


def remove_versions(cluster: Cluster, kb: str, chosen: list[Version]) -> list[str]:
    """Delete versions and the notes of their build; raise BuildLocked while it is under way."""
    note = read_note(cluster, kb) if cluster.ask("GET", f"/{CONTROL}", to="look for builds", missing_ok=True) else None
    if note and any(version.number == note[0]["version"] for version in chosen):
        for progress in read_parts(cluster, kb, note[0]["parts"]):
            if progress and is_alive(cluster, kb, progress, cluster.patience.sleep):
                raise locked(cluster, kb, progress)
        drop_notes(cluster, kb, note[0]["parts"])
    return delete_versions(cluster, chosen)
