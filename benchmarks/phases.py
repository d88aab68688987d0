"""Index a knowledge base, and print each phase of it: CPU and wall seconds, and the memory of its own.

python benchmarks/phases.py --facts freebase-FB5M.txt --names FB5M.name.txt --types FB5M.type.txt --out build/fb5m.kb
"""

import argparse
import resource
import threading
import time
from pathlib import Path

from kbtools.indexers.building.build import BuildProgress, Phase, build
from kbtools.indexers.building.staging import MEMORY
from kbtools.indexers.readers.batches import SourceKind
from kbtools.indexers.readers.reading import ReadOptions, Source

OFTEN = 0.02
"""Seconds between two looks at the memory."""

STATUS = Path("/proc/self/status")


class Meter:
    """A meter of CPU seconds, and of memory between two phases: what is the process's own, without mapped files."""

    def __init__(self) -> None:
        self.seconds, self.begun, self.peak = cpu(), time.perf_counter(), 0.0
        threading.Thread(target=self.watch, daemon=True).start()

    def watch(self) -> None:
        while True:
            lines = dict(line.split(":", 1) for line in STATUS.read_text().splitlines())
            self.peak = max(self.peak, int(lines["RssAnon"].split()[0]) / 1e6)
            time.sleep(OFTEN)

    def show(self, phase: Phase) -> None:
        seconds, now = cpu(), time.perf_counter()
        name = phase.name.replace(str(Path(phase.name.removeprefix("read ")).parent) + "/", "")
        print(f"| {name} | {phase.counts} | {seconds - self.seconds:.1f} | {now - self.begun:.1f} | {self.peak:.2f} |",
              flush=True)  # fmt: skip
        self.seconds, self.begun, self.peak = seconds, now, 0.0


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for option in ("--facts", "--names", "--types"):
        parser.add_argument(option, type=Path, required=True, action="append")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--memory", default=MEMORY)
    arguments = parser.parse_args()
    kinds: tuple[SourceKind, ...] = ("facts", "names", "types")
    sources = [Source(path, kind) for kind in kinds for path in getattr(arguments, kind)]
    print("| phase | counted | CPU s | wall s | own memory, GB |\n| --- | --- | --- | --- | --- |")
    watch = BuildProgress(phase=Meter().show)
    build(sources, arguments.out, options=ReadOptions(), watch=watch, force=True, memory=arguments.memory)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"\nall of it: {cpu():.0f} CPU s, peak memory {peak / 1e6:.2f} GB, mapped files included")


if __name__ == "__main__":
    main()
