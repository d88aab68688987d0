"""What indexes and notes on a cluster say of themselves, and what a client makes of it: no cluster is needed."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbtools.errors import KBUnusable
from kbtools.indexers.elastic.build_lock import STALE, BuildNote
from kbtools.indexers.elastic.mapping import (
    MAPPING_VERSION,
    OWNER,
    IndexMark,
    IndexSettings,
    final_settings,
    index_body,
    index_name,
    loading_alias,
    number_of,
    role_of,
)

MARKS = st.builds(
    IndexMark,
    st.text(min_size=1, max_size=4),
    st.integers(0, 9),
    st.integers(0, 9),
    st.booleans(),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)


def described(meta: dict[str, Any]) -> dict[str, Any]:
    return {"mappings": {"_meta": meta}}


@given(MARKS)
def test_a_mark_is_read_as_it_was_written(mark: IndexMark) -> None:
    assert IndexMark.of(described(mark.to_meta())) == mark
    assert ("origin" in mark.to_meta()[OWNER]) is bool(mark.origin)


@given(MARKS, st.sampled_from(["kb", "version", "mapping", "complete", "origin"]), st.sampled_from([None, 1.5, "1", 1]))
def test_a_mark_with_a_value_of_another_type_is_none(mark: IndexMark, field: str, value: object) -> None:
    record = {**mark.to_meta()[OWNER], field: value}
    types = {"kb": str, "version": int, "mapping": int, "complete": bool, "origin": dict}

    read = IndexMark.of(described({OWNER: record}))

    assert (read is None) is (type(value) is not types[field])


@pytest.mark.parametrize("missing", ["kb", "version", "mapping", "complete"])
def test_a_mark_without_one_of_its_parts_is_none(missing: str) -> None:
    record = IndexMark("x", 1, 2, complete=True).to_meta()[OWNER]
    del record[missing]

    assert IndexMark.of(described({OWNER: record})) is None


@pytest.mark.parametrize("index", [None, {}, "x", {"mappings": None}, {"mappings": {"_meta": {OWNER: 1}}}])
def test_an_index_of_others_has_no_mark(index: object) -> None:
    assert IndexMark.of(index) is None


def test_parts_of_a_mark_that_are_not_known_are_passed_over() -> None:
    record = {**IndexMark("x", 1, 2, complete=True).to_meta()[OWNER], "later": 1}

    assert IndexMark.of(described({OWNER: record})) == IndexMark("x", 1, 2, complete=True)


@given(st.from_regex(r"[a-z][a-z0-9-]{0,9}", fullmatch=True), st.integers(0, 10**7), st.sampled_from(["names", "x"]))
def test_the_name_of_an_index_holds_its_version_and_role(kb: str, version: int, role: str) -> None:
    index = index_name(kb, version, role)

    assert (number_of(index), role_of(index)) == (version, role)
    assert index.startswith(f"kbtools-{kb}-")


@pytest.mark.parametrize("index", ["names", "kbtools-names", "kbtools-x-names", ""])
def test_an_index_of_others_has_no_version(index: str) -> None:
    assert number_of(index) == 0


def test_an_index_is_made_for_loading_and_then_set_for_reading() -> None:
    settings = IndexSettings(shards=3, replicas=2, refresh="5s", codec="best_compression")

    body = index_body("names", kb="x", version=7, settings=settings)

    assert body["settings"]["index"] | {
        "number_of_shards": 3, "number_of_replicas": 0, "refresh_interval": "-1", "codec": "best_compression",
    } == body["settings"]["index"]  # fmt: skip
    assert IndexMark.of(body) == IndexMark("x", 7, MAPPING_VERSION, complete=False)
    assert list(body["aliases"]) == [loading_alias("kbtools-x-000007-names")]
    assert final_settings(settings) == {"index": {"refresh_interval": "5s", "number_of_replicas": 2}}
    assert final_settings(IndexSettings(replicas=None))["index"]["auto_expand_replicas"] == "0-1"
    assert "number_of_replicas" not in final_settings(IndexSettings(replicas=None))["index"]


@pytest.mark.parametrize(
    ("held", "age", "is_free"), [(True, STALE - 60, False), (True, STALE + 60, True), (False, 0, True)]
)
def test_a_note_is_free_if_it_was_given_back_or_shows_no_life(
    monkeypatch: pytest.MonkeyPatch, held: bool, age: float, is_free: bool
) -> None:
    monkeypatch.setattr("kbtools.indexers.elastic.build_lock.time.time", lambda: 10_000.0)
    note = BuildNote(1, owner="me on host", beat=10_000.0 - age, held=held, documents=1_234)

    assert note.is_free is is_free
    assert note.progress == f"{'left behind by' if is_free else 'held by'} me on host, 1,234 documents"


def test_the_progress_of_a_note_counts_what_was_rejected() -> None:
    note = BuildNote(1, owner="me", held=False, documents=10, rejected=2_000)

    assert note.progress == "left behind by me, 10 documents, 2,000 rejected"


def test_a_note_of_another_version_is_named() -> None:
    with pytest.raises(KBUnusable, match="another version of kbtools wrote a note in it"):
        BuildNote.from_record({"version": 1, "colour": "red"})
