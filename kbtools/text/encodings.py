"""The encoding of a text, found from how it begins."""

_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_PAIRS = 64
"""Bytes that are looked at for characters of two bytes, one of them empty in every letter of English."""


def wide_encoding(start: bytes) -> str:
    """Return the two-byte encoding of a text, by its mark or by the empty half of each character; else None."""
    if start.startswith(_UTF_16):
        return "UTF-16"
    halves = {"UTF-16LE": start[1:_PAIRS:2], "UTF-16BE": start[0:_PAIRS:2]}
    return next((name for name, half in halves.items() if half and half.count(0) > len(half) / 2), "")


_WESTERN = {"cp1250", "cp1252", "cp1254"}
"""Encodings whose texts look alike: a short one is taken for the most frequent, Windows-1252."""

_SINGLE = ["cp1252", "cp1250", "cp1251", "cp1253", "cp1254", "shift_jis", "euc_jp", "gb18030", "big5", "euc_kr"]
"""The encodings that office programs write, which are told apart."""


def is_utf_8(text: bytes) -> bool:
    """Return whether bytes are text in UTF-8."""
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def find_encoding(sample: bytes) -> str:
    """Return the encoding of a text by its beginning; empty for UTF-8, even with some damaged letters."""
    if wide := wide_encoding(sample):
        return wide
    if is_utf_8(sample):
        return ""
    decoded = sample.decode(errors="replace")
    damaged = decoded.rstrip("\ufffd").count("\ufffd")
    letters = sum(1 for letter in decoded if not letter.isascii()) - decoded.count("\ufffd")
    if damaged <= letters or b"\0" in sample:
        return ""
    # Imported where it is needed: most texts are UTF-8.
    from charset_normalizer import from_bytes

    # Whole lines of it, since it looks at each of some encodings: 100 KB take 0.2 s.
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
