"""Print the time that each stage of a question takes, without the stages inside it.

python benchmarks/question_stages.py --kb build/fb5m.kb --questions annotated_fb_data_test.txt \\
    [--pruning n-gram+] [--limit 1000]

Timers around the functions of a stage cost half a microsecond per call; the minimum of several rounds counts. The last
line is the time of the same questions without timers.
"""

import argparse
import time
from collections.abc import Callable
from functools import wraps
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from fbsq import parse, questions
from figures import show_table

import kbtools
from kbtools.answering import answerer as answering
from kbtools.answering import result_writing
from kbtools.answering.answerer import Answerer
from kbtools.answering.questions import read_questions
from kbtools.linking import strict
from kbtools.ranking import opened_system, score
from kbtools.text.question import Question

ROUNDS = 8
"""Times that each question is asked; the first reads pages from the disk."""

STAGES: dict[str, tuple[tuple[object, str], ...]] = {
    "words of the question": ((Question, "read"),),
    "n-grams that may be names": ((strict, "ngrams_of"),),
    "names looked up and links made": ((opened_system, "prune"),),
    "pool of subjects and relations": ((opened_system, "order_links"), (opened_system, "gather_pool")),
    "relations scored by their words": ((score, "check_scores"),),
    "scores laid out and added up": ((opened_system, "score_relations"), (opened_system, "rank_candidates")),
    "order": ((opened_system, "order"),),
    "candidates written": ((result_writing, "write_candidates"),),
    "answers fetched": ((result_writing, "write_answers"), (answering, "write_result")),
    "result, and all between": ((Answerer, "query"),),
}
"""The functions of each stage, as those that call them find them."""


class Clocks:
    """The seconds that stages take, without those of the stages that they call."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = dict.fromkeys(STAGES, 0.0)
        self.inside = [0.0]

    def around(self, stage: str, home: Any, name: str) -> None:
        """Put a clock around a function."""
        original = vars(home)[name]
        function: Callable[..., object] = getattr(original, "__func__", original)

        @wraps(function)
        def timed(*arguments: object, **options: object) -> object:
            self.inside.append(0.0)
            begun = time.perf_counter()
            try:
                return function(*arguments, **options)
            finally:
                seconds = time.perf_counter() - begun
                self.seconds[stage] += seconds - self.inside.pop()
                self.inside[-1] += seconds

        setattr(home, name, classmethod(timed) if isinstance(original, classmethod) else timed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kb", type=Path, default=Path("build/fbsq.kb"))
    parser.add_argument("--questions", type=Path, default=questions("test"), help="one a line or annotated")
    parser.add_argument("--pruning", default="n-gram+")
    parser.add_argument("--limit", type=int, default=1000, help="questions to time")
    asked = parse(parser, limit=10)
    texts = list(islice(read_questions(asked.questions), asked.limit))
    answerer = kbtools.open(asked.kb)

    def ask(text: str) -> None:
        answerer.query(text, pruning=asked.pruning, scorer="lexical")

    whole = np.array([[seconds_of(ask, text) for text in texts] for _ in range(ROUNDS)]).min(axis=0)
    clocks = Clocks()
    for stage, functions in STAGES.items():
        for home, name in functions:
            clocks.around(stage, home, name)
    least = np.full((len(texts), len(STAGES)), np.inf)
    for _ in range(ROUNDS):
        for place, text in enumerate(texts):
            clocks.seconds = dict.fromkeys(STAGES, 0.0)
            ask(text)
            least[place] = np.minimum(least[place], [clocks.seconds[stage] for stage in STAGES])
    # The stages of ordinary questions: those about the median, in which no stage is that of a rare one.
    middle = (whole >= np.percentile(whole, 40)) & (whole <= np.percentile(whole, 60))
    means = 1e6 * least[middle].mean(axis=0)
    rows = [(stage, f"{mean:.0f}", f"{mean / means.sum():.0%}") for stage, mean in zip(STAGES, means, strict=True)]
    rows.append(("all, with the clocks", f"{means.sum():.0f}", ""))
    rows.append(("all without, CPU p50", f"{1e6 * np.median(whole):.0f}", ""))
    show_table("stages", (f"stage, under `{asked.pruning}`", "µs", "share"), rows)


def seconds_of(ask: Callable[[str], None], text: str) -> float:
    """Return the CPU seconds of a question."""
    begun = time.thread_time()
    ask(text)
    return time.thread_time() - begun


if __name__ == "__main__":
    main()
