"""Damaged files: every one is named, none ends in a traceback, and what was opened before says so at every look-up."""

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from kbtools.cli.main import main
from kbtools.errors import KBUnusable
from kbtools.indexers.folder.embedded import EmbeddedKB
from kbtools.indexers.folder.faiss_index import write_vectors
from kbtools.indexers.folder.form_store import read_groups
from kbtools.indexers.folder.kb_folder import FORMS, find_damage, require_intact
from kbtools.kb.vector_index import EntityVectors

pytest.importorskip("faiss", reason="vectors need FAISS: pip install 'kbtools[cpu]'")

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


def test_what_makes_a_damaged_file_again_is_said_of_each(copy: Path) -> None:
    (copy / "fact.object").write_bytes(bytes((copy / "fact.object").stat().st_size))
    (copy / "vectors" / "rows.npy").write_bytes(bytes((copy / "vectors" / "rows.npy").stat().st_size))

    check = run(("check",), copy)

    assert check.exit_code == 1
    assert check.stderr.splitlines() == [
        f"Error: {copy}/fact.object: not what was written, its checksum is another; the knowledge base is damaged, "
        "index again",
        f"Error: {copy}/vectors/rows.npy: not what was written, its checksum is another; make the vectors again with "
        f"kbtools index vectors --kb {copy}",
    ]


def test_whole_files_are_said_to_be_whole(copy: Path) -> None:
    check = run(("check",), copy)

    assert (check.exit_code, check.stderr) == (0, "")
    assert check.stdout.startswith(f"{copy}: every file is as it was written")


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
        with pytest.raises(KBUnusable, match=r"forms\.lmdb: not what was written"):
            kb.lookup(["harry potter"])
        with pytest.raises(KBUnusable, match=r"forms\.lmdb: not what was written"):
            kb.name_frequency(["potter"])


LOOK_UPS: list[Callable[[EmbeddedKB], object]] = [
    lambda kb: kb.relations_of(np.arange(100, dtype=np.uint32)),
    lambda kb: kb.types_of(np.arange(100, dtype=np.uint32)),
    lambda kb: kb.fact_counts(np.arange(100, dtype=np.uint32)),
    lambda kb: kb.names(np.arange(100, dtype=np.uint32)),
    lambda kb: kb.facts_between(0, 100),
    lambda kb: kb.ids(kb.columns["fact.object"][:10]),
]


@pytest.mark.parametrize("look_up", LOOK_UPS)
def test_a_row_beyond_the_end_of_a_damaged_table_is_damage(copy: Path, look_up: Callable[[EmbeddedKB], object]) -> None:
    kb = EmbeddedKB(copy)
    for name, column in kb.columns.items():
        noise = np.random.default_rng(5).bytes(column.nbytes)
        kb.columns[name] = np.frombuffer(noise, dtype=column.dtype)
        (copy / name).write_bytes(noise)

    with pytest.raises(KBUnusable, match="not what was written"):
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
