"""Records, and folders that appear whole or not at all."""

import errno
import os
import subprocess
import sys
import threading
from pathlib import Path

import msgpack
import pytest

from kbtools import storage
from kbtools.errors import BuildLocked, DiskFull, KBUnusable, MemoryExhausted, OutputUnusable, SourceDamaged
from kbtools.record_files import read_record, write_record
from kbtools.storage import (
    MANIFEST,
    WORK_PREFIX,
    built_folder,
    exchange,
    find_stranger,
    folder_identity,
    is_being_built,
    link_or_copy,
    locked,
    make_folder,
    new_file,
    remove_abandoned,
    remove_ours,
    restore,
    swap,
    temporary_folder,
)


def folder(path: Path, content: str, *, exist_ok: bool = False) -> Path:
    """Make a folder that holds one file."""
    path.mkdir(parents=True, exist_ok=exist_ok)
    (path / "file").write_text(content)
    return path


def ours(path: Path) -> bool:
    """Tell what these tests write themselves."""
    return str(path) == "file"


def content(path: Path) -> str:
    return (path / "file").read_text()


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """Give a folder that holds the old file, with nothing beside it."""
    return folder(tmp_path / "kbs" / "x.kb", "old")


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    record = {"a": [1, "Łódź", None], "b": {"c": 1.5}}
    write_record(tmp_path / "r", record, name="f", version=1)

    assert read_record(tmp_path / "r", name="f", version=1, cure="index again") == record
    assert os.listdir(tmp_path) == ["r"]


@pytest.mark.parametrize(("name", "version"), [("f", 2), ("g", 1)])
def test_a_record_of_another_format_is_refused(tmp_path: Path, name: str, version: int) -> None:
    write_record(tmp_path / "r", {}, name="f", version=1)

    with pytest.raises(KBUnusable, match=f"found format 'f' version 1, expected '{name}' version {version}") as caught:
        read_record(tmp_path / "r", name=name, version=version, cure="index again")
    assert caught.value.facts["found"] == ("f", 1)


@pytest.mark.parametrize(
    "written",
    [b"", b"\xc1", b"text", msgpack.packb([1]), msgpack.packb({"format": "f", "version": 1, "record": [1, 2]})],
)
def test_a_damaged_record_is_named(tmp_path: Path, written: bytes) -> None:
    (tmp_path / "r").write_bytes(written)

    with pytest.raises(KBUnusable, match=r"/r: damaged"):
        read_record(tmp_path / "r", name="f", version=1, cure="index again")


def test_a_changed_value_is_damage_and_the_caller_names_the_cure(tmp_path: Path) -> None:
    write_record(tmp_path / "r", {"count": 7}, name="f", version=1)
    (tmp_path / "r").write_bytes((tmp_path / "r").read_bytes().replace(b"count\x07", b"count\x06"))

    with pytest.raises(KBUnusable, match=r"/r: damaged \(its checksum differs\); make the vectors again$"):
        read_record(tmp_path / "r", name="f", version=1, cure="make the vectors again")


def test_a_record_without_a_checksum_is_damaged(tmp_path: Path) -> None:
    (tmp_path / "r").write_bytes(msgpack.packb({"format": "f", "version": 1, "record": {"count": 7}}))

    with pytest.raises(KBUnusable, match="damaged"):
        read_record(tmp_path / "r", name="f", version=1, cure="index again")


@pytest.mark.parametrize("appended", [b"x" * 20_000, msgpack.packb("long" * 5_000)])
def test_what_is_appended_to_a_record_is_not_repeated(tmp_path: Path, appended: bytes) -> None:
    write_record(tmp_path / "r", {"count": list(range(5_000))}, name="f", version=1)
    with (tmp_path / "r").open("ab") as file:
        file.write(appended)

    with pytest.raises(KBUnusable, match="damaged") as caught:
        read_record(tmp_path / "r", name="f", version=1, cure="index again")
    assert len(str(caught.value)) < len(str(tmp_path)) + 200


def test_an_absent_record_is_named(tmp_path: Path) -> None:
    with pytest.raises(KBUnusable, match=r"/r: cannot be read \(No such file") as caught:
        read_record(tmp_path / "r", name="f", version=1, cure="index again")

    assert caught.value.facts == {"path": str(tmp_path / "r")}


def test_a_folder_appears_when_the_block_ends(tmp_path: Path) -> None:
    with built_folder(tmp_path / "x.kb", ours=ours) as building:
        (building / "file").write_text("new")
        assert not (tmp_path / "x.kb").exists()

    assert content(tmp_path / "x.kb") == "new"
    assert os.listdir(tmp_path) == ["x.kb"]


def test_a_folder_takes_the_place_of_the_old_one(target: Path) -> None:
    with built_folder(target, ours=ours) as building:
        (building / "file").write_text("new")
        assert content(target) == "old"

    assert content(target) == "new"
    assert os.listdir(target.parent) == ["x.kb"]


@pytest.mark.parametrize("error", [ValueError("x"), KeyboardInterrupt(), SourceDamaged("no space left")])
def test_an_error_leaves_the_old_folder_and_passes_through(target: Path, error: BaseException) -> None:
    with pytest.raises(type(error)), built_folder(target, ours=ours):
        raise error
    assert content(target) == "old"
    assert os.listdir(target.parent) == ["x.kb"]


def test_an_error_takes_the_parents_back_that_were_made(tmp_path: Path) -> None:
    with pytest.raises(ValueError), built_folder(tmp_path / "new" / "deep" / "x.kb", ours=ours):
        raise ValueError
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        OSError(errno.EDQUOT, "Disk quota exceeded"),
        OSError(errno.EFBIG, "File too large"),
        OSError(errno.ENOSPC, "Auf dem Gerät ist kein Speicherplatz mehr verfügbar"),
        ValueError("An IO error occurred: 'No space left on device (os error 28)'"),
        RuntimeError("Out of memory: raise max_temp_directory_size"),
    ],
)
def test_a_full_disk_is_named_in_whatever_words_it_comes(target: Path, error: BaseException) -> None:
    full = pytest.raises(DiskFull, match=r"x\.kb: no space left on the disk; nothing was changed")
    with full as caught, built_folder(target, ours=ours):
        raise error

    assert caught.value.__cause__ is error
    assert content(target) == "old"
    assert os.listdir(target.parent) == ["x.kb"]


def test_another_error_of_the_disk_is_named(target: Path) -> None:
    with (
        pytest.raises(OutputUnusable, match=r"cannot be written \(Input/output error\)"),
        built_folder(target, ours=ours),
    ):
        raise OSError(errno.EIO, "Input/output error")


@pytest.mark.parametrize("name", ["/elsewhere/file", b"/elsewhere/file"])
def test_an_error_of_a_file_elsewhere_passes_through(target: Path, name: str | bytes) -> None:
    with pytest.raises(OSError, match="elsewhere"), built_folder(target, ours=ours):
        raise OSError(errno.EIO, "Input/output error", name)


def test_a_broken_pipe_is_no_error_of_the_disk(target: Path) -> None:
    with pytest.raises(BrokenPipeError), built_folder(target, ours=ours):
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")


def test_the_second_of_two_builders_is_refused(target: Path) -> None:
    with built_folder(target, ours=ours) as building:
        (building / "file").write_text("first")
        with (
            pytest.raises(BuildLocked, match=r"x\.kb: another process is building it"),
            built_folder(target, ours=ours),
        ):
            pytest.fail("both build")

    assert content(target) == "first"


def test_of_many_builders_at_once_one_wins_each_time(target: Path) -> None:
    outcomes = []
    start = threading.Barrier(8)

    def build_once() -> None:
        start.wait()
        try:
            with built_folder(target, ours=ours) as building:
                (building / "file").write_text("new")
            outcomes.append("built")
        except BuildLocked:
            outcomes.append("refused")

    threads = [threading.Thread(target=build_once) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(outcomes) == 8
    assert "built" in outcomes
    assert os.listdir(target.parent) == ["x.kb"]


def test_a_folder_is_said_to_be_built_while_it_is(target: Path) -> None:
    assert not is_being_built(target)

    with built_folder(target, ours=ours) as building:
        (building / "file").write_text("new")
        assert is_being_built(target)
    assert not is_being_built(target)


def test_what_a_killed_build_left_is_removed(target: Path) -> None:
    folder(target.with_name(".x.kb.building"), "half")
    target.with_name(".x.kb.lock").touch()
    assert not is_being_built(target)

    with built_folder(target, ours=ours) as building:
        assert os.listdir(building) == []
    assert os.listdir(target.parent) == ["x.kb"]


def test_a_link_is_followed(target: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(target)
    with built_folder(tmp_path / "link", ours=ours) as building:
        (building / "file").write_text("new")

    assert (tmp_path / "link").is_symlink()
    assert content(target) == "new"
    assert sorted(os.listdir(tmp_path)) == ["kbs", "link"]


@pytest.mark.parametrize("parent", ["file", "file/deep"])
def test_a_parent_that_is_a_file_is_refused(tmp_path: Path, parent: str) -> None:
    (tmp_path / "file").write_text("mine")

    with pytest.raises(OutputUnusable, match="cannot be written"), built_folder(tmp_path / parent / "x.kb", ours=ours):
        pytest.fail("built below a file")


def test_a_mount_point_is_refused() -> None:
    with (
        pytest.raises(OutputUnusable, match="is a mount point; choose a folder"),
        built_folder(Path(os.sep), ours=ours),
    ):
        pytest.fail("built in place of the root")


def test_without_an_exchange_the_folder_is_replaced_in_two_steps(target: Path, tmp_path: Path) -> None:
    swap(folder(tmp_path / "new", "new"), target, ours, exchange=lambda one, other: False)

    assert content(target) == "new"
    assert os.listdir(target.parent) == ["x.kb"]


def test_without_an_exchange_a_failure_puts_the_old_folder_back(target: Path, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        swap(tmp_path / "absent", target, ours, exchange=lambda one, other: False)
    assert content(target) == "old"


def test_a_kill_between_the_two_steps_is_undone(target: Path) -> None:
    target.rename(target.with_name(".x.kb.old"))
    restore(target, ours)

    assert content(target) == "old"
    assert os.listdir(target.parent) == ["x.kb"]


@pytest.mark.parametrize("place", ["x.kb", ".x.kb.building", ".x.kb.old"])
def test_a_file_of_others_is_refused_and_stays(target: Path, place: str) -> None:
    folder(target.with_name(place), "old", exist_ok=True)
    (target.with_name(place) / "notes.txt").write_text("mine")

    with (
        pytest.raises(OutputUnusable, match=r"contains 'notes\.txt', which would be overwritten"),
        built_folder(target, ours=ours),
    ):
        pytest.fail("built over it")

    assert (target.with_name(place) / "notes.txt").read_text() == "mine"
    assert content(target) == "old"


def test_a_file_put_into_the_target_while_it_is_built_stays(target: Path) -> None:
    refused = pytest.raises(OutputUnusable, match=r"contains 'notes\.txt', which would be overwritten")

    with refused, built_folder(target, ours=ours):
        (target / "notes.txt").write_text("mine")

    assert (target / "notes.txt").read_text() == "mine"
    assert content(target) == "old"
    assert os.listdir(target.parent) == ["x.kb"]


def test_a_file_put_into_the_old_folder_after_the_last_look_stays(target: Path) -> None:
    def exchange_then_write(new: Path, old: Path) -> bool:
        done = exchange(new, old)
        (new / "notes.txt").write_text("mine")
        return done

    new = folder(target.with_name(".x.kb.building"), "new")
    swap(new, target, ours, exchange=exchange_then_write)
    remove_ours(new, ours)

    assert content(target) == "new"
    assert os.listdir(new) == ["notes.txt"]


def test_what_blocks_in_the_block_is_not_taken_for_another_build(target: Path) -> None:
    with pytest.raises(BlockingIOError), locked(target):
        raise BlockingIOError(errno.EAGAIN, "a pipe is full")


def test_a_lock_that_is_a_link_is_not_followed(target: Path, tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("mine")
    target.with_name(".x.kb.lock").symlink_to(tmp_path / "precious")

    with (
        pytest.raises(OutputUnusable, match=r"\.x\.kb\.lock: is a symbolic link; remove it"),
        built_folder(target, ours=ours),
    ):
        pytest.fail("built under a link")

    assert (tmp_path / "precious").read_text() == "mine"
    assert target.with_name(".x.kb.lock").is_symlink()
    assert not is_being_built(target)


def test_a_file_of_others_in_the_place_of_the_lock_stays(target: Path) -> None:
    target.with_name(".x.kb.lock").write_text("mine")

    with built_folder(target, ours=ours) as building:
        (building / "file").write_text("new")

    assert target.with_name(".x.kb.lock").read_text() == "mine"
    assert content(target) == "new"


def test_a_link_that_lies_in_wait_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    for name in ("r", "r.new"):
        (tmp_path / name).symlink_to(victim)

    write_record(tmp_path / "r", {"a": 1}, name="f", version=1)

    assert victim.read_text() == "precious"
    assert not (tmp_path / "r").is_symlink()


def test_a_folder_that_is_a_link_is_not_written_into(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "pictures").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(OutputUnusable, match="symbolic link"):
        make_folder(tmp_path / "pictures")


def test_what_a_killed_process_left_of_a_file_is_removed_by_the_next(tmp_path: Path) -> None:
    killed = "import os, sys; from pathlib import Path; from kbtools.storage import new_file\n"
    killed += "with new_file(Path(sys.argv[1])): os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", killed, str(tmp_path / "r")], check=False)
    (left,) = tmp_path.iterdir()
    write_record(tmp_path / "r", {}, name="f", version=1)
    assert left.exists()  # another process may be writing it
    os.utime(left, (0, 0))

    write_record(tmp_path / "r", {}, name="f", version=1)

    assert os.listdir(tmp_path) == ["r"]


def test_an_unfinished_file_is_ours(target: Path) -> None:
    (target / f".file.{'0' * 16}.new").write_text("half")
    with built_folder(target, ours=ours) as building:
        folder(building, "new", exist_ok=True)

    assert content(target) == "new"


def test_a_file_that_is_being_written_is_ours(tmp_path: Path) -> None:
    with new_file(tmp_path / "r"):
        assert find_stranger(tmp_path, lambda path: False) is None


def test_a_name_is_on_the_disk_before_a_file_or_folder_is_reported_done(
    target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[str] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        flushed.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    with built_folder(target, ours=ours) as building:
        folder(building, "new", exist_ok=True)
    write_record(target.parent / "r", {}, name="f", version=1)

    assert flushed.count(str(target.parent)) == 2
    assert flushed[-1] == str(target.parent)


def test_temporary_folders_of_killed_processes_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    killed = "import os; from kbtools.storage import temporary_folder\n"
    killed += "with temporary_folder() as folder: (folder / 'file').touch(); os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", killed], check=False, env={**os.environ, "TMPDIR": str(tmp_path)})
    (left,) = tmp_path.iterdir()
    (tmp_path / "kbtools-of-mine").mkdir()
    (tmp_path / f"{WORK_PREFIX}link").symlink_to(tmp_path / "kbtools-of-mine")
    with temporary_folder() as used:
        os.utime(used, (0, 0))
        os.utime(left, (0, 0))
        remove_abandoned.cache_clear()
        remove_abandoned(tmp_path)

        assert used.is_dir()
        assert not left.exists()
    assert not used.exists()
    assert len(os.listdir(tmp_path)) == 2


def test_a_file_is_as_open_to_others_as_the_umask_says(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        with new_file(tmp_path / "r") as file:
            file.write(b"1")
    finally:
        os.umask(before)

    assert (tmp_path / "r").stat().st_mode & 0o777 == 0o640


def test_a_file_in_the_place_of_a_folder_is_a_stranger(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "link").symlink_to(folder(tmp_path / "real", "ours"))

    assert find_stranger(tmp_path / "file", ours) == Path("file")
    assert find_stranger(tmp_path / "link", ours) == Path("link")
    assert find_stranger(tmp_path / "real", ours) is None
    assert find_stranger(tmp_path / "absent", ours) is None


@pytest.mark.parametrize(
    ("error", "out"),
    [
        (MemoryError(), True),
        (OSError(errno.ENOMEM, "no"), True),
        (RuntimeError("std::bad_alloc"), True),
        (RuntimeError("can't start new thread"), True),
        (RuntimeError("malloc of size 7 failed"), True),
        (OSError(errno.EIO, "no"), False),
        (ValueError("memory"), False),
    ],
)
def test_missing_memory_is_known_by_the_words_of_any_library(target: Path, error: Exception, out: bool) -> None:
    with pytest.raises(MemoryExhausted if out else (type(error), OutputUnusable)), built_folder(target, ours=ours):
        raise error

    assert (target / "file").read_text() == "old"


def test_each_file_of_a_new_folder_is_flushed_but_those_with_another_name(
    target: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[str] = []
    monkeypatch.setattr(storage, "flush", lambda path: flushed.append(path.name))
    other = folder(tmp_path / "other", "linked") / "file"

    with built_folder(target, ours=lambda path: True) as building:
        os.link(other, building / "alinked")
        for name in ("one", "inner/two"):
            (building / name).parent.mkdir(exist_ok=True)
            (building / name).write_text(name)

    assert sorted(flushed) == sorted(["one", "two", "inner", building.name, target.parent.name])


def test_a_file_is_linked_or_else_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = folder(tmp_path / "a", "content") / "file"
    link_or_copy(source, tmp_path / "linked")
    monkeypatch.setattr(os, "link", lambda *paths: (_ for _ in ()).throw(OSError(errno.EPERM, "no links")))

    link_or_copy(source, tmp_path / "copied")

    assert (tmp_path / "linked").samefile(source)
    assert not (tmp_path / "copied").samefile(source)
    assert (tmp_path / "copied").read_text() == "content"


def test_a_knowledge_base_is_another_when_its_folder_or_manifest_is(tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_bytes(b"one")
    before = folder_identity(tmp_path)
    (tmp_path / "file").write_text("of no meaning")
    assert folder_identity(tmp_path) == before is not None
    (tmp_path / MANIFEST).write_bytes(b"two")

    assert folder_identity(tmp_path) != before
    assert folder_identity(tmp_path / "absent") is None


def test_a_lock_whose_file_was_removed_by_the_last_holder_is_taken_again(
    target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter([False])
    real = storage._is_same_file
    monkeypatch.setattr(storage, "_is_same_file", lambda descriptor, path: next(answers, real(descriptor, path)))

    with locked(target):
        held = is_being_built(target)

    assert held
    assert not is_being_built(target)
