"""A knowledge base that is rebuilt while it is served: picked up without a restart, the former closed when idle."""

import asyncio
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from kbtools.answering.answerer import Answerer
from kbtools.indexers.building.build import BuildProgress, build
from kbtools.indexers.readers.reading import ReadOptions
from kbtools.serve.api import KBAPI
from kbtools.serve.app import create_app
from kbtools.serve.live_kb import LiveKB, open_live_kb
from kbtools.serve.settings import ServeSettings
from kbtools.serve.workers import Workers
from tests.conftest import World, write_world


def rebuild(folder: Path, name: str) -> None:
    """Build a knowledge base of one fact whose subject has a name, in place of what is there."""
    world = World(facts=(("m.0one", "music.album.artist", "m.0two"),), names=(("m.0one", name),))
    build(write_world(world, folder.parent), folder, options=ReadOptions(), watch=BuildProgress())


@pytest.fixture(scope="module")
def heroes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built") / "music.kb"
    rebuild(folder, "Heroes")
    return folder


@pytest.fixture
def folder(heroes: Path, tmp_path: Path) -> Path:
    return shutil.copytree(heroes, tmp_path / "music.kb")


@pytest.fixture
def live(folder: Path) -> LiveKB:
    return open_live_kb("music", str(folder), ServeSettings(kbs=(str(folder),)))


def test_a_rebuilt_knowledge_base_answers_without_a_restart(folder: Path) -> None:
    with TestClient(create_app(ServeSettings(kbs=(str(folder),)))) as client:
        before = client.get("/api/entity/m.0one").json()["name"]
        rebuild(folder, "Low")

        assert (before, client.get("/api/entity/m.0one").json()["name"]) == ("Heroes", "Low")


def test_a_rebuild_is_opened_once(folder: Path, live: LiveKB) -> None:
    rebuild(folder, "Low")

    with live.newest() as first, live.newest() as second:
        assert (first is second, first.answerer.entity("m.0one").name) == (True, "Low")


def test_a_folder_with_the_number_of_the_former_one_is_told_by_its_content(
    tmp_path: Path, folder: Path, live: LiveKB
) -> None:
    number = folder.stat().st_ino
    (tmp_path / "other").mkdir()
    rebuild(tmp_path / "other" / "music.kb", "Low")
    for part in sorted((tmp_path / "other" / "music.kb").iterdir()):
        if (folder / part.name).is_dir():
            shutil.rmtree(folder / part.name)
        part.replace(folder / part.name)

    with live.newest() as edition:
        name = edition.answerer.entity("m.0one").name

    assert (folder.stat().st_ino, name) == (number, "Low")


def test_the_former_edition_is_closed_when_its_last_user_is_done(
    folder: Path, live: LiveKB, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = []
    with live.newest() as former:
        monkeypatch.setattr(former.answerer, "close", lambda: closed.append("former"))
        rebuild(folder, "Low")
        with live.newest() as newest:
            assert newest is not former
            assert former.answerer.entity("m.0one").name == "Heroes"
        assert closed == []
    assert closed == ["former"]


def test_a_former_edition_stays_open_until_the_last_of_its_users_is_done(
    folder: Path, live: LiveKB, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = []
    with live.newest() as former:
        monkeypatch.setattr(former.answerer, "close", lambda: closed.append("former"))
        with live.newest() as same, live.held(same):
            rebuild(folder, "Low")
            with live.newest() as newest:
                monkeypatch.setattr(newest.answerer, "close", lambda: closed.append("newest"))
        assert (same is former, closed) == (True, [])
    assert closed == ["former"]


def test_an_idle_former_edition_is_closed_at_once(folder: Path, live: LiveKB, monkeypatch: pytest.MonkeyPatch) -> None:
    closed = []
    monkeypatch.setattr(live.edition.answerer, "close", lambda: closed.append("former"))
    rebuild(folder, "Low")

    with live.newest():
        pass

    assert closed == ["former"]


def test_while_one_thread_opens_a_rebuild_others_go_on_with_the_former(folder: Path, live: LiveKB) -> None:
    former = live.edition
    rebuild(folder, "Low")

    with live.opening, live.newest() as meanwhile:
        assert meanwhile is former
    with live.newest() as afterwards:
        assert afterwards.answerer.entity("m.0one").name == "Low"


def test_a_damaged_rebuild_leaves_the_former_edition_answering(
    folder: Path, live: LiveKB, caplog: pytest.LogCaptureFixture
) -> None:
    rebuild(folder, "Low")
    next(folder.glob("*manifest*")).write_bytes(b"no manifest")

    with live.newest() as edition:
        name = edition.answerer.entity("m.0one").name

    assert name == "Heroes"
    assert "cannot be opened; the old version answers" in caplog.text


def test_a_removed_folder_leaves_the_edition_answering(folder: Path, live: LiveKB) -> None:
    shutil.rmtree(folder)

    with live.newest() as edition:
        assert edition.answerer.entity("m.0one").name == "Heroes"


def test_each_batch_of_a_stream_holds_its_edition_open(live: LiveKB, folder: Path) -> None:
    users: list[int] = []

    def ask(answerer: Answerer, batch: Sequence[str]) -> Iterator[Any]:
        users.append(live.edition.users)
        return answerer.lookup_many(batch)

    async def stream() -> bytes:
        answer: Any = await KBAPI(live, Workers()).stream(["Heroes"] * 20, ask)
        return b"".join([lines async for lines in answer.body_iterator])

    lines = asyncio.run(stream()).splitlines()

    assert (len(lines), users, live.edition.users) == (20, [2, 2, 2], 0)
