"""Encodings of texts: UTF-8 even if damaged, two bytes a letter, and what office programs write."""

import pytest

from kbtools.text.encodings import find_encoding, is_utf_8, wide_encoding

RUSSIAN = "Привет мир, как дела друзья"


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (b"", ""),
        (b"plain", ""),
        ("Łódź, 東京".encode(), ""),
        ("Größe, Müller, Köln".encode() + b" caf\xe9", ""),
        ("Größe".encode()[:-2], ""),
        (b"M\xfcller, K\xf6ln", "cp1252"),
        (b"caf\xe9 fran\xe7ais \x81", "latin-1"),
        (RUSSIAN.encode("cp1251"), "cp1251"),
        (b"plain\n" * 9 + RUSSIAN.encode("cp1251"), "cp1251"),
        ("東京都 大阪 日本語の文章です".encode("shift_jis"), "shift_jis"),
        (b"M\xfcller\0\xe9", ""),
        ("Name".encode("utf-16"), "UTF-16"),
        ("Name".encode("utf-16-le"), "UTF-16LE"),
        ("Name".encode("utf-16-be"), "UTF-16BE"),
        ("A".encode("utf-16-be"), "UTF-16BE"),
    ],
)
def test_an_encoding_is_found(text: bytes, encoding: str) -> None:
    assert find_encoding(text) == encoding


@pytest.mark.parametrize(
    ("start", "encoding"),
    [
        (b"\xff\xfeN", "UTF-16"),
        (b"\xfe\xffN", "UTF-16"),
        (b"a\0b\0cde", "UTF-16LE"),
        (b"a\0bcde", ""),
        (b"a\0bc", ""),
        (b"ab" * 32 + b"\0a" * 400, ""),
        (b"", ""),
    ],
)
def test_two_bytes_a_letter_are_told_by_the_first_bytes(start: bytes, encoding: str) -> None:
    assert wide_encoding(start) == encoding


@pytest.mark.parametrize(("text", "valid"), [(b"", True), ("é".encode(), True), (b"\xe9", False)])
def test_bytes_are_utf_8_or_not(text: bytes, valid: bool) -> None:
    assert is_utf_8(text) is valid
