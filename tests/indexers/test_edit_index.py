"""The edit index against a plain comparison with every name."""

import random
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein

from kbtools.indexers.folder import edit_index
from kbtools.indexers.folder.column_files import StringTable, StringWriter
from kbtools.indexers.folder.edit_index import SHORTEST, EditIndex, EditKeys, probes_of, share_letters
from kbtools.kb.contract import EDITS
from kbtools.linking.similarity import LONGEST_NAME
from kbtools.text.normaliser import normal_form

LETTERS = "abc é東"


def texts_of(names: list[str]) -> StringTable:
    with tempfile.TemporaryDirectory() as folder:
        texts = StringWriter(Path(folder) / "text")
        texts.write(pa.array(names, pa.string()))
        texts.close()
        return StringTable(Path(folder) / "text")


def make(names: list[str]) -> EditIndex:
    with tempfile.TemporaryDirectory() as folder, EditKeys(Path(folder), names=len(names)) as keys:
        keys.add(names, np.arange(len(names), dtype=np.uint32))
        hashes, rows = zip(*keys.runs(), strict=True)
        return EditIndex(
            np.concatenate(hashes), np.concatenate(rows), np.concatenate([*keys.signature()]), texts=texts_of(names)
        )


def recalled_rows(index: EditIndex, *forms: str) -> list[list[int]]:
    return [rows.tolist() for rows in index.recall(probes_of(forms))]


def near(names: list[str], form: str) -> set[int]:
    """Compare a form with every name."""
    return {
        row
        for row, name in enumerate(names)
        if SHORTEST <= len(name) <= LONGEST_NAME and Levenshtein.distance(form, name) <= EDITS
    }


def misspell(name: str, *, edits: int, seed: int) -> str:
    """Replace, drop or add some letters."""
    draw = random.Random(seed)
    for _ in range(edits):
        at = draw.randrange(len(name) + 1)
        name = name[:at] + draw.choice(["", *LETTERS]) + name[at + draw.randrange(2) :]
    return name


NAMES = st.lists(st.text(LETTERS, min_size=1, max_size=14), min_size=1, max_size=12)


@given(NAMES, st.integers(0, 3))
@settings(deadline=None, max_examples=30)
def test_buckets_do_not_change_what_is_written(names: list[str], names_in_a_bucket: int) -> None:
    whole = make(names)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(edit_index, "_NAMES_IN_A_BUCKET", 1 + names_in_a_bucket)
        parted = make(names)

    assert parted.keys.tolist() == whole.keys.tolist()
    assert parted.rows.tolist() == whole.rows.tolist()
    assert parted.signatures.tolist() == whole.signatures.tolist()


@given(NAMES, st.integers(0, EDITS), st.integers(0, 1000))
@settings(deadline=None)
def test_every_name_within_two_edits_is_recalled(names: list[str], edits: int, seed: int) -> None:
    form = misspell(names[seed % len(names)], edits=edits, seed=seed)

    recalled = set(recalled_rows(make(names), form)[0])

    assert near(names, form) <= recalled


def test_what_is_recalled_by_accident_is_little() -> None:
    draw = random.Random(1)
    names = ["".join(draw.choices("abcdefghijklmnopqrstuvwxyz ", k=draw.randint(8, 30))) for _ in range(2000)]

    recalled = [len(rows) for rows in recalled_rows(make(names), *names[:50])]

    assert np.mean(recalled) < 1.5


@pytest.mark.parametrize("form", ["", "a", "ab", "x" * (LONGEST_NAME + 1), "x" * (LONGEST_NAME + 3)])
def test_forms_of_any_length_are_answered(form: str) -> None:
    (recalled,) = recalled_rows(make(["abc", "x" * LONGEST_NAME, "x" * (LONGEST_NAME + 1)]), form)

    assert set(recalled) == near(["abc", "x" * LONGEST_NAME, "x" * (LONGEST_NAME + 1)], form)


def test_no_name_is_near_where_there_is_none() -> None:
    assert recalled_rows(make([]), "abc") == [[]]


SPELT = st.text("aAbBcé東& .-9", min_size=1, max_size=9).filter(normal_form)


@given(st.lists(SPELT, min_size=1, max_size=9), st.integers(0, EDITS), st.integers(0, 1000))
def test_names_within_two_edits_share_letters_however_they_are_spelt(names: list[str], edits: int, seed: int) -> None:
    forms = list(map(normal_form, names))
    form = normal_form(misspell(forms[seed % len(forms)], edits=edits, seed=seed)) or forms[0]

    shared = share_letters(form, texts_of(names), np.arange(len(names), dtype=np.uint32))

    assert all(shared[place] for place, own in enumerate(forms) if Levenshtein.distance(form, own) <= EDITS)


def test_of_many_names_those_of_other_letters_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edit_index, "COMPARED", 0)
    names = ["abcdefgh", "abcdezyx", "Abcd-Efgz"]

    assert recalled_rows(make(names), "abcdefgh") == [[0]]
    assert share_letters("abcdefgh", texts_of(names), np.arange(3, dtype=np.uint32)).tolist() == [True, False, True]


def test_of_many_near_names_the_most_similar_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edit_index, "COMPARED", 0)
    monkeypatch.setattr(edit_index, "KEPT", 2)
    names = ["abcdefghij", "abcdefghiz", "abcdefghyz", "abcdefghwz"]

    assert recalled_rows(make(names), "abcdefghij") == [[0, 1]]


def test_parts_that_a_flood_of_names_shares_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edit_index, "MOST_SEEN", 3)
    names = ["abcdef", "abcdeg", "abcdeh", "abcdei", "zbcdef"]

    (recalled,) = recalled_rows(make(names), "zbcdeg")

    assert sorted(recalled) == [1, 4]  # not those that share `cd` alone


@given(NAMES, st.lists(st.text(LETTERS, max_size=14), max_size=5))
@settings(deadline=None)
def test_forms_are_looked_up_together_as_alone(names: list[str], forms: list[str]) -> None:
    index = make(names)

    assert recalled_rows(index, *forms) == [recalled_rows(index, form)[0] for form in forms]


@given(NAMES, NAMES, st.lists(st.text(LETTERS, max_size=14), max_size=5))
@settings(deadline=None)
def test_what_is_hashed_once_is_recalled_from_several_indexes(
    names: list[str], others: list[str], forms: list[str]
) -> None:
    indexes, probes = [make(names), make(others)], probes_of(forms)

    recalled = [[rows.tolist() for rows in index.recall(probes)] for index in indexes]

    assert recalled == [[recalled_rows(index, form)[0] for form in forms] for index in indexes]


def test_a_flood_is_passed_over_for_the_form_that_it_is_near_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edit_index, "MOST_SEEN", 3)
    index = make(["abcdef", "abcdeg", "abcdeh", "abcdei", "zbcdef"])
    forms = ["zbcdeg", "abcdef", "zbcdeg"]

    assert recalled_rows(index, *forms) == [recalled_rows(index, form)[0] for form in forms]
