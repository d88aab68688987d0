"""The filter of forms and the memory of their names: they change how soon a form is looked up, and no answer."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbtools.indexers.folder import folder_kb
from kbtools.indexers.folder.embedded import EmbeddedKB
from kbtools.indexers.folder.form_store import FilterWriter, FormFilter, hash_forms
from kbtools.text.ngrams import every_run

FORMS = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=9), unique=True)


def filter_of(forms: list[str], *, also: frozenset[str] = frozenset()) -> FormFilter:
    writer = FilterWriter(len(forms))
    writer.add(hash_forms(pa.array(forms, pa.string())))
    return FormFilter(writer.bits, also=also)


@pytest.fixture
def kb(sample_path: object) -> EmbeddedKB:
    return EmbeddedKB(str(sample_path))


@settings(deadline=None)  # the first one loads pyarrow
@given(FORMS)
def test_every_stored_form_is_kept_in_order(forms: list[str]) -> None:
    assert filter_of(forms).keep(forms) == forms


@given(FORMS, FORMS)
def test_forms_that_updates_brought_are_kept_as_well(stored: list[str], brought: list[str]) -> None:
    assert filter_of(stored, also=frozenset(brought)).keep([*brought, *stored]) == [*brought, *stored]


@given(st.lists(st.text("abÉ1", min_size=1, max_size=3), max_size=6), FORMS, st.frozensets(st.integers(1, 7)))
def test_likely_runs_are_those_whose_form_is_kept(
    words: list[str], brought: list[str], lengths: frozenset[int]
) -> None:
    forms = {" ".join(words[first:last]) for last in range(1, len(words) + 1) for first in range(last)}
    stored = filter_of(sorted(forms)[::3], also=frozenset(brought) | frozenset(sorted(forms)[::4]))

    likely = stored.runs(words, lengths)

    kept = [
        (first, last) for first, last in every_run(words, lengths) if stored.keep([" ".join(words[first : last + 1])])
    ]
    assert likely == kept


def test_few_of_the_others_are_kept() -> None:
    stored = filter_of([f"name {number}" for number in range(5000)])
    assert len(stored.keep([f"other {number}" for number in range(5000)])) < 0.08 * 5000


def test_what_is_remembered_is_bounded_and_cannot_be_changed(kb: EmbeddedKB, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_kb, "CACHED_FORMS", 1)
    first = kb.lookup(["frankenstein"])["frankenstein"][0]
    kb.lookup(["old"])

    assert len(kb.cached) == 1
    assert kb.lookup(["frankenstein"])["frankenstein"][0].entities.tolist() == first.entities.tolist()
    with pytest.raises(ValueError, match="read-only"):
        first.entities[0] = np.uint32(0)


def test_names_of_many_bearers_are_not_remembered(kb: EmbeddedKB, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_kb, "MOST_CACHED", 0)

    assert kb.lookup(["frankenstein"])
    assert kb.cached == {}
