"""What is said of a backend of someone else that fails, or gives other than its contract says."""

import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

from kbtools.answering.answerer import open_kb
from kbtools.errors import BrokenPlugin
from kbtools.indexers.folder.embedded import EmbeddedKB
from kbtools.kb.contract import KnowledgeBase
from kbtools.kb.foreign import GIVEN

QUESTION = "who created the character harry potter"


def fail(error: BaseException) -> Callable[..., object]:
    def method(*_: object, **__: object) -> object:
        raise error

    return method


class Breaking(EmbeddedKB):
    """A backend that a test breaks."""


class Unopened:
    """A backend that cannot be opened."""

    __init__ = fail(RuntimeError("no server today"))


class Empty:
    """A backend without a single method."""

    def __init__(self, path: Path) -> None:
        pass


def test_every_member_of_the_contract_is_guarded() -> None:
    assert set(GIVEN) == {name for name in vars(KnowledgeBase) if not name.startswith("_")}


@pytest.mark.parametrize(
    "method", ["lookup", "within_edits", "similar", "relations_of", "objects_of", "fact_counts", "ids", "names"]
)
@pytest.mark.parametrize("error", [RuntimeError("the wire broke"), SystemExit(3)], ids=["error", "exit"])
def test_a_backend_that_fails_is_named(
    sample_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, error: BaseException
) -> None:
    monkeypatch.setattr(Breaking, method, fail(error))
    # One and more than two edits from a name: the second is found by its resemblance alone.
    misspelt = {"within_edits": "who created the character hary potter", "similar": "who created hurmioni grangr"}
    question = misspelt.get(method, QUESTION)

    with pytest.raises(BrokenPlugin, match=f"backend Breaking failed: {type(error).__name__}"):
        open_kb(sample_path, backend=f"{__name__}:Breaking").query(question)


@pytest.mark.parametrize("method", ["lookup", "relations_of", "objects_of", "fact_counts", "ids", "names"])
def test_what_a_backend_gives_against_its_contract_is_named(
    sample_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    monkeypatch.setattr(Breaking, method, lambda *_, **__: 7)

    with pytest.raises(BrokenPlugin, match=f"backend Breaking gave 7 as {method}, against its contract"):
        open_kb(sample_path, backend=f"{__name__}:Breaking").query(QUESTION)


@pytest.mark.parametrize(
    ("name", "error"),
    [("Unopened", "cannot be made: RuntimeError.'no server today'"), ("Empty", "backend Empty failed: AttributeError")],
)
def test_a_backend_that_is_none_is_named(sample_path: Path, name: str, error: str) -> None:
    with pytest.raises(BrokenPlugin, match=error):
        open_kb(sample_path, backend=f"{__name__}:{name}").query(QUESTION)


def test_what_the_system_refuses_a_backend_stays_what_it_is(sample_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Breaking, "objects_of", fail(ConnectionResetError("the wire broke")))

    with pytest.raises(ConnectionResetError, match="the wire broke"):
        open_kb(sample_path, backend=f"{__name__}:Breaking").query(QUESTION)


def test_a_backend_of_others_answers_as_ours_and_pickles(sample_path: Path) -> None:
    ours, theirs = open_kb(sample_path), open_kb(sample_path, backend=f"{__name__}:Breaking")

    answers = [pickle.loads(pickle.dumps(answerer)).query(QUESTION).answers for answerer in (ours, theirs)]

    assert answers[0] == answers[1] != ()
