"""Words are counted once a form, as a plain loop counts them."""

from collections import Counter

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from kbtools.indexers.building.form_writer import count_words

words = st.sampled_from(["new", "york", "a", "é", "日本", "1984"])


@settings(deadline=None)
@given(st.lists(st.lists(words, min_size=1, max_size=5).map(" ".join)))
def test_words_are_counted_once_a_form(forms: list[str]) -> None:
    counted = count_words(pa.array(forms, pa.string()))

    pairs = zip(counted["word"].to_pylist(), counted["names"].to_pylist(), strict=True)
    assert dict(pairs) == Counter(word for form in forms for word in set(form.split(" ")))
