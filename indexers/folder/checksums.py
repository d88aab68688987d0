"""Checks of files against their checksums, and the errors for files that are damaged or cannot be opened."""

import errno
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from kbtools.errors import KBUnusable
from kbtools.record_files import file_digest

INDEX_AGAIN = "the knowledge base is damaged, index again"

VERIFIED = 1 << 20
"""Largest file, in bytes, that is compared with its checksum when opened: half a millisecond each."""

_GONE = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR)
_HINTS = {
    errno.EMFILE: "close other knowledge bases, or raise the limit of open files with ulimit -n",
    errno.ENFILE: "other programs have too many files open",
    errno.EACCES: "check its permissions",
    errno.ENOSPC: "free some space, or set TMPDIR to a folder with more space",
    errno.ENOMEM: "raise the memory limit with ulimit -v, or close other programs",
}
"""What to do if a file is intact but the system refuses to open it."""


def cannot_open(path: Path, error: OSError) -> KBUnusable:
    """Return the error for a file that cannot be opened because it is missing or the system refuses."""
    reason = error.strerror or str(error)
    cure = INDEX_AGAIN if error.errno in _GONE else _HINTS.get(error.errno or 0, "")
    return KBUnusable(f"{path}: {reason}" + (f"; {cure}" if cure else ""), path=str(path), errno=error.errno)


def compare_files(
    folder: Path, sizes: Mapping[str, int], checksums: Mapping[str, str], cure: str, *, largest: int = sys.maxsize
) -> Iterator[str]:
    """Yield a message for each file whose size or checksum differs from that recorded.

    The message names the file, the fault, and `cure`, which recreates the file. Every byte of files up to `largest`
    bytes is read, at 2 GB a second; a file without a checksum is compared by its size.
    """
    for name, size in sizes.items():
        file = folder / name
        try:
            if not file.is_file() or file.stat().st_size != size:
                yield f"{file}: missing or not the {size:,} bytes that were written; {cure}"
            elif name in checksums and size <= largest and file_digest(file) != checksums[name]:
                yield f"{file}: not as written, its checksum differs; {cure}"
        except OSError as error:
            yield str(cannot_open(file, error))


def require_files(
    folder: Path, sizes: Mapping[str, int], checksums: Mapping[str, str], cure: str, *, largest: int = VERIFIED
) -> None:
    """Raise KBUnusable for the first file that differs from that recorded; larger files are compared by size alone."""
    for damage in compare_files(folder, sizes, checksums, cure, largest=largest):
        raise KBUnusable(damage, path=str(folder))
