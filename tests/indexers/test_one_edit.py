"""Without tantivy: recall by one edit, at query time and at build time."""

import sys

import pytest

from kbtools.answering import open_kb
from kbtools.indexers.embedded import FUZZY
from kbtools.indexers.one_edit import edits


@pytest.mark.parametrize("edited", ["lile", "lillle", "lisle", "lilel", " lille", "li lle", "ille"])
def test_every_edit_of_a_form_is_tried(edited):
    assert edited in set(edits("lille"))


def test_letters_of_other_alphabets_come_from_the_form():
    assert "москвва" in set(edits("москва"))


@pytest.fixture
def without_tantivy(monkeypatch):
    monkeypatch.setitem(sys.modules, "tantivy", None)
    monkeypatch.delitem(sys.modules, "kbtools.indexers.fuzzy_index", raising=False)


def test_a_misspelling_links_where_tantivy_cannot_be_imported(without_tantivy, sample_path, caplog):
    kb = open_kb(sample_path).kb
    assert [near.form for near in kb.similar("frankenstien")] == ["frankenstein"]
    assert "one edit away" in caplog.text


def test_a_knowledge_base_is_built_where_tantivy_cannot_be_imported(without_tantivy, make_kb, tiny_world, caplog):
    kb = make_kb("embedded", tiny_world)
    assert not (kb.path / FUZZY).exists()
    assert [near.form for near in kb.similar("pariss")] == ["paris"]
    assert "without a fuzzy index" in caplog.text
