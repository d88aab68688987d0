"""Index a knowledge base and print the CPU and wall seconds and the memory of each phase.

python benchmarks/phases.py --facts freebase-FB5M.txt --names FB5M.name.txt --types FB5M.type.txt --out build/fb5m.kb
"""

import argparse
import resource
import threading
import time
from contextlib import suppress
from pathlib import Path

from fbsq import KINDS, SMALL, parse, sources
from figures import show_table

from kbtools.indexers.building.build import BuildProgress, Phase, build
from kbtools.indexers.building.staging import MEMORY
from kbtools.indexers.readers.reading import ReadOptions, Source
from kbtools.processes import default_jobs

OFTEN = 0.02
"""Seconds between two looks at the memory."""

PROCESSES = Path("/proc")


class Meter:
    """A meter of CPU seconds, and of memory between two phases: that of all processes, without mapped files."""

    def __init__(self) -> None:
        self.seconds, self.begun, self.peak, self.highest = cpu(), time.perf_counter(), 0.0, 0.0
        self.rows: list[tuple[str, ...]] = []
        threading.Thread(target=self.watch, daemon=True).start()

    def watch(self) -> None:
        while True:
            self.peak = max(self.peak, own_memory())
            self.highest = max(self.highest, self.peak)
            time.sleep(OFTEN)

    def show(self, phase: Phase) -> None:
        seconds, now = cpu(), time.perf_counter()
        name = phase.name.replace(str(Path(phase.name.removeprefix("read ")).parent) + "/", "")
        figures = (f"{seconds - self.seconds:.1f}", f"{now - self.begun:.1f}", f"{self.peak:.2f}")
        self.rows.append((name, str(phase.counts), *figures))
        self.seconds, self.begun, self.peak = seconds, now, 0.0


def own_memory() -> float:
    """Return the private memory of this process and its children, in gigabytes."""
    own, pids = 0, ["self"]
    for file in PROCESSES.glob("self/task/*/children"):
        with suppress(OSError):  # the thread may just have ended
            pids += file.read_text().split()
    for pid in pids:
        with suppress(OSError):  # it may just have ended
            own += status_of(pid, "RssAnon")
    return own / 1e6


def status_of(pid: int | str, name: str) -> int:
    """Read a figure of the status of a process, in kibibytes."""
    lines = dict(line.split(":", 1) for line in (PROCESSES / str(pid) / "status").read_text().splitlines())
    return int(lines.get(name, "0").split()[0])


def cpu() -> float:
    """Return the CPU seconds of this process and of its children that ended."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(used.ru_utime + used.ru_stime for used in usages)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for option in ("--facts", "--names", "--types"):
        parser.add_argument(option, type=Path, action="append")
    parser.add_argument("--out", type=Path, default=Path("build/fb5m.kb"))
    parser.add_argument("--memory", default=MEMORY)
    parser.add_argument("--jobs", type=int, default=default_jobs())
    arguments = parse(parser, out=SMALL / "phases.kb")
    files = [Source(path, kind) for kind in KINDS for path in getattr(arguments, kind) or ()] or sources()
    meter, options = Meter(), ReadOptions(jobs=arguments.jobs)
    watch = BuildProgress(phase=meter.show)
    build(files, arguments.out, options=options, watch=watch, force=True, memory=arguments.memory)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    show_table("phases", ("phase", "counted", "CPU s", "wall s", "own memory, GB"), meter.rows)
    print(f"all of it: {cpu():.0f} CPU s, at most {meter.highest:.2f} GB of memory of all processes, "
          f"{peak / 1e6:.2f} GB of the first with mapped files")  # fmt: skip


if __name__ == "__main__":
    main()
