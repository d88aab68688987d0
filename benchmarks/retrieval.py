"""Linking, pruning and speed on FBSQ, both layers: what the README's table of figures is made of.

python benchmarks/retrieval.py [--split test] [--kb build/fbsq.kb]      (about four minutes on one core)
"""

import argparse
import platform
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from evaluation import expected_accuracy, mention_coverage, pruning_figures
from fbsq import questions, sources

import kbtools
from kbtools.answering.questions import read_annotated
from kbtools.indexers.building.build import BuildProgress, build
from kbtools.indexers.readers.reading import ReadOptions
from kbtools.linking.strict import link_strictly
from kbtools.pruning import UNGUIDED
from kbtools.text.ngrams import ngrams
from kbtools.text.question import Question

WORDS = 10


def percentiles(call: Callable[[object], object], arguments: Sequence[object]) -> tuple[float, float]:
    """Time a call for each argument after one round to warm up; p50 and p99 in milliseconds."""
    for argument in arguments[:200]:
        call(argument)
    seconds = []
    for argument in arguments:
        begun = time.perf_counter()
        call(argument)
        seconds.append(time.perf_counter() - begun)
    return float(np.percentile(seconds, 50) * 1000), float(np.percentile(seconds, 99) * 1000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--split", default="test", choices=["train", "valid", "test"])
    parser.add_argument("--kb", type=Path, default=Path("build/fbsq.kb"))
    parser.add_argument("--limit", type=int, default=None, help="take only the first questions")
    arguments = parser.parse_args()
    build(sources(), arguments.kb, options=ReadOptions(), watch=BuildProgress())
    answerer = kbtools.open(arguments.kb)
    gold = list(read_annotated(questions(arguments.split)))[: arguments.limit]
    print(f"FBSQ {arguments.split}, both layers, {len(gold):,} questions; Python {platform.python_version()}")

    covered = mention_coverage(answerer.kb, gold)
    print(f"mention coverage, of {covered.named:,} questions with a named subject "
          f"({covered.questions - covered.named:,} without): "
          f"strict {covered.strict / covered.named:.2%}, with fuzzy {covered.fuzzy / covered.named:.2%}")  # fmt: skip
    print(f"{'pruner':<12}{'recall':>9}{'of all':>9}{'mean':>9}{'median':>9}{'p95':>9}"
          f"{'accuracy':>10}{'p50 ms':>9}{'p99 ms':>9}")  # fmt: skip
    for name in UNGUIDED:
        figures = pruning_figures(answerer, gold, pruning=name)
        results = [answerer.query(one.text, pruning=name, scorer="lexical") for one in gold]
        times = [result.milliseconds or 0.0 for result in results]
        accuracy = expected_accuracy(
            [answerer.query(one.text, pruning=name, scorer="lexical", top=None) for one in gold], gold
        )
        print(f"{name:<12}{figures.recalled / figures.named:>9.2%}{figures.recalled / figures.questions:>9.2%}"
              f"{figures.mean_pool:>9.1f}{figures.median_pool:>9.0f}{figures.p95_pool:>9.0f}{accuracy:>10.2%}"
              f"{np.percentile(times, 50):>9.2f}{np.percentile(times, 99):>9.2f}")  # fmt: skip
    tens = [one for one in gold if sum(token.is_word for token in Question.read(one.text).tokens) == WORDS]
    read = [Question.read(one.text) for one in tens]
    forms = [[ngram.form for ngram in ngrams(one, lengths=range(1, WORDS + 1))] for one in read]
    p50, p99 = percentiles(answerer.kb.lookup, forms)  # type: ignore[arg-type]
    print(f"lookup of the {np.median(list(map(len, forms))):.0f} n-grams of a ten-word question "
          f"({len(tens):,} questions): p50 {1000 * p50:.0f} us, p99 {1000 * p99:.0f} us")  # fmt: skip
    p50, p99 = percentiles(lambda one: link_strictly(answerer.kb, one), read)  # type: ignore[arg-type]
    print(f"linking them, spans and rungs included: p50 {1000 * p50:.0f} us, p99 {1000 * p99:.0f} us")


if __name__ == "__main__":
    main()
