"""The right to update a knowledge base on a cluster: one update or load at a time; what a killed update left goes."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict

from kbtools.errors import BuildLocked, KBToolsError
from kbtools.indexers.elastic.build_notes import (
    Build,
    Taken,
    drop_note,
    drop_notes,
    read_build,
    read_parts,
    write_note,
)
from kbtools.indexers.elastic.claims import Claim, claim, is_alive, locked
from kbtools.indexers.elastic.cluster import ONCE, Cluster
from kbtools.indexers.elastic.versions import delete_versions, list_versions


@contextmanager
def claim_update(cluster: Cluster, kb: str) -> Iterator[tuple[Claim, int]]:
    """Take the right to change a knowledge base, and the number of the next version, for the time of an update."""
    wait = cluster.patience.sleep
    while True:
        note = read_build(cluster, kb)
        left = note[0] if note else None
        if left:
            for theirs in read_parts(cluster, kb, left.parts):
                if theirs and is_alive(cluster, kb, theirs, wait):
                    raise locked(cluster, kb, theirs)
            if not left.base:
                raise BuildLocked(
                    f"{cluster.connection.where}: a load of {kb!r} was left unfinished; run it again to go on, or drop "
                    f"it with kbtools remove --elasticsearch --kb {kb} --unfinished, then update",
                    name=kb,
                )
        versions = list_versions(cluster, kb)
        base = next(version.number for version in versions if version.current)
        number = 1 + max([*(version.number for version in versions), left.version if left else 0])
        build = Build(kb, number, "", 1, base=base)
        try:
            write_note(cluster, kb, kb, asdict(build), note[1] if note else None)
        except Taken:
            note = read_build(cluster, kb)
            if note is None or note[0] != build:
                continue
        break
    if left:
        drop_note(cluster, f"{kb}/1")
        # What a killed update left: a version that nobody reads.
        delete_versions(cluster, [v for v in versions if v.number == left.version and not v.current])
    own_claim = claim(cluster, kb, 1, wait=wait)
    try:
        yield own_claim, number
    except BaseException:
        own_claim.release()
        # What cannot be deleted now, the next update finds by its note.
        with suppress(KBToolsError):
            at_once = cluster.as_patient_as(ONCE)
            delete_versions(at_once, [v for v in list_versions(at_once, kb) if v.number == number and not v.current])
            if not own_claim.lost:
                drop_notes(at_once, kb, 1)
        raise
    own_claim.release()
    drop_notes(cluster, kb, 1)
