"""Progress of long commands: phases as lines, the reading of files as a bar, and signals that end them cleanly."""

import os
import signal
import socket
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from kbtools.cli.display import echo
from kbtools.indexers.building.build import BuildProgress, Phase
from kbtools.text.printable import visible

_UNWINDING = 0.5
"""Seconds, so that a stopped process ends within one."""


@contextmanager
def stoppable() -> Iterator[None]:
    """Unwind the work when a signal ends the process, so that it leaves nothing behind.

    Ignored signals stay ignored (nohup). Libraries may delay Python's signal handlers for many seconds, so a thread
    also receives the signal, and ends the process if the work is not unwound within `_UNWINDING` seconds; leftovers
    next to the target are then removed by the next run.
    """

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    def end_anyway() -> None:
        with hearing:
            while number := hearing.recv(1):
                if number[0] in signals and not unwound.wait(_UNWINDING):
                    os._exit(128 + number[0])

    signals = {number for number in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) is not signal.SIG_IGN}
    before = {number: signal.signal(number, stop) for number in signals}
    unwound = threading.Event()
    hearing, telling = socket.socketpair()
    telling.setblocking(False)  # Required by `set_wakeup_fd`, which writes from inside a signal.
    wakeup_before = signal.set_wakeup_fd(telling.fileno(), warn_on_full_buffer=False)
    threading.Thread(target=end_anyway, daemon=True).start()
    try:
        yield
    finally:
        unwound.set()
        signal.set_wakeup_fd(wakeup_before)
        for number, handler in before.items():
            signal.signal(number, handler)
        telling.close()


@contextmanager
def shown(files: Iterable[Path], quiet: bool) -> Iterator[BuildProgress]:
    """Show phases as lines and the reading of files as a progress bar on standard error."""
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    bar = Progress(
        TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn(),
        console=console, transient=True, disable=quiet or not console.is_terminal,
    )  # fmt: skip
    sizes = {str(file): file.stat().st_size for file in files if file.is_file()}
    tasks = {
        path: bar.add_task(escape(visible(Path(path).name)), total=size, visible=False) for path, size in sizes.items()
    }

    def progress(path: str, done: int) -> None:
        if path in tasks:
            bar.update(tasks[path], completed=done, visible=done < sizes[path])

    def phase(done: Phase) -> None:
        if not quiet:
            echo(f"{done.name}: {done.counts} ({done.seconds:.1f} s)")

    with bar:
        yield BuildProgress(phase=phase, progress=progress)
