"""Packed files as streams of text: unpacked to the last byte, and hashed as they lie on disk."""

import bz2
import gzip
import importlib.util
import lzma
import os
from collections.abc import Callable
from typing import IO, Protocol

PIECE = 1 << 16
"""Bytes unpacked at once: what is lost of a damaged file, at most."""

WORTHWHILE = 32 << 20
"""Bytes of a packed file from which on threads that unpack it ahead save more than they cost."""

FEW = 4
"""Cores up to which one thread by ISA-L, 500 MB/s, unpacks as much of a .gz as the others can parse."""

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


class Unpacked(Protocol):
    """Text of a file, read piece by piece."""

    def read1(self, size: int = -1, /) -> bytes: ...


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

    `damage` is what the decompressor raises for bytes that are none of its format.
    `bz2.open` and `lzma.open` take whatever does not begin a stream for the end of the file, damage too.
    """

    def __init__(
        self,
        raw: Unpacked,
        start: Callable[[], Decompressor],
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
                self.data = (self.stream.unused_data or self.raw.read1(PIECE)).lstrip(self.padding)
                while self.padding and not self.data and (more := self.raw.read1(PIECE)):
                    self.data = more.lstrip(self.padding)
                if not self.data:
                    return b""
                # pbzip2 writes many streams one after the other, which are one text.
                self.stream = self.start()
            elif self.stream.needs_input and not self.data:
                self.data = self.raw.read1(PIECE)
                if not self.data:
                    raise EOFError("the file ends before its last stream does")
            try:
                piece = self.stream.decompress(self.data, size)
            except self.damage as error:
                raise OSError(str(error)) from error
            self.data = b""
            if piece:
                return piece


class ParallelStream:
    """The text of a packed file that rapidgzip unpacks on all cores; the file is hashed as far as it has come."""

    def __init__(self, raw: HashingFile, path: str, suffix: str) -> None:
        import rapidgzip

        start = rapidgzip.open if suffix == ".gz" else rapidgzip.IndexedBzip2File
        self.raw = raw
        self.size = os.path.getsize(path)
        self.hashed = 0
        self.stream = start(path, parallelization=len(os.sched_getaffinity(0)))

    def read1(self, size: int = -1) -> bytes:
        """Return at most `size` bytes, none at the end of the file; raise OSError where it is damaged."""
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
        """End its threads, which must not outlive the interpreter."""
        self.stream.close()


def gzip_stream(raw: Unpacked) -> PackedStreams:
    """Unpack a .gz file by ISA-L, in less than half of the time of zlib."""
    from isal.igzip_lib import DECOMP_GZIP, IgzipDecompressor, IsalError

    return PackedStreams(raw, lambda: IgzipDecompressor(flag=DECOMP_GZIP), padding=b"\0", damage=IsalError)  # type: ignore[arg-type]


def is_parallel(path: str, suffix: str) -> bool:
    """Return whether a file is worth several cores, and rapidgzip is installed."""
    return (
        (suffix == ".bz2" or (suffix == ".gz" and (len(os.sched_getaffinity(0)) > FEW or not is_installed("isal"))))
        and os.path.getsize(path) >= WORTHWHILE
        and is_installed("rapidgzip")
    )


def is_installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


def decompressed(raw: HashingFile, path: str, suffix: str) -> Unpacked:
    """Undo the compression that a suffix announces."""
    if is_parallel(path, suffix.lower()):
        return ParallelStream(raw, path, suffix.lower())
    match suffix.lower():
        case ".gz":
            if is_installed("isal"):
                return gzip_stream(raw)
            return gzip.open(raw, "rb")  # type: ignore[call-overload, no-any-return]
        case ".bz2":
            return PackedStreams(raw, bz2.BZ2Decompressor)
        case ".xz":
            return PackedStreams(raw, lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ), padding=b"\0")
        case ".zst":
            import pyarrow

            return pyarrow.CompressedInputStream(pyarrow.PythonFile(raw, mode="r"), "zstd")  # type: ignore[no-any-return]
    return raw
