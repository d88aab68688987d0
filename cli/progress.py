"""Progress of a long command: phases as lines, the reading of files as a bar, signals that end it cleanly."""

import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from kbtools.cli.display import echo, visible
from kbtools.indexers.build import BuildProgress, Phase


@contextmanager
def stoppable() -> Iterator[None]:
    """Let a signal that ends the process unwind the work, so that it leaves nothing behind."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


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
