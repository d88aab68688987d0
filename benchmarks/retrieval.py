"""Linking, pruning and speed on FBSQ with both backends.

python benchmarks/retrieval.py [--split test] [--kb build/fbsq.kb] [--times]      (about a minute on one core)
"""

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from evaluation import mention_coverage, pruning_figures
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

COLUMNS = ("pruner", "gold pair in the pool, of the named", "of all", "pairs in the pool, mean", "median", "p95")


def percentiles(call: Callable[[Any], object], arguments: Sequence[object]) -> str:
    """Time a call for each argument after one round to warm up; format p50 and p99."""
    for argument in arguments[:200]:
        call(argument)
    seconds = []
    for argument in arguments:
        begun = time.thread_time()
        call(argument)
        seconds.append(time.thread_time() - begun)
    return "{:.3f} / {:.3f} ms".format(*1e3 * np.percentile(seconds, [50, 99]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--split", default="test", choices=["train", "valid", "test"])
    parser.add_argument("--kb", type=Path, default=Path("build/fbsq.kb"))
    parser.add_argument("--times", action="store_true", help="measure CPU milliseconds, and nothing else")
    parser.add_argument("--limit", type=int, help="take only the first questions")
    arguments = parse(parser, limit=30)
    build(sources(), arguments.kb, options=ReadOptions(), watch=BuildProgress())
    answerer = kbtools.open(arguments.kb)
    gold = list(read_annotated(questions(arguments.split)))[: arguments.limit]

    if arguments.times:
        show_table("times", ("CPU, p50 / p99", "figure"), times(answerer, gold))
        return
    covered = mention_coverage(answerer.kb, gold)
    shares = [f"{count / covered.named:.2%}" for count in (covered.strict, covered.fuzzy)]
    rows = [
        (f"{arguments.split} questions", f"{covered.questions:,}"),
        ("of them with a subject that has a name", f"{covered.named:,}"),
        ("a name of the subject links strictly to some n-gram, of the named", shares[0]),
        ("the same, or fuzzily at rapidfuzz 80", shares[1]),
    ]
    show_table("linking", ("what", "figure"), rows)
    show_table("pruners", COLUMNS, [pruner_row(answerer, gold, name) for name in UNGUIDED])


def pruner_row(answerer: Answerer, gold: Sequence[AnnotatedQuestion], name: str) -> list[object]:
    """Measure the pools of a pruner; `comparisons.py` measures the accuracy."""
    figures = pruning_figures(answerer, gold, pruning=name)
    return [
        f"`{name}`",
        f"{figures.recalled / figures.named:.2%}",
        f"{figures.recalled / figures.questions:.2%}",
        f"{figures.mean_pool:.1f}",
        f"{figures.median_pool:.0f}",
        f"{figures.p95_pool:.0f}",
    ]


def times(answerer: Answerer, gold: Sequence[AnnotatedQuestion]) -> Iterator[tuple[str, str]]:
    """Time questions by `lexical`, a batch of one each, and the look-up and linking of the n-grams of some."""
    tens = [one for one in gold if sum(token.is_word for token in Question.read(one.text).tokens) == WORDS] or gold
    read = [Question.read(one.text) for one in tens]
    forms = [[ngram.form for ngram in ngrams(one, lengths=range(1, WORDS + 1))] for one in read]
    yield f"look-up of all 55 n-grams of a {WORDS}-word question", percentiles(answerer.kb.lookup, forms)
    yield "linking them, spans and rungs included", percentiles(partial(link_strictly, answerer.kb), read)
    texts = [one.text for one in gold]
    for name in UNGUIDED:
        ask = partial(answerer.query, pruning=name, scorer="lexical")
        yield f"one question, `{name}`", percentiles(ask, texts)
        yield f"one question, `{name}`, never backwards", percentiles(partial(ask, inverse=False), texts)


if __name__ == "__main__":
    main()
