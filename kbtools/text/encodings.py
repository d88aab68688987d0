"""Detection of a text's encoding from its beginning."""

_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_PAIRS = 64
"""Bytes checked for two-byte characters, of which one byte is 0 in English text."""


def wide_encoding(start: bytes) -> str:
    """Return the two-byte encoding of a text, from its BOM or from zero bytes, else an empty string."""
    if start.startswith(_UTF_16):
        return "UTF-16"
    halves = {"UTF-16LE": start[1:_PAIRS:2], "UTF-16BE": start[0:_PAIRS:2]}
    return next((name for name, half in halves.items() if half and half.count(0) > len(half) / 2), "")


_WESTERN = {"cp1250", "cp1252", "cp1254"}
"""Encodings with similar texts; a short text is read as the most frequent one, Windows-1252."""

_SINGLE = ["cp1252", "cp1250", "cp1251", "cp1253", "cp1254", "shift_jis", "euc_jp", "gb18030", "big5", "euc_kr"]
"""The encodings that office programs write, among which the detection chooses."""


def is_utf_8(text: bytes) -> bool:
    """Return whether bytes are valid UTF-8."""
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def find_encoding(sample: bytes) -> str:
    """Return the encoding of a text from its beginning, empty for UTF-8, even with some damaged letters."""
    if wide := wide_encoding(sample):
        return wide
    if is_utf_8(sample):
        return ""
    decoded = sample.decode(errors="replace")
    damaged = decoded.rstrip("\ufffd").count("\ufffd")
    letters = sum(1 for letter in decoded if not letter.isascii()) - decoded.count("\ufffd")
    if damaged <= letters or b"\0" in sample:
        return ""
    # Imported here since most texts are UTF-8.
    from charset_normalizer import from_bytes

    # Whole lines, and only some: each encoding is tried, which takes 0.2 s for 100 KB.
    lines = b"\n".join([line for line in sample.split(b"\n") if not line.isascii()][:500])
    matches = list(from_bytes(lines, cp_isolation=_SINGLE))
    likely = [match.encoding for match in matches if match.chaos <= matches[0].chaos]
    if likely and not _WESTERN.intersection(likely):
        return likely[0]
    try:
        sample.decode("cp1252")
    except UnicodeDecodeError:
        return "latin-1"
    return "cp1252"
