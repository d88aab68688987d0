"""The folder of a knowledge base: its files, the check for other files, and its manifest."""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from kbtools.errors import KBMissing, KBUnusable, VectorsMissing
from kbtools.indexers.folder.checksums import INDEX_AGAIN, compare_files
from kbtools.indexers.folder.faiss_index import FOLDER, VECTOR_FILES, read_vectors_record, vectors_cure
from kbtools.indexers.folder.language_sets import LANGUAGE_FILES, NUMBERS
from kbtools.kb.manifest import FORMAT_NAME, FORMAT_VERSION, SEGMENT, Manifest
from kbtools.record_files import read_record, write_record
from kbtools.storage import MANIFEST as MANIFEST
from kbtools.storage import beside, folder_identity, is_being_built

_Value = TypeVar("_Value")
_Opened = TypeVar("_Opened")

FORMS = "forms.lmdb"
FUZZY = "fuzzy"
COLUMNS = {
    "alias.first": "<i8", "alias.is_alias": "u1", "fact.first": "<i8", "fact.relation": "<u4",
    "fact.first_object": "<i8", "fact.object": "<u4", "incoming.first": "<i8", "incoming.relation": "<u4",
    "incoming.subject": "<u4", "count.key": "<u8", "count.entity": "<u4", "count.count": "<u8", "type.first": "<i8",
    "type.type": "<u4", "redirect.row": "<u4", "description.row": "<u4", "edit.key": "<u4", "edit.row": "<u4",
    "edit.signature": "<u8", "form.filter": "u1",
}  # fmt: skip
"""Per entity: the start of its aliases, its pairs, its incoming facts and its types. Per pair: its relation and the
start of its objects. Per incoming fact: its relation and its subject. Per count of a name: the hash of its form (0 for
every name), the entity meant and the count. Per description: its entity. The columns of the edit index: keys with the
row of a name, and the signature of each name. The filter of forms, by bits.
"""

STRINGS = ("alias.text", "description.text", "entity.id", "relation.id", "relation.name", "redirect.old", "type.id")
REQUIRED = frozenset({*COLUMNS, FORMS, *(f"{name}.{part}" for name in STRINGS for part in ("utf8", "starts"))})
_FILES = {MANIFEST, f"{NUMBERS}.new", *REQUIRED, *LANGUAGE_FILES}

SEGMENT_COLUMNS = {
    "place.row": "<u4", "place.changes": "u1", "place.incoming": "<i8", "entity.order": "<u4", "alias.rank": "u1",
    "form.changed": "u1", "form.state": "u1",
}  # fmt: skip
"""Of a segment, besides the files of a knowledge base: the row of each of its entities in the updated one, ascending,
the flags of its changes, and its current number of incoming facts. `entity.order` sorts the new ids that are not
deleted. The rank of each name. The forms of changed names, ascending, separated by NUL, and the state of each.
"""

WORK = ".staging"
"""The folder of a build's work tables, deleted at its end."""

_FUZZY_FILE = re.compile(r"[0-9a-f]{32}\.[a-z.]+|meta\.json|\.managed\.json|\.tantivy-(meta|writer)\.lock|\.tmp\w+")
_WORK_FILE = re.compile(r"staging\.duckdb(\.wal)?|spill(/duckdb_temp_.*)?|edit\.(keys|signatures)\.\d+|facts\.numbers")


def is_ours(path: Path) -> bool:
    """Return whether a build of a knowledge base or of its vectors writes such a file into the folder."""
    first, _, rest = str(path).partition("/")
    if first == SEGMENT:
        return not rest or rest in SEGMENT_COLUMNS or is_ours(Path(rest))
    if first == FUZZY:
        return not rest or _FUZZY_FILE.fullmatch(rest) is not None
    if first == WORK:
        return not rest or _WORK_FILE.fullmatch(rest) is not None
    if first in (FOLDER, *(beside(Path(FOLDER), role).name for role in ("building", "old"))):
        return not rest or rest in VECTOR_FILES
    return not rest and (first in _FILES or first == beside(Path(FOLDER), "lock").name)


def read_manifest(path: Path) -> Manifest:
    """Read the manifest of a knowledge base; raise KBMissing or KBUnusable."""
    try:
        names = os.listdir(path)
    except (FileNotFoundError, NotADirectoryError) as error:
        next_step = f"build it with kbtools index --out {path}"
        old = beside(path, "old")
        if is_being_built(path):
            next_step = "another process is building it, try again when it has finished"
        elif (old / MANIFEST).is_file():
            next_step = f"a build was killed while replacing it, mv {old} {path} restores the old one"
        problem = "no such knowledge base"
        if path.exists():
            problem, next_step = "a file, not a knowledge base", f"build one: kbtools index --out my.kb {path}"
        raise KBMissing.at(path, f"{problem}; {next_step}") from error
    except OSError as error:
        raise KBUnusable(f"{path}: cannot be opened ({error.strerror}); check its permissions") from error
    if MANIFEST not in names:
        raise KBMissing.at(
            path, f"not a knowledge base (there is no {MANIFEST}); name the folder that kbtools index --out made"
        )
    record = read_record(path / MANIFEST, name=FORMAT_NAME, version=FORMAT_VERSION, cure="index again")
    try:
        return Manifest.from_record(record)
    except KBUnusable as error:
        raise KBUnusable(f"{path}: {error}", path=str(path), **error.facts) from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise KBUnusable(f"{path / MANIFEST}: damaged ({error!r}); index again", path=str(path)) from error


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest of a knowledge base, which makes the folder one."""
    write_record(folder / MANIFEST, manifest.to_record(), name=FORMAT_NAME, version=FORMAT_VERSION)


def part_manifest(manifest: Manifest, part: str) -> Manifest:
    """Return the manifest of one part of an updated knowledge base: its SEGMENT, or its base (empty)."""

    def of_part(values: Mapping[str, _Value]) -> dict[str, _Value]:
        prefix = f"{SEGMENT}/"
        inside = {name: value for name, value in values.items() if name.startswith(prefix) is bool(part)}
        return {name.removeprefix(prefix): value for name, value in inside.items()}

    return replace(manifest, files=of_part(manifest.files), checksums=of_part(manifest.checksums))


def open_steadily(path: Path, open_files: Callable[[], _Opened]) -> _Opened:
    """Return what a function opens in a folder; call it again if the folder was replaced meanwhile."""
    while True:
        before = folder_identity(path)
        try:
            opened = open_files()
        except (KBMissing, KBUnusable):  # A folder that is replaced loses its files.
            if folder_identity(path) == before:
                raise
            continue
        if folder_identity(path) == before:
            return opened
        del opened  # Otherwise LMDB would refuse to open a file of both twice.


def find_damage(path: Path, manifest: Manifest) -> Iterator[str]:
    """Yield a message for each damaged file of a knowledge base and of its vectors."""
    yield from compare_files(path, manifest.files, manifest.checksums, INDEX_AGAIN)
    try:
        vectors = read_vectors_record(path, manifest)
    except VectorsMissing:
        return
    except KBUnusable as error:
        yield str(error)
        return
    yield from compare_files(path / FOLDER, vectors["files"], vectors.get("checksums", {}), vectors_cure(path))


def require_intact(path: Path, manifest: Manifest) -> None:
    """Check every file of a knowledge base before it is copied; raise KBUnusable for the first damaged one."""
    for damage in find_damage(path, manifest):
        raise KBUnusable(damage, path=str(path))
