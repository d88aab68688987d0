"""Memory of the machine that is free: what needs more says so before it begins, with what makes it fit."""

from pathlib import Path

from kbtools.errors import MemoryExhausted

MEMORY, GROUP = Path("/proc/meminfo"), Path("/sys/fs/cgroup")
"""The files of Linux on free memory, and on what a container may use."""


def free_memory() -> int | None:
    """Return the bytes that a process may still take; None if the system does not say."""
    if not MEMORY.is_file():
        return None
    lines = dict(line.split(":", 1) for line in MEMORY.read_text().splitlines())
    free = 1024 * int(lines["MemAvailable"].split()[0])
    if (GROUP / "memory.max").is_file() and (most := (GROUP / "memory.max").read_text().strip()).isdigit():
        free = min(free, int(most) - int((GROUP / "memory.current").read_text()))
    return free


def require_memory(needed: int, what: str, *, instead: str) -> None:
    """Raise MemoryExhausted where fewer bytes are free than `what` takes; `instead` names the option that fits."""
    free = free_memory()
    if free is not None and needed > free:
        raise MemoryExhausted(
            f"{what} take {needed / 2**30:,.1f} GiB of memory, {free / 2**30:,.1f} GiB are free; {instead}",
            needed=needed,
            free=free,
        )
