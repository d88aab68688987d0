"""CPU time of trained queries on FBSQ: of a single question, of a batch of 256, and until the first answer.

python benchmarks/chain.py --models build/models [--kb build/fbsq.kb] [--questions 1000]

Each chain, a pruner with scorers, runs in its own process, first with the forward passes that queries use on a CPU,
then with torch. Times are milliseconds of CPU, since other processes change wall time far more; times of the parts of a
chain are means, for single questions and batches. It takes a few minutes; set OMP_NUM_THREADS=1.
"""

import argparse
import json
import subprocess
import sys
import time
from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from fbsq import parse, questions
from figures import show_table
from latency import cpu_milliseconds, start_milliseconds

from kbtools.answering import answerer as answering
from kbtools.ranking.cascade import CascadeScoring
from kbtools.ranking.rankers import LearnedScoring

CHAINS: dict[str, tuple[str, ...]] = {
    "best, as trained": (),
    "bigru, ltg-cnn+, focused-k, type-cosine": ("bigru,ltg-cnn+", "focused-k", "type-cosine"),
    "embed-avg, ltg-cnn+, n-gram-idf": ("embed-avg,ltg-cnn+", "n-gram-idf", "popularity"),
    "embed-avg, ltg-cnn+, bigru, encoder, n-gram-idf, type-cosine": (
        "embed-avg,ltg-cnn+,bigru,encoder",
        "n-gram-idf",
        "type-cosine",
    ),
    "encoder, nothing trained": ("encoder", "n-gram-idf", "popularity"),
}
OPTIONS = "scorer", "pruning", "subject"

UNTRAINED = "encoder, nothing trained"

TOGETHER = 256
"""Questions that are asked in one call."""

WARM = 32
"""Questions asked before the clock starts: the first ones open what they need."""

FIRST = "who wrote dune", "where was stephen king born"
"""Questions of the first answers: the profile `best` is in doubt about the first, and sure of the second."""

QUANTILES = "alone, p50", "alone, p95"

BY_TORCH = "by torch"


def measure(kb: Path, models: Path | None, chain: str, by: str, count: int) -> dict[str, float]:
    """Time the queries of a chain in this process: CPU milliseconds."""
    if by == BY_TORCH:
        use_torch()
    import kbtools
    from kbtools.answering.query_options import QueryOptions
    from kbtools.answering.questions import read_annotated

    options = QueryOptions(**dict(zip(OPTIONS, CHAINS[chain], strict=False)))  # type: ignore[typeddict-item]
    answerer = kbtools.open(kb, models=models)
    texts = [gold.text for gold, _ in zip(read_annotated(questions("test")), range(count + WARM), strict=False)]
    for text in texts[:WARM]:
        answerer.query(text, **options)
    alone = [cpu_milliseconds(partial(answerer.query, text, **options)) for text in texts[WARM:]]
    asked = texts[WARM : WARM + (count // TOGETHER) * TOGETHER]
    batches = [asked[first : first + TOGETHER] for first in range(0, len(asked), TOGETHER)]
    together = cpu_milliseconds(lambda: [list(answerer.query_many(batch, **options)) for batch in batches])
    parts = Parts(answerer)
    for text in texts[WARM:]:
        answerer.query(text, **options)
    parts_alone = parts.means(count)
    for batch in batches:
        list(answerer.query_many(batch, **options))
    parts_together = parts.means(max(len(asked), 1))
    return {
        "alone, p50": float(np.median(alone)),
        "alone, p95": float(np.quantile(alone, 0.95)),
        f"questions/s, {TOGETHER} together": 1000 * len(asked) / together,
        **{f"first answer, {question}": first_answer(kb, models, chain, by, question) for question in FIRST},
        "torch imported": float("torch" in sys.modules),
        **{f"alone, {part}": parts_alone[part] for part in sorted(parts_alone)},
        **{f"together, {part}": parts_together[part] for part in sorted(parts_together)},
    }


class Parts:
    """CPU milliseconds of the parts of an answerer, including the parts that they call."""

    def __init__(self, answerer: Any) -> None:
        self.spent: dict[str, float] = defaultdict(float)
        parts = answerer.parts
        for opened in answerer.opened_systems.values():
            self.watch(opened, "gather", "links and pool, the tagger included")
        for pruner in answerer.pruners.values():
            if hasattr(pruner, "tags"):
                self.watch(pruner.tags.tagger, "spans", "tagger")
        for name, scorer in [*parts.scorers.items(), *parts.subject_scorers.items()]:
            self.watch(scorer, "score", name)
        for system, scoring in parts.scorings.items():
            name = system.ranker_name
            # Of a cascade the second ranker is made by now: some of the first questions are in doubt.
            stages = (
                [("first ", scoring.first), ("last ", scoring.last)]
                if isinstance(scoring, CascadeScoring)
                else [("", scoring)]
            )
            for place, stage in stages:
                if isinstance(stage, LearnedScoring):
                    self.watch(stage.ranker, "score", place + name)
                    self.watch(stage.ranker, "explain", f"{place}{name}, explained")
        self.watch(answering, "write_result", "result written")

    def watch(self, owner: object, method: str, part: str) -> None:
        act = getattr(owner, method)

        def timed(*arguments: Any, **options: Any) -> Any:
            begun = time.process_time()
            try:
                return act(*arguments, **options)
            finally:
                self.spent[part] += 1000 * (time.process_time() - begun)

        setattr(owner, method, timed)

    def means(self, questions: int) -> dict[str, float]:
        """Return the milliseconds per question since the last call."""
        means = {part: spent / questions for part, spent in self.spent.items()}
        self.spent.clear()
        return means


def use_torch() -> None:
    """Make torch compute all networks, on the CPU too."""
    from kbtools.scorers.encoders import encoder
    from kbtools.scorers.networks import network
    from kbtools.scorers.taggers import tagger

    for module in (encoder, network, tagger):
        module.without_torch = lambda device: False  # type: ignore[attr-defined]


def first_answer(kb: Path, models: Path | None, chain: str, by: str, question: str) -> float:
    """Return the CPU milliseconds of a process that answers one question."""
    words = ["query", "--kb", str(kb), *(["--models", str(models)] if models else [])]
    for option, name in zip(OPTIONS, CHAINS[chain], strict=False):
        words += [f"--{option}", name]
    words.append(question)
    path = str(Path(__file__).parent)
    start = f"import sys; sys.path.insert(0, {path!r}); import chain; chain.use_torch(); " if by == BY_TORCH else ""
    return start_milliseconds([words], first=start)[0][0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kb", type=Path, default=Path("build/fbsq.kb"))
    parser.add_argument("--models", type=Path, default=Path("build/models"))
    parser.add_argument("--questions", type=int, default=1000)
    parser.add_argument("--chain", action="append", choices=list(CHAINS), help="One of the chains, else all.")
    parser.add_argument("--by", choices=["", BY_TORCH], help=argparse.SUPPRESS)
    options = parse(parser, questions=3, chain=["embed-avg, ltg-cnn+, n-gram-idf"])
    chains = options.chain or list(CHAINS)
    if options.by is not None:
        models = None if chains[0] == UNTRAINED else options.models
        print(json.dumps(measure(options.kb, models, chains[0], options.by, options.questions)))
        return
    rows, parts = [], []
    for chain in chains:
        for by in ("",) if options.small else ("", BY_TORCH):
            same = ["--kb", str(options.kb), "--models", str(options.models), "--questions", str(options.questions)]
            same += ["--small"] if options.small else []
            command = [sys.executable, __file__, *same, "--chain", chain, "--by", by]
            printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
            figures = json.loads(printed.splitlines()[-1])
            own = [name for name in figures if not name.startswith(("alone, ", "together, ")) or name in QUANTILES]
            name = f"{chain} {by}".strip()
            rows.append([name, *(f"{figures[what]:,.2f}" for what in own)])
            parts += [[name, what, f"{value:.2f}"] for what, value in figures.items() if what not in own]
    show_table("chains", ("chain, CPU ms", *own), rows)
    show_table("parts", ("chain", "part", "CPU ms a question"), parts)


if __name__ == "__main__":
    main()
