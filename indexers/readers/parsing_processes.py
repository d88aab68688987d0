"""Processes that parse the blocks of a file beside one another, their results in the order of the blocks.

They are started by the name of this module, since a fork would copy the threads of libraries half-way, and a spawned
process would run the caller's script again. One ends when the pipe to its parent does, however that ended.
"""

import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import chain, islice
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any, Protocol, TypeVar

from kbtools.errors import MemoryExhausted
from kbtools.indexers.readers.lines import Block
from kbtools.indexers.readers.sources import BLOCK

WORTHWHILE = 4
"""Blocks, a line short of full, that take about as long to parse as a process takes to start, 0.2 s."""

T_co = TypeVar("T_co", covariant=True)


class BlockParser(Protocol[T_co]):
    """A parser of a block by itself, which can be pickled."""

    def parse(self, block: Block) -> T_co: ...


def parse_in_order(blocks: Iterable[Block], parser: BlockParser[T_co]) -> Iterator[T_co]:
    """Parse blocks on all cores, a block a process at a time; a small file, or on a single core, here."""
    blocks = iter(blocks)
    processes = len(os.sched_getaffinity(0))
    opening = list(islice(blocks, WORTHWHILE))
    if processes == 1 or sum(len(block.text) for block in opening) < WORTHWHILE * BLOCK // 2:
        yield from map(parser.parse, chain(opening, blocks))
        return
    with ExitStack() as stack:
        idle = [start(parser, stack) for _ in range(processes)]
        busy: deque[Connection] = deque()
        for block in chain(opening, blocks):
            if not idle:
                yield receive(busy, idle)
            busy.append(idle.pop())
            send(busy[-1], block)
        while busy:
            yield receive(busy, idle)


def start(parser: object, stack: ExitStack) -> Connection:
    """Start a process that ends with the stack."""
    ours, theirs = Pipe()
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", __name__, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
        )
    stack.callback(process.wait)
    stack.callback(ours.close)
    send(ours, parser)
    return ours


def send(connection: Connection, record: object) -> None:
    try:
        connection.send(record)
    except OSError as error:
        raise ended() from error


def receive(busy: "deque[Connection]", idle: list[Connection]) -> Any:
    """Take the result of the process that was asked first."""
    connection = busy.popleft()
    try:
        parsed = connection.recv()
    except (EOFError, OSError) as error:
        raise ended() from error
    idle.append(connection)
    return parsed


def ended() -> MemoryExhausted:
    return MemoryExhausted("a process that parses a source was ended, probably for want of memory; free some")


def serve(connection: Connection) -> None:
    """Parse what comes until the parent goes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        parser = connection.recv()
        while True:
            connection.send(parser.parse(connection.recv()))
    except (EOFError, OSError):
        return


if __name__ == "__main__":
    serve(Connection(int(sys.argv[1])))
