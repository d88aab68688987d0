"""Reading ahead keeps the order, passes errors on, and stays a few items ahead."""

from collections.abc import Iterator
from threading import Event, get_ident

import pytest

from kbtools.read_ahead import lines_at_hand, map_ahead, read_ahead


def failing(count: int, read: list[int] | None = None) -> Iterator[int]:
    for number in range(count):
        if read is not None:
            read.append(number)
        yield number
    raise ValueError("broken")


def test_batches_come_in_order_from_another_thread_and_then_the_error() -> None:
    threads: set[int] = set()

    def batches() -> Iterator[int | None]:
        threads.add(get_ident())
        yield from [1, None, 3]
        raise ValueError("broken")

    ahead = read_ahead(batches())

    assert [next(ahead) for _ in range(3)] == [1, None, 3]
    with pytest.raises(ValueError, match="broken"):
        next(ahead)
    assert threads.isdisjoint({get_ident()})
    assert list(read_ahead([])) == []


def test_a_reader_that_is_left_stops_reading() -> None:
    read: list[int] = []
    ahead = read_ahead(failing(1000, read))

    assert next(ahead) == 0
    ahead.close()

    assert len(read) < 10


def test_results_come_in_order_of_their_items_and_only_a_few_are_started() -> None:
    started: list[int] = []
    release = [Event() for _ in range(9)]

    def items() -> Iterator[int]:
        for number in range(9):
            started.append(number)
            yield number

    def double(number: int) -> int:
        release[number].wait(10)
        return 2 * number

    results = map_ahead(double, items(), threads=2)
    for event in release[1:]:
        event.set()
    release[0].set()

    assert next(results) == 0
    assert started == [0, 1, 2]
    assert list(results) == [2 * number for number in range(1, 9)]


def test_an_error_of_a_function_or_of_the_items_is_passed_on() -> None:
    with pytest.raises(ZeroDivisionError):
        list(map_ahead(lambda number: 1 // number, [1, 0, 2], threads=2))
    with pytest.raises(ValueError, match="broken"):
        list(map_ahead(int, failing(1), threads=2))


def test_lines_of_a_file_come_together_and_each_once() -> None:
    lines = [str(number) for number in range(50)]
    dialogue = Event()

    def typed() -> Iterator[str]:
        yield "first"
        dialogue.wait(10)
        yield "second"

    nine_read = Event()

    def read() -> Iterator[str]:
        yield from lines[:9]
        nine_read.set()
        yield from lines[9:]

    ahead = lines_at_hand(read(), most=8)
    nine_read.wait(10)
    together = list(ahead)
    answers = lines_at_hand(typed())

    assert [line for some in together for line in some] == lines
    assert len(together[0]) == max(map(len, together)) == 8
    assert next(answers) == ["first"]
    dialogue.set()
    assert list(answers) == [["second"]]
