"""Read in one thread while another works on what was read."""

from collections.abc import Iterator
from queue import Queue
from threading import Event, Thread

from kbtools.indexers.readers.records import Batch

AHEAD = 2
"""Batches that a reader may be ahead."""


def read_ahead(batches: Iterator[Batch]) -> Iterator[Batch]:
    """Read batches in a thread of their own, a few ahead; its errors are raised here."""
    queue: Queue[Batch | BaseException | None] = Queue(AHEAD)
    stopped = Event()

    def read() -> None:
        last: BaseException | None = None
        try:
            for batch in batches:
                queue.put(batch)
                if stopped.is_set():
                    return
        except BaseException as error:  # carried to the thread that asked, and raised there
            last = error
        queue.put(last)

    thread = Thread(target=read, daemon=True)
    thread.start()
    try:
        while (batch := queue.get()) is not None:
            if isinstance(batch, BaseException):
                raise batch
            yield batch
    finally:
        stopped.set()
        while thread.is_alive():
            if not queue.empty():
                queue.get()
            thread.join(0.01)
