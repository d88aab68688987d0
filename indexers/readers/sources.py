"""Source files as blocks of whole lines: decompressed by suffix, hashed, and refused if damaged."""

import bz2
import codecs
import gzip
import hashlib
import importlib.util
import io
import lzma
import os
import stat
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, Protocol

from kbtools.errors import SourceDamaged, SourceEmpty, SourceMissing, WrongFormat
from kbtools.indexers.readers.batches import BOM, Block, count_byte
from kbtools.indexers.readers.formats import PAGE, refuse_foreign
from kbtools.text.encodings import find_encoding

BLOCK = 8 << 20
"""Bytes of text in a block; a longer line makes a longer block."""

_SAMPLE = 1 << 20
"""Bytes used to detect an encoding."""

_HEAD = 512
"""Bytes searched for the signature of a packed file, read before any text is returned."""

_LONGEST_LINE = 64 << 20
"""Bytes: room for two million ids of Freebase; a packed file without line ends is unpacked no further than this."""

_CONTAINERS = {
    b"PK\x03\x04": ("a ZIP archive", "unpack it"),
    b"PAR1": ("Parquet", "name it .parquet"),
    b"ARROW1": ("Arrow", "name it .arrow or .feather"),
    b"SQLite format 3\x00": ("an SQLite file", "pass a table with one entity per row to --table with --query"),
}
"""Files without text, recognised by their first bytes, and what to do with each."""

_PIECE = 1 << 16
"""Bytes unpacked at once: the most that is lost of a damaged file."""

WORTHWHILE = 32 << 20
"""Least size of a packed file, in bytes, for which threads that unpack ahead save more than they cost."""

FEW = 4
"""Most cores for which one thread of ISA-L (500 MB/s) unpacks a .gz as fast as the others can parse it."""

_MAGIC = {
    ".gz": (b"\x1f\x8b",),
    ".bz2": (b"BZh",),
    ".xz": (b"\xfd7zXZ\x00",),
    ".zst": (b"\x28\xb5\x2f\xfd", b"\x50\x2a\x4d\x18"),
}

_PACKED = (
    b"\x1f\x8b",
    b"\xfd7zXZ\x00",
    b"\x28\xb5\x2f\xfd",
    b"PK\x03\x04",
    *(b"BZh%d1AY&SY" % n for n in range(1, 10)),
)


class Meter:
    """The hash and the size of the bytes read from a file."""

    def __init__(self) -> None:
        self.sha256 = hashlib.sha256()
        self.size = 0

    def update(self, data: bytes) -> None:
        self.sha256.update(data)
        self.size += len(data)


class _Unpacked(Protocol):
    """Text of a file, read piece by piece."""

    def read1(self, size: int = -1, /) -> bytes: ...


def check_source(path: Path) -> None:
    """Raise an error if a path is not a readable, non-empty file."""
    try:
        status = path.stat()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise SourceMissing.at(path, f"{reason}; check the path or the download") from error
    if not stat.S_ISREG(status.st_mode):
        raise SourceMissing.at(path, "not a file; name the files themselves")
    if status.st_size == 0:
        raise SourceEmpty.at(path, "the file is empty; download it again")


def file_digest(path: Path) -> str:
    """Return the hash of a file as stored on disk."""
    with open_source(path) as raw:
        return hashlib.file_digest(raw, "sha256").hexdigest()


class _RecodedText:
    """The text of a stream in another encoding, as UTF-8."""

    def __init__(self, raw: _Unpacked, encoding: str) -> None:
        self.raw = raw
        self.decoder = codecs.getincrementaldecoder(encoding)()

    def read1(self, size: int = -1, /) -> bytes:
        """Return some bytes, none at the end; raise UnicodeDecodeError if the text is not in the encoding."""
        while piece := self.raw.read1(size):
            if text := self.decoder.decode(piece).encode():
                return text
        return self.decoder.decode(b"", final=True).encode()


def encoding_of(path: Path) -> str:
    """Return the encoding of a packed or plain text file; empty for UTF-8."""
    check_source(path)
    with open_source(path) as opened:
        stream = _decompressed(_HashingFile(opened, Meter()), str(path), path.suffix)
        sample = b""
        # Damage is reported when the file is read.
        with suppress(EOFError, OSError, zlib.error, lzma.LZMAError):
            while len(sample) < _SAMPLE and (piece := stream.read1(_PIECE)):
                sample += piece
        if isinstance(stream, _ParallelStream):
            stream.close()
    return find_encoding(sample)


def read_blocks(path: Path, *, meter: Meter | None = None, block: int = BLOCK, encoding: str = "") -> Iterator[Block]:
    """Yield a file's lines in blocks; memory grows with the longest line, not with the file.

    Raises SourceMissing, SourceEmpty, SourceDamaged, and WrongFormat for a web page saved in place of the file or a
    wrong encoding.
    """
    check_source(path)
    with open_source(path) as opened, ExitStack() as stack:
        raw = _HashingFile(opened, meter or Meter())
        _check_packing(path, opened.peek(_HEAD)[:_HEAD])
        stream = _decompressed(raw, str(path), path.suffix)
        if isinstance(stream, _ParallelStream):
            stack.callback(stream.close)
        if encoding:
            stream = _RecodedText(stream, encoding)
        line, parts, fresh, least, opening = 1, [b""], 0, max(block, _HEAD), True
        while True:
            try:
                piece = stream.read1(min(least, _PIECE))
            except UnicodeDecodeError as error:
                problem = f"is not {encoding} ({error.reason}); name its encoding with --encoding"
                raise WrongFormat.at(path, problem) from error
            except (EOFError, OSError, zlib.error, lzma.LZMAError) as error:
                line += sum(part.count(b"\n") for part in parts)
                problem = f"cannot be decompressed from here on ({error}); the file is cut short or damaged"
                raise SourceDamaged.at(path, f"{problem}, download it again", line=line) from error
            parts.append(piece)
            fresh += len(piece)
            if piece and fresh < least:
                continue
            text = b"".join(parts)
            if opening:
                refuse_foreign(path, text[:PAGE])
                text, opening = text.removeprefix(BOM), False
            if not piece:
                break
            cut = text.rfind(b"\n") + 1
            if cut:
                whole = Block(text[:cut], line)
                yield whole
                line += count_byte(whole.text, "\n")
            elif len(text) > _LONGEST_LINE:
                problem = f"a line of over {_LONGEST_LINE >> 20} MiB; this is not text, check the file"
                raise WrongFormat.at(path, problem, line=line)
            parts, fresh, least = [text[cut:]], 0, block
    if text:
        yield Block(text if text.endswith(b"\n") else text + b"\n", line)
    elif line == 1:
        raise SourceEmpty.at(path, "contains no lines after decompression; download it again")


def open_source(path: Path) -> io.BufferedReader:
    """Open a file; raise an error if it is not readable."""
    try:
        return path.open("rb")
    except OSError as error:
        raise SourceMissing.at(path, f"{error.strerror}; check its permissions") from error


def _check_packing(path: Path, start: bytes) -> None:
    """Raise WrongFormat if a file's first bytes contradict its suffix."""
    magic = _MAGIC.get(path.suffix.lower(), ())
    for mark, (container, advice) in _CONTAINERS.items():
        if start.startswith(mark):
            if path.suffix.lower() in (".xlsx", ".xlsm", ".ods"):
                container, advice = "a spreadsheet", "save it as CSV"
            raise WrongFormat.at(path, f"found {container}, expected text; {advice}")
    if not magic and start.startswith(_PACKED):
        cure = "name it .gz, .bz2, .xz or .zst, or unpack it"
        raise WrongFormat.at(path, f"found compressed data, expected text; {cure}")
    if magic and not any(start[: len(known)] == known[: len(start)] for known in magic):
        refuse_foreign(path, start)
        cure = "remove the suffix if it is plain text, else download it again"
        raise WrongFormat.at(path, f"found {start[:40]!r}, which is not {path.suffix} data; {cure}")


class _HashingFile(io.RawIOBase):
    """A raw file that hashes what is read from it, so that a source is read once."""

    def __init__(self, raw: IO[bytes], meter: Meter) -> None:
        self.raw = raw
        self.meter = meter

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data = self.raw.read(size)
        self.meter.update(data)
        return data

    read1 = read


class _PackedStreams:
    """The text of consecutive packed streams, read to the last byte.

    `damage` is what the decompressor raises for bytes of another format. `bz2.open` and `lzma.open` are not used, since
    they take anything but the start of a stream, even damage, for the end of the file.
    """

    def __init__(
        self,
        raw: _Unpacked,
        start: Callable[[], bz2.BZ2Decompressor | lzma.LZMADecompressor],
        *,
        padding: bytes = b"",
        damage: type[Exception] = OSError,
    ) -> None:
        self.raw = raw
        self.start = start
        self.padding = padding
        self.damage = damage
        self.stream = start()
        self.data = b""

    def read1(self, size: int = -1) -> bytes:
        """Return at least one byte and at most `size`, none at the end of the file; raise OSError or EOFError."""
        while True:
            if self.stream.eof:
                self.data = (self.stream.unused_data or self.raw.read1(_PIECE)).lstrip(self.padding)
                while self.padding and not self.data and (more := self.raw.read1(_PIECE)):
                    self.data = more.lstrip(self.padding)
                if not self.data:
                    return b""
                # pbzip2 writes many consecutive streams that form one text.
                self.stream = self.start()
            elif self.stream.needs_input and not self.data:
                self.data = self.raw.read1(_PIECE)
                if not self.data:
                    raise EOFError("the file ends within its last stream")
            try:
                piece = self.stream.decompress(self.data, size)
            except self.damage as error:
                raise OSError(str(error)) from error
            self.data = b""
            if piece:
                return piece


class _ParallelStream:
    """The text of a file that rapidgzip unpacks on all cores; the file is hashed as it is read."""

    def __init__(self, raw: _HashingFile, path: str, suffix: str) -> None:
        import rapidgzip

        start = rapidgzip.open if suffix == ".gz" else rapidgzip.IndexedBzip2File
        self.raw = raw
        self.size = os.path.getsize(path)
        self.hashed = 0
        self.stream = start(path, parallelization=len(os.sched_getaffinity(0)))

    def read1(self, size: int = -1) -> bytes:
        """Return at most `size` bytes, none at the end of the file; raise OSError if it is damaged."""
        try:
            piece: bytes = self.stream.read(size)
            reached = -(-self.stream.tell_compressed() // 8)
        except (ValueError, RuntimeError) as error:
            raise OSError(str(error)) from error
        if not piece and reached < self.size:
            raise OSError("bytes after its end")
        self.hashed += len(self.raw.read(max(reached - self.hashed, 0)))
        return piece

    def close(self) -> None:
        """Stop its threads, which must not outlive the interpreter."""
        self.stream.close()


def _is_parallel(path: str, suffix: str) -> bool:
    """Return whether a file is worth several cores and rapidgzip is installed."""
    return (
        (suffix == ".bz2" or (suffix == ".gz" and (len(os.sched_getaffinity(0)) > FEW or not is_installed("isal"))))
        and os.path.getsize(path) >= WORTHWHILE
        and is_installed("rapidgzip")
    )


def is_installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


def _decompressed(raw: _HashingFile, path: str, suffix: str) -> _Unpacked:
    """Undo the compression that the suffix names."""
    if _is_parallel(path, suffix.lower()):
        return _ParallelStream(raw, path, suffix.lower())
    match suffix.lower():
        case ".gz":
            if not is_installed("isal"):
                return gzip.open(raw, "rb")
            # ISA-L takes less than half the time of zlib.
            from isal.igzip_lib import DECOMP_GZIP, IgzipDecompressor, IsalError

            return _PackedStreams(raw, lambda: IgzipDecompressor(flag=DECOMP_GZIP), padding=b"\0", damage=IsalError)  # type: ignore[arg-type, return-value]
        case ".bz2":
            return _PackedStreams(raw, bz2.BZ2Decompressor)
        case ".xz":
            return _PackedStreams(raw, lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ), padding=b"\0")
        case ".zst":
            import pyarrow

            return pyarrow.CompressedInputStream(pyarrow.PythonFile(raw, mode="r"), "zstd")  # type: ignore[no-any-return]
    return raw
