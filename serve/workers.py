"""The threads that compute answers, so that the event loop stays responsive; their queue and time are limited."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from time import monotonic
from typing import TypeVar

from kbtools.deadline import check_time, set_deadline, too_slow
from kbtools.errors import ServerBusy
from kbtools.serve.live_kb import Edition, LiveKB

_T = TypeVar("_T")

_THREADS = 4
"""Python computes in one thread at a time: the others read pages of the memory map."""

LONG = 500
"""Least length of a question for the thread of long answers: 50 ms on FBSQ, and 2.8 seconds at 10,000 characters. The
longest question of SimpleQuestions has 150.
"""

LINKED = 25
"""Characters of running text linked in the time of one character of a question: 10 ms for 1,000 on FBSQ."""

_WAITING = 256
"""Answers that may wait for a thread; at a few milliseconds each, the last one waits about a second."""

LONG_WAITING = 32
"""Long answers that may wait for their one thread, so that they never fill the queue of the short ones."""

_SECONDS = 30.0
"""Seconds that an answer may take, including the wait for a thread."""


class Workers:
    """A limited pool of threads, with a separate one for long answers, so that short questions never wait for them."""

    def __init__(self, *, threads: int = _THREADS, waiting: int = _WAITING, seconds: float = _SECONDS) -> None:
        self.pool = ThreadPoolExecutor(threads, thread_name_prefix="answer")
        self.long_pool = ThreadPoolExecutor(1, thread_name_prefix="long")
        self.waiting, self.seconds = waiting, seconds
        self.pending = dict.fromkeys((self.pool, self.long_pool), 0)

    async def run(self, job: Callable[[], _T], *, characters: float = 0) -> _T:
        """Compute in a thread; raise ServerBusy if too many answers wait, AnswerTooSlow if it takes too long.

        The work counts as that of a question with `characters` characters. An expired job does not start, and a running
        one ends at the next `check_time` of its loops; it counts as waiting until it ends.
        """
        pool = self.long_pool if characters > LONG else self.pool
        waiting = min(self.waiting, LONG_WAITING) if pool is self.long_pool else self.waiting
        if self.pending[pool] >= waiting:
            raise ServerBusy(f"{self.pending[pool]} answers are being computed; ask again in a second")
        since = monotonic()

        def timed_job() -> _T:
            set_deadline(self.seconds, since=since)
            check_time()
            return job()

        self.pending[pool] += 1
        future = asyncio.get_running_loop().run_in_executor(pool, timed_job)
        future.add_done_callback(lambda done: self.finished(pool, done))
        try:
            async with asyncio.timeout(self.seconds):
                return await asyncio.shield(future)
        except TimeoutError as error:
            raise too_slow(self.seconds) from error

    async def run_on(self, kb: LiveKB, job: Callable[[Edition], _T], *, characters: float = 0) -> _T:
        """Compute with the newest edition of a knowledge base; raises as `run` does."""

        def with_newest() -> _T:
            with kb.newest() as edition:
                return job(edition)

        return await self.run(with_newest, characters=characters)

    def finished(self, pool: ThreadPoolExecutor, future: "asyncio.Future[_T]") -> None:
        self.pending[pool] -= 1
        if not future.cancelled():
            future.exception()  # Retrieved, since the client may have disconnected.

    def close(self) -> None:
        """Stop the threads when they are done, without starting waiting jobs."""
        for pool in (self.pool, self.long_pool):
            pool.shutdown(wait=False, cancel_futures=True)
