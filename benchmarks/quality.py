"""Quality of the models on FBSQ with both backends, over all questions, with ties as expected values.

python benchmarks/quality.py --models build/models [--train] [--part tagger --part relation ...]

With --train, missing models are trained first (half an hour on one idle core, an hour more with --paper); otherwise
they are skipped.
"""

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from evaluation import pruning_figures
from fbsq import parse, questions, sources
from figures import show_table
from measured import Measured, object_accuracy, pair_accuracy

import kbtools
from kbtools.answering.gold import find_gold, score_gold
from kbtools.answering.questions import read_gold
from kbtools.comparison.weight_search import tune_weights
from kbtools.errors import KBToolsError
from kbtools.indexers.building.build import BuildProgress, build
from kbtools.indexers.readers.reading import ReadOptions
from kbtools.ranking.contracts import RelationScorer
from kbtools.ranking.model_store import read_model
from kbtools.ranking.models import RELATION, SUBJECT, TAGGER, make_relation_scorer, make_tagger, model_folder
from kbtools.ranking.rankers import WeightedSum
from kbtools.ranking.system import POPULARITY
from kbtools.ranking.trained import read_systems
from kbtools.scorers.fitting.measures import first_share, relation_marks
from kbtools.scorers.fitting.profiles import PLANS, profile_settings
from kbtools.scorers.fitting.splits import Splits, label_questions
from kbtools.scorers.fitting.training import train, train_profile
from kbtools.scorers.networks.training_settings import change_settings
from kbtools.text.question import MarkedQuestion

HINGE, PAPER = "hinge", "paper"
"""Folders, inside that of the models, of the BiGRU trained with the hinge, and of the models of the profile `paper`."""

SUBJECTS = (None, "type-count", "fact-count", "type-vector", "type-cosine")
CHOSEN_ON = 4_000
"""Questions of the validation split that weights are chosen on."""

TAGGERS = ("crf", "bigru-crf", "bigru-crf+")
RELATIONS = ("embed-avg", "ltg-cnn+", "bigru", "encoder")
READERS = ("ltg-cnn+", "encoder")
"""The scorers that read the names of relations."""

PRUNING = (("focused", "bigru-crf"), ("focused", "bigru-crf+"), ("focused-k", "bigru-crf+"))
END_TO_END = (("n-gram", "bigru-crf+"), ("n-gram+", "bigru-crf+"), ("focused", "bigru-crf"), ("focused", "bigru-crf+"))
ALONE = 500
"""Questions of the test split that are scored one by one, for their time."""

ZERO_SHOT = ("lexical", "encoder")
TIMED = (
    (TAGGER, "crf"),
    (TAGGER, "bigru-crf"),
    (TAGGER, "bigru-crf+"),
    (RELATION, "bigru"),
    (RELATION, "ltg-cnn+"),
    (SUBJECT, "type-vector"),
    (RELATION, "embed-avg"),
    (RELATION, "encoder"),
)

Row = tuple[str | float, ...]
"""The cells of a line: names, and figures to one decimal place."""


def tagger_rows(at: Measured) -> Iterator[Row]:
    labelled = label_questions(at.test, split="test")
    for name in TAGGERS:
        tagger = make_tagger(name, at.kb, models=at.models)
        yield f"`{name}`", 100 * tagger.sentence_accuracy(labelled)  # type: ignore[attr-defined]


def relation_rows(at: Measured) -> Iterator[Row]:
    """Measure relation scorers with gold mentions; those that read names also on relations unseen in training."""
    marks = relation_marks(at.kb, at.test.subjects, len(at.kb.relations))
    new = np.array([at.kb.relations[row] not in at.seen for row in at.test.relations])
    for name in (*RELATIONS, HINGE):
        own = ("bigru", at.models / HINGE) if name == HINGE else (name, at.models)
        scores = make_relation_scorer(own[0], at.kb, models=own[1]).score(at.test.questions)
        able = np.where(marks, scores, -np.inf)
        unseen = 100 * first_share(able[new], at.test.relations[new]) if name in READERS and new.any() else ""
        label = "`bigru`, trained with the hinge" if name == HINGE else f"`{name}`"
        shares = (100 * first_share(of, at.test.relations) for of in (scores, able))
        yield label, *shares, unseen


def encoder_rows(at: Measured) -> Iterator[Row]:
    scorer = make_relation_scorer("encoder", at.kb, models=at.models)
    marked = at.test.questions[:ALONE]
    yield "its mention known", milliseconds(scorer, [[one] for one in marked])
    answerer = at.answerer("bigru-crf+")
    opened = answerer.opened(answerer.system(pruning="n-gram-idf", scorer="lexical", subject=POPULARITY))
    pools = opened.gather([one.question for one in marked]).pools
    several = [
        [
            MarkedQuestion(one.question, first, last)
            for first, last in zip(pool.mention_start, pool.mention_end, strict=True)
        ]
        for one, pool in zip(marked, pools, strict=True)
    ]
    yield "for the mentions of `n-gram-idf` together", milliseconds(scorer, [own for own in several if own])


def milliseconds(scorer: RelationScorer, batches: Sequence[Sequence[MarkedQuestion]]) -> float:
    """Return the median milliseconds of a batch."""
    times = []
    for batch in batches:
        begun = time.process_time()
        scorer.score(batch)
        times.append(1000 * (time.process_time() - begun))
    return float(np.median(times))


def pruning_rows(at: Measured) -> Iterator[Row]:
    for pruning, tagger in PRUNING:
        figures = pruning_figures(at.answerer(tagger), at.gold, pruning=pruning)
        yield f"`{pruning}`", f"`{tagger}`", 100 * figures.recalled / figures.questions, figures.mean_pool


def end_rows(at: Measured) -> Iterator[Row]:
    for subject in SUBJECTS:
        pairs = pair_accuracy(at, "bigru-crf+", "n-gram-idf", "bigru", subject)
        yield "`n-gram-idf`", "", f"`{subject}`" if subject else "none", 100 * pairs
    for pruning, tagger in END_TO_END:
        pairs = pair_accuracy(at, tagger, pruning, "bigru", "type-vector")
        yield f"`{pruning}`", f"`{tagger}`" if "focused" in pruning else "", "`type-vector`", 100 * pairs


def profile_rows(at: Measured) -> Iterator[Row]:
    for profile, own in (("best", at), ("fast", at), ("paper", at.beside(PAPER))):
        plan = PLANS[profile]
        query = ",".join(plan.scorers()), plan.ranked_by
        pairs = pair_accuracy(own, plan.tagger, plan.pruning, *query)
        objects = object_accuracy(own, plan.tagger, plan.pruning, *query)
        yield f"`{profile}`", 100 * pairs, 100 * objects, 100 * pair_accuracy(own, plan.tagger, "n-gram-idf", *query)


def zero_shot_rows(at: Measured) -> Iterator[Row]:
    # Without the folder of models, which may hold a trained `encoder`.
    answerer = kbtools.open(at.path)
    for scorer in ZERO_SHOT:
        system = answerer.system(pruning="n-gram-idf", scorer=scorer)
        scores = score_gold(answerer.opened(system), find_gold(answerer.kb, at.gold))
        yield f"`{scorer}`", 100 * scores.accuracy(WeightedSum(system.weights))


def training_rows(at: Measured) -> Iterator[Row]:
    for part, name in TIMED:
        seconds = read_model(model_folder(at.models, part, name)).stamp.figures["seconds"]
        yield f"`{name}`", f"{seconds:.0f}"


RIGHT = "subject and relation right, %"
PARTS: dict[str, tuple[tuple[str, ...], Callable[[Measured], Iterator[Row]]]] = {
    "zero-shot": (("nothing trained, with `n-gram-idf`", RIGHT), zero_shot_rows),
    "training": (("trained", "CPU seconds"), training_rows),
    "tagger": (("tagger", "sentences tagged right, %"), tagger_rows),
    "relation": (
        ("trained, given the gold mention", "relation first of all, %", "given the subject, %", "of them unseen, %"),
        relation_rows,
    ),
    "encoder": (("`encoder`, a question alone", "CPU ms"), encoder_rows),
    "pruning": (("pruner", "tagger", "gold pair in the pool, %", "pairs in the pool, mean"), pruning_rows),
    "profiles": (("profile", RIGHT, "the object right, %", "with `n-gram-idf`, %"), profile_rows),
    "end": (("with `bigru`: pruner", "tagger", "subject scorer", RIGHT), end_rows),
}


def train_missing(at: Measured) -> None:
    """Train the missing models, and choose the weights of the systems that are measured end to end."""
    kbtools.train(at.path, questions("train"), questions("valid"), out=at.models, profile="best")
    splits = Splits.read(at.kb, train=questions("train"), valid=questions("valid"))
    for part, names in ((TAGGER, TAGGERS), (RELATION, RELATIONS), (SUBJECT, ("type-vector",))):
        for name in names:
            settings = profile_settings("best", part, name)
            train(at.kb, splits, part=part, name=name, settings=settings, models=at.models)
    settings = change_settings(profile_settings("best", RELATION, "bigru"), {"objective": "hinge"})
    train(at.kb, splits, part=RELATION, name="bigru", settings=settings, models=at.models / HINGE)
    plan = PLANS["best"]
    choose(at, plan.tagger, "n-gram-idf", ",".join(plan.scorers()), plan.ranked_by)
    fast = PLANS["fast"]
    choose(at, fast.tagger, fast.pruning, ",".join(fast.relations), fast.ranked_by)
    for pruning, tagger in END_TO_END:
        choose(at, tagger, pruning, "bigru", "type-vector")
    for subject in SUBJECTS:
        choose(at, plan.tagger, "n-gram-idf", "bigru", subject)


def train_paper(at: Measured) -> None:
    """Train the profile `paper`, whose weights are Eq. 4, and choose those of its baseline."""
    own, plan = at.beside(PAPER), PLANS["paper"]
    splits = Splits.read(at.kb, train=questions("train"), valid=questions("valid"))
    for _ in train_profile(at.kb, splits, profile="paper", models=own.models):
        pass
    read_systems(own.models).choose(plan.system(typed=True))
    choose(own, plan.tagger, "n-gram-idf", ",".join(plan.relations), plan.ranked_by)


def choose(at: Measured, tagger: str, pruning: str, scorer: str, subject: str | None) -> None:
    """Choose weights on the validation split, if they have not been chosen yet."""
    answerer = at.answerer(tagger)
    system = answerer.system(pruning=pruning, scorer=scorer, subject=subject or POPULARITY)
    if not answerer.parts.trained.weighted(system):
        tune_weights(answerer, read_gold(questions("valid"), answerer.kb)[:CHOSEN_ON], system)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kb", type=Path, default=Path("build/fbsq.kb"))
    parser.add_argument("--models", type=Path, default=Path("build/models"))
    parser.add_argument("--train", action="store_true", help="train what is missing")
    parser.add_argument("--paper", action="store_true", help="with --train: the profile `paper` too")
    parser.add_argument("--part", action="append", choices=list(PARTS), help="measure only this; may be repeated")
    arguments = parse(parser)
    torch.set_num_threads(1)
    if not arguments.kb.exists():
        build(sources(), arguments.kb, options=ReadOptions(), watch=BuildProgress())
    at = Measured(arguments.kb, arguments.models)
    print(f"FBSQ test, both layers, {len(at.gold):,} questions")
    if arguments.train:
        train_missing(at)
        if arguments.paper:
            train_paper(at)
    for part in arguments.part or PARTS:
        columns, rows_of = PARTS[part]
        rows, shown = rows_of(at), []
        while True:
            try:
                row = next(rows)
            except StopIteration:
                break
            except KBToolsError as error:
                print(f"not measured: {error}")
                break
            shown.append([cell if isinstance(cell, str) else f"{cell:.1f}" for cell in row])
        if shown:
            show_table(part, columns, shown)


if __name__ == "__main__":
    main()
