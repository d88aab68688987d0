"""Damage of files: sentences for those that are not as they were written, or that the system does not give."""

import errno
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from kbtools.errors import KBUnusable
from kbtools.record_files import file_digest

INDEX_AGAIN = "the knowledge base is damaged, index again"

VERIFIED = 1 << 20
"""Bytes up to which a file is compared with its checksum when it is opened: half a millisecond each."""

_GONE = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR)
_HINTS = {
    errno.EMFILE: "close other knowledge bases, or raise the limit of open files with ulimit -n",
    errno.ENFILE: "other programs have too many files open",
    errno.EACCES: "check its permissions",
    errno.ENOSPC: "free some space, or set TMPDIR to a folder with more space",
    errno.ENOMEM: "raise the memory limit with ulimit -v, or close other programs",
}
"""The cure where a file is whole but the system does not give it."""


def cannot_open(path: Path, error: OSError) -> KBUnusable:
    """Return the error for a file that cannot be opened: it is gone, or the system refuses for now."""
    reason = error.strerror or str(error)
    cure = INDEX_AGAIN if error.errno in _GONE else _HINTS.get(error.errno or 0, "")
    return KBUnusable(f"{path}: {reason}" + (f"; {cure}" if cure else ""), path=str(path), errno=error.errno)


def compare_files(
    folder: Path, sizes: Mapping[str, int], checksums: Mapping[str, str], cure: str, *, largest: int = sys.maxsize
) -> Iterator[str]:
    """Yield a sentence for each file that does not have the size that was written, or not the checksum.

    The sentence names the file, what is wrong with it, and `cure`, which makes it again. Every byte of files up to
    `largest` bytes is read, 2 GB a second; a file without a checksum is compared by its size.
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
    """Raise KBUnusable for the first file that is not as it was written; larger files are compared by size alone."""
    for damage in compare_files(folder, sizes, checksums, cure, largest=largest):
        raise KBUnusable(damage, path=str(folder))
