"""Give back the memory of mapped files that were read once: the system keeps them, this process need not."""

import ctypes
import os
from pathlib import Path

DONTNEED = 4
MAPS = Path("/proc/self/maps")


def release_pages(folder: Path) -> None:
    """Drop the pages of every mapped file in a folder from this process; they come back when they are read again.

    Linux tells the mappings; elsewhere nothing happens, and the system takes pages back when it needs them.
    """
    if not MAPS.exists():
        return
    advise = ctypes.CDLL(None, use_errno=True).madvise
    advise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    inside = os.path.realpath(folder) + os.sep
    for line in MAPS.read_text(encoding="utf-8", errors="surrogateescape").splitlines():
        fields = line.split(maxsplit=5)
        if len(fields) == 6 and fields[1].startswith("r--s") and fields[5].startswith(inside):
            start, end = (int(edge, 16) for edge in fields[0].split("-"))
            advise(start, end - start, DONTNEED)
