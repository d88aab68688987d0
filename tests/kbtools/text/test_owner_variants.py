"""The owner's table of other ways to write words."""

from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kbtools.errors import InputError
from kbtools.text.question import Question
from kbtools.text.readings import every_ngram, read_variants, variant_table


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("where is sunset bvd", "sunset boulevard"),
        ("where is Sunset Boulevard", "sunset bvd"),
        ("who owns the intl. business machines", "international business machines"),
        ("who founded the big apple bank", "new york bank"),
    ],
)
def test_words_of_the_table_are_read_either_way(text: str, form: str) -> None:
    table = variant_table([("Boulevard", "Bvd"), ("Int'l", "International"), ("Intl", "International"),
                           ("Big Apple", "New York")])  # fmt: skip

    forms = {ngram.form for ngram in every_ngram(Question.read(text), lengths=range(1, 5), table=table)}

    assert form in forms | {f"the {form}" for form in forms}


def test_pairs_of_nothing_or_of_one_form_are_no_variants() -> None:
    assert variant_table([("Bvd", "bvd."), ("", "road"), ("road", "")]) == {}


WORDS = st.lists(st.sampled_from("big apple new york bank".split()), max_size=5)
PAIRS = st.lists(st.tuples(*[WORDS.filter(len).map(lambda words: " ".join(words[:2]))] * 2), max_size=2)


def naive(words: list[str], pairs: list[tuple[str, str]]) -> set[str]:
    """Write the first word as it stands or by any pair, before each way to write the rest."""
    if not words:
        return {""}
    ways = [pair for one, other in pairs if one != other for pair in ((one, other), (other, one))]
    steps = [(words[0], 1)] + [
        (meant, len(one.split())) for one, meant in ways if words[: len(one.split())] == one.split()
    ]
    return {f"{meant} {rest}".strip() for meant, length in steps for rest in naive(words[length:], pairs)}


@given(WORDS, PAIRS)
def test_every_use_of_the_table_is_a_reading(words: list[str], pairs: list[tuple[str, str]]) -> None:
    text = " ".join(words)
    written = naive(words, pairs)
    assume(len(written) < 16)

    ngrams = every_ngram(Question.read(text), lengths=range(1, 12), table=variant_table(pairs))

    whole = {ngram.form for ngram in ngrams if (ngram.start, ngram.end) == (0, len(text))}
    assert whole | {text} == written | {text}


def test_a_table_has_two_columns(tmp_path: Path) -> None:
    (tmp_path / "v.tsv").write_text("Boulevard\tBvd\n\nIntl,International\n", encoding="utf-8")

    assert read_variants(tmp_path / "v.tsv") == [("Boulevard", "Bvd"), ("Intl", "International")]


@pytest.mark.parametrize("line", ["one", "a\tb\tc", "a\t", "\u200b\tb"])
def test_a_line_of_another_kind_is_named(tmp_path: Path, line: str) -> None:
    (tmp_path / "v.tsv").write_text(f"a\tb\n{line}\n", encoding="utf-8")

    with pytest.raises(InputError, match=r"v\.tsv:2: found"):
        read_variants(tmp_path / "v.tsv")


def test_a_missing_table_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_variants(tmp_path / "none.tsv")


def test_a_table_may_begin_with_a_byte_order_mark_and_have_commas(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_bytes("\ufeffbig apple,New York\n\nGrößer , Groesser\n".encode())

    assert read_variants(tmp_path / "table.csv") == [("big apple", "New York"), ("Größer", "Groesser")]
