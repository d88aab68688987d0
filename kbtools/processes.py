"""Tasks in separate processes, for Python code that needs several cores.

A process runs this module by name: a fork would copy the threads of libraries in an undefined state, and a spawned
process would run the caller's script again. It ends when the pipe to its parent closes.
"""

import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from kbtools.errors import MemoryExhausted

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

_T = TypeVar("_T")
_R = TypeVar("_R")

MOST_JOBS = 8
"""The default number of jobs: one process cannot keep more of them busy."""

WORTHWHILE = 4
"""The fewest items for which processes are started; starting one takes 0.5 CPU seconds, as an item does."""


def default_jobs() -> int:
    """Return the default number of jobs."""
    return min(len(os.sched_getaffinity(0)), MOST_JOBS)


class Worker(Generic[_T, _R]):
    """A task in a separate process, which computes one item at a time."""

    def __init__(self, task: Callable[[_T], _R]) -> None:
        import subprocess  # both take 20 ms to import, which most commands need not wait for
        from multiprocessing import Pipe

        self.connection, theirs = Pipe()
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", __name__, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
            )
        self.transfer(lambda: self.connection.send(task))

    def send(self, item: _T) -> None:
        """Send an item; its result must be received before the next one."""
        self.transfer(lambda: self.connection.send(item))

    def receive(self) -> _R:
        """Return the result of the item, or raise the task's error."""
        result: _R
        result, error = self.transfer(self.connection.recv)
        if error is not None:
            raise error
        return result

    def transfer(self, act: Callable[[], Any]) -> Any:
        try:
            return act()
        except (EOFError, OSError) as error:
            raise MemoryExhausted(
                "a process of the build was killed, probably because memory ran out; free some or use fewer --jobs"
            ) from error

    def close(self) -> None:
        """End the process and wait for it."""
        self.connection.close()
        self.process.wait()


def in_order(
    task: Callable[[_T], _R], items: Iterable[_T], *, jobs: int, worthwhile: Callable[[list[_T]], bool] = bool
) -> Iterator[_R]:
    """Yield the result of a task for each item, in order, from `jobs` processes, or from this one for few items.

    `worthwhile` returns whether the first items justify processes. Each process has at most one item at a time.
    """
    items = iter(items)
    opening = list(islice(items, WORTHWHILE)) if jobs > 1 else []
    if len(opening) < WORTHWHILE or not worthwhile(opening):
        yield from map(task, chain(opening, items))
        return
    with ExitStack() as stack:
        idle: list[Worker[_T, _R]] = []
        for _ in range(jobs):
            idle.append(Worker(task))
            stack.callback(idle[-1].close)
        busy: deque[Worker[_T, _R]] = deque()
        for item in chain(opening, items):
            if not idle:
                idle.append(busy.popleft())
                yield idle[-1].receive()
            busy.append(idle.pop())
            busy[-1].send(item)
        for worker in busy:
            yield worker.receive()


def serve(connection: "Connection") -> None:
    """Compute items until the parent closes the pipe."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(EOFError, OSError):
        task = connection.recv()
        while True:
            connection.send(_outcome(task, connection.recv()))


def _outcome(task: Callable[[_T], _R], item: _T) -> tuple[_R | None, BaseException | None]:
    """Return the result of a task, or its error."""
    try:
        return task(item), None
    except Exception as error:
        return None, error


if __name__ == "__main__":
    from multiprocessing.connection import Connection

    serve(Connection(int(sys.argv[1])))
