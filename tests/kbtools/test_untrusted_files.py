"""Names in files import nothing, unless a person wrote them or trusts the file."""

import os
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgpack
import msgspec
import numpy as np
import pytest
from click.testing import CliRunner

from kbtools.answering.answerer import open_kb
from kbtools.cli.main import main
from kbtools.comparison import column_store
from kbtools.comparison.grid import cell_weights
from kbtools.comparison.run_folder import open_run
from kbtools.entry_points import TRUST_VARIABLE
from kbtools.errors import KBUnusable, ModelUnusable, RunUnusable, UntrustedPlugin
from kbtools.indexers.folder.embedded import EmbeddedKB
from kbtools.indexers.folder.faiss_index import write_vectors
from kbtools.indexers.folder.kb_folder import read_manifest
from kbtools.kb.manifest import Manifest
from kbtools.kb.vector_index import EntityVectors, VectorOrigin
from kbtools.ranking import trained
from kbtools.ranking.confidence import Calibration
from kbtools.ranking.model_store import Stamp, read_model, write_listed, write_model
from kbtools.ranking.system import Cascade, FittedRanker, System
from kbtools.ranking.weights import Weights
from kbtools.record_files import fits, write_record
from kbtools.storage import MANIFEST
from tests.conftest import TINY, World

COMMAND = "subprocess:Popen"
QUESTION = "what is the time zone of paris"


@pytest.fixture
def kb(copy_kb: Callable[[World, Path], Path], tmp_path: Path) -> Path:
    return copy_kb(TINY, tmp_path / "world.kb")


SYSTEM = System("n-gram-idf", ("lexical",), "popularity", None, Weights())
RANKER = FittedRanker(COMMAND, "", (), 1, Calibration((0.0, 1.0), (0.0, 1.0)))


def write_system(models: Path, *systems: System, **names: object) -> Path:
    models.mkdir()
    record = {"default": msgspec.to_builtins(SYSTEM) | names, "systems": msgspec.to_builtins(systems)}
    write_listed(models / trained.FILE, record, name=trained.FORMAT_NAME, version=trained.FORMAT_VERSION)
    return models


@pytest.mark.parametrize(
    "names",
    [
        {"pruner": COMMAND},
        {"scorers": [COMMAND]},
        {"subject": COMMAND},
        {"guide": COMMAND},
        {"ranker": msgspec.to_builtins(RANKER)},
    ],
    ids=lambda names: next(iter(names)),
)
def test_a_folder_of_models_cannot_name_what_is_called(names: dict[str, object], kb: Path, tmp_path: Path) -> None:
    models = write_system(tmp_path / "models", **names)
    ran = CliRunner().invoke(main, ["query", "--kb", str(kb), "--models", str(models), QUESTION])

    assert ran.exit_code == 1
    assert str(models / trained.FILE) in ran.stderr
    assert COMMAND in ran.stderr
    assert "--trust-plugins" in ran.stderr


def test_one_of_several_scorers_in_a_file_is_no_way_in(kb: Path, tmp_path: Path) -> None:
    models = write_system(tmp_path / "models", scorers=["lexical", COMMAND])
    with pytest.raises(UntrustedPlugin):
        open_kb(kb, models=models)


def test_a_name_in_a_file_that_is_no_text_is_damage(kb: Path, tmp_path: Path) -> None:
    models = write_system(tmp_path / "models", scorers=5)
    with pytest.raises(ModelUnusable):
        open_kb(kb, models=models)


@pytest.mark.parametrize("weight", [float("nan"), float("inf"), -(2**63), 2**64 - 1, "1", None])
def test_a_weight_in_a_file_that_ranks_nothing_is_damage(kb: Path, tmp_path: Path, weight: object) -> None:
    models = write_system(tmp_path / "models", weights={"similarity": weight})
    with pytest.raises(ModelUnusable):
        open_kb(kb, models=models)


def test_a_person_may_trust_a_file(kb: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scorer = "kbtools.scorers.relations.lexical:LexicalScorer"
    models = write_system(tmp_path / "models", scorers=[scorer])
    line = ["query", "--kb", str(kb), "--models", str(models), QUESTION, "--json"]

    with open_kb(kb, models=models, trust_plugins=True) as answerer:
        assert answerer.query(QUESTION).scorer == scorer
    assert CliRunner().invoke(main, [*line, "--trust-plugins"]).exit_code == 0
    monkeypatch.setenv(TRUST_VARIABLE, "1")
    assert CliRunner().invoke(main, line).exit_code == 0
    with open_kb(kb, models=models) as answerer:
        assert answerer.query(QUESTION).scorer == scorer


@pytest.mark.parametrize("first", [False, True])
def test_a_record_of_rankers_cannot_name_what_is_called(kb: Path, tmp_path: Path, first: bool) -> None:
    named = replace(SYSTEM, ranker=RANKER)
    installed = replace(RANKER, name="lightgbm")
    system = replace(SYSTEM, ranker=installed, cascade=Cascade(named, 0.5)) if first else named
    models = write_system(tmp_path / "models", system)

    with open_kb(kb, models=models) as answerer, pytest.raises(UntrustedPlugin, match=trained.FILE):
        answerer.query(QUESTION)


def test_vectors_cannot_name_the_scorer_that_embeds_questions(kb: Path) -> None:
    table = np.eye(3, dtype=np.float32)
    origin = VectorOrigin(COMMAND, "")
    write_vectors(kb, EmbeddedKB(kb), EntityVectors(np.arange(3, dtype=np.uint32), 3, lambda rows: table[rows], origin))

    with open_kb(kb) as answerer, pytest.raises(UntrustedPlugin, match="vectors"):
        answerer.query(QUESTION, pruning="dense", scorer="lexical")


HOSTILE = [None, "lexical", -1.5, float("nan"), True, [], {"a": 1}, b"x", msgpack.ExtType(5, b"x")]


def leaves(part: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Yield where each part of a record stands, with the part; options may be anything."""
    pairs = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
    for key, inner in pairs:
        if key != "options":
            yield (*path, key), inner
            yield from leaves(inner, (*path, key))


def with_part(record: Any, path: tuple[str | int, ...], value: object) -> Any:
    """Copy a record with another value in one place."""
    if not path:
        return value
    changed = copy(record)
    changed[path[0]] = with_part(record[path[0]], path[1:], value)
    return changed


@pytest.mark.parametrize("value", HOSTILE, ids=lambda value: type(value).__name__)
def test_a_part_of_a_manifest_of_another_type_is_damage(kb: Path, value: object) -> None:
    record = msgpack.unpackb((kb / MANIFEST).read_bytes())["record"]
    others = [path for path, part in leaves(record) if type(part) is not type(value)]

    accepted = [path for path in others if fits(with_part(record, path, value), Manifest)]

    assert fits(record, Manifest)
    assert accepted == []


def rewrite(path: Path, *, name: str, **parts: object) -> None:
    """Change parts of a record, with a checksum that fits."""
    record = msgpack.unpackb(path.read_bytes())["record"]
    write_record(path, record | parts, name=name, version=1)


@pytest.mark.parametrize("command", ["info", "check", "query", "update", "compact"])
def test_a_crafted_manifest_ends_a_command_in_a_sentence(kb: Path, tmp_path: Path, command: str) -> None:
    rewrite(kb / MANIFEST, name="kbtools-kb", versions=1 << 40)
    (tmp_path / "gone.txt").write_text("m.0one\n")
    more = {"query": [QUESTION], "update": ["--remove", str(tmp_path / "gone.txt")]}

    ran = CliRunner().invoke(main, [command, "--kb", str(kb), *more.get(command, [])])

    assert (ran.exit_code, ran.stderr.startswith("Error: ")) == (1, True), ran.output
    assert "damaged" in ran.stderr


@pytest.mark.parametrize("parts", [{"kb": {"a": 1}}, {"count": b"x"}, {"dim": 2.5}, {"files": {"rows.npy": "5"}}])
def test_a_crafted_record_of_vectors_is_damage(kb: Path, parts: dict[str, object]) -> None:
    vectors = EntityVectors(np.arange(2, dtype=np.uint32), 2, lambda rows: np.eye(2, dtype=np.float32)[rows])
    write_vectors(kb, EmbeddedKB(kb), vectors, kind="flat")
    rewrite(kb / "vectors" / "vectors.msgpack", name="kbtools-vectors", **parts)

    ran = CliRunner().invoke(main, ["info", "--kb", str(kb)])

    assert (ran.exit_code, "damaged" in ran.stderr) == (1, True), ran.output


@pytest.mark.parametrize("file", ["/dev/zero", "../weights", "."])
def test_a_model_names_no_file_of_another_folder(tmp_path: Path, file: str) -> None:
    write_model(
        tmp_path / "model", Stamp("any"), {}, file="weights.safetensors", write=lambda path: path.write_bytes(b"x")
    )
    (tmp_path / "weights").write_bytes(b"x")
    rewrite(tmp_path / "model" / "model.msgpack", name="kbtools-model", file=file)

    with pytest.raises(ModelUnusable):
        read_model(tmp_path / "model")


def test_a_record_that_is_a_device_or_a_pipe_is_not_read(kb: Path) -> None:
    (kb / MANIFEST).unlink()
    os.mkfifo(kb / MANIFEST)

    with pytest.raises(KBUnusable, match="not a regular file"):
        read_manifest(kb)


@pytest.mark.parametrize("parts", [{"questions": {"path": "x", "digest": 1 << 62}}, {"version": 5}, {"cells": [["a"]]}])
def test_a_crafted_record_of_a_run_is_damage(tmp_path: Path, parts: dict[str, object]) -> None:
    origin = {"path": "x", "digest": "y"}
    record = {"kb": origin, "questions": origin, "version": "0.1.0", "cells": []} | parts
    write_record(tmp_path / "run.msgpack", record, name="kbtools-run", version=1)

    with pytest.raises(RunUnusable, match="damaged"):
        open_run(tmp_path)


@pytest.mark.parametrize("parts", [{"columns": "x"}, {"facts": {"cell": "lexical"}}, {"facts": {"cell": ["a"]}}])
def test_a_crafted_cell_of_a_run_is_damage(tmp_path: Path, parts: dict[str, object]) -> None:
    record = {"fingerprint": "x", "columns": {}, "facts": {}} | parts
    write_record(tmp_path / "a.columns", record, name=column_store.FORMAT_NAME, version=column_store.FORMAT_VERSION)

    with pytest.raises(RunUnusable, match="damaged"):
        column_store.read_columns(tmp_path / "a.columns")


def test_columns_that_expand_past_their_limit_are_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    columns = {name: np.zeros(1000) for name in ("a", "b")}
    column_store.write_columns(tmp_path / "a.columns", column_store.Columns("x", columns))
    assert column_store.read_columns(tmp_path / "a.columns")["b"].nbytes == 8000

    monkeypatch.setattr(column_store, "LARGEST", 15_999)

    with pytest.raises(RunUnusable, match="damaged"):
        column_store.read_columns(tmp_path / "a.columns")


@pytest.mark.parametrize("weights", [{"rung": b"x"}, {"rung": 1e300}, {"none": 1.0}, ["rung"]])
def test_crafted_weights_of_a_cell_are_damage(weights: object) -> None:
    with pytest.raises(RunUnusable, match="damaged"):
        cell_weights({"weights": weights})
