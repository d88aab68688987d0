"""Score annotated questions in batches, so that accuracy under any weights is a matter of adding parts up."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from kbtools.answering import Answerer
from kbtools.linking.candidates import Candidates, gather_candidates
from kbtools.questions import AnnotatedQuestion, read_annotated
from kbtools.ranking.joint import DEFAULT, WITH_SUBJECT, Weights, score_pools
from kbtools.ranking.weights import Judged, accuracy, choose_weights, keep_weights, ranking_key
from kbtools.text.question import Question

AT_ONCE = 512
"""Questions that are scored in one batch."""


def gather_pools(
    answerer: Answerer, questions: Iterable[AnnotatedQuestion], *, pruning: str
) -> Iterator[tuple[AnnotatedQuestion, Question, Candidates]]:
    """Yield the pool of each question, empty ones as well."""
    pruner = answerer.pruner(pruning)
    for gold in questions:
        question = Question.read(gold.text)
        yield gold, question, gather_candidates(answerer.kb, pruner.links(question))


def judge(
    answerer: Answerer,
    pools: Iterable[tuple[AnnotatedQuestion, Question, Candidates]],
    *,
    scorer: str,
    subject: str | None = None,
) -> list[Judged]:
    """Score the pools that are not empty, with the gold fact of each."""
    rows = {relation: row for row, relation in enumerate(answerer.kb.relations)}
    scored_by, subjects_by = answerer.scorer(scorer), answerer.subject_scorer(subject) if subject else None
    judged = []
    for batch in batches(pools):
        full = [(gold, question, pool) for gold, question, pool in batch if len(pool)]
        if not full:
            continue
        golds, questions, candidates = zip(*full, strict=True)
        scored = score_pools(answerer.kb, questions, candidates, scorer=scored_by, subject=subjects_by)
        subjects, targets = (
            [-1 if row is None else row for row in answerer.kb.rows(ids)]
            for ids in ([gold.subject for gold in golds], [gold.object for gold in golds])
        )
        for one, gold, row, target in zip(scored, golds, subjects, targets, strict=True):
            judged.append(Judged(one, row, rows.get(gold.relation, -1), target))
    return judged


@dataclass(frozen=True, slots=True)
class Chosen:
    """Weights, and the accuracy on the questions they were chosen on: with the defaults, and with them."""

    weights: Weights
    before: float
    after: float
    questions: int


def choose_for(
    answerer: Answerer,
    questions: Path,
    *,
    models: Path,
    pruning: str,
    scorer: str,
    subject: str | None,
    limit: int | None = None,
) -> Chosen:
    """Choose weights for a pruner and its scorers on annotated questions, and keep them with the models."""
    asked = list(islice(read_annotated(questions), limit))
    judged = judge(answerer, gather_pools(answerer, asked, pruning=pruning), scorer=scorer, subject=subject)
    weights = choose_weights(judged, subject=subject is not None)
    before = accuracy(judged, WITH_SUBJECT if subject else DEFAULT, questions=len(asked))
    after = accuracy(judged, weights, questions=len(asked))
    key = ranking_key(pruning=answerer.pruning_key(pruning), scorer=scorer, subject=subject)
    keep_weights(models, key, weights)
    answerer.chosen[key] = weights
    return Chosen(weights, before, after, len(asked))


def batches(
    pools: Iterable[tuple[AnnotatedQuestion, Question, Candidates]],
) -> Iterator[Sequence[tuple[AnnotatedQuestion, Question, Candidates]]]:
    remaining = iter(pools)
    while batch := list(islice(remaining, AT_ONCE)):
        yield batch
