"""Accuracy of a learned ranker and of its weighted sum on FBSQ's test questions, all and in subsets.

python benchmarks/apart.py --models build/models [--kb build/fbsq.kb] [--pruning NAME --scorer NAMES --subject NAME]
                           [--ranker NAME] [--part all --part twins --part slips]

The models are those of `kbtools train`; by default the parts are those that it chose. Each line has the share of right
pairs by the weighted sum and by the ranker, the gain with its standard error, and the p-value of McNemar's exact test.
It takes a few minutes on one core, ten with `encoder`.
"""

import argparse
import gzip
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import comb
from pathlib import Path

import numpy as np
import torch
from fbsq import parse, questions, sources
from figures import show_table
from numpy.typing import NDArray
from slips import misspell

import kbtools
from kbtools.answering.answerer import Answerer
from kbtools.answering.gold import GoldScores, find_gold
from kbtools.answering.questions import AnnotatedQuestion, read_gold
from kbtools.comparison.calibration import calibration_error
from kbtools.kb.contract import find_rows
from kbtools.linking.links import Link
from kbtools.ranking.confidence import find_ties, winner_confidence
from kbtools.ranking.opened_system import OpenedSystem
from kbtools.ranking.pools import concatenate_pools, gather_pool
from kbtools.ranking.rankers import Scoring, WeightedSum

PARTS = ("all", "twins", "slips")
"""All questions and their subsets, all without twins in the pools, and misspelt ones."""

COLUMNS = ("questions", "number", "weighted sum, %", "ranker, %", "gain", "McNemar p")

SEED = 1
"""The seed of slips in misspelt questions, and of draws among tied candidates."""


def twins(answerer: Answerer) -> NDArray[np.uint32]:
    """List the entities of the synthetic layer, as rows."""
    with gzip.open(sources()[-2].path, "rt", encoding="utf-8") as lines:
        ids = {line.split("\t")[0].strip("<>").removeprefix("fb:") for line in lines}
    rows = find_rows(answerer.kb, sorted(ids))
    return rows[rows >= 0].astype(np.uint32)


def score(
    opened: OpenedSystem, questions: Sequence[AnnotatedQuestion], keep: Callable[[Link], Link] = lambda link: link
) -> GoldScores:
    """Gather and score pools of links of which some entities may be left out."""
    gold, pools = find_gold(opened.kb, questions), []
    for batch in opened.gather_batches(gold.texts):
        for question, own in zip(batch.questions, batch.links, strict=True):
            links = [link for link in map(keep, own) if len(link.entities)]
            pools.append(gather_pool(opened.kb, links, link_confidence=opened.link_confidence.of(question, links)))
    together = concatenate_pools(pools)
    return GoldScores(opened.evidence(together, gold.texts, learned=True), gold.pairs(together))


def mcnemar(before: NDArray[np.float64], after: NDArray[np.float64]) -> float:
    """Return p of the exact test over the questions that only one has right; ties are broken by one draw for both."""
    draw = np.random.default_rng(SEED).random(len(before))
    gained = int(np.sum((after > draw) & (before <= draw)))
    lost = int(np.sum((after <= draw) & (before > draw)))
    total = gained + lost
    return float(min(1.0, 2 * sum(comb(total, k) for k in range(min(gained, lost) + 1)) / 2**total))


def compared(name: str, before: NDArray[np.float64], after: NDArray[np.float64]) -> list[str]:
    """Format a row: questions, weighted sum, ranker, gain with its standard error, and McNemar's p."""
    gain = after - before
    error = gain.std() / max(len(gain), 1) ** 0.5
    shares = [f"{100 * share.mean():.1f}" for share in (before, after)]
    p = f"{mcnemar(before, after):.2g}"
    return [name, f"{len(gain):,}", *shares, f"{100 * gain.mean():+.2f} ± {100 * error:.2f}", p]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kb", type=Path, default=Path("build/fbsq.kb"))
    parser.add_argument("--models", type=Path, default=Path("build/models"))
    parser.add_argument("--pruning")
    parser.add_argument("--scorer")
    parser.add_argument("--subject")
    parser.add_argument("--ranker")
    parser.add_argument("--part", action="append", choices=PARTS, help="measure only this; may be repeated")
    parser.add_argument("--split", default="test", choices=("valid", "test"))
    parser.add_argument("--limit", type=int)
    arguments = parse(parser)
    torch.set_num_threads(1)
    answerer = kbtools.open(arguments.kb, models=arguments.models)
    parts = arguments.part or PARTS
    names = {name: getattr(arguments, name) for name in ("pruning", "scorer", "subject", "ranker")}
    system = answerer.system(**names)
    opened = answerer.opened(system)
    learned, weighted = opened.scoring, WeightedSum(system.weights)
    gold = read_gold(questions(arguments.split), answerer.kb)[: arguments.limit]
    print(f"FBSQ {arguments.split}, {system}")

    synthetic = twins(answerer)
    rows: list[list[str]] = []
    scores = score(opened, gold) if {"all", "twins"} & set(parts) else None
    if scores is not None and "all" in parts:
        rows += compare_all(answerer, scores, gold, weighted, learned, synthetic)
    if scores is not None and "twins" in parts:
        real, _ = count_bearers(scores, synthetic)
        kept = np.ones(answerer.kb.entity_rows()[-1] + 1, dtype=bool)
        kept[synthetic] = False
        apart = score(opened, gold, lambda link: link._replace(entities=link.entities[kept[link.entities]]))
        before, after = apart.expected(weighted), apart.expected(learned)
        rows.append(compared("twins out of the pools: all", before, after))
        rows += compared_where("twins out of the pools: real namesakes", real > 1, before, after)
    if "slips" in parts:
        pairs = list(misspell(answerer.kb, gold, random.Random(SEED)))
        slipped = [replace(question, text=text) for question, text in pairs]
        misspelt = score(opened, slipped)
        rows.append(compared("one slip in the mention", misspelt.expected(weighted), misspelt.expected(learned)))
    show_table("apart", COLUMNS, rows)


def compare_all(
    answerer: Answerer,
    scores: GoldScores,
    gold: Sequence[AnnotatedQuestion],
    weighted: WeightedSum,
    learned: Scoring,
    synthetic: NDArray[np.uint32],
) -> Iterator[list[str]]:
    """Compare all questions and their subsets."""
    seen = list(read_gold(questions("train"), answerer.kb))
    pools, rating = scores.evidence.pools, learned.rate(scores.evidence)
    rated = rating.scores
    before, after = scores.expected(weighted), scores.expected_by(rated)
    yield compared("all", before, after)
    leads = find_leads(answerer, scores, gold, [weighted.rate(scores.evidence).scores, rated])
    yield compared("all, the object right", scores.expected(weighted, leads), scores.expected_by(rated, leads))
    relations, subjects = {one.relation for one in seen}, {one.subject for one in seen}
    yield from compared_where(
        "relation unseen in training", [one.relation not in relations for one in gold], before, after
    )
    yield from compared_where(
        "subject unseen in training", [one.subject not in subjects for one in gold], before, after
    )
    real, unreal = count_bearers(scores, synthetic)
    yield from compared_where(
        "real namesakes, twins of the synthetic layer beside them or not", real > 1, before, after
    )
    yield from compared_where("real namesakes alone", (real > 1) & (unreal == 0), before, after)
    yield from compared_where("a twin bears the name", unreal > 0, before, after)
    yield from compared_where("no namesake", (real <= 1) & (unreal == 0), before, after)
    claimed = winner_confidence(pools, rated)
    raw = calibration_error(claimed, after)
    claimed = rating.calibrate(claimed)
    rows = [
        ("in doubt, and ranked by all scorers", "" if rating.late is None else f"{rating.late.mean():.1%}"),
        ("expected calibration error", f"{calibration_error(claimed, after):.3f}"),
        ("the same before calibration", f"{raw:.3f}"),
    ]
    show_table("confidence", ("of the ranker", "figure"), rows)


def find_leads(
    answerer: Answerer,
    scores: GoldScores,
    gold: Sequence[AnnotatedQuestion],
    ratings: Sequence[NDArray[np.int64]],
) -> NDArray[np.float64]:
    """Mark the candidates in first place by one of the ratings that lead to the gold object: (pairs,)."""
    targets = answerer.kb.rows([question.object for question in gold])
    pools = scores.evidence.pools
    leads = np.zeros(pools.pairs)
    firsts = np.any([find_firsts(scores, rated) for rated in ratings], axis=0)
    for pair in np.flatnonzero(firsts).tolist():
        subject, relation = int(pools.subject_of_pair[pair]), int(pools.relation_of_pair[pair])
        leads[pair] = targets[int(pools.question_of_pair[pair])] in answerer.kb.objects_of([(subject, relation)])[0]
    return leads


def find_firsts(scores: GoldScores, rated: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Mark the candidates that share the first place of their question: (pairs,)."""
    pools = scores.evidence.pools
    return find_ties(rated, pools.first("pair")[np.flatnonzero(pools.counts["pair"])]).tied


def compared_where(
    name: str, marks: Sequence[bool] | NDArray[np.bool_], before: NDArray[np.float64], after: NDArray[np.float64]
) -> list[list[str]]:
    where = np.flatnonzero(marks)
    return [compared(name, before[where], after[where])] if len(where) else []


def count_bearers(scores: GoldScores, synthetic: NDArray[np.uint32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Count the real bearers of the name that the gold subject is linked by, and its twins: (questions,) each."""
    pools = scores.evidence.pools
    unreal = np.isin(pools.subject, synthetic)
    size = len(pools.link_start)
    by_link = [np.bincount(pools.subject_link[marks], minlength=size) for marks in (~unreal, unreal)]
    counts = np.zeros((2, len(pools)), dtype=np.int64)
    at = np.flatnonzero(scores.gold)
    counts[:, pools.question_of_pair[at]] = [bearers[pools.link_of_pair[at]] for bearers in by_link]
    return counts[0], counts[1]


if __name__ == "__main__":
    main()
