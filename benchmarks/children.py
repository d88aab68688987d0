"""Commands of kbtools in forked processes: their output and exit status, and whether these are acceptable."""

import importlib
import io
import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"  # a fork of a process whose OpenMP has threads waits for them without end

from kbtools.cli.main import main as kbtools

END = "the command ended with "


def in_a_child(act: Callable[[], object], *, kill_after: float | None = None) -> tuple[int, str]:
    """Act in a forked process, which may be killed after some seconds; return its exit code and output."""
    with tempfile.TemporaryFile() as printed:
        pid = os.fork()
        if not pid:
            os.dup2(printed.fileno(), 1)
            os.dup2(printed.fileno(), 2)
            sys.stdout = sys.stderr = io.TextIOWrapper(os.fdopen(1, "wb", 0, closefd=False), write_through=True)
            code = 0
            try:
                act()
            except SystemExit as stopped:
                code = stopped.code if isinstance(stopped.code, int) else 1
            except BaseException:
                traceback.print_exc()
                code = 1
            os._exit(code)
        if kill_after is not None:
            time.sleep(kill_after)
            os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        printed.seek(0)
        return os.waitstatus_to_exitcode(status), printed.read().decode(errors="replace")


def preload(lines: list[tuple[str, list[str]]]) -> None:
    """Import the modules that commands import, so that no fork has to."""
    with tempfile.TemporaryDirectory() as folder:
        names = Path(folder, "names")

        def act() -> None:
            for _, line in lines:
                with suppress(SystemExit):
                    kbtools(line)
            names.write_text("\n".join(sys.modules), encoding="utf-8")

        code, printed = in_a_child(act)
        assert code == 0, printed
        for name in names.read_text(encoding="utf-8").split("\n"):
            with suppress(ImportError):  # those that a library makes up itself
                importlib.import_module(name)


def verdict(code: int, printed: str, expected: str) -> str:
    if "Traceback (most recent" in printed:
        return "a traceback"
    if code < 0:
        return "ended by the system"
    if code:
        return "named" if "Error: " in printed else "a traceback"
    return "as before" if printed == expected else "another answer"


def run_all(lines: list[tuple[str, list[str]]]) -> dict[str, tuple[int, str]]:
    """Run commands one after the other in a child; if it dies, run the remaining ones in another."""
    outcomes: dict[str, tuple[int, str]] = {}
    while len(outcomes) < len(lines):
        waiting = [line for line in lines if line[0] not in outcomes]

        def act(waiting: list[tuple[str, list[str]]] = waiting) -> None:
            for _, line in waiting:
                code: object = 0
                try:
                    kbtools(line)
                except SystemExit as stopped:
                    code = stopped.code
                except BaseException:
                    traceback.print_exc()
                    code = 1
                print(f"{END}{code}", flush=True)

        code, printed = in_a_child(act)
        first, *later = printed.split(END)
        pairs = [piece.partition("\n")[::2] for piece in later]
        outputs = [first, *(output for _, output in pairs)]
        for at, (ended, _) in enumerate(pairs):
            outcomes[waiting[at][0]] = (int(ended), outputs[at])
        if code < 0:
            outcomes[waiting[len(pairs)][0]] = (code, outputs[-1])
    return outcomes
