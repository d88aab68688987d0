"""How good the models are on FBSQ: both layers, full denominators, ties as expected values, and what was aimed at.

python benchmarks/quality.py --models build/models [--train] [--part tagger --part relation ...]

With --train, what is missing is trained first (half an hour on one idle core, an hour more with --paper); without, it
is left out.
"""

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path

import aims
import numpy as np
import torch
from fbsq import questions, sources
from measured import Measured, object_accuracy, pair_accuracy

from kbtools.errors import KBToolsError
from kbtools.indexers.build import BuildProgress, build
from kbtools.indexers.readers.reading import ReadOptions
from kbtools.ranking.model_store import read_model
from kbtools.ranking.models import RELATION, SUBJECT, TAGGER, make_relation_scorer, make_tagger, model_folder
from kbtools.ranking.weights import ranking_key
from kbtools.scorers.profile_training import PLANS, train_profile
from kbtools.scorers.profiles import relation_settings, subject_settings, tagger_settings
from kbtools.scorers.settings import change_settings
from kbtools.scorers.subject_training import train_subject
from kbtools.scorers.tagger import BiGRUTagger
from kbtools.scorers.tagger_training import WordsAlone, train_tagger
from kbtools.scorers.tagging import label_questions, sentence_accuracy
from kbtools.scorers.tasks import first_share, relation_marks
from kbtools.scorers.training import Splits, train_relation
from kbtools.text.question import Question
from kbtools.tuning import tune_weights

HINGE, PAPER = "hinge", "paper"
"""Folders, inside that of the models, of the BiGRU trained with the hinge, and of the models of the profile `paper`."""

SUBJECTS = (None, "type-count", "fact-count", "type-vector", "type-cosine")
CHOSEN_ON = 4_000
"""Questions of the validation split that weights are chosen on."""

Row = tuple[str, float, tuple[float, ...]]


def tagger_rows(at: Measured) -> Iterator[Row]:
    for name, aimed in aims.TAGGERS.items():
        tagger = make_tagger(name, at.kb, models=at.models)
        if isinstance(tagger, BiGRUTagger):
            yield f"sentence accuracy {name}", sentence_accuracy(tagger, label_questions(tagger, at.test)), aimed
        else:
            labelled = label_questions(WordsAlone(), at.test)
            found = tagger.sentence_accuracy(labelled.texts, labelled.spans)  # type: ignore[attr-defined]
            yield f"sentence accuracy {name}", found, aimed


def relation_rows(at: Measured) -> Iterator[Row]:
    has = relation_marks(at.kb, at.test.subjects, len(at.kb.relations))
    unseen = np.array([at.kb.relations[row] not in at.seen for row in at.test.relations])
    for name, (aimed, given) in aims.RELATIONS.items():
        scores = make_relation_scorer(name, at.kb, models=at.models).score(at.test.asked)
        yield f"relation R@1 {name}", first_share(scores, at.test.relations), aimed
        able = np.where(has, scores, -np.inf)
        yield f"relation given the subject {name}", first_share(able, at.test.relations), given
        if name == "ltg-cnn+":
            share = first_share(able[unseen], at.test.relations[unseen])
            yield f"the same, {unseen.sum()} questions of unseen relations", share, aims.UNSEEN
    scores = make_relation_scorer("bigru", at.kb, models=at.models / HINGE).score(at.test.asked)
    yield "relation R@1 bigru (hinge)", first_share(scores, at.test.relations), aims.HINGE


def pruning_rows(at: Measured) -> Iterator[Row]:
    rows = {relation: row for row, relation in enumerate(at.kb.relations)}
    for (pruning, tagger), aimed in aims.PRUNING.items():
        sizes, recalled = [], 0
        for gold in at.gold:
            pool = at.answerer(tagger).gather(Question.read(gold.text), pruning=pruning).pool
            (subject,) = at.kb.rows([gold.subject])
            pairs = (pool.subject_of_pair == subject) & (pool.relation_of_pair == rows.get(gold.relation, -1))
            recalled += bool(subject is not None and pairs.any())
            sizes.append(pool.pairs)
        yield f"recall {pruning} {tagger} ({np.mean(sizes):.1f} pairs)", recalled / len(at.gold), aimed


def end_rows(at: Measured) -> Iterator[Row]:
    for subject in SUBJECTS:
        pairs = pair_accuracy(at, "bigru-crf+", "n-gram-idf", "bigru", subject)
        yield f"n-gram-idf bigru {subject or 'popularity'} (baseline)", pairs, ()
    for (pruning, tagger), aimed in aims.END_TO_END.items():
        yield f"{pruning} {tagger} bigru type-vector", pair_accuracy(at, tagger, pruning, "bigru", "type-vector"), aimed


def best_rows(at: Measured) -> Iterator[Row]:
    plan = PLANS["best"]
    scorer = ",".join(plan.relations)
    query = (plan.tagger, plan.pruning, scorer, plan.ranked_by)
    yield f"best: {plan.pruning} {scorer} {plan.ranked_by}", pair_accuracy(at, *query), aims.BEST
    yield "best: object accuracy", object_accuracy(at, *query), aims.BEST_OBJECT
    without = pair_accuracy(at, plan.tagger, "n-gram-idf", scorer, plan.ranked_by)
    yield f"n-gram-idf {scorer} {plan.ranked_by} (baseline)", without, ()


def paper_rows(at: Measured) -> Iterator[Row]:
    own, plan = at.beside(PAPER), PLANS["paper"]
    scorer = ",".join(plan.relations)
    pairs = pair_accuracy(own, plan.tagger, plan.pruning, scorer, plan.ranked_by)
    yield f"paper: {plan.pruning} {scorer} {plan.ranked_by}", pairs, aims.PAPER
    without = pair_accuracy(own, plan.tagger, "n-gram-idf", scorer, plan.ranked_by)
    yield f"n-gram-idf {scorer} {plan.ranked_by} (baseline)", without, ()


def training_rows(at: Measured) -> Iterator[Row]:
    parts = {"bigru-crf+": TAGGER, "type-vector": SUBJECT}
    for name, most in aims.SECONDS.items():
        stamp = read_model(model_folder(at.models, parts.get(name, RELATION), name)).stamp
        yield f"training CPU seconds {name} (must be below)", stamp.figures["seconds"] / 100, (most,)


PARTS: dict[str, Callable[[Measured], Iterator[Row]]] = {
    "training": training_rows,
    "tagger": tagger_rows,
    "relation": relation_rows,
    "pruning": pruning_rows,
    "best": best_rows,
    "paper": paper_rows,
    "end": end_rows,
}


def train(at: Measured) -> None:
    """Train what is missing, and choose the weights of what is measured end to end."""
    splits = Splits.read(at.kb, train=questions("train"), valid=questions("valid"))
    for name in aims.TAGGERS:
        train_tagger(at.kb, splits, tagger=name, settings=tagger_settings("best", name), models=at.models)
    for name in aims.RELATIONS:
        train_relation(at.kb, splits, scorer=name, settings=relation_settings("best", name), models=at.models)
    settings = change_settings(relation_settings("best", "bigru"), {"objective": "hinge"})
    train_relation(at.kb, splits, scorer="bigru", settings=settings, models=at.models / HINGE)
    settings = subject_settings("best", "type-vector")
    train_subject(at.kb, splits, subject="type-vector", settings=settings, models=at.models)
    plan = PLANS["best"]
    for pruning in (plan.pruning, "n-gram-idf"):
        choose(at, plan.tagger, pruning, ",".join(plan.relations), plan.ranked_by)
    for pruning, tagger in aims.END_TO_END:
        choose(at, tagger, pruning, "bigru", "type-vector")
    for subject in SUBJECTS:
        choose(at, plan.tagger, "n-gram-idf", "bigru", subject)


def train_paper(at: Measured) -> None:
    """Train the profile `paper`, and choose its weights."""
    own, plan = at.beside(PAPER), PLANS["paper"]
    splits = Splits.read(at.kb, train=questions("train"), valid=questions("valid"))
    for _ in train_profile(at.kb, splits, profile="paper", models=own.models):
        pass
    for pruning in (plan.pruning, "n-gram-idf"):
        choose(own, plan.tagger, pruning, ",".join(plan.relations), plan.ranked_by)


def choose(at: Measured, tagger: str, pruning: str, scorer: str, subject: str | None) -> None:
    """Choose weights on the validation split, if they have not been chosen yet."""
    answerer = at.answerer(tagger)
    key = ranking_key(pruning=answerer.pruning_key(pruning), scorer=scorer, subject=subject)
    if key not in answerer.weights_by_key:
        told = {"pruning": pruning, "scorer": scorer, "subject": subject}
        tune_weights(answerer, questions("valid"), models=at.models, limit=CHOSEN_ON, **told)  # type: ignore[arg-type]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kb", type=Path, default=Path("build/fbsq.kb"))
    parser.add_argument("--models", type=Path, default=Path("build/models"))
    parser.add_argument("--train", action="store_true", help="train what is missing")
    parser.add_argument("--paper", action="store_true", help="with --train: the profile `paper` too")
    parser.add_argument("--part", action="append", choices=list(PARTS), help="measure only this; may be repeated")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    if not asked.kb.exists():
        build(sources(), asked.kb, options=ReadOptions(), watch=BuildProgress())
    at = Measured(asked.kb, asked.models)
    print(f"FBSQ test, both layers, {len(at.gold):,} questions; must / target / stretch in brackets")
    if asked.train:
        train(at)
        if asked.paper:
            train_paper(at)
    for part in asked.part or PARTS:
        rows = PARTS[part](at)
        while True:
            try:
                name, found, aimed = next(rows)
            except StopIteration:
                break
            except KBToolsError as error:
                print(f"not measured: {error}")
                break
            brackets = f"  ({' / '.join(f'{aim:g}' for aim in aimed)})" if aimed else ""
            print(f"{name:<66}{100 * found:>8.2f}{brackets}", flush=True)


if __name__ == "__main__":
    main()
