"""Views and vectors give what plain loops over the facts and names give, of any small knowledge base."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbtools.errors import BadVectors, UnknownLanguage, WrongFormat
from kbtools.indexers.folder.memory import MemoryKB
from kbtools.kb import vector_index
from kbtools.kb.rows import Grouped
from kbtools.kb.vector_index import EntityVectors, ExactVectors, Neighbours, recall
from kbtools.kb.views import BothWays, CalledIn, InLanguages

few = settings(max_examples=40, deadline=None)

ENTITIES, RELATIONS, TAGS = "abcd", ("made", "near", "of"), ("de", "en", "fr", "mul")
FACTS = st.lists(
    st.tuples(st.sampled_from(ENTITIES), st.sampled_from(RELATIONS), st.sampled_from(ENTITIES)), min_size=1, max_size=9
)
SPOKEN = st.lists(
    st.tuples(st.sampled_from(ENTITIES), st.sampled_from(["Elm", "Oak", "Ash"]), st.sampled_from(TAGS)), max_size=8
)


def grouped(values: Grouped) -> list[list[int]]:
    return [part.tolist() for part in np.split(values.values, values.starts[1:-1])]


@given(facts=FACTS)
@few
def test_facts_are_read_both_ways_as_a_plain_loop_reads_them(facts: list[tuple[str, str, str]]) -> None:
    kb = BothWays(MemoryKB(facts, ()))
    stored = sorted({relation for _, relation, _ in facts})
    both = {*facts, *((o, f"^{relation}", s) for s, relation, o in facts)}
    rows = kb.entity_rows()
    ids = kb.ids(rows)

    relations = grouped(kb.relations_of(rows))

    assert list(kb.relations) == [*stored, *(f"^{relation}" for relation in stored)]
    assert [{kb.relations[at] for at in own} for own in relations] == [
        {relation for subject, relation, _ in both if subject == entity} for entity in ids
    ]
    assert [own == sorted(set(own)) for own in relations] == [True] * len(ids)
    pairs = [(int(row), at) for row, own in zip(rows, relations, strict=True) for at in own][::-1]
    asked = [(ids[row], kb.relations[at]) for row, at in pairs]
    assert [kb.ids(own) for own in kb.objects_of(pairs)] == [
        sorted(other for subject, relation, other in both if (subject, relation) == pair) for pair in asked
    ]
    assert kb.fact_counts(rows).tolist() == [
        sum((subject == entity) + (other == entity) for subject, _, other in set(facts)) for entity in ids
    ]
    assert len({kb.manifest.digest, kb.kb.manifest.digest}) == 2


@given(names=SPOKEN, aliases=SPOKEN, languages=st.sampled_from(["de", "en", "fr,de", "de,en,fr"]))
@few
def test_entities_are_called_and_found_by_their_names_in_the_languages(
    names: list[tuple[str, str, str]], aliases: list[tuple[str, str, str]], languages: str
) -> None:
    names = [*names, *(("d", "Fir", tag) for tag in ("de", "en", "fr"))]
    kb = MemoryKB([(entity, "made", "a") for entity in ENTITIES], names, aliases=aliases, language="en,de,fr,mul")
    accepted = [*languages.split(","), "mul"]
    view, called = InLanguages(kb, languages), CalledIn(kb, languages)
    rows = kb.entity_rows()
    ids = kb.ids(rows)
    bearers = {
        form: {entity for entity, name, tag in (*names, *aliases) if name.lower() == form and tag in accepted}
        for form in ("elm", "oak", "ash", "fir")
    }

    found = view.lookup(list(bearers))

    assert {
        form: {entity for match in matches for entity in kb.ids(match.entities)} for form, matches in found.items()
    } == {form: own for form, own in bearers.items() if own}
    assert str(view.lookup(list(bearers))) == str(found)
    for entity, name in zip(ids, called.names(rows), strict=True):
        own = [{text for one, text, spoken in names if (one, spoken) == (entity, tag)} for tag in accepted]
        other = [{text for one, text, spoken in aliases if (one, spoken) == (entity, tag)} for tag in accepted]
        choices = next((texts for texts in (*own, *other) if texts), None)
        assert choices is None or name in choices
        assert choices is None or view.names_of(kb.entity_rows()[ids.index(entity) :][:1])[0][0].text == name


def test_a_language_without_a_name_is_unknown() -> None:
    kb = MemoryKB([("a", "made", "b")], [("a", "Elm", "de")], language="de")

    with pytest.raises(UnknownLanguage):
        CalledIn(kb, "fr")


# Vectors

VECTORS = st.lists(st.tuples(st.integers(-2, 2), st.integers(-2, 2)), min_size=1, max_size=9)


@given(vectors=VECTORS, asked=VECTORS, limit=st.integers(1, 12))
@few
def test_the_nearest_are_those_of_a_plain_loop_ties_by_row(
    vectors: list[tuple[int, int]], asked: list[tuple[int, int]], limit: int
) -> None:
    rows = list(range(10, 10 + len(vectors)))[::-1]
    index = ExactVectors(np.array(rows, dtype=np.uint32), np.array(vectors, dtype=np.float32))

    near = index.nearest(np.array(asked, dtype=np.float32), limit=limit)

    for own, cosines, one in zip(near.rows.tolist(), near.cosines.tolist(), asked, strict=True):
        expected = {row: cosine(one, other) for row, other in zip(rows, vectors, strict=True)}
        assert cosines == pytest.approx(sorted(expected.values(), reverse=True)[:limit], abs=1e-6)
        assert [expected[row] for row in own] == pytest.approx(cosines, abs=1e-6)
        placed = list(zip([-value for value in cosines], own, strict=True))
        assert placed == sorted(placed)
    assert [index.vector(row) is None for row in (9, 10, 9 + len(rows), 10 + len(rows))] == [True, False, False, True]
    assert index.vector(rows[0]) == pytest.approx(np.array(vectors[0]) / (np.hypot(*vectors[0]) or 1))
    assert len(index) == len(rows)


def cosine(one: tuple[int, int], other: tuple[int, int]) -> float:
    lengths = np.hypot(*one) * np.hypot(*other)
    return float(np.dot(one, other) / lengths) if lengths else 0.0


def test_vectors_without_a_direction_are_left_out_piece_by_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_index, "_VECTORS_AT_ONCE", 2)
    table = np.array([[1, 0], [0, 0], [0, -1], [2, 2], [0, 0]], dtype=np.float32)
    rows = np.arange(5, dtype=np.uint32)

    chunks = list(EntityVectors(rows, 2, lambda own: table[own]).chunks())

    assert [own.tolist() for own, _ in chunks] == [[0], [2, 3], []]
    assert [vectors.tolist() for _, vectors in chunks] == [[[1, 0]], [[0, -1], [2, 2]], []]
    with pytest.raises(BadVectors):
        list(EntityVectors(rows, 2, lambda own: np.full((len(own), 2), np.nan, dtype=np.float32)).chunks())
    with pytest.raises(WrongFormat):
        ExactVectors(rows, table).nearest(np.ones((1, 3), dtype=np.float32))


def test_recall_is_the_share_of_the_exact_nearest() -> None:
    exact, near = (
        Neighbours(np.array(rows, dtype=np.uint32), np.zeros((2, 3), dtype=np.float32))
        for rows in ([[1, 2, 3], [4, 5, 6]], [[3, 1, 9], [7, 8, 4]])
    )

    assert recall(near, exact) == pytest.approx(3 / 6)
