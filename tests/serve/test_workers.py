"""The threads that compute answers: what takes long keeps nothing short from its turn."""

import asyncio
from threading import Event

import pytest

from kbtools.serve.api import AT_ONCE, AT_ONCE_CHARACTERS, together
from kbtools.serve.workers import LONG, Workers


def test_a_short_question_never_waits_for_long_ones() -> None:
    workers, done = Workers(), Event()

    async def ask() -> str:
        long = [asyncio.create_task(workers.run(done.wait, characters=LONG + 1)) for _ in range(20)]
        await asyncio.sleep(0)
        answer = await workers.run(lambda: "answer")
        done.set()
        await asyncio.gather(*long)
        return answer

    assert asyncio.run(asyncio.wait_for(ask(), 20)) == "answer"


@pytest.mark.parametrize(
    ("texts", "sizes"),
    [
        (["a"] * (2 * AT_ONCE + 1), [AT_ONCE, AT_ONCE, 1]),
        (["a" * AT_ONCE_CHARACTERS, "b", "c" * 2 * AT_ONCE_CHARACTERS, "d"], [1, 1, 1, 1]),
        ([], []),
    ],
    ids=["many", "long", "none"],
)
def test_a_batch_of_a_stream_is_bounded_in_questions_and_characters(texts: list[str], sizes: list[int]) -> None:
    batches = list(together(texts))

    assert [len(batch) for batch in batches] == sizes
    assert [text for batch in batches for text in batch] == texts
