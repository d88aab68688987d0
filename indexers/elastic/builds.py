"""Begin the build of a version: join one that is under way or was killed, or make the indexes of a new one."""

import secrets
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace

from kbtools.errors import ServerError
from kbtools.indexers.elastic.claims import Build, Taken, is_alive, locked, read_note, read_parts, write_note
from kbtools.indexers.elastic.cluster import Cluster
from kbtools.indexers.elastic.mapping import MAPPING_VERSION, ROLES, Settings, index_body
from kbtools.indexers.elastic.options import LoadOptions
from kbtools.indexers.elastic.versions import Version, delete_versions, index_name, list_versions, read_mark


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
