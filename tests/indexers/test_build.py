"""The build: the same content gives the same knowledge base, and a failed build changes nothing."""

import errno
import logging
import os
import random
import shutil
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kbtools.answering.answerer import open_kb
from kbtools.errors import BuildLocked, DiskFull, KBMissing, NothingBuilt, OutputUnusable
from kbtools.indexers.building.build import BuildProgress, Built, build, write_knowledge
from kbtools.indexers.building.form_writer import FormGroups, FormWriter, count_words
from kbtools.indexers.folder.checksums import VERIFIED
from kbtools.indexers.folder.embedded import EmbeddedKB
from kbtools.indexers.folder.faiss_index import write_vectors
from kbtools.indexers.folder.form_store import FormStore, hash_forms
from kbtools.indexers.folder.fuzzy_index import FuzzyWriter
from kbtools.indexers.readers.batches import Kind
from kbtools.indexers.readers.reading import ReadOptions, Source
from kbtools.kb.manifest import Manifest
from kbtools.kb.vector_index import EntityVectors
from kbtools.storage import locked
from tests.conftest import World

KINDS: tuple[Kind, ...] = ("facts", "names", "types")

ROWS = np.arange(60_000, dtype=np.uint32)

Make = Callable[..., Built]


@pytest.fixture
def sources(examples: Path, tmp_path: Path) -> list[Source]:
    """Copy the sample's files, to change them."""
    paths = [shutil.copy(examples / f"sample.{kind}.txt", tmp_path) for kind in KINDS]
    return [Source(tmp_path / os.path.basename(path), kind) for path, kind in zip(paths, KINDS, strict=True)]


@pytest.fixture
def make(sources: list[Source], tmp_path: Path) -> Make:
    """Build the copied sample, or other sources, into a folder of its own."""

    def run(*given: Source, watch: BuildProgress | None = None, **options: Any) -> Built:
        force = options.pop("force", False)
        chosen = given or sources
        return build(
            chosen,
            tmp_path / "kbs" / "x.kb",
            options=ReadOptions(**options),
            watch=watch or BuildProgress(),
            force=force,
        )

    return run


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "kbs" / "x.kb"


def at(phase: str, act: Callable[[], None]) -> BuildProgress:
    """Watch a build, and act at the end of one of its phases."""
    return BuildProgress(phase=lambda done: act() if done.name == phase else None)


def form_groups(pairs: Iterable[tuple[str, bytes]]) -> FormGroups:
    """Make the groups of forms with values that nothing is read from."""
    forms, values = zip(*pairs, strict=True)
    count = len(forms)
    kinds, hashes = np.zeros(count, dtype=np.uint8), hash_forms(pa.array(forms))
    return FormGroups(pa.array(forms), list(values), kinds, ROWS[:count], hashes, count_words(pa.array(forms)))


def fail(error: BaseException) -> None:
    raise error


def winner(path: Path) -> str:
    return open_kb(path).query("who created the character harry potter").candidates[0].subject


def contents(folder: Path) -> dict[str, bytes]:
    """Read every file whose bytes the content alone decides."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix not in (".msgpack", "")}


def test_the_same_sources_are_built_once(make: Make) -> None:
    first, second = make(), make()

    assert (first.fresh, second.fresh) == (True, False)
    assert second.manifest == first.manifest


def test_other_versions_of_what_writes_the_files_build_again(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    versions = make().manifest.versions
    monkeypatch.setattr("kbtools.indexers.building.build.versions", lambda: versions | {"tantivy": "0.0.1"})

    assert make().fresh


def test_a_touched_file_is_not_built_again(make: Make, sources: list[Source]) -> None:
    make()
    os.utime(sources[0].path, (0, 0))

    assert not make().fresh


def test_sources_elsewhere_and_in_another_order_are_not_built_again(
    make: Make, sources: list[Source], tmp_path: Path
) -> None:
    make()
    moved = [Source(source.path.rename(tmp_path / f"moved-{source.kind}"), source.kind) for source in sources]

    assert not make(*moved[::-1]).fresh


def test_a_changed_byte_is_built_again(make: Make, sources: list[Source]) -> None:
    old = make().manifest.digest
    text = sources[1].path.read_text(encoding="utf-8")
    sources[1].path.write_text(text.replace("French Republic", "French Republik"), encoding="utf-8")

    built = make()

    assert built.fresh
    assert built.manifest.digest != old


def test_another_kind_of_the_same_file_is_built_again(make: Make, sources: list[Source]) -> None:
    make()
    again = make(sources[0], sources[1], Source(sources[2].path, "any"), max_bad=1.0)

    assert again.fresh


@pytest.mark.parametrize("options", [{"language": ""}, {"max_bad": 0.5}])
def test_other_options_are_built_again(make: Make, options: dict[str, float | str]) -> None:
    make()

    assert make(**options).fresh


@pytest.mark.parametrize("kind", ["facts", "names", "entities"])
def test_what_was_written_is_counted_before_it_is_put_in_place(
    make: Make, out: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    def miscount(*arguments: Any, **options: Any) -> Manifest:
        manifest = write_knowledge(*arguments, **options)
        count = manifest.counts[kind]
        return replace(manifest, counts=manifest.counts | {kind: replace(count, unique=count.unique + 1)})

    monkeypatch.setattr("kbtools.indexers.building.build.write_knowledge", miscount)

    with pytest.raises(NothingBuilt, match="the disk or the memory may be faulty"):
        make()
    assert not out.exists()


def test_a_damaged_knowledge_base_is_built_again(make: Make, out: Path) -> None:
    make()
    (out / "fact.object").write_bytes(b"")

    assert make().fresh


def test_the_order_of_sources_and_lines_changes_nothing_that_is_written(
    make: Make, sources: list[Source], tmp_path: Path, out: Path
) -> None:
    make()
    before = contents(out)
    digest = make().manifest.digest
    lines = sources[0].path.read_text(encoding="utf-8").splitlines(keepends=True)
    random.Random(7).shuffle(lines)
    halves = [tmp_path / "one.txt", tmp_path / "two.txt"]
    halves[0].write_text("".join(lines[:200]), encoding="utf-8")
    halves[1].write_text("".join(lines[200:]), encoding="utf-8")

    again = make(sources[2], Source(halves[1], "facts"), sources[1], Source(halves[0], "facts"))

    assert again.fresh
    assert again.manifest.digest == digest
    assert contents(out) == before


def test_repeated_lines_are_counted_and_change_no_content(make: Make, sources: list[Source]) -> None:
    once = make().manifest
    twice = make(*sources, *sources).manifest

    assert twice.digest == once.digest
    assert {kind: count.unique for kind, count in twice.counts.items()} == {
        kind: count.unique for kind, count in once.counts.items()
    }
    assert twice.counts["names"].duplicate == once.counts["names"].raw


def test_progress_tells_the_bytes_of_each_source(make: Make, sources: list[Source]) -> None:
    told = {}
    make(watch=BuildProgress(progress=told.__setitem__))

    assert told == {str(source.path): source.path.stat().st_size for source in sources}


def test_every_file_is_readable_to_whoever_may_read_the_folder(make: Make, out: Path) -> None:
    make()
    allowed = out.stat().st_mode & 0o444

    assert all(path.stat().st_mode & 0o444 == allowed for path in out.rglob("*"))


@pytest.mark.parametrize("phase", ["read sample.names.txt", "facts", "check"])
def test_a_disk_that_fills_up_in_a_phase_leaves_the_old_one(
    make: Make, sources: list[Source], out: Path, phase: str
) -> None:
    make()
    full = at(phase, lambda: fail(OSError(errno.ENOSPC, "No space left on device")))

    with pytest.raises(DiskFull, match=r"x\.kb: no space left"):
        make(watch=full, force=True)
    assert os.listdir(out.parent) == ["x.kb"]
    assert winner(out) == "m.078ffw"


def test_a_build_succeeds_after_one_that_failed_in_the_same_process(make: Make, out: Path) -> None:
    with pytest.raises(RuntimeError) as kept:
        make(watch=at("types", lambda: fail(RuntimeError("stop"))))
    assert make().fresh
    assert winner(out) == "m.078ffw"
    assert str(kept.value) == "stop"


@pytest.mark.parametrize(
    "error", [RuntimeError("Query interrupted"), KeyboardInterrupt()], ids=["in the database", "elsewhere"]
)
def test_an_interrupt_stays_one(make: Make, out: Path, error: BaseException) -> None:
    with pytest.raises(KeyboardInterrupt):
        make(watch=at("facts", lambda: fail(error)))
    assert not out.parent.exists()


def test_a_second_build_of_one_folder_is_refused_and_the_first_goes_on(make: Make, out: Path) -> None:
    def build_too() -> None:
        with pytest.raises(BuildLocked, match=r"x\.kb: another process is building it"):
            make(force=True)

    assert make(watch=at("entities", build_too)).fresh
    assert os.listdir(out.parent) == ["x.kb"]


def test_a_folder_that_is_being_built_is_said_to_be(make: Make, out: Path) -> None:
    def open_too() -> None:
        with pytest.raises(KBMissing, match=r"x\.kb: no such knowledge base; another process is building it"):
            open_kb(out)

    make(watch=at("forms", open_too))
    assert winner(out) == "m.078ffw"


def test_the_old_one_answers_until_the_new_one_stands(make: Make, sources: list[Source], out: Path) -> None:
    make()
    seen = []

    make(*sources[:2], watch=at("check", lambda: seen.append(winner(out))))

    assert seen == ["m.078ffw"]


@pytest.mark.parametrize(("chosen", "told"), [([0], "no name belongs"), ([0, 2], "no name belongs")])
def test_facts_without_names_are_a_failure(
    make: Make, sources: list[Source], out: Path, chosen: list[int], told: str
) -> None:
    with pytest.raises(NothingBuilt, match=told):
        make(*(sources[at] for at in chosen))
    assert not out.parent.exists()


def test_a_small_disk_keeps_the_old_one(small_disk: Path, sources: list[Source]) -> None:
    out = small_disk / "x.kb"
    build(sources, out, options=ReadOptions(), watch=BuildProgress())

    with pytest.raises(DiskFull, match=r"x\.kb: no space left"):
        build(sources, out, options=ReadOptions(), watch=BuildProgress(), force=True)
    assert os.listdir(small_disk) == ["x.kb"]
    assert winner(out) == "m.078ffw"


def test_a_disk_that_fills_up_under_the_exact_index_is_said_to_be_full(small_disk: Path) -> None:
    def write() -> None:
        with FormWriter(small_disk / "forms.lmdb") as writer:
            writer.write_forms([form_groups((f"{number:06}", bytes(100)) for number in range(10_000))])

    with pytest.raises(OSError) as caught:
        write()
    assert caught.value.errno == errno.ENOSPC


def test_a_disk_that_fills_up_under_the_fuzzy_index_is_said_to_be_full(small_disk: Path) -> None:
    def write() -> None:
        with FuzzyWriter(small_disk / "fuzzy") as writer:
            writer.add([f"{number:06} {number * 7919 % 50_021}" for number in range(50_000)], ROWS[:50_000])
            writer.close()

    with pytest.raises(OSError, match="No space left"):
        write()


def test_a_pair_and_an_entity_that_a_batch_ends_in_are_whole(
    monkeypatch: pytest.MonkeyPatch, make_kb: Callable[[str, World], Any], new_world: type[World]
) -> None:
    monkeypatch.setattr("kbtools.indexers.building.staging.BATCH", 2_048)  # the least that DuckDB gives at once
    facts = [(f"s{number // 4_500}", f"r{int(number % 4_500 >= 2_048)}", f"o{number:05}") for number in range(9_000)]

    kb = make_kb("embedded", new_world(facts=tuple(facts), names=(("s0", "Zero"),)))

    first, second = kb.rows(["s0", "s1"])
    assert kb.relations_of(np.array([first, second], dtype=np.uint32)).values.tolist() == [0, 1, 0, 1]
    assert kb.fact_counts(np.array([first, second], dtype=np.uint32)).tolist() == [4_500, 4_500]
    stated = {
        (subject, kb.relations[relation], target)
        for row, subject in ((first, "s0"), (second, "s1"))
        for relation in (0, 1)
        for target in kb.ids(kb.objects_of([(row, relation)])[0])
    }
    assert stated == set(facts)


def test_long_forms_and_many_spellings_are_stored_apart(tmp_path: Path) -> None:
    forms = [f"{'word ' * 120}{number}" for number in range(3)]
    with FormWriter(tmp_path / "forms.lmdb") as writer:
        writer.write_forms([form_groups((form, b"\1\0\0\0" * 3) for form in sorted(["a", *forms, "z"]))])
        writer.write_words([])
        writer.close()

    assert (writer.forms, writer.lengths) == (5, {1, 121})
    assert len(FormStore(tmp_path / "forms.lmdb")) == 5


def test_the_fuzzy_index_needs_no_right_to_write(sample_path: Path) -> None:
    before = sorted(os.listdir(sample_path / "fuzzy"))

    assert open_kb(sample_path).kb.similar(["hary potter"])[0][0].form == "harry potter"
    assert sorted(os.listdir(sample_path / "fuzzy")) == before


@pytest.mark.parametrize("place", [".", "fuzzy", "vectors"])
def test_a_file_of_others_inside_a_knowledge_base_stays(make: Make, out: Path, place: str) -> None:
    make()
    (out / place).mkdir(exist_ok=True)
    (out / place / "notes.txt").write_text("mine")

    with pytest.raises(OutputUnusable, match=r"notes\.txt', which would be overwritten"):
        make(force=True)

    assert (out / place / "notes.txt").read_text() == "mine"


def test_a_file_put_into_the_folder_during_a_build_stays(make: Make, out: Path) -> None:
    def put_notes() -> None:
        (out / "notes.txt").write_text("mine")

    make()

    with pytest.raises(OutputUnusable, match=r"notes\.txt', which would be overwritten"):
        make(watch=at("forms", put_notes), force=True)

    assert (out / "notes.txt").read_text() == "mine"
    assert winner(out) == "m.078ffw"


@pytest.fixture
def with_vectors(make: Make, out: Path) -> Path:
    """Build the sample with vectors of two dimensions beside it."""
    pytest.importorskip("faiss", reason="vectors need FAISS: pip install 'kbtools[train]'")
    make()
    kb = EmbeddedKB(out)
    table = np.ones((len(kb.entity_ids), 2), dtype=np.float32)
    rows = np.arange(len(table), dtype=np.uint32)
    write_vectors(out, kb, EntityVectors(rows, 2, lambda some: table[some]))
    return out


def test_vectors_are_kept_by_a_build_of_the_same_content(make: Make, with_vectors: Path) -> None:
    make(force=True)

    assert EmbeddedKB(with_vectors).vectors().dim == 2


def test_vectors_of_other_content_are_told_of_before_they_go(
    make: Make, with_vectors: Path, sources: list[Source], caplog: pytest.LogCaptureFixture
) -> None:
    there = []
    listen = logging.Handler()
    listen.emit = lambda record: there.append((with_vectors / "vectors").is_dir())  # type: ignore[method-assign]
    logging.getLogger("kbtools.indexers.building.build").addHandler(listen)

    make(*sources[:2])

    logging.getLogger("kbtools.indexers.building.build").removeHandler(listen)
    assert "create the vectors again with kbtools index vectors" in caplog.text
    assert "the existing ones are deleted" in caplog.text
    assert there[0]
    assert not (with_vectors / "vectors").exists()


def test_a_build_is_refused_while_vectors_are_written(make: Make, with_vectors: Path) -> None:
    with pytest.raises(BuildLocked, match="vectors: another process is building it"), locked(with_vectors / "vectors"):
        make(force=True)

    assert EmbeddedKB(with_vectors).vectors().dim == 2


def test_a_flipped_byte_is_built_again(make: Make, sources: list[Source], out: Path) -> None:
    names = sources[1].path.read_text(encoding="utf-8")
    lines = (f'<fb:m.078ffw>\t<fb:common.topic.alias>\t"{letter * 50_000}"@en\t.' for letter in ascii_lowercase)
    sources[1].path.write_text(names + "\n".join(lines) + "\n", encoding="utf-8")
    make()
    file = out / "alias.text.utf8"
    data = bytearray(file.read_bytes())
    data[-7] ^= 1
    file.write_bytes(data)

    again = make()

    assert len(data) > VERIFIED
    assert again.fresh
    assert file.read_bytes() != data


def test_a_map_that_is_full_grows(tmp_path: Path) -> None:
    value = bytes(1_000_000)
    with FormWriter(tmp_path / "forms.lmdb") as writer:
        writer.write_forms([form_groups((f"{number:03}", value) for number in range(100))])
        writer.write_words([])
        writer.close()

    assert len(FormStore(tmp_path / "forms.lmdb")) == 100


@pytest.mark.parametrize("small_disk", ["20k", "400k", "1m"], indirect=True)
def test_a_disk_that_is_full_for_a_thread_of_tantivy_is_said_to_be_full(small_disk: Path) -> None:
    def write() -> None:
        with FuzzyWriter(small_disk / "fuzzy") as writer:
            writer.add([f"{number:06} {number * 7919 % 50_021} abc" for number in range(60_000)], ROWS[:60_000])
            writer.close()

    with pytest.raises(OSError, match="No space left"):
        write()
