"""What the cache holds is of the same key, or is made again."""

import errno
from pathlib import Path

import pytest

from kbtools import user_cache
from kbtools.record_files import read_record, write_record
from kbtools.user_cache import FORMAT_NAME, FORMAT_VERSION, keep


class Maker:
    """A function that counts how often it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self) -> bytes:
        self.asked += 1
        return b"made"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(user_cache.VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache" / "vectors"


def test_a_key_is_made_once() -> None:
    make = Maker()

    assert [keep("vectors", "a", make) for _ in range(2)] == [b"made"] * 2
    assert make.asked == 1


def test_what_was_made_for_another_key_is_not_believed(cache: Path) -> None:
    keep("vectors", "a", Maker())
    (own,) = cache.iterdir()
    keep("vectors", "b", lambda: b"other")
    (other,) = set(cache.iterdir()) - {own}
    own.write_bytes(other.read_bytes())

    assert keep("vectors", "a", Maker()) == b"made"


@pytest.mark.parametrize("change", [{"content": 7}, {"made_from": ""}, {"made_from": None, "content": b"other"}])
def test_a_record_that_is_none_of_ours_is_made_anew(cache: Path, change: dict[str, object]) -> None:
    keep("vectors", "a", Maker())
    (path,) = cache.iterdir()
    record = read_record(path, name=FORMAT_NAME, version=FORMAT_VERSION, cure="")
    write_record(path, record | change, name=FORMAT_NAME, version=FORMAT_VERSION)

    assert keep("vectors", "a", Maker()) == b"made"


def test_a_full_disk_under_the_cache_costs_time_alone(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make = Maker()

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)

    assert [keep("vectors", "a", make) for _ in range(2)] == [b"made"] * 2
    assert make.asked == 2
    assert list(cache.iterdir()) == []


def test_a_cache_that_others_may_write_to_is_not_read(cache: Path) -> None:
    make = Maker()
    keep("vectors", "a", make)
    user_cache.checked_folder.cache_clear()
    cache.chmod(0o777)

    keep("vectors", "a", make)

    assert make.asked == 2


def test_of_a_place_the_last_is_kept(cache: Path) -> None:
    make = Maker()

    for key in ("a", "b", "b"):
        keep("vectors", key, make, place="one")

    assert make.asked == 2
    assert len(list(cache.iterdir())) == 1
