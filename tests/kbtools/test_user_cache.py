"""A large file is compared with its digest once, and again as soon as it is another."""

import os
from pathlib import Path

import pytest

from kbtools import user_cache
from kbtools.record_files import file_digest
from kbtools.user_cache import checked_folder, keep, matches_digest


@pytest.fixture
def read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Take every file for a large one that was written long ago, and give the list of those that are read."""
    files: list[Path] = []

    def digest(path: Path) -> str:
        files.append(path)
        return file_digest(path)

    monkeypatch.setenv(user_cache.VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setattr(user_cache, "SMALL", 0)
    monkeypatch.setattr(user_cache, "SETTLED", -1)
    monkeypatch.setattr(user_cache, "file_digest", digest)
    return files


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    path = tmp_path / "weights"
    path.write_bytes(b"0123")
    return path


def test_a_large_file_is_read_once(weights: Path, read: list[Path]) -> None:
    digest = file_digest(weights)

    assert [matches_digest(weights, digest) for _ in range(3)] == [True] * 3
    assert read == [weights]


def test_a_file_that_changed_is_read_again(weights: Path, read: list[Path]) -> None:
    digest, before = file_digest(weights), weights.stat()
    assert matches_digest(weights, digest)
    with weights.open("r+b") as file:
        file.write(b"1")
    os.utime(weights, ns=(before.st_atime_ns, before.st_mtime_ns))

    assert not matches_digest(weights, digest)
    assert not matches_digest(weights, digest)


def test_another_digest_is_compared_by_itself(weights: Path, read: list[Path]) -> None:
    assert matches_digest(weights, file_digest(weights))

    assert not matches_digest(weights, "another")


def test_a_file_that_was_just_written_is_read_again(
    weights: Path, read: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(user_cache, "SETTLED", 10**18)

    assert [matches_digest(weights, file_digest(weights)) for _ in range(2)] == [True] * 2
    assert read == [weights] * 2


def test_a_cache_that_cannot_be_written_costs_another_look_alone(
    weights: Path, read: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv(user_cache.VARIABLE, str(tmp_path / "file"))

    assert [matches_digest(weights, file_digest(weights)) for _ in range(2)] == [True] * 2


@pytest.mark.parametrize(
    ("place", "mode"), [("cache", 0o770), ("cache", 0o707), ("cache/verified", 0o777), (".", 0o777)]
)
def test_a_cache_that_others_may_write_to_is_not_believed(
    weights: Path, read: list[Path], tmp_path: Path, place: str, mode: int
) -> None:
    digest = file_digest(weights)
    assert matches_digest(weights, digest)
    checked_folder.cache_clear()
    (tmp_path / place).chmod(mode)

    assert [matches_digest(weights, digest) for _ in range(2)] == [True] * 2
    assert read == [weights] * 3


def test_a_cache_in_a_folder_like_that_of_temporary_files_is_believed(
    weights: Path, read: list[Path], tmp_path: Path
) -> None:
    tmp_path.chmod(0o1777)

    assert [matches_digest(weights, file_digest(weights)) for _ in range(2)] == [True] * 2
    assert read == [weights]


def test_a_cache_of_another_user_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = tmp_path.stat()
    monkeypatch.setattr(Path, "stat", lambda path: os.stat_result((*state[:4], state.st_uid + 1234, *state[5:10])))

    assert user_cache.is_shared(tmp_path, inside=False)


def test_a_folder_of_the_cache_is_for_its_user_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(user_cache.VARIABLE, str(tmp_path / "cache"))
    before = os.umask(0)
    try:
        folder = user_cache.own_cache("vectors")
    finally:
        os.umask(before)

    assert folder
    assert [place.stat().st_mode & 0o777 for place in (folder, folder.parent)] == [0o700, 0o700]


def test_a_small_file_is_read_each_time(weights: Path, read: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_cache, "SMALL", 10)

    assert [matches_digest(weights, file_digest(weights)) for _ in range(2)] == [True] * 2
    assert read == [weights] * 2


def test_caches_lie_where_the_system_keeps_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(user_cache.VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert user_cache.cache_folder() == tmp_path / "kbtools"

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert user_cache.cache_folder() == tmp_path / ".cache" / "kbtools"


def test_what_is_kept_is_made_again_when_made_from_something_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(user_cache.VARIABLE, str(tmp_path))
    made: list[str] = []

    def kept(key: str, place: str) -> bytes:
        def make() -> bytes:
            made.append(key + place)
            return key.encode()

        return keep("letters", key, make, place=place)

    in_one_place = [kept(key, "p") for key in ("a", "a", "b", "b", "a")]
    without = [kept(key, "") for key in ("a", "b", "a", "b")]

    assert (in_one_place, without) == ([b"a", b"a", b"b", b"b", b"a"], [b"a", b"b", b"a", b"b"])
    assert made == ["ap", "bp", "ap", "a", "b"]
