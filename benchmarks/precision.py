"""The accuracy lost by encoders in bfloat16: each scorer alone, in float32 and as `--device cuda-bf16` computes it.

python benchmarks/precision.py --kb build/fbsq.kb [--models build/models] [--limit 3000]

A CPU rounds as a GPU does, some six times slower than in float32: twenty minutes for 3,000 questions.
"""

import argparse
from pathlib import Path

import numpy as np
from fbsq import parse, questions
from figures import show_table

import kbtools
from kbtools.answering.gold import find_gold, score_gold
from kbtools.answering.questions import AnnotatedQuestion, read_gold
from kbtools.ranking.models import RELATION

TRAINED = ("embed-avg", "ltg-cnn+", "bigru", "encoder")
DEVICES = ("cpu", "cpu-bf16")


def measure(kb: Path, models: Path | None, scorer: str, gold: list[AnnotatedQuestion]) -> list[str]:
    """Rank by a scorer in both precisions; return the shares right, their difference, and the changed first pairs."""
    right, first = [], []
    for device in DEVICES:
        with kbtools.open(kb, models=models, device=device) as answerer:
            opened = answerer.opened(answerer.system(pruning="n-gram-idf", scorer=scorer))
            scores = score_gold(opened, find_gold(answerer.kb, gold))
            rated = opened.scoring.rate(scores.evidence).scores
            right.append(scores.expected_by(rated))
            pools = scores.evidence.pools
            filled = np.flatnonzero(pools.counts["pair"])
            best = np.maximum.reduceat(rated, pools.first("pair")[filled])
            first.append(rated == np.repeat(best, pools.counts["pair"][filled]))
    changed = np.bincount(pools.question_of_pair, first[0] != first[1], minlength=len(gold)) > 0
    gain = right[1] - right[0]
    error = gain.std() / np.sqrt(len(gain))
    shares = [f"{100 * own.mean():.2f}" for own in right]
    return [*shares, f"{100 * gain.mean():+.2f} ± {100 * error:.2f}", f"{100 * changed.mean():.1f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kb", type=Path, default=Path("build/fbsq.kb"))
    parser.add_argument("--models", type=Path, help="a folder of trained models; those that are there are measured")
    parser.add_argument("--limit", type=int, default=3_000, help="how many of the validation questions")
    arguments = parse(parser, limit=5)
    with kbtools.open(arguments.kb) as answerer:
        gold = read_gold(questions("valid"), answerer.kb)[: arguments.limit]
    rows = [["`encoder`, nothing trained", *measure(arguments.kb, None, "encoder", gold)]]
    models = arguments.models
    there = [name for name in TRAINED if models and (models / RELATION / name).is_dir()]
    rows += [[f"`{name}`, trained", *measure(arguments.kb, models, name, gold)] for name in there]
    columns = ("scorer", "right in float32, %", "right in bfloat16, %", "gain", "other first pairs, % of the questions")
    show_table("precision", columns, rows)


if __name__ == "__main__":
    main()
