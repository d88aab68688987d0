"""The time of a question, alone, in batches and in a new process: CPU milliseconds, the contenders in turn.

python benchmarks/latency.py --kb build/fbsq.kb [--limit 2000] [--starts 5]

Every question is asked by each contender before the next one is, so that a busy machine slows all of them alike. The
encoder's vectors of relations are computed before. Two minutes on a quiet core; set OMP_NUM_THREADS=1.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
from fbsq import parse, questions
from figures import show_table

import kbtools
from kbtools.answering.query_options import QueryOptions
from kbtools.answering.questions import read_annotated
from kbtools.text.question import Question

BATCH = 256
"""Questions in one call."""

CONTENDERS: dict[str, QueryOptions] = {
    "the default": {},
    "the default, never backwards": {"inverse": False},
    "`lexical`": {"scorer": "lexical"},
    "`lexical`, never backwards": {"scorer": "lexical", "inverse": False},
}
STARTS = {
    "by the default, sure": ("where was stephen king born",),
    "by the default, in doubt and so by `encoder` too": ("who wrote dune",),
    "by `static`": ("--scorer", "static", "who wrote dune"),
    "by `lexical`": ("--scorer", "lexical", "who wrote dune"),
}


def cpu_milliseconds(act: Callable[[], object]) -> float:
    begun = time.process_time()
    act()
    return 1000 * (time.process_time() - begun)


def start_milliseconds(commands: Sequence[Sequence[str]], *, times: int = 1, first: str = "") -> list[list[float]]:
    """Run commands of kbtools in processes of their own, one after another: CPU milliseconds of each, `times` times.

    `first` is code that runs before the command.
    """
    spent: list[list[float]] = [[] for _ in commands]
    code = f"{first}from kbtools.cli.start import main; main()"
    own = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryDirectory() as compiled:
        environment = own | {"PYTHONPYCACHEPREFIX": compiled}
        for turn in range(times + 1):  # the first compiles the modules, as pip does when it installs
            for words, milliseconds in zip(commands, spent, strict=True):
                before = resource.getrusage(resource.RUSAGE_CHILDREN)
                command = [sys.executable, "-c", code, *words]
                subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
                if turn:
                    milliseconds.append(1000 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime))
    return spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kb", type=Path, default=Path("build/fbsq.kb"))
    parser.add_argument("--limit", type=int, default=2_000, help="questions of the test split")
    parser.add_argument("--starts", type=int, default=5, help="new processes for each kind of first answer")
    arguments = parse(parser, limit=3, starts=0)
    texts = [gold.text for gold in islice(read_annotated(questions("test")), arguments.limit)]
    with kbtools.open(arguments.kb) as answerer:
        retrieving = answerer.opened(answerer.system(scorer="lexical"))
        calls: dict[str, Callable[[str], object]] = {
            name: partial(answerer.query, **options) for name, options in CONTENDERS.items()
        }
        calls["words, links and pool alone, `n-gram-idf`"] = lambda text: retrieving.gather([Question.read(text)])
        alone: dict[str, list[float]] = {}
        for _ in range(2):  # the first round reads pages from the disk
            alone = {name: [] for name in calls}
            for text in texts:
                for name, call in calls.items():
                    alone[name].append(cpu_milliseconds(partial(call, text)))
        together = dict.fromkeys(CONTENDERS, 0.0)
        for start in range(0, len(texts), BATCH):
            batch = texts[start : start + BATCH]
            for name, options in CONTENDERS.items():
                together[name] += cpu_milliseconds(partial(list, answerer.query_many(batch, **options)))
    rows = [
        [name, *(f"{value:.2f}" for value in (*np.percentile(spent, (50, 90, 99)), np.mean(spent)))]
        for name, spent in alone.items()
    ]
    show_table("alone", ("a question alone, CPU ms", "p50", "p90", "p99", "mean"), rows)
    rates = [[name, f"{1000 * len(texts) / spent:,.0f}"] for name, spent in together.items()]
    show_table("together", (f"questions in batches of {BATCH}", "a CPU second"), rates)
    if arguments.starts:
        commands = [("query", "--kb", str(arguments.kb), *words) for words in STARTS.values()]
        spent = start_milliseconds(commands, times=arguments.starts)
        rows = [[name, f"{np.median(own):,.0f}", f"{min(own):,.0f}"] for name, own in zip(STARTS, spent, strict=True)]
        show_table("first", ("first answer of a new process, CPU ms", "median", "least"), rows)


if __name__ == "__main__":
    main()
