"""Accuracy on FBSQ's test questions, step by step from no training to the profile `best`, with the cost of each step.

python benchmarks/steps.py --models build/models [--kb build/fbsq.kb] [--chosen-on 4000]

The models are those of `kbtools train --profile best`. Each line has the share of right pairs and of right objects, the
gain over the line before with its standard error, and the CPU seconds of all training so far. Weights are chosen on the
first validation questions; the ranker is the trained one. About six minutes on one core.
"""

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from apart import find_leads
from fbsq import parse, questions
from figures import show_table
from numpy.typing import NDArray

import kbtools
from kbtools.answering.answerer import Answerer
from kbtools.answering.gold import GoldScores, find_gold
from kbtools.answering.questions import AnnotatedQuestion, read_gold
from kbtools.comparison.weight_search import choose_weights
from kbtools.ranking.evidence import Evidence
from kbtools.ranking.model_store import read_model
from kbtools.ranking.models import ENCODER, LEXICAL, RELATION, SUBJECT, TAGGER, model_folder
from kbtools.ranking.rankers import Scoring, WeightedSum
from kbtools.ranking.score import score_relations, score_subjects
from kbtools.ranking.weights import default_weights
from kbtools.scorers.fitting.profiles import PLANS
from kbtools.text.question import Question

PLAN = PLANS["best"]
RARE = "n-gram-idf"


@dataclass(frozen=True, slots=True)
class Split:
    """Annotated questions, their pools by each pruner, and their scores by every scorer."""

    gold: list[AnnotatedQuestion]
    by_pruner: dict[str, GoldScores]

    def scores(self, pruning: str, scorers: Sequence[str], *, subject: bool) -> GoldScores:
        """Return the scores of some relation scorers, with the subject scorer or without."""
        whole = self.by_pruner[pruning]
        evidence, beside = whole.evidence, {LEXICAL: whole.evidence.v[LEXICAL]}
        v = {name: evidence.v[name] for name in scorers}
        return GoldScores(Evidence(evidence.pools, v, evidence.u if subject else None, beside), whole.gold)


def read_split(answerer: Answerer, split: str, limit: int | None) -> Split:
    """Gather the pools of both pruners and ask every scorer about them.

    Both pruners keep the same links, in other orders: relation scorers, asked about the spans of a question and the
    relations of all its subjects, give the same scores for both.
    """
    gold = read_gold(questions(split), answerer.kb)[:limit]
    texts = [Question.read(question.text) for question in gold]
    v: dict[str, NDArray[np.float64]] = {}
    by_pruner = {}
    for pruning in (RARE, PLAN.pruning):
        opened = answerer.opened(answerer.system(pruning=pruning, ranker="weighted-sum"))
        pools = opened.gather_pools(texts)
        v = v or {
            name: score_relations(answerer.kb, pools, texts, answerer.scorer(name))
            for name in (LEXICAL, *PLAN.scorers())
        }
        u = score_subjects(pools, texts, answerer.parts.subject_scorer(str(PLAN.ranked_by)))
        by_pruner[pruning] = GoldScores(Evidence(pools, v, u), find_gold(answerer.kb, gold).pairs(pools))
    return Split(gold, by_pruner)


def chosen(valid: GoldScores) -> WeightedSum:
    """Choose the weights on validation questions."""

    def accuracy(weights: WeightedSum) -> float:
        return float(valid.expected(weights).mean())

    subject = valid.evidence.u is not None
    return WeightedSum(choose_weights(lambda weights: accuracy(WeightedSum(weights)), subject=subject))


def seconds(models: Path, part: str, name: str) -> float:
    """Return the CPU seconds that a model took to train."""
    return float(read_model(model_folder(models, part, name)).stamp.figures["seconds"])


def steps(
    answerer: Answerer, untrained: Answerer, valid: Split, test: Split
) -> Iterator[tuple[str, float, GoldScores, Scoring]]:
    """Yield the steps: the added part, its CPU seconds, the scores of the test questions, and their ranking."""
    models = answerer.models
    assert models
    default = WeightedSum(default_weights(None))
    yield "`n-gram-idf`, `lexical`, nothing trained", 0.0, test.scores(RARE, [LEXICAL], subject=False), default
    plain = test.by_pruner[RARE]
    texts = [Question.read(question.text) for question in test.gold]
    zero_shot = score_relations(untrained.kb, plain.evidence.pools, texts, untrained.scorer(ENCODER))
    yield (
        "`encoder` in its place, nothing trained",
        0.0,
        GoldScores(Evidence(plain.evidence.pools, {ENCODER: zero_shot}), plain.gold),
        default,
    )
    scorers: list[str] = []
    for name in PLAN.scorers():
        scorers.append(name)
        own, asked = (split.scores(RARE, scorers, subject=False) for split in (valid, test))
        start = "trained, weights chosen" if len(scorers) == 1 else "trained, beside it"
        yield f"`{name}` {start}", seconds(models, RELATION, name), asked, chosen(own)
    own, asked = (split.scores(RARE, scorers, subject=True) for split in (valid, test))
    yield f"`{PLAN.ranked_by}`", seconds(models, SUBJECT, str(PLAN.subject)), asked, chosen(own)
    own, asked = (split.scores(PLAN.pruning, scorers, subject=True) for split in (valid, test))
    yield f"`{PLAN.pruning}`, by the tagger `{PLAN.tagger}`", seconds(models, TAGGER, PLAN.tagger), asked, chosen(own)
    system = answerer.system(pruning=PLAN.pruning, scorer=",".join(scorers), subject=PLAN.ranked_by)
    yield f"the ranker `{system.ranker_name}`: the profile `best`", 0.0, asked, answerer.parts.scoring(system)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kb", type=Path, default=Path("build/fbsq.kb"))
    parser.add_argument("--models", type=Path, default=Path("build/models"))
    parser.add_argument("--chosen-on", type=int, default=4_000, help="validation questions that weights are chosen on")
    parser.add_argument("--limit", type=int, help="take only the first test questions")
    arguments = parse(parser)
    torch.set_num_threads(1)
    begun = time.process_time()
    answerer = kbtools.open(arguments.kb, models=arguments.models)
    untrained = kbtools.open(arguments.kb)
    valid = read_split(answerer, "valid", arguments.chosen_on)
    test = read_split(answerer, "test", arguments.limit)
    total, before, rows = 0.0, None, []
    for name, cost, scores, scoring in steps(answerer, untrained, valid, test):
        rated = scoring.rate(scores.evidence).scores
        right = scores.expected_by(rated)
        objects = scores.expected_by(rated, find_leads(answerer, scores, test.gold, [rated]))
        total += cost
        gain = "" if before is None else gain_text(right - before)
        rows.append([name, f"{100 * right.mean():.1f}", f"{100 * objects.mean():.1f}", gain, f"{total:,.0f}"])
        before = right
    show_table("steps", ("step", "pair, %", "object, %", "gain", "CPU s"), rows)
    print(f"{time.process_time() - begun:.0f} CPU seconds")


def gain_text(gain: NDArray[np.float64]) -> str:
    """Format a gain in points with its standard error."""
    return f"{100 * gain.mean():+.2f} ± {100 * gain.std() / len(gain) ** 0.5:.2f}"


if __name__ == "__main__":
    main()
