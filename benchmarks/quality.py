"""How good the models are on FBSQ: both layers, full denominators, ties as expected values, and what was aimed at.

python benchmarks/quality.py --models build/models [--train] [--part tagger --part relation ...]

With --train, what is missing is trained first (half an hour on one idle core); without, it is left out.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from fbsq import questions, sources

import kbtools
from kbtools.answering import Answerer
from kbtools.errors import KBToolsError
from kbtools.indexers.build import Watch, build
from kbtools.indexers.readers.reading import ReadOptions
from kbtools.joint import joint_parts
from kbtools.judging import choose_for, gather_pools, judge
from kbtools.models import RELATION, SUBJECT, TAGGER, make_relation_scorer, make_tagger, model_folder
from kbtools.questions import AnnotatedQuestion, read_annotated
from kbtools.ranking import add_parts
from kbtools.scorers.checkpoint import read_model_record
from kbtools.scorers.examples import Examples, read_examples
from kbtools.scorers.profile_training import PLANS
from kbtools.scorers.profiles import relation_settings, subject_settings, tagger_settings
from kbtools.scorers.settings import change_settings
from kbtools.scorers.subject_training import train_subject
from kbtools.scorers.tagger import BiGRUTagger
from kbtools.scorers.tagger_training import WordsAlone, train_tagger
from kbtools.scorers.tagging import label_questions, sentence_accuracy
from kbtools.scorers.tasks import first_share, relation_marks
from kbtools.scorers.training import Splits, train_relation
from kbtools.tuning import Judged, accuracy, ranking_key

HINGE = "hinge"
"""The folder, inside that of the models, of the BiGRU that was trained with the hinge."""

TAGGERS = {"crf": (86.5, 88.5, 90), "bigru-crf": (91, 93, 94), "bigru-crf+": (96, 97.3, 98)}
RELATIONS = {
    "embed-avg": ((73, 75, 76), (93, 94, 94.7)),
    "ltg-cnn+": ((70.5, 72.5, 75), (94.2, 95.2, 96)),
    "bigru": ((76.5, 78.3, 80), (94, 95, 95.7)),
}
PRUNING = {
    ("focused", "bigru-crf"): (92, 93.4, 94.5),
    ("focused", "bigru-crf+"): (94.3, 95.4, 96),
    ("focused-k", "bigru-crf+"): (95.5, 96.4, 97),
}
END_TO_END = {
    ("n-gram", "bigru-crf+"): (63, 65, 67),
    ("n-gram+", "bigru-crf+"): (74.5, 76, 78),
    ("focused", "bigru-crf"): (81, 82.5, 84),
    ("focused", "bigru-crf+"): (83, 84.4, 85.2),
}
SUBJECTS = (None, "type-count", "fact-count", "type-vector", "type-cosine")
CHOSEN_ON = 4_000
"""Questions of the validation split that weights are chosen on."""

SECONDS = {"bigru-crf+": 400, "bigru": 400, "ltg-cnn+": 450, "type-vector": 350, "embed-avg": 90}

Row = tuple[str, float, tuple[float, ...]]


class Measured:
    """The knowledge base, the folder of models and the test questions, read once."""

    def __init__(self, kb: Path, models: Path) -> None:
        self.path, self.models = kb, models
        self.kb = kbtools.open(kb).kb
        self.gold: list[AnnotatedQuestion] = list(read_annotated(questions("test")))
        self.answerers: dict[str, Answerer] = {}

    @cached_property
    def test(self) -> Examples:
        return read_examples(self.kb, questions("test"))

    @cached_property
    def seen(self) -> set[str]:
        return {one.relation for one in read_annotated(questions("train"))}

    def answerer(self, tagger: str) -> Answerer:
        if tagger not in self.answerers:
            self.answerers[tagger] = kbtools.open(self.path, models=self.models, tagger=tagger)
        return self.answerers[tagger]


def tagger_rows(at: Measured) -> Iterator[Row]:
    for name, aims in TAGGERS.items():
        tagger = make_tagger(name, at.kb, models=at.models)
        if isinstance(tagger, BiGRUTagger):
            yield f"sentence accuracy {name}", sentence_accuracy(tagger, label_questions(tagger, at.test)), aims
        else:
            labelled = label_questions(WordsAlone(), at.test)
            found = tagger.sentence_accuracy(labelled.texts, labelled.spans)  # type: ignore[attr-defined]
            yield f"sentence accuracy {name}", found, aims


def relation_rows(at: Measured) -> Iterator[Row]:
    has = relation_marks(at.kb, at.test.subjects, len(at.kb.relations))
    unseen = np.array([at.kb.relations[row] not in at.seen for row in at.test.relations])
    for name, (aims, given) in RELATIONS.items():
        scores = make_relation_scorer(name, at.kb, models=at.models).score(at.test.asked)
        yield f"relation R@1 {name}", first_share(scores, at.test.relations), aims
        able = np.where(has, scores, -np.inf)
        yield f"relation given the subject {name}", first_share(able, at.test.relations), given
        if name == "ltg-cnn+":
            share = first_share(able[unseen], at.test.relations[unseen])
            yield f"the same, {unseen.sum()} questions of unseen relations", share, (70, 80, 85)
    scores = make_relation_scorer("bigru", at.kb, models=at.models / HINGE).score(at.test.asked)
    yield "relation R@1 bigru (hinge)", first_share(scores, at.test.relations), (69.5, 71.5, 74)


def pruning_rows(at: Measured) -> Iterator[Row]:
    rows = {relation: row for row, relation in enumerate(at.kb.relations)}
    for (pruning, tagger), aims in PRUNING.items():
        sizes, recalled = [], 0
        for gold, _, pool in gather_pools(at.answerer(tagger), at.gold, pruning=pruning):
            (subject,) = at.kb.rows([gold.subject])
            pairs = (pool.subjects[pool.subject] == subject) & (pool.relation == rows.get(gold.relation, -1))
            recalled += bool(subject is not None and pairs.any())
            sizes.append(len(pool))
        yield f"recall {pruning} {tagger} ({np.mean(sizes):.1f} pairs)", recalled / len(at.gold), aims


def end_rows(at: Measured) -> Iterator[Row]:
    for subject in SUBJECTS:
        pairs = pair_accuracy(at, "bigru-crf+", "n-gram-idf", "bigru", subject)
        yield f"n-gram-idf bigru {subject or 'popularity'} (baseline)", pairs, ()
    for (pruning, tagger), aims in END_TO_END.items():
        yield f"{pruning} {tagger} bigru type-vector", pair_accuracy(at, tagger, pruning, "bigru", "type-vector"), aims


def best_rows(at: Measured) -> Iterator[Row]:
    plan = PLANS["best"]
    scorer = ",".join(plan.relations)
    query = (plan.tagger, plan.pruning, scorer, plan.ranked_by)
    yield f"best: {plan.pruning} {scorer} {plan.ranked_by}", pair_accuracy(at, *query), (84.5, 85.8, 87)
    yield "best: object accuracy", object_accuracy(at, *query), (85.2, 86.5, 87.7)
    without = pair_accuracy(at, plan.tagger, "n-gram-idf", scorer, plan.ranked_by)
    yield f"n-gram-idf {scorer} {plan.ranked_by} (baseline)", without, ()


def training_rows(at: Measured) -> Iterator[Row]:
    parts = {"bigru-crf+": TAGGER, "type-vector": SUBJECT}
    for name, most in SECONDS.items():
        record = read_model_record(model_folder(at.models, parts.get(name, RELATION), name))
        yield f"training CPU seconds {name} (must be below)", record["figures"]["seconds"] / 100, (most,)


def pair_accuracy(at: Measured, tagger: str, pruning: str, scorer: str, subject: str | None) -> float:
    """Give the expected share of right pairs, with the weights that were chosen for this query if there are any."""
    judged, answerer = judged_by(at, tagger, pruning, scorer, subject)
    weights = answerer.weights(pruning=pruning, scorer=scorer, subject=subject)
    return accuracy(judged, weights, questions=len(at.gold))


def object_accuracy(at: Measured, tagger: str, pruning: str, scorer: str, subject: str | None) -> float:
    """Give the expected share of questions whose gold object is among those of the first pair."""
    judged, answerer = judged_by(at, tagger, pruning, scorer, subject)
    weights = answerer.weights(pruning=pruning, scorer=scorer, subject=subject)
    right = 0.0
    for one in judged:
        pool, scores = one.scored.candidates, add_parts(joint_parts(one.scored, weights))
        first = np.flatnonzero(scores == scores.max())
        hits = [
            one.target in at.kb.objects_of(int(pool.subjects[pool.subject[place]]), int(pool.relation[place]))
            for place in first
        ]
        right += float(np.mean(hits))
    return right / len(at.gold)


def judged_by(
    at: Measured, tagger: str, pruning: str, scorer: str, subject: str | None
) -> tuple[Sequence[Judged], Answerer]:
    answerer = at.answerer(tagger)
    pools = gather_pools(answerer, at.gold, pruning=pruning)
    return judge(answerer, pools, scorer=scorer, subject=subject), answerer


PARTS: dict[str, Callable[[Measured], Iterator[Row]]] = {
    "training": training_rows,
    "tagger": tagger_rows,
    "relation": relation_rows,
    "pruning": pruning_rows,
    "best": best_rows,
    "end": end_rows,
}


def train(at: Measured) -> None:
    """Train what is missing, with the profile `best`, and choose the weights of what is measured end to end."""
    splits = Splits.read(at.kb, train=questions("train"), valid=questions("valid"))
    for name in TAGGERS:
        train_tagger(at.kb, splits, tagger=name, settings=tagger_settings("best", name), models=at.models)
    for name in RELATIONS:
        train_relation(at.kb, splits, scorer=name, settings=relation_settings("best", name), models=at.models)
    settings = change_settings(relation_settings("best", "bigru"), {"objective": "hinge"})
    train_relation(at.kb, splits, scorer="bigru", settings=settings, models=at.models / HINGE)
    settings = subject_settings("best", "type-vector")
    train_subject(at.kb, splits, subject="type-vector", settings=settings, models=at.models)
    plan = PLANS["best"]
    for pruning in (plan.pruning, "n-gram-idf"):
        choose(at, plan.tagger, pruning, ",".join(plan.relations), plan.ranked_by)
    for pruning, tagger in END_TO_END:
        choose(at, tagger, pruning, "bigru", "type-vector")
    for subject in SUBJECTS:
        choose(at, plan.tagger, "n-gram-idf", "bigru", subject)


def choose(at: Measured, tagger: str, pruning: str, scorer: str, subject: str | None) -> None:
    """Choose weights on the validation split, if they have not been chosen yet."""
    answerer = at.answerer(tagger)
    key = ranking_key(pruning=answerer.pruning_key(pruning), scorer=scorer, subject=subject)
    if key not in answerer.chosen:
        told = {"pruning": pruning, "scorer": scorer, "subject": subject}
        choose_for(answerer, questions("valid"), models=at.models, limit=CHOSEN_ON, **told)  # type: ignore[arg-type]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kb", type=Path, default=Path("build/fbsq.kb"))
    parser.add_argument("--models", type=Path, default=Path("build/models"))
    parser.add_argument("--train", action="store_true", help="train what is missing")
    parser.add_argument("--part", action="append", choices=list(PARTS), help="measure only this; may be repeated")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    if not asked.kb.exists():
        build(sources(), asked.kb, options=ReadOptions(), watch=Watch())
    at = Measured(asked.kb, asked.models)
    print(f"FBSQ test, both layers, {len(at.gold):,} questions; must / target / stretch in brackets")
    if asked.train:
        train(at)
    for part in asked.part or PARTS:
        rows = PARTS[part](at)
        while True:
            try:
                name, found, aims = next(rows)
            except StopIteration:
                break
            except KBToolsError as error:
                print(f"not measured: {error}")
                break
            aimed = f"  ({' / '.join(f'{aim:g}' for aim in aims)})" if aims else ""
            print(f"{name:<66}{100 * found:>8.2f}{aimed}", flush=True)


if __name__ == "__main__":
    main()
