"""What a backend need not implement is what a plain loop over its other members gives."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbtools.errors import IncomingMissing, VectorsMissing
from kbtools.indexers.folder.memory import MemoryKB
from kbtools.kb.contract import (
    ABSENT,
    BackendDefaults,
    NameMatch,
    find_rows,
    indexed_nearest,
    match_kind,
    relation_texts,
)
from kbtools.kb.language_tags import UND
from kbtools.kb.rows import Grouped
from kbtools.kb.vector_index import ExactVectors
from kbtools.kb.views import View
from kbtools.text.rungs import Form

few = settings(max_examples=30)
FACTS = st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("rst"), st.sampled_from("abcd")), min_size=1)


def lists(grouped: Grouped) -> list[list[int]]:
    return [own.tolist() for own in np.split(grouped.values, grouped.starts[1:-1])]


@given(FACTS, st.lists(st.integers(0, 3), max_size=5))
@few
def test_facts_and_incoming_relations_are_those_of_a_plain_loop(
    facts: list[tuple[str, str, str]], asked: list[int]
) -> None:
    kb = MemoryKB(facts)
    rows = np.array([at for at in asked if at < len(kb.entity_rows())], dtype=np.uint32)
    ids, own = kb.ids(rows), sorted(set(facts))

    found = [(*kb.ids(np.array([s, o], dtype=np.uint32)), kb.relations[r]) for s, r, o in kb.facts_of(rows).tolist()]

    assert found == [(s, o, r) for entity in ids for s, r, o in own if s == entity]
    assert lists(kb.incoming_relations_of(rows)) == (
        [sorted({kb.relations.index(r) for _, r, o in own if o == entity}) for entity in ids] or [[]]
    )


def test_a_backend_without_more_has_nothing_more() -> None:
    class Small(BackendDefaults):
        relations = ("r", "s")

    kb: Any = Small()
    rows = np.arange(2, dtype=np.uint32)

    assert (kb.relation_names, kb.descriptions(rows)) == ((None, None), [None, None])
    assert (kb.incoming_counts(rows), kb.name_counts("a", rows), kb.forms_with_prefix("a", limit=3)) == (None, None, [])
    assert kb.likely_runs(["a", "b", "c"], frozenset({1, 3})) == [(0, 0), (1, 1), (2, 2), (0, 2)]
    with pytest.raises(IncomingMissing, match="no index from objects to facts"):
        kb.subjects_of(rows)
    with pytest.raises(VectorsMissing, match="stores no entity vectors"):
        kb.vectors()


def test_names_are_the_first_and_rows_are_all() -> None:
    kb = MemoryKB([("a", "r", "b")], [("a", "Zed"), ("c", "Cy")], aliases=[("a", "Ann"), ("b", "Bo")])

    assert BackendDefaults.entity_rows(kb).tolist() == kb.entity_rows().tolist() == [0, 1, 2]
    assert BackendDefaults.names(kb, kb.entity_rows()) == ["Zed", "Bo", "Cy"]


def test_an_unknown_id_has_an_absent_row() -> None:
    kb = MemoryKB([("a", "r", "b")])

    assert ABSENT == -1
    assert find_rows(kb, ["b", "nobody", "a"]).tolist() == [1, -1, 0]
    assert find_rows(kb, []).dtype == np.int64


@pytest.mark.parametrize("form", list(Form))
@pytest.mark.parametrize("is_alias", [False, True])
def test_a_kind_of_match_is_a_number_of_four_bits(form: Form, is_alias: bool) -> None:
    kind = match_kind(form, is_alias=is_alias)

    assert 0 <= kind < 16
    assert NameMatch.of_kind(kind, "Ann", np.arange(2, dtype=np.uint32))[:2] == ("Ann", form)
    assert NameMatch.of_kind(kind, "Ann", np.arange(2, dtype=np.uint32)).is_alias is is_alias
    assert (match_kind(form, is_alias=True) > kind) is not is_alias


def test_the_text_of_a_relation_is_its_name_or_else_its_id() -> None:
    class Named(View):
        relation_names = ("made by", None)

    assert relation_texts(Named(MemoryKB([("a", "r", "b"), ("a", "s", "b")]))) == ["made by", "s"]


def test_parts_of_names_are_those_of_each_entity() -> None:
    kb = MemoryKB(
        [("a", "r", "b")], [("a", "Elm", "de"), ("b", "Elm", "en"), ("c", "Elm", "")], aliases=[("d", "Elm", "de")]
    )
    matches = [match for own in kb.lookup(["elm"]).values() for match in own]

    parts = kb.parts_of(matches, frozenset(["de", UND]))

    found = {
        entity: part
        for match, own in zip(matches, parts, strict=True)
        for entity, part in zip(kb.ids(match.entities), own.tolist(), strict=True)
    }
    assert found == {"a": 1, "b": 0, "c": 1, "d": 2}
    assert kb.parts_of([], frozenset()) == []


def test_the_nearest_of_an_entity_are_others() -> None:
    kb = MemoryKB([("a", "r", "b"), ("c", "r", "d")])
    table = np.array([[1, 0], [1, 0], [1, 1]], dtype=np.float32)
    kb.vector_index = ExactVectors(np.arange(3, dtype=np.uint32), table)

    assert [near.entity_row for near in indexed_nearest(kb, 1, top=2)] == [0, 2]
    assert [near.cosine for near in indexed_nearest(kb, 1, top=1)] == pytest.approx([1.0])
    with pytest.raises(VectorsMissing, match="entity 'd' has no vector"):
        indexed_nearest(kb, 3, top=1)

    kb.vector_index = ExactVectors(np.arange(3, dtype=np.uint32), np.ones((3, 2), dtype=np.float32))
    assert [near.entity_row for near in indexed_nearest(kb, 2, top=1)] == [0]
