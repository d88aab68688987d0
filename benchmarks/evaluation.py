"""Figures of linking, pruning and ranking against gold pairs, over all questions, with ties as expected values."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from kbtools.answering.answerer import Answerer
from kbtools.answering.gold import find_gold
from kbtools.answering.questions import AnnotatedQuestion
from kbtools.answering.results import Result
from kbtools.kb.contract import KnowledgeBase
from kbtools.linking.fuzzy import link_fuzzily
from kbtools.linking.strict import link_strictly
from kbtools.text.ngrams import ngrams
from kbtools.text.question import Question
from kbtools.text.rungs import Rung

NOBODY = np.empty(0, dtype=np.uint32)


@dataclass(frozen=True, slots=True)
class Coverage:
    """Of `named` questions, those whose subject links to some n-gram: strictly, and strictly or fuzzily."""

    questions: int
    named: int
    strict: int
    fuzzy: int


@dataclass(frozen=True, slots=True)
class PruningFigures:
    """Of `named` questions, those whose gold pair is in the pool; pool sizes in pairs, over all questions."""

    questions: int
    named: int
    recalled: int
    mean_pool: float
    median_pool: float
    p95_pool: float


def is_named(kb: KnowledgeBase, question: AnnotatedQuestion) -> bool:
    """Return whether the gold subject has a name or an alias."""
    (row,) = kb.rows([question.subject])
    return row is not None and bool(kb.names_of(np.array([row], dtype=np.uint32))[0])


def mention_coverage(kb: KnowledgeBase, questions: Iterable[AnnotatedQuestion]) -> Coverage:
    """Count the gold subjects that some n-gram of their question links to; fuzzily means rapidfuzz at 80."""
    total = named = strict = fuzzy = 0
    for gold in questions:
        total += 1
        (row,) = kb.rows([gold.subject])
        if row is None or not is_named(kb, gold):
            continue
        named += 1
        question = Question.read(gold.text)
        linked = any(row in link.entities for link in link_strictly(kb, question))
        strict += linked
        fuzzy += linked or any(
            row in link.entities
            for links in link_fuzzily(kb, ngrams(question, lengths=kb.manifest.lengths))
            for link in links
        )
    return Coverage(total, named, strict, fuzzy)


def pruning_figures(answerer: Answerer, questions: Iterable[AnnotatedQuestion], *, pruning: str) -> PruningFigures:
    """Count the gold pairs that a pruner keeps, and the sizes of its pools."""
    gold = find_gold(answerer.kb, list(questions))
    opened = answerer.opened(answerer.system(pruning=pruning))
    pools = opened.gather_pools(gold.texts)
    recalled = np.bincount(pools.question_of_pair, gold.pairs(pools), minlength=len(gold)) > 0
    named = np.array([is_named(answerer.kb, question) for question in gold.questions])
    sizes = pools.counts["pair"]
    return PruningFigures(
        questions=len(gold),
        named=int(named.sum()),
        recalled=int((recalled & named).sum()),
        mean_pool=float(np.mean(sizes)),
        median_pool=float(np.median(sizes)),
        p95_pool=float(np.percentile(sizes, 95)),
    )


def expected_accuracy(results: Sequence[Result], questions: Sequence[AnnotatedQuestion]) -> float:
    """Return the share of questions whose subject and relation are right; a k-way tie with the gold pair counts 1/k.

    Raises ValueError for a result that was cut inside its tie, where the ids would decide; query with `top=None`.
    """
    correct = 0.0
    for result, gold in zip(results, questions, strict=True):
        if result.tied > len(result.candidates):
            raise ValueError(f"{len(result.candidates)} of {result.tied} tied candidates given; query with top=None")
        first = result.candidates[: result.tied]
        hits = sum((found.subject, found.relation) == (gold.subject, gold.relation) for found in first)
        correct += hits / result.tied if result.tied else 0.0
    return correct / len(questions)


def looser_share(results: Sequence[Result]) -> float:
    """Return the share of first places on a looser rung than another candidate; query with `top=None`."""
    rungs = [[Rung[found.rung.upper()] for found in result.candidates] for result in results if result.candidates]
    return sum(first > min(first, *others) for first, *others in rungs if others) / len(rungs) if rungs else 0.0
