"""Packed files as streams of text: unpacked to the last byte, and hashed as they lie on disk."""

import bz2
import gzip
import lzma
from collections.abc import Callable
from typing import IO, Protocol

PIECE = 1 << 16
"""Bytes unpacked at once: what is lost of a damaged file, at most."""

MAGIC = {
    ".gz": (b"\x1f\x8b",),
    ".bz2": (b"BZh",),
    ".xz": (b"\xfd7zXZ\x00",),
    ".zst": (b"\x28\xb5\x2f\xfd", b"\x50\x2a\x4d\x18"),
}

PACKED = (b"\x1f\x8b", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd", b"PK\x03\x04", *(b"BZh%d1AY&SY" % n for n in range(1, 10)))


class Digest(Protocol):
    """A hash that takes bytes as they come."""

    def update(self, data: bytes, /) -> None: ...

    def hexdigest(self) -> str: ...


class HashingFile:
    """A raw file that hashes what is read from it, so that a source is read once."""

    def __init__(self, raw: IO[bytes], digest: Digest) -> None:
        self.raw = raw
        self.digest = digest

    def read(self, size: int = -1) -> bytes:
        data = self.raw.read(size)
        self.digest.update(data)
        return data

    read1 = read

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    @property
    def closed(self) -> bool:
        return self.raw.closed

    def close(self) -> None:
        self.raw.close()


class Decompressor(Protocol):
    """The contract of the objects by which `bz2` and `lzma` unpack a stream."""

    @property
    def eof(self) -> bool: ...

    @property
    def needs_input(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, max_length: int = -1) -> bytes: ...


class PackedStreams:
    """The text of packed streams that follow one another, read to the last byte.

    `bz2.open` and `lzma.open` take whatever does not begin a stream for the end of the file, damage too.
    """

    def __init__(self, raw: IO[bytes], start: Callable[[], Decompressor], *, padding: bytes = b"") -> None:
        self.raw = raw
        self.start = start
        self.padding = padding
        self.stream = start()
        self.data = b""

    def read1(self, size: int) -> bytes:
        """Give at least one byte and at most `size`, nothing at the end of the file; raise OSError or EOFError."""
        while True:
            if self.stream.eof:
                self.data = (self.stream.unused_data or self.raw.read(PIECE)).lstrip(self.padding)
                while self.padding and not self.data and (more := self.raw.read(PIECE)):
                    self.data = more.lstrip(self.padding)
                if not self.data:
                    return b""
                # pbzip2 writes many streams one after the other, which are one text.
                self.stream = self.start()
            elif self.stream.needs_input and not self.data:
                self.data = self.raw.read(PIECE)
                if not self.data:
                    raise EOFError("the file ends before its last stream does")
            piece = self.stream.decompress(self.data, size)
            self.data = b""
            if piece:
                return piece


def decompressed(raw: IO[bytes], suffix: str) -> IO[bytes]:
    """Undo the compression that a suffix announces."""
    match suffix.lower():
        case ".gz":
            return gzip.open(raw, "rb")  # type: ignore[return-value]
        case ".bz2":
            return PackedStreams(raw, bz2.BZ2Decompressor)  # type: ignore[return-value]
        case ".xz":
            return PackedStreams(raw, lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ), padding=b"\0")  # type: ignore[return-value]
        case ".zst":
            import pyarrow

            return pyarrow.CompressedInputStream(pyarrow.PythonFile(raw, mode="r"), "zstd")  # type: ignore[no-any-return]
    return raw
