"""The forms of names, many at once, against those of each name; and their values against a plain loop."""

import random
from itertools import groupby

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from kbtools.indexers.building.form_rows import form_rows, is_plain, shaped_forms
from kbtools.indexers.building.form_writer import group_forms
from kbtools.indexers.folder.form_store import KIND_SHIFT
from kbtools.kb.contract import match_kind
from kbtools.text.rungs import Form
from kbtools.text.variants import SPECIAL, name_forms

WORDS = [
    *SPECIAL,
    "jaws",
    "Iron",
    "the",
    "The",
    "a",
    "A",
    "an",
    "x",
    "b",
    "III",
    "mix",
    "Oz",
    "é",
    "Dr.",
    "O'Neil",
    "of",
]
NAMES = st.one_of(
    st.lists(st.sampled_from(sorted(WORDS)), min_size=1, max_size=5).map(" ".join),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8),
    st.lists(
        st.sampled_from(
            [*WORDS, "jaws", "kite", "harrow", "ox", "b", "n", "s", "'s", ",", ".", "-", "/", " ", " ", " "]
        ),
        min_size=2,
        max_size=8,
    ).map("".join),
    st.from_regex(r"[A-Za-z]{1,4}([ \-/,(&.]{1,2}[A-Za-z0-9]{1,5}){0,3}", fullmatch=True),
)


@settings(deadline=None)
@given(st.lists(st.tuples(NAMES, st.booleans())))
def test_forms_of_many_names_are_those_of_each(names: list[tuple[str, bool]]) -> None:
    texts, aliases = (
        pa.array([text for text, _ in names], pa.string()),
        pa.array([alias for _, alias in names], pa.bool_()),
    )
    entities = pa.array([7 * row for row in range(len(names))], pa.uint32())

    table = form_rows(texts, aliases, entities, first=100)

    expected = [
        (form, match_kind(rewriting, is_alias=is_alias), text, 7 * row, 100 + row)
        for row, (text, is_alias) in enumerate(names)
        for form, rewriting in name_forms(text).items()
    ]
    assert sorted(tuple(row.values()) for row in table.to_pylist()) == sorted(expected)


def test_names_of_plain_words_are_read_at_once() -> None:
    names = ["Jaws", "Harry Potter", "Iron Kite II", "The Who", "Jean-Luc", "Second Street", "Łódź", "J Smith", "Seven"]

    assert is_plain(pa.array(names)).to_pylist() == [True, True, *[False] * 7]


def test_names_of_common_shapes_are_read_at_once() -> None:
    names = [
        "Jaws!",
        "Day-Lewis",
        "Salem , Texas",
        "Peter H. Hunt",
        "The Big Cactus",
        "Kid 's Story",
        "Ba-Ba",
        "Jaws 2",
    ]

    _, others = shaped_forms(pa.array(names))

    assert [names[place] for place in others.tolist()] == ["Ba-Ba", "Jaws 2"]


def test_a_name_that_is_the_same_the_other_way_round_has_that_form_once() -> None:
    rows = form_rows(pa.array(["Salem, Salem"]), pa.array([False]), pa.array([0], pa.uint32()), first=0)

    assert sorted(rows["form"].to_pylist()) == ["salem", "salem salem"]


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 3), st.sampled_from("xyz"), st.integers(0, 5))),
    st.integers(1, 9),
)
def test_values_of_forms_are_those_of_a_plain_loop(rows: list[tuple[str, int, str, int]], size: int) -> None:
    table = [(*row, random.Random(str(row[:3])).randrange(100)) for row in sorted(set(rows))]
    kinds = (pa.string(), pa.uint8(), pa.string(), pa.uint32(), pa.uint32())
    batches = [
        pa.RecordBatch.from_arrays(
            [
                pa.array(column, kind)
                for column, kind in zip(zip(*table[first : first + size], strict=True), kinds, strict=True)
            ],
            names=["form", "kind", "text", "entity", "alias"],
        )
        for first in range(0, len(table), size)
    ]

    values, firsts, normal = {}, {}, {}
    for group in group_forms(batches, jobs=1):
        values |= dict(zip(group.forms.to_pylist(), group.values, strict=True))
        firsts |= dict(
            zip(group.forms.to_pylist(), zip(group.kinds.tolist(), group.names.tolist(), strict=True), strict=True)
        )
        forms, aliases = group.normal()
        normal |= dict(zip(forms.to_pylist(), aliases, strict=True))

    expected = {}
    for form, of_form in groupby(table, key=lambda row: row[0]):
        numbers: list[int] = []
        for (kind, _), of_spelling in groupby(of_form, key=lambda row: (row[1], row[2])):
            spelling = list(of_spelling)
            numbers += [kind << KIND_SHIFT | len(spelling), spelling[0][4], *(row[3] for row in spelling)]
        expected[form] = np.array(numbers, dtype="<u4").tobytes()
    assert values == expected
    assert firsts == {form: next((row[1], row[4]) for row in table if row[0] == form) for form in expected}
    assert normal == {
        form: name for form, (kind, name) in firsts.items() if kind <= match_kind(Form.NORMAL, is_alias=True)
    }
