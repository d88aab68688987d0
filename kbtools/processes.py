"""Tasks in processes of their own: what Python computes in one thread at a time then takes several cores.

A process is started by the name of this module, since a fork would copy the threads of libraries half-way, and a
spawned one would run the caller's script again. It ends when the pipe to its parent does, however that ended.
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
"""Jobs unless told otherwise: what one process hands out and takes back keeps no more of them busy."""

WORTHWHILE = 4
"""Items from which on processes are worth their start, which takes half a CPU second each: an item takes that long."""


def _usable_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0))


def default_jobs() -> int:
    """Return the number of jobs where none is named."""
    return min(_usable_cores(), MOST_JOBS)


class Worker(Generic[_T, _R]):
    """A task in a process of its own, which computes one item at a time."""

    def __init__(self, task: Callable[[_T], _R]) -> None:
        import subprocess  # both take 20 ms, which a command that starts no process does not wait for
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
        """Send the next item; its result must be received before another item is sent."""
        self.transfer(lambda: self.connection.send(item))

    def receive(self) -> _R:
        """Return the result of the item, or raise the error of its task."""
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
                "a process of the build was ended, probably for want of memory; free some or take fewer --jobs"
            ) from error

    def close(self) -> None:
        """End the process, and wait until it writes no more."""
        self.connection.close()
        self.process.wait()


def in_order(
    task: Callable[[_T], _R], items: Iterable[_T], *, jobs: int, worthwhile: Callable[[list[_T]], bool] = bool
) -> Iterator[_R]:
    """Yield the result of a task for each item, in order, computed by `jobs` processes, or by this one for few items.

    `worthwhile` says whether the first items are worth the processes. At most one item a process is under way.
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
    """Compute what comes until the parent goes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(EOFError, OSError):
        task = connection.recv()
        while True:
            connection.send(_outcome(task, connection.recv()))


def _outcome(task: Callable[[_T], _R], item: _T) -> tuple[_R | None, BaseException | None]:
    """Return the result of a task or its error."""
    try:
        return task(item), None
    except Exception as error:
        return None, error


if __name__ == "__main__":
    from multiprocessing.connection import Connection

    serve(Connection(int(sys.argv[1])))
