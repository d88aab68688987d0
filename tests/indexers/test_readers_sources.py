"""Sources: compressed or not, whole or damaged, they come as blocks of whole lines or as an error that says where."""

import bz2
import gzip
import hashlib
import lzma
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from kbtools.errors import KBToolsError, SourceDamaged, SourceEmpty, SourceMissing, WrongFormat
from kbtools.indexers.readers import sources
from kbtools.indexers.readers.batches import Block, lines_of
from kbtools.indexers.readers.sources import Meter, file_digest, read_blocks

PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": partial(lzma.compress, preset=0),
    ".zst": zstandard.ZstdCompressor(write_checksum=True).compress,
}
COMPRESSED = [suffix for suffix in PACKERS if suffix]
PADDING = b"".join(b"padding line %d\n" % number for number in range(40))


def numbered(lines: int) -> bytes:
    """Lines that do not compress well, so that a cut falls inside a member."""
    return b"".join(hashlib.sha256(b"%d" % line).hexdigest().encode() + b"\n" for line in range(lines))


def write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def text_of(path: Path, **options: Any) -> bytes:
    return b"".join(block.text for block in read_blocks(path, **options))


@pytest.mark.parametrize("suffix", PACKERS)
def test_lines_are_the_same_however_the_file_is_packed(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path / f"facts.txt{suffix}", PACKERS[suffix](b"one\ntwo\n"))

    assert text_of(path) == b"one\ntwo\n"


def test_a_suffix_in_capitals_unpacks_too(tmp_path: Path) -> None:
    path = write(tmp_path / "FACTS.TXT.GZ", gzip.compress(b"one\n"))

    assert text_of(path) == b"one\n"


@pytest.mark.parametrize("suffix", COMPRESSED)
def test_all_members_of_a_file_are_read(tmp_path: Path, suffix: str) -> None:
    pack = PACKERS[suffix]
    path = write(tmp_path / f"facts.txt{suffix}", pack(b"one\n") + pack(b"two\n"))

    assert text_of(path) == b"one\ntwo\n"


@pytest.mark.parametrize("suffix", COMPRESSED)
@pytest.mark.parametrize("flipped", range(4))
def test_a_second_member_that_is_damaged_at_its_first_bytes_is_not_the_end_of_the_file(
    tmp_path: Path, suffix: str, flipped: int
) -> None:
    first, second = PACKERS[suffix](numbered(1000)), bytearray(PACKERS[suffix](numbered(999)))
    second[flipped] ^= 0xFF
    path = write(tmp_path / f"facts.txt{suffix}", first + bytes(second))

    with pytest.raises(SourceDamaged, match=r"facts\.txt\.\w+:\d+: cannot be decompressed from here on"):
        text_of(path)


@pytest.mark.parametrize("suffix", COMPRESSED)
@pytest.mark.parametrize("rest", [b"junk", b"\xff", b"one fact more\n" * 9000])
def test_junk_after_the_last_member_is_damage(tmp_path: Path, suffix: str, rest: bytes) -> None:
    path = write(tmp_path / f"facts.txt{suffix}", PACKERS[suffix](b"one\n") + rest)

    with pytest.raises(SourceDamaged, match="cut short or damaged"):
        text_of(path)


@pytest.mark.parametrize("suffix", [".gz", ".xz"])
@pytest.mark.parametrize("zeros", [4, 200_000])
def test_zeros_between_and_after_members_are_padding(tmp_path: Path, suffix: str, zeros: int) -> None:
    packed = PACKERS[suffix](b"one\n") + b"\0" * zeros
    path = write(tmp_path / f"facts.txt{suffix}", packed + packed)

    assert text_of(path) == b"one\none\n"


@pytest.mark.parametrize("suffix", PACKERS)
def test_a_file_without_line_ends_is_refused_before_it_fills_the_memory(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path / f"facts.txt{suffix}", PACKERS[suffix](b"x" * (80 << 20)))

    with pytest.raises(WrongFormat, match=r"facts.*:1: a line of over 64 MiB; this is not text"):
        text_of(path)


@pytest.mark.parametrize("suffix", PACKERS)
def test_the_digest_of_a_reading_is_that_of_the_file(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path / f"facts.txt{suffix}", PACKERS[suffix](numbered(3000)))
    meter = Meter()

    text_of(path, meter=meter)

    assert meter.sha256.hexdigest() == file_digest(path)


@pytest.mark.parametrize("suffix", PACKERS)
def test_a_block_starts_at_the_line_it_says(tmp_path: Path, suffix: str) -> None:
    text = numbered(5000)
    path = write(tmp_path / f"facts.txt{suffix}", PACKERS[suffix](text))

    blocks = list(read_blocks(path, block=10_000))

    assert len(blocks) > 10
    assert [pair for block in blocks for pair in lines_of(block)] == list(enumerate(text.split(b"\n")[:-1], 1))


@settings(deadline=None, max_examples=200)
@given(
    body=st.lists(st.sampled_from([b"a", b"\n", b"\r\n", b"\t", b"\xff", b"\0", b"\xef\xbb\xbf", "é".encode()])),
    block=st.integers(1, 40),
    suffix=st.sampled_from(["", ".gz"]),
)
def test_no_block_size_changes_a_line(
    tmp_path_factory: pytest.TempPathFactory, body: list[bytes], block: int, suffix: str
) -> None:
    text = PADDING + b"".join(body)
    path = write(tmp_path_factory.getbasetemp() / f"blocks.txt{suffix}", PACKERS[suffix](text))

    blocks = list(read_blocks(path, block=block))

    assert b"".join(found.text for found in blocks) == text + b"\n" * (not text.endswith(b"\n"))
    assert all(found.text.endswith(b"\n") for found in blocks)


def test_a_line_longer_than_a_block_stays_whole(tmp_path: Path) -> None:
    long = b"x" * 5_000
    path = write(tmp_path / "facts.txt", PADDING + long + b"\nlast")

    lines = [pair for block in read_blocks(path, block=100) for pair in lines_of(block)]

    assert lines[-2:] == [(41, long), (42, b"last")]


def test_the_mark_that_a_file_begins_with_is_no_part_of_its_first_line(tmp_path: Path) -> None:
    path = write(tmp_path / "facts.txt", b"\xef\xbb\xbfone\n")

    assert text_of(path) == b"one\n"


def test_the_mark_that_a_joined_file_began_with_is_no_part_of_its_line() -> None:
    assert list(lines_of(Block(b"one\n\xef\xbb\xbftwo\r\n", 7))) == [(7, b"one"), (8, b"two")]


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz"])
def test_a_truncated_file_names_the_line_it_ends_at(tmp_path: Path, suffix: str) -> None:
    whole = PACKERS[suffix](numbered(40_000))
    path = write(tmp_path / f"facts.txt{suffix}", whole[: len(whole) * 3 // 4])

    seen = []

    with pytest.raises(SourceDamaged, match="cut short or damaged, download it again") as raised:
        seen.extend(read_blocks(path, block=1 << 20))
    assert 25_000 < raised.value.facts["line"] < 35_000
    assert f"{path}:{raised.value.facts['line']}: " in str(raised.value)


def test_a_small_truncated_gzip_names_the_line_it_ends_at(tmp_path: Path) -> None:
    path = write(tmp_path / "facts.txt.gz", gzip.compress(b"one\ntwo\nthree\n")[:-8])

    with pytest.raises(SourceDamaged) as raised:
        text_of(path)
    assert raised.value.facts["line"] == 4


@pytest.mark.parametrize("suffix", COMPRESSED)
@pytest.mark.parametrize("kept", [1, 3, 0.5, -1])
def test_a_file_cut_anywhere_is_damaged(tmp_path: Path, suffix: str, kept: float) -> None:
    whole = PACKERS[suffix](numbered(5000))
    path = write(tmp_path / f"facts.txt{suffix}", whole[: int(len(whole) * kept) if kept == 0.5 else int(kept)])

    with pytest.raises(SourceDamaged, match=r"facts\.txt\.\w+:\d+: "):
        text_of(path)


@pytest.mark.parametrize("suffix", COMPRESSED)
def test_a_flipped_byte_is_damage(tmp_path: Path, suffix: str) -> None:
    whole = bytearray(PACKERS[suffix](numbered(5000)))
    whole[len(whole) // 2 : len(whole) // 2 + 64] = b"\xa5" * 64

    path = write(tmp_path / f"facts.txt{suffix}", bytes(whole))

    with pytest.raises(SourceDamaged, match="download it again"):
        text_of(path)


@pytest.mark.parametrize("suffix", COMPRESSED)
def test_plain_text_under_a_packed_name_is_told_from_damage(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path / f"facts.txt{suffix}", b"a plain text\n")

    with pytest.raises(WrongFormat, match="remove the suffix if it is plain text"):
        text_of(path)


@pytest.mark.parametrize("suffix", COMPRESSED)
def test_packed_data_under_a_plain_name_is_told(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path / "facts.txt", PACKERS[suffix](b"one\n"))

    with pytest.raises(WrongFormat, match=r"found compressed data, expected text; name it \.gz"):
        text_of(path)


@pytest.mark.parametrize(
    "page",
    [
        b"<!DOCTYPE html><title>Not found</title>",
        b"\n  <html><body>404</body></html>",
        b"\xef\xbb\xbf<HTML>",
        b"<!-- moved --><html>",
    ],
)
@pytest.mark.parametrize("suffix", PACKERS)
def test_a_web_page_is_refused_packed_or_not(tmp_path: Path, page: bytes, suffix: str) -> None:
    path = write(tmp_path / f"names.txt{suffix}", PACKERS[suffix](page))

    with pytest.raises(WrongFormat, match=r":1: found a web page .* the download link is probably dead"):
        text_of(path, block=1)


@pytest.mark.parametrize(
    ("text", "cure"),
    [
        (b"<html><table><tr><td>Elm</td></tr></table></html>", "save its table as .csv"),
        (b"<?xml version='1.0'?><Error/>", "export a table"),
        (b'<list>\n<book id="1"><title lang="en">Rain</title>\n</book></list>\n', "export a table"),
    ],
)
def test_pages_with_tables_and_xml_are_refused_with_their_cure(tmp_path: Path, text: bytes, cure: str) -> None:
    with pytest.raises(WrongFormat, match=cure):
        text_of(write(tmp_path / "t.csv", text))


def test_relative_addresses_are_no_xml(tmp_path: Path) -> None:
    text = b'<a>\n <p> "<b>x</b>" ; <q> <a> .\n'
    assert text_of(write(tmp_path / "t.ttl", text)) == text


@pytest.mark.parametrize("suffix", COMPRESSED)
def test_a_web_page_under_a_packed_name_is_refused_as_a_page(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path / f"names.txt{suffix}", b"<!doctype html><title>Not found</title>")

    with pytest.raises(WrongFormat, match="the download link is probably dead"):
        text_of(path)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf_16_with_its_mark_is_refused_with_the_command_that_converts_it(tmp_path: Path, encoding: str) -> None:
    text = "one\n" if encoding == "utf-16" else "\ufeffone\n"
    path = write(tmp_path / "facts.txt", text.encode(encoding))

    with pytest.raises(WrongFormat, match=r":1: found UTF-16, expected UTF-8; convert it with: iconv"):
        text_of(path)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_without_its_mark_is_known_by_its_empty_halves(tmp_path: Path, encoding: str) -> None:
    path = write(tmp_path / "facts.csv", "subject,relation,object\n".encode(encoding))

    with pytest.raises(WrongFormat, match=rf":1: found {encoding.upper().replace('-LE', 'LE').replace('-BE', 'BE')}, "):
        text_of(path)


@pytest.mark.parametrize(
    ("name", "start", "message"),
    [
        ("k.xlsx", b"PK\x03\x04", "found a spreadsheet, expected text; save it as CSV"),
        ("k.zip", b"PK\x03\x04", "found a ZIP archive, expected text; unpack it"),
        ("k.csv", b"PAR1", "found Parquet, expected text; name it .parquet"),
        ("k.db", b"SQLite format 3\0", "found an SQLite file, expected text; .* --table with --query"),
        ("k.ofn", b"Prefix(ex:=<http://ex.org/>)\n", ":1: found OWL functional syntax, expected RDF; .* robot convert"),
        ("k.owl", b"Prefix: ex: <http://ex.org/>\n", ":1: found OWL Manchester syntax, expected RDF"),
        (
            "k.bib",
            b"% refs\n@book{lee2001,\n  title = {Bolts},\n}\n",
            ":1: found BibTeX, .* export the references as .csv",
        ),
        ("k.ris", b"TY  - BOOK\nTI  - Bolts\nER  - \n", ":1: found RIS, .* export the references as .csv"),
        ("k.vcf", b"BEGIN:VCARD\r\nFN:Ann\r\n", ":1: found vCard, .* export the contacts as .csv"),
        ("k.yaml", b"- name: Ann\n  city: Bonn\n", ":1: found YAML, .* yq -o json"),
        ("k.pdf", b"%PDF-1.7\n%\xe2\xe3\n", ":1: found a PDF, .* save it as .csv"),
        ("k.sql", b"-- dump\nSET names utf8;\nCREATE TABLE t (id int);\n", ":1: found SQL, .* sqlite3 NEW.db < FILE"),
        ("k.tar", b"t.csv".ljust(257, b"\0") + b"ustar\0", "found a tar archive, expected text; unpack it"),
        ("k.obo", b"format-version: 1.2\n", ":1: found OBO, expected RDF; convert it with: robot convert"),
    ],
)
def test_files_that_hold_no_rows_are_known_by_their_beginning(
    tmp_path: Path, name: str, start: bytes, message: str
) -> None:
    with pytest.raises(WrongFormat, match=message):
        text_of(write(tmp_path / name, start + b"...\n"))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SourceMissing, match=r"absent\.txt: No such file or directory; check the path"):
        text_of(tmp_path / "absent.txt")


def test_a_folder_is_no_source(tmp_path: Path) -> None:
    with pytest.raises(SourceMissing, match="not a file; name the files themselves"):
        text_of(tmp_path)


@pytest.mark.parametrize("name", ["x" * 300, "facts.txt/inner", "nul\0"])
def test_a_path_that_cannot_be_is_no_crash(tmp_path: Path, name: str) -> None:
    write(tmp_path / "facts.txt", b"one\n")

    with pytest.raises(SourceMissing, match="check the path"):
        text_of(tmp_path / name)


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceEmpty, match="the file is empty; download it again"):
        text_of(write(tmp_path / "facts.txt", b""))


@pytest.mark.parametrize("suffix", COMPRESSED)
def test_a_file_that_unpacks_to_nothing_is_empty(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path / f"facts.txt{suffix}", PACKERS[suffix](b""))

    with pytest.raises(SourceEmpty, match="contains no lines after decompression"):
        text_of(path)


def test_a_file_of_nothing_but_its_mark_is_empty(tmp_path: Path) -> None:
    with pytest.raises(SourceEmpty):
        text_of(write(tmp_path / "facts.txt", b"\xef\xbb\xbf"))


@settings(deadline=None, max_examples=150)
@given(data=st.binary(max_size=300), suffix=st.sampled_from(list(PACKERS)), packed=st.booleans())
def test_no_bytes_crash_the_unpacking(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, suffix: str, packed: bool
) -> None:
    content = PACKERS[suffix](data) if packed else data
    path = write(tmp_path_factory.getbasetemp() / f"any.txt{suffix}", content)

    assert outcome(path) in {"read", "refused"}


def outcome(path: Path) -> str:
    try:
        text_of(path)
    except KBToolsError:
        return "refused"
    return "read"


@pytest.fixture(params=["rapidgzip", "isal", "none"])
def unpacker(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Take one package to unpack with, the first on whatever cores there are, or none but the standard library."""
    if request.param != "none":
        pytest.importorskip(request.param)
    monkeypatch.setattr(sources, "WORTHWHILE", 0)
    monkeypatch.setattr(sources, "FEW", 0 if request.param == "rapidgzip" else 1 << 16)
    monkeypatch.setattr(sources, "is_installed", lambda package: package == request.param)


@pytest.mark.usefixtures("unpacker")
@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress])
def test_a_large_file_is_unpacked_and_hashed(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    path = tmp_path / f"facts.txt.{'gz' if pack is gzip.compress else 'bz2'}"
    text = b"".join(b"line %d\n" % number for number in range(300_000))
    path.write_bytes(pack(text[:900_000]) + pack(text[900_000:]))
    meter = Meter()
    assert b"".join(block.text for block in read_blocks(path, meter=meter, block=100_000)) == text
    assert meter.sha256.hexdigest() == file_digest(path)


@pytest.mark.usefixtures("unpacker")
@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress])
@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[: len(data) // 2],
        lambda data: data + b"garbage",
        lambda data: data[: len(data) // 2] + bytes(40) + data[len(data) // 2 + 40 :],
    ],
)
def test_a_large_file_that_is_damaged_is_refused(
    tmp_path: Path, pack: Callable[[bytes], bytes], damage: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / f"facts.txt.{'gz' if pack is gzip.compress else 'bz2'}"
    path.write_bytes(damage(pack(b"".join(b"line %d\n" % number for number in range(300_000)))))
    with pytest.raises(SourceDamaged, match=r"cannot be decompressed from here on"):
        list(read_blocks(path))
