"""Text that is safe where it is shown."""

import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbtools.text.printable import html_table, html_text, markdown_text, plural, shortened, spreadsheet_cell, visible

TEXT = st.text(st.one_of(st.characters(), st.sampled_from("a \n\x1b\u202e\u2066\u2028<>&\"'*_[]|~#`\\")), max_size=12)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[2Jb", "a\\x1b[2Jb"),
        ("\u202eabc", "\\u202eabc"),
        ("a\nb", "a\\nb"),
        ("\x7f\x80\x9f\xa0é", "\\x7f\\x80\\x9f\xa0é"),
        ("\udcff", "\\udcff"),
        ("plain text", "plain text"),
        *(
            (mark, f"\\u{ord(mark):04x}")
            for mark in "\u061c\u200e\u200f\u202a\u202e\u2066\u2069\u2028\u2029\ud800\udfff"
        ),
        *((mark, mark) for mark in " ~\xa0\u2027\u202f\u2065\u206a\ud7ff\ue000"),
    ],
)
def test_what_a_terminal_would_obey_is_escaped(text: str, shown: str) -> None:
    assert visible(text) == shown


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("=1+1", "'=1+1"), ("@a", "'@a"), ("-2+3", "'-2+3"), ("\tx", "'\tx"), ("-5", "-5"),
        ("+49 (228) 12-34", "+49 (228) 12-34"), ("a=b", "a=b"), ("", ""),
    ],
)  # fmt: skip
def test_a_formula_is_text_in_a_spreadsheet(text: str, cell: str) -> None:
    assert spreadsheet_cell(text) == cell


@given(st.text("abcdefghij", min_size=1, max_size=30), st.integers(1, 40).map(lambda half: 2 * half))
def test_a_long_text_is_shown_by_its_beginning_and_its_end(text: str, most: int) -> None:
    half = most // 2
    expected = text if len(text) <= most else text[:half] + " [...] " + text[len(text) - half :]

    assert shortened(text, most) == expected


@given(TEXT)
def test_a_page_shows_a_text_as_it_is(text: str) -> None:
    written = html_text(text)

    assert html.unescape(written) == visible(text)
    assert not set(written) & set("<>\"'")


@given(TEXT)
def test_markdown_shows_a_text_on_one_line_without_marks(text: str) -> None:
    written = markdown_text(text)

    assert not re.search(r"(?<!\\)(?:\\\\)*[`*_\[\]|~#]|[<>\n]", written)
    assert html.unescape(re.sub(r"\\([\\`*_\[\]|~#])", r"\1", written)) == visible(" ".join(text.split()))


def test_quotes_stay_quotes_in_markdown() -> None:
    assert markdown_text('the "A" team\'s') == 'the "A" team\'s'


def test_a_table_of_html_has_a_head_and_empty_cells() -> None:
    written = html_table(["a", "b<"], [["x", None], [1, "&"]])

    assert written == (
        "<table><tr><th>a</th><th>b&lt;</th></tr><tr><td>x</td><td></td></tr><tr><td>1</td><td>&amp;</td></tr></table>"
    )


def test_a_number_stands_with_its_noun() -> None:
    numbered = [plural(1, "fact"), plural(0, "question"), plural(1, "entity"), plural(2000, "entity")]

    assert numbered == ["1 fact", "0 questions", "1 entity", "2,000 entities"]
