"""Encodings of two bytes a character, told by how a file begins."""

UTF_16 = (b"\xff\xfe", b"\xfe\xff")
PAIRS = 64
"""Bytes that are looked at for characters of two bytes, one of them empty in every letter of English."""


def wide_encoding(start: bytes) -> str:
    """Return the two-byte encoding of a text, by its mark or by the empty half of each character; else None."""
    if start.startswith(UTF_16):
        return "UTF-16"
    halves = {"UTF-16LE": start[1:PAIRS:2], "UTF-16BE": start[0:PAIRS:2]}
    return next((name for name, half in halves.items() if half and half.count(0) > len(half) / 2), "")
