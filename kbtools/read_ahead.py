"""Reading in one thread while another works, and work on several items at once."""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from queue import Empty, Queue
from threading import Event, Thread
from typing import TypeVar

_T = TypeVar("_T")
_R = TypeVar("_R")

_AHEAD = 2
"""Batches that a reader may be ahead: one is read while one waits."""

_MOST_LINES = 64
"""Available lines taken together, enough for one cluster request with many questions."""


class _Ahead(Iterator[list[_T]]):
    """Items of an iterable, read in another thread up to `depth` ahead; its errors are raised in this thread."""

    def __init__(self, items: Iterable[_T], depth: int, *, most: int = 1) -> None:
        self.queue: Queue[tuple[_T] | BaseException | None] = Queue(depth)
        self.most = most
        self.stopped = Event()
        self.last: BaseException | None = None
        self.ended = False
        self.thread = Thread(target=self.read, args=(items,), daemon=True)
        self.thread.start()

    def read(self, items: Iterable[_T]) -> None:
        last: BaseException | None = None
        try:
            for item in items:
                # In a tuple, to distinguish an item from an error and from the end.
                self.queue.put((item,))
                if self.stopped.is_set():
                    return
        except BaseException as error:  # raised again in the other thread
            last = error
        self.queue.put(last)

    def __next__(self) -> list[_T]:
        """Return the available items, at least one and at most `most`."""
        items: list[_T] = []
        while not self.ended and len(items) < self.most:
            try:
                entry = self.queue.get(block=not items)
            except Empty:
                break
            if isinstance(entry, tuple):
                items.append(entry[0])
            else:
                self.last, self.ended = entry, True
        if items:
            return items
        if self.last is not None:
            error, self.last = self.last, None
            raise error
        raise StopIteration

    def stop(self) -> None:
        """Stop the thread, which may be waiting for space in the queue."""
        self.stopped.set()
        while self.thread.is_alive():
            if not self.queue.empty():
                self.queue.get()
            self.thread.join(0.01)


def read_ahead(batches: Iterable[_T]) -> Generator[_T]:
    """Yield batches read a few ahead; the thread ends with this iterator."""
    ahead = _Ahead(batches, _AHEAD)
    try:
        for (batch,) in ahead:
            yield batch
    finally:
        ahead.stop()


def map_ahead(function: Callable[[_T], _R], items: Iterable[_T], *, threads: int) -> Generator[_R]:
    """Yield the result of a function for each item, in order, computed in `threads` threads.

    At most one more item than threads is in progress.
    """
    waiting: deque[Future[_R]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) > threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)


def lines_at_hand(lines: Iterable[str], most: int = _MOST_LINES) -> Iterator[list[str]]:
    """Yield lists of lines: single lines from a dialogue, `most` at once from a file."""
    return _Ahead(lines, 2 * most, most=most)
