"""Damaged files: every one is named, none ends in a traceback, and what was opened before says so at every look-up."""

import json
import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from kbtools.cli.main import main
from kbtools.errors import KBUnusable
from kbtools.indexers.folder.embedded import EmbeddedKB
from kbtools.indexers.folder.faiss_index import FaissVectors, write_vectors
from kbtools.indexers.folder.form_store import read_groups
from kbtools.indexers.folder.kb_folder import FORMS, MANIFEST, find_damage, read_manifest, require_intact
from kbtools.kb.manifest import FORMAT_NAME, FORMAT_VERSION
from kbtools.kb.vector_index import EntityVectors
from kbtools.record_files import file_digest, write_record

faiss = pytest.importorskip("faiss", reason="vectors need FAISS: pip install 'kbtools[train]'")

PAGE = 4096
COMMANDS = (("info",), ("query", "--kb"), ("similar", "--kb"))
ASKED = {"query": ("who created the character hary potter",), "similar": ("harry potter",)}


@pytest.fixture(scope="module")
def whole(sample_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the sample and put vectors beside it."""
    folder = shutil.copytree(sample_path, tmp_path_factory.mktemp("whole") / "x.kb")
    kb = EmbeddedKB(folder)
    table = np.random.default_rng(3).normal(size=(len(kb.entity_ids), 8)).astype(np.float32)
    vectors = EntityVectors(np.arange(len(table), dtype=np.uint32), 8, lambda rows: table[rows])
    write_vectors(folder, kb, vectors)
    return folder


@pytest.fixture
def copy(whole: Path, tmp_path: Path) -> Path:
    return shutil.copytree(whole, tmp_path / "x.kb")


def run(command: tuple[str, ...], folder: Path) -> Result:
    return CliRunner().invoke(main, [*command, str(folder), *ASKED.get(command[0], ())])


def damage_page(folder: Path, seed: int) -> Path:
    """Change a page of a file: zeros, noise, one bit, or another page of the file; give the file."""
    rng = random.Random(seed)
    path = rng.choice(sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size))
    data = bytearray(path.read_bytes())
    start = rng.randrange(0, len(data), PAGE)
    page = bytes(data[start : start + PAGE])
    bit = bytearray(page)
    bit[rng.randrange(len(page))] ^= 1 << rng.randrange(8)
    data[start : start + PAGE] = rng.choice([bytes(len(page)), rng.randbytes(len(page)), bytes(bit)])
    if bytes(data[start : start + PAGE]) == page:
        data[start] ^= 255
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("seed", range(40))
def test_a_damaged_page_is_named_and_never_a_traceback(copy: Path, seed: int) -> None:
    path = damage_page(copy, seed)

    check = run(("check",), copy)
    results = [run(command, copy) for command in COMMANDS]

    assert check.exit_code == 1
    assert check.stderr.startswith(f"Error: {path}: ")
    assert all(result.exception is None or isinstance(result.exception, SystemExit) for result in (check, *results))
    assert all(result.stderr.startswith("Error: ") for result in results if result.exit_code)
    assert all("again" in result.stderr for result in results if result.exit_code)


def write_changes(folder: Path) -> Path:
    changes = folder / "changes.jsonl"
    changes.write_text('{"id": "m.new", "names": ["Quite New"], "facts": {"r.of": ["m.new"]}}\n')
    return changes


@pytest.fixture(scope="module")
def updated(whole: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the sample with its vectors and update it."""
    folder = shutil.copytree(whole, tmp_path_factory.mktemp("updated") / "x.kb")
    done = CliRunner().invoke(main, ["update", "--kb", str(folder), "--add", str(write_changes(folder.parent))])
    assert done.exit_code == 0, done.output
    return folder


OPTIONS = {
    "update": ["--add", "changes.jsonl"],
    "compact": [],
    "index vectors": ["--vectors", "none.npy", "--ids", "none.txt"],
    "compare": ["--questions", "none.tsv", "--out", "made"],
    "train relation": ["--train", "none.tsv", "--valid", "none.tsv", "--out", "made"],
}
"""The commands that make something of a knowledge base, with what they take beside it."""


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("command", OPTIONS)
def test_nothing_is_made_of_a_damaged_knowledge_base(
    updated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, command: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write_changes(tmp_path)
    folder = shutil.copytree(updated, tmp_path / "x.kb")
    path = damage_page(folder, seed)
    before = {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}

    done = CliRunner().invoke(main, [*command.split(), "--kb", str(folder), *OPTIONS[command]])

    assert isinstance(done.exception, SystemExit)
    assert done.exit_code == 1
    assert done.stderr.startswith(f"Error: {path}: ")
    assert {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()} == before
    assert not (tmp_path / "made").exists()


def test_compacting_what_has_no_updates_finds_damage(copy: Path) -> None:
    path = damage_page(copy, 3)

    done = run(("compact", "--kb"), copy)

    assert done.exit_code == 1
    assert done.stderr.startswith(f"Error: {path}: ")


@pytest.mark.parametrize("command", ["info", "check", "query", "similar", "compact", "update"])
def test_a_missing_record_of_vectors_is_told(updated: Path, tmp_path: Path, command: str) -> None:
    folder = shutil.copytree(updated, tmp_path / "x.kb")
    (folder / "vectors" / "vectors.msgpack").unlink()
    line = {
        "query": ["--pruning", "dense", "--scorer", "lexical", "--kb", str(folder), "who"],
        "similar": ["--kb", str(folder), "harry potter"],
        "compact": ["--kb", str(folder)],
        "update": ["--kb", str(folder), "--add", str(write_changes(tmp_path))],
    }.get(command, [str(folder)])

    done = CliRunner().invoke(main, [command, *line])

    assert done.exit_code == 1
    assert "vectors.msgpack: missing; create the vectors again" in done.stderr


def test_vectors_that_are_not_of_length_one_are_damage(copy: Path) -> None:
    vectors = FaissVectors(copy, EmbeddedKB(copy).manifest)
    table = np.full((len(vectors), 8), 1e30, dtype=np.float32)
    vectors.index = faiss.IndexFlatIP(8)
    vectors.index.add(table)

    with pytest.raises(KBUnusable, match="create the vectors again"):
        vectors.nearest(table[:1] / np.float32(1e30))


def test_strings_beyond_their_file_are_damage_and_no_signal(updated: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(updated, tmp_path / "x.kb")
    starts = np.fromfile(folder / "entity.id.starts", dtype="<u8")
    starts[5:9] = 2**62
    replace_file(folder, "entity.id.starts", starts.tobytes())

    done = CliRunner().invoke(main, ["compact", "--kb", str(folder)])

    assert done.exit_code == 1
    assert "a string lies beyond its file" in done.stderr


@pytest.mark.parametrize("name", ["segment/place.row", "segment/form.changed", "alias.text.starts", "fact.first"])
def test_files_that_do_not_fit_each_other_are_named(updated: Path, tmp_path: Path, name: str) -> None:
    folder = shutil.copytree(updated, tmp_path / "x.kb")
    content = (folder / name).read_bytes()
    replace_file(folder, name, b"\xfe" * len(content) if "segment" in name else content[:-3])

    done = run(("info",), folder)

    assert done.exit_code == 1
    assert f"{folder}: its files do not match each other" in done.stderr


def replace_file(folder: Path, name: str, content: bytes) -> None:
    """Change a file and the manifest with it, as somebody does who makes a folder to deceive."""
    (folder / name).unlink()
    (folder / name).write_bytes(content)
    manifest = read_manifest(folder)
    files = manifest.files | {name: len(content)}
    checksums = manifest.checksums | {name: file_digest(folder / name)}
    record = replace(manifest, files=files, checksums=checksums).to_record()
    write_record(folder / MANIFEST, record, name=FORMAT_NAME, version=FORMAT_VERSION)


def test_what_makes_a_damaged_file_again_is_said_of_each(copy: Path) -> None:
    (copy / "fact.object").write_bytes(bytes((copy / "fact.object").stat().st_size))
    (copy / "vectors" / "rows.npy").write_bytes(bytes((copy / "vectors" / "rows.npy").stat().st_size))

    check = run(("check",), copy)

    assert check.exit_code == 1
    assert check.stderr.splitlines() == [
        f"Error: {copy}/fact.object: not as written, its checksum differs; the knowledge base is damaged, index again",
        f"Error: {copy}/vectors/rows.npy: not as written, its checksum differs; create the vectors again with "
        f"kbtools index vectors --kb {copy}",
    ]


def test_whole_files_are_said_to_be_whole(copy: Path) -> None:
    check = run(("check",), copy)

    assert (check.exit_code, check.stderr) == (0, "")
    assert check.stdout.startswith(f"{copy}: all files are intact")


def test_a_knowledge_base_is_checked_before_it_is_copied(copy: Path) -> None:
    kb = EmbeddedKB(copy)
    require_intact(copy, kb.manifest)
    damage_page(copy, 1)

    with pytest.raises(KBUnusable, match="again"):
        require_intact(copy, kb.manifest)


def test_what_is_no_knowledge_base_cannot_be_checked(tmp_path: Path) -> None:
    check = run(("check",), tmp_path)

    assert check.exit_code == 1
    assert "not a knowledge base" in check.stderr


def test_every_look_up_after_a_damaged_page_says_so(copy: Path) -> None:
    kb = EmbeddedKB(copy)
    with (copy / FORMS).open("r+b") as file:
        pages = (copy / FORMS).stat().st_size // PAGE
        file.seek(2 * PAGE)
        file.write(b"\xff" * PAGE * (pages - 2))

    for _ in range(2):
        with pytest.raises(KBUnusable, match=r"forms\.lmdb: not as written"):
            kb.lookup(["harry potter"])
        with pytest.raises(KBUnusable, match=r"forms\.lmdb: not as written"):
            kb.name_frequency(["potter"])


LOOK_UPS: list[Callable[[EmbeddedKB], object]] = [
    lambda kb: kb.relations_of(np.arange(100, dtype=np.uint32)),
    lambda kb: kb.types_of(np.arange(100, dtype=np.uint32)),
    lambda kb: kb.fact_counts(np.arange(100, dtype=np.uint32)),
    lambda kb: kb.names(np.arange(100, dtype=np.uint32)),
    lambda kb: kb.facts_of(np.arange(100, dtype=np.uint32)),
    lambda kb: kb.ids(kb.columns["fact.object"][:10]),
]


@pytest.mark.parametrize("look_up", LOOK_UPS)
def test_a_row_beyond_the_end_of_a_damaged_table_is_damage(copy: Path, look_up: Callable[[EmbeddedKB], object]) -> None:
    kb = EmbeddedKB(copy)
    for name, column in kb.columns.items():
        noise = np.random.default_rng(5).bytes(column.nbytes)
        kb.columns[name] = np.frombuffer(noise, dtype=column.dtype)
        (copy / name).write_bytes(noise)

    with pytest.raises(KBUnusable, match="not as written"):
        look_up(kb)


def test_a_value_without_a_name_or_with_half_a_number_is_damage() -> None:
    value = np.array([2, 0, 7, 9, 1, 1, 5], dtype="<u4").tobytes()

    (only,) = read_groups(value[:16], ["Jaws", ""])  # type: ignore[arg-type]

    assert (only.name, only.entities.tolist()) == ("Jaws", [7, 9])
    with pytest.raises(IndexError, match="name 1 is empty"):
        read_groups(value, ["Jaws", ""])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="a value of 15 bytes"):
        read_groups(value[:15], ["Jaws", ""])  # type: ignore[arg-type]


def test_a_wrong_row_of_a_whole_knowledge_base_stays_what_it_is(whole: Path) -> None:
    with pytest.raises(IndexError):
        EmbeddedKB(whole).ids(np.array([4_000_000_000], dtype=np.uint32))


def test_damage_is_found_without_checksums_by_size(copy: Path) -> None:
    manifest = EmbeddedKB(copy).manifest
    (copy / "fact.object").write_bytes(b"")

    assert [line.partition(": ")[2].partition(";")[0] for line in find_damage(copy, manifest)] == [
        f"missing or not the {manifest.files['fact.object']:,} bytes that were written"
    ]


def test_programs_read_what_is_damaged_as_json(copy: Path) -> None:
    whole_kb = run(("check", "--json"), copy)
    (copy / "fact.object").write_bytes(b"")
    damaged = run(("check", "--json"), copy)

    before, after = json.loads(whole_kb.stdout), json.loads(damaged.stdout)

    assert (whole_kb.exit_code, damaged.exit_code, damaged.stderr) == (0, 1, "")
    assert before == after | {"damages": []}
    assert [line.partition(": ")[0] for line in after["damages"]] == [f"{copy}/fact.object"]


def test_a_path_that_commands_a_terminal_is_shown_as_escapes(copy: Path) -> None:
    hostile = copy.rename(copy.with_name("x\x1b[31m\u202e.kb"))
    whole_kb = run(("check",), hostile)
    (hostile / "fact.object").write_bytes(b"")
    damaged = run(("check",), hostile)

    assert "x\\x1b[31m\\u202e.kb" in whole_kb.stdout
    assert "x\\x1b[31m\\u202e.kb" in damaged.stderr
    assert not set("\x1b\u202e") & set(whole_kb.stdout + damaged.stderr)
