"""Free memory of the machine, checked before work that needs much of it."""

from pathlib import Path

from kbtools.errors import MemoryExhausted

MEMORY, GROUP = Path("/proc/meminfo"), Path("/sys/fs/cgroup")
"""Linux files with the free memory, and with the limit of a container."""


def free_memory() -> int | None:
    """Return the bytes that a process may still use, None if the system does not report them."""
    if not MEMORY.is_file():
        return None
    lines = dict(line.split(":", 1) for line in MEMORY.read_text().splitlines())
    free = 1024 * int(lines["MemAvailable"].split()[0])
    if (GROUP / "memory.max").is_file() and (most := (GROUP / "memory.max").read_text().strip()).isdigit():
        free = min(free, int(most) - int((GROUP / "memory.current").read_text()))
    return free


def require_memory(needed: int, what: str, *, instead: str) -> None:
    """Raise MemoryExhausted if `what` needs more bytes than are free; `instead` names an option that needs fewer."""
    free = free_memory()
    if free is not None and needed > free:
        raise MemoryExhausted(
            f"{what} take {needed / 2**30:,.1f} GiB of memory, {free / 2**30:,.1f} GiB are free; {instead}",
            needed=needed,
            free=free,
        )
