"""Function words: which forms say something of what a question is about."""

import pytest

from kbtools.text.function_words import has_content, has_word


@pytest.mark.parametrize(
    ("form", "spoken", "content"),
    [
        ("paris", True, True),
        ("the who", True, False),
        ("the cure", True, True),
        ("it", True, False),
        ("!!!", False, True),
        ("!!", False, False),
        ("...", False, False),
        ("?", False, False),
    ],
)
def test_a_form_has_words_and_content(form: str, spoken: bool, content: bool) -> None:
    assert has_word(form) is spoken
    assert has_content(form) is content
