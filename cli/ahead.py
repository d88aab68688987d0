"""Take the lines of a stream that are there already, together, without waiting for more of them."""

from collections.abc import Iterable, Iterator
from queue import Empty, Queue
from threading import Thread

MOST = 64


def lines_at_hand(lines: Iterable[str], most: int = MOST) -> Iterator[list[str]]:
    """Yield lists of lines: in a dialogue one at a time, of a file `most` at once; its errors come through."""
    queue: Queue[str | BaseException | None] = Queue(2 * most)

    def read() -> None:
        last: BaseException | None = None
        try:
            for line in lines:
                queue.put(line)
        except BaseException as error:  # carried over, and raised where the lines are used
            last = error
        queue.put(last)

    Thread(target=read, daemon=True).start()
    while True:
        found: list[str] = []
        taken = queue.get()
        while isinstance(taken, str):
            found.append(taken)
            if len(found) == most:
                break
            try:
                taken = queue.get_nowait()
            except Empty:
                break
        if found:
            yield found
        if isinstance(taken, BaseException):
            raise taken
        if taken is None:
            return
