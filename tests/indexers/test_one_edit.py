"""Without tantivy: recall by one edit, at query time and at build time."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kbtools.answering import open_kb
from kbtools.indexers.embedded import FUZZY
from kbtools.indexers.one_edit import edits
from tests.conftest import World


@pytest.mark.parametrize("edited", ["lile", "lillle", "lisle", "lilel", " lille", "li lle", "ille"])
def test_every_edit_of_a_form_is_tried(edited: str) -> None:
    assert edited in set(edits("lille"))


def test_letters_of_other_alphabets_come_from_the_form() -> None:
    assert "москвва" in set(edits("москва"))


@pytest.fixture
def without_tantivy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tantivy", None)
    monkeypatch.delitem(sys.modules, "kbtools.indexers.fuzzy_index", raising=False)


def test_a_misspelling_links_where_tantivy_cannot_be_imported(
    without_tantivy: None, sample_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kb = open_kb(sample_path).kb
    assert [near.form for near in kb.similar("frankenstien")] == ["frankenstein"]
    assert "one edit away" in caplog.text


def test_a_knowledge_base_is_built_where_tantivy_cannot_be_imported(
    without_tantivy: None, make_kb: Callable[[str, World], Any], tiny_world: World, caplog: pytest.LogCaptureFixture
) -> None:
    kb = make_kb("embedded", tiny_world)
    assert not (kb.path / FUZZY).exists()
    assert [near.form for near in kb.similar("pariss")] == ["paris"]
    assert "without a fuzzy index" in caplog.text
