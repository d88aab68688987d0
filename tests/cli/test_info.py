"""kbtools info: what a knowledge base says of itself."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgpack
import pytest
from click.testing import CliRunner
from click.testing import Result as Invocation

from kbtools.cli.main import main
from kbtools.kb.manifest import size_text
from kbtools.record_files import record_checksum


def info(*args: object) -> Invocation:
    return CliRunner().invoke(main, ["info", *map(str, args)])


def pack(path: Path, **changes: Any) -> None:
    """Change the envelope of a manifest, or what the `record` in it says, with the checksum that goes with it."""
    manifest = path / "manifest.msgpack"
    wrapped = msgpack.unpackb(manifest.read_bytes())
    record = wrapped["record"] | changes.pop("record", {})
    manifest.write_bytes(msgpack.packb(wrapped | {"record": record, "checksum": record_checksum(record)} | changes))


@pytest.fixture
def copy(sample_path: Path, tmp_path: Path) -> Path:
    """Copy the sample's folder, to damage it."""
    return shutil.copytree(sample_path, tmp_path / "copy.kb")


def test_it_tells_counts_sources_sizes_and_versions(sample_path: Path, examples: Path) -> None:
    result = info(sample_path)
    assert result.exit_code == 0
    assert "facts                537             3           534" in result.stdout
    assert f"source {examples / 'sample.facts.txt'} (facts): 48.7 KB, 487 lines, sha256 " in result.stdout
    assert "file forms.lmdb: " in result.stdout
    assert "written by kbtools " in result.stdout
    assert "normaliser version " in result.stdout
    assert "taught" not in result.stdout
    assert "vectors" not in result.stdout


def test_json_holds_the_same(sample_path: Path) -> None:
    record = json.loads(info(sample_path, "--json").stdout)
    assert record["json_version"] == 1
    assert record["counts"]["facts"] == {"raw": 537, "duplicate": 3, "unique": 534}
    assert [source["kind"] for source in record["sources"]] == ["facts", "names", "types"]
    assert all(len(source["sha256"]) == 64 for source in record["sources"])
    assert set(record["versions"]) == {"kbtools", "tantivy", "lmdb"}
    assert record["files"]["forms.lmdb"] > 0


def test_values_are_counted_apart_from_entities(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,name,staff,boss_id\n1,Ann,12,2\n2,Bob,12,\n")
    CliRunner().invoke(main, ["index", str(tmp_path / "t.csv"), "--out", str(tmp_path / "o.kb")])

    built = info(tmp_path / "o.kb").stdout
    (tmp_path / "more.jsonl").write_text('{"id": "3", "names": ["Cy"], "facts": {"staff": ["\\"13\\""]}}\n')
    CliRunner().invoke(main, ["update", str(tmp_path / "o.kb"), "--add", str(tmp_path / "more.jsonl")])
    counts = json.loads(info(tmp_path / "o.kb", "--json").stdout)["counts"]

    assert "0  entities without a name" in built
    assert [line.split()[-1] for line in built.splitlines() if line.startswith(("entities ", "values "))] == ["2", "1"]
    assert [counts[kind]["unique"] for kind in ("entities", "values")] == [3, 2]


def test_what_was_skipped_is_told_with_its_first_example(tmp_path: Path) -> None:
    (tmp_path / "f.tsv").write_text("subject\trelation\tobject\na\tr\tb\nodd\n")
    (tmp_path / "n.tsv").write_text("id\tname\na\tAlpha\n")
    sources = ["--facts", str(tmp_path / "f.tsv"), "--names", str(tmp_path / "n.tsv"), "--max-bad", "0.5"]
    CliRunner().invoke(main, ["index", *sources, "--out", str(tmp_path / "o.kb")])
    told = f"{tmp_path / 'f.tsv'}:3: 'odd'"
    assert f"skipped 1 of 3 lines: 1 columns where 3 were expected; first: {told}" in info(tmp_path / "o.kb").stdout
    (facts, _) = json.loads(info(tmp_path / "o.kb", "--json").stdout)["sources"]
    assert facts["skipped"] == [["1 columns where 3 were expected", 1, told]]


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda path: None, "no such knowledge base; build it with kbtools index --out"),
        (lambda path: path.mkdir(), "not a knowledge base (there is no manifest.msgpack)"),
        (lambda path: path.write_text("x"), "a file, not a knowledge base; build one: kbtools index --out my.kb"),
    ],
)
def test_what_is_no_knowledge_base_is_refused_with_the_next_step(
    tmp_path: Path, make: Callable[..., Any], told: str
) -> None:
    make(tmp_path / "no.kb")
    result = info(tmp_path / "no.kb")
    assert (result.exit_code, result.stdout) == (1, "")
    assert f"Error: {tmp_path / 'no.kb'}: {told}" in result.stderr
    assert "kbtools index --out" in result.stderr


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"version": 99}, "found format 'kbtools-kb' version 99, expected 'kbtools-kb' version"),
        ({"format": "other"}, "found format 'other'"),
        ({"record": {"normaliser": 99}}, "built with normaliser version 99"),
        ({"record": {"counts": 7}}, "damaged"),
        ({"record": {"sources": [{}]}}, "damaged"),
        ({"record": {"unknown": 1}}, "damaged"),
    ],
)
def test_another_version_is_refused_with_the_next_step(copy: Path, changes: dict[str, Any], told: str) -> None:
    pack(copy, **changes)
    result = info(copy)
    assert result.exit_code == 1
    assert result.stderr.startswith(f"Error: {copy}")
    assert told in result.stderr
    assert "index again" in result.stderr


@pytest.mark.parametrize(
    "content", [b"", b"garbage", b"\xc1", b"\x80", b"\x07", msgpack.packb({"format": 1, "version": 2, "record": 3})]
)
def test_a_damaged_manifest_is_refused(copy: Path, content: bytes) -> None:
    (copy / "manifest.msgpack").write_bytes(content)
    result = info(copy)
    assert result.exit_code == 1
    assert f"Error: {copy / 'manifest.msgpack'}: damaged" in result.stderr


def test_damaged_vectors_are_cured_by_making_vectors(copy: Path) -> None:
    (copy / "vectors").mkdir()
    (copy / "vectors" / "vectors.msgpack").write_bytes(b"garbage")

    result = info(copy)

    assert result.exit_code == 1
    assert "vectors.msgpack: damaged" in result.stderr
    assert result.stderr.endswith(f"create the vectors again with kbtools index vectors --kb {copy}\n")


def test_a_truncated_manifest_is_refused(copy: Path) -> None:
    whole = (copy / "manifest.msgpack").read_bytes()
    (copy / "manifest.msgpack").write_bytes(whole[: len(whole) // 2])
    assert "damaged" in info(copy).stderr


FILES = [
    "alias.first",
    "alias.is_alias",
    "alias.text.starts",
    "alias.text.utf8",
    "entity.id.starts",
    "entity.id.utf8",
    "fact.first",
    "fact.first_object",
    "fact.object",
    "fact.relation",
    "forms.lmdb",
    "fuzzy/*.idx",
    "fuzzy/*.term",
    "fuzzy/meta.json",
    "relation.id.starts",
    "relation.id.utf8",
    "type.first",
    "type.id.starts",
    "type.id.utf8",
    "type.type",
]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.unlink(),
        lambda path: path.write_bytes(path.read_bytes()[:-1]),
        lambda path: path.write_bytes(path.read_bytes() + b"\0"),
        lambda path: path.write_bytes(b""),
    ],
    ids=["missing", "truncated", "grown", "empty"],
)
def test_a_damaged_file_is_named(copy: Path, name: str, damage: Callable[..., Any]) -> None:
    (path,) = copy.glob(name)
    damage(path)
    result = info(copy)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(f"Error: {path}: missing or not the ")
    assert result.stderr.endswith("index again\n")


@pytest.mark.parametrize("name", ["forms.lmdb", "fuzzy/meta.json"])
def test_a_file_of_zeros_is_refused_by_what_reads_it_where_there_are_no_checksums(copy: Path, name: str) -> None:
    pack(copy, record={"checksums": {}})
    (copy / name).write_bytes(bytes((copy / name).stat().st_size))
    result = info(copy)
    assert result.exit_code == 1
    assert "cannot be opened" in result.stderr
    assert result.stderr.endswith("index again\n")


@pytest.mark.parametrize("name", ["forms.lmdb", "fact.object", "alias.text.utf8", "fuzzy/meta.json"])
def test_a_small_file_is_compared_with_its_checksum_when_it_is_opened(copy: Path, name: str) -> None:
    (copy / name).write_bytes(bytes((copy / name).stat().st_size))

    result = info(copy)

    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(f"Error: {copy / name}: not as written")
    assert result.stderr.endswith("index again\n")


def test_a_damaged_knowledge_base_is_mended_by_indexing_again(copy: Path, examples: Path) -> None:
    (copy / "forms.lmdb").unlink()
    sources = [f"--{kind}={examples}/sample.{kind}.txt" for kind in ("facts", "names", "types")]
    built = CliRunner().invoke(main, ["index", *sources, "--out", str(copy)])
    assert "nothing to do" not in built.stdout
    assert info(copy).exit_code == 0


def test_the_eight_largest_files_are_listed_and_the_size_is_that_of_all(sample_path: Path) -> None:
    sizes = json.loads(info(sample_path, "--json").stdout)["files"]
    lines = info(sample_path).stdout.splitlines()

    listed = [line.split(": ")[0].removeprefix("file ") for line in lines if line.startswith("file ")]
    assert [sizes[file] for file in listed] == sorted(sizes.values(), reverse=True)[:8]
    assert f", {size_text(sum(sizes.values()))}, content " in lines[0]
    assert f"file {listed[0]}: {size_text(max(sizes.values()))}" in lines
