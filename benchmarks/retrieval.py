"""Linking, pruning and speed on FBSQ, both layers.

python benchmarks/retrieval.py [--split test] [--kb build/fbsq.kb]      (about four minutes on one core)
"""

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from evaluation import expected_accuracy, mention_coverage, pruning_figures
from fbsq import parse, questions, sources
from figures import show_table

import kbtools
from kbtools.answering.answerer import Answerer
from kbtools.answering.questions import AnnotatedQuestion, read_annotated
from kbtools.indexers.building.build import BuildProgress, build
from kbtools.indexers.readers.reading import ReadOptions
from kbtools.linking.strict import link_strictly
from kbtools.pruning import UNGUIDED
from kbtools.text.ngrams import ngrams
from kbtools.text.question import Question

WORDS = 10

COLUMNS = ("pruner", "gold pair in the pool, of the named", "of all", "pairs in the pool, mean", "median", "p95",
           "subject and relation right, of all", "one question, CPU ms, p50 / p99")  # fmt: skip


def percentiles(call: Callable[[object], object], arguments: Sequence[object]) -> str:
    """Time a call for each argument after one round to warm up; format p50 and p99 in CPU microseconds."""
    for argument in arguments[:200]:
        call(argument)
    seconds = []
    for argument in arguments:
        begun = time.thread_time()
        call(argument)
        seconds.append(time.thread_time() - begun)
    return "{:.0f} / {:.0f}".format(*1e6 * np.percentile(seconds, [50, 99]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--split", default="test", choices=["train", "valid", "test"])
    parser.add_argument("--kb", type=Path, default=Path("build/fbsq.kb"))
    parser.add_argument("--limit", type=int, help="take only the first questions")
    arguments = parse(parser, limit=30)
    build(sources(), arguments.kb, options=ReadOptions(), watch=BuildProgress())
    answerer = kbtools.open(arguments.kb)
    gold = list(read_annotated(questions(arguments.split)))[: arguments.limit]

    covered = mention_coverage(answerer.kb, gold)
    tens = [one for one in gold if sum(token.is_word for token in Question.read(one.text).tokens) == WORDS] or gold
    read = [Question.read(one.text) for one in tens]
    forms = [[ngram.form for ngram in ngrams(one, lengths=range(1, WORDS + 1))] for one in read]
    looked_up = percentiles(answerer.kb.lookup, forms)  # type: ignore[arg-type]
    linked = percentiles(lambda one: link_strictly(answerer.kb, one), read)  # type: ignore[arg-type]
    show_table(
        "linking",
        ("what", "figure"),
        [
            (f"{arguments.split} questions", f"{covered.questions:,}"),
            ("of them with a subject that has a name", f"{covered.named:,}"),
            (
                "a name of the subject links strictly to some n-gram, of the named",
                f"{covered.strict / covered.named:.2%}",
            ),
            ("the same, or fuzzily at rapidfuzz 80", f"{covered.fuzzy / covered.named:.2%}"),
            ("lookup of all 55 n-grams of a ten-word question, CPU µs, p50 / p99", looked_up),
            ("linking them, spans and rungs included, CPU µs, p50 / p99", linked),
        ],
    )
    show_table("pruners", COLUMNS, [pruner_row(answerer, gold, name) for name in UNGUIDED])


def pruner_row(answerer: Answerer, gold: Sequence[AnnotatedQuestion], name: str) -> list[object]:
    """Measure a pruner: what it keeps, what is right by `lexical`, and the CPU time of a question."""
    figures = pruning_figures(answerer, gold, pruning=name)
    milliseconds, results = [], []
    for one in gold:
        begun = time.thread_time()
        answerer.query(one.text, pruning=name, scorer="lexical")
        milliseconds.append(1000 * (time.thread_time() - begun))
        results.append(answerer.query(one.text, pruning=name, scorer="lexical", top=None))
    p50, p99 = np.percentile(milliseconds, [50, 99])
    return [
        f"`{name}`",
        f"{figures.recalled / figures.named:.2%}",
        f"{figures.recalled / figures.questions:.2%}",
        f"{figures.mean_pool:.1f}",
        f"{figures.median_pool:.0f}",
        f"{figures.p95_pool:.0f}",
        f"{expected_accuracy(results, gold):.2%}",
        f"{p50:.2f} / {p99:.2f}",
    ]


if __name__ == "__main__":
    main()
