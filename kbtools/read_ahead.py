"""Reading in one thread while another works, and work on several items at once."""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from queue import Empty, Queue
from threading import Thread
from typing import Any, TypeVar

_T = TypeVar("_T")
_R = TypeVar("_R")

_AHEAD = 2
"""Batches that a reader may be ahead: one is read while one waits."""

_MOST_LINES = 64
"""Available lines taken together, enough for one cluster request with many questions."""

_END: Any = object()


def read_ahead(batches: Iterable[_T]) -> Generator[_T]:
    """Yield batches read a few ahead in another thread, which ends with this iterator."""
    rest = iter(batches)
    with ThreadPoolExecutor(1) as pool:
        try:
            waiting = deque(pool.submit(next, rest, _END) for _ in range(_AHEAD))
            while (batch := waiting.popleft().result()) is not _END:
                waiting.append(pool.submit(next, rest, _END))
                yield batch
        finally:
            pool.shutdown(cancel_futures=True)


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
    """Return lists of the available lines: single lines from a dialogue, `most` at once from a file.

    An error of the lines is raised after the lines before it.
    """
    queue: Queue[str | BaseException | None] = Queue(2 * most)

    def read() -> None:
        last: BaseException | None = None
        try:
            for line in lines:
                queue.put(line)
        except BaseException as error:  # raised again in the other thread
            last = error
        queue.put(last)

    # A daemon, as a thread that waits for a line must not keep the program from ending.
    Thread(target=read, daemon=True).start()
    return _lists_of(queue, most)


def _lists_of(queue: "Queue[str | BaseException | None]", most: int) -> Iterator[list[str]]:
    """Yield the strings in a queue, at least one and at most `most`; the first other entry ends them."""
    last: str | BaseException | None = ""
    while isinstance(last, str):
        lines: list[str] = []
        with suppress(Empty):
            while isinstance(last, str) and len(lines) < most:
                last = queue.get(block=not lines)
                if isinstance(last, str):
                    lines.append(last)
        if lines:
            yield lines
    if last:
        raise last
