"""Tasks in processes of their own: results in order, errors as they are, and no process that outlives its parent."""

import os
import select
import signal
import subprocess
import sys
from functools import partial
from operator import neg, truediv

import pytest

from kbtools.errors import MemoryExhausted
from kbtools.processes import Worker, in_order

PARENT = """
import time
from kbtools.processes import Worker
worker = Worker(abs)
print(worker.process.pid, flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("jobs", [1, 3])
@pytest.mark.parametrize("count", [0, 3, 20])
def test_results_come_in_the_order_of_their_items(jobs: int, count: int) -> None:
    assert list(in_order(neg, range(count), jobs=jobs)) == [-number for number in range(count)]


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_of_a_task_is_raised_as_it_is(jobs: int) -> None:
    results = in_order(partial(truediv, 6), [1, 2, 3, 6, 0, 5], jobs=jobs)

    assert [next(results) for _ in range(4)] == [6, 3, 2, 1]
    with pytest.raises(ZeroDivisionError):
        next(results)


def test_items_that_are_not_worth_processes_are_computed_here() -> None:
    pids = in_order(pid_of, range(20), jobs=2, worthwhile=lambda opening: False)

    assert set(pids) == {os.getpid()}


def pid_of(number: int) -> int:
    return os.getpid()


def test_a_process_that_is_killed_is_named() -> None:
    worker = Worker(abs)
    worker.process.kill()
    worker.process.wait()

    with pytest.raises(MemoryExhausted, match="use fewer --jobs"):
        worker.send(1)
    with pytest.raises(MemoryExhausted, match="use fewer --jobs"):
        worker.receive()
    worker.close()


def test_a_process_ends_with_a_parent_that_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        ended = os.pidfd_open(int(parent.stdout.readline()))
        parent.send_signal(signal.SIGKILL)

    assert select.select([ended], [], [], 60)[0]
