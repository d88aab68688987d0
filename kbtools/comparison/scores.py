"""What networks say of the pools, before any weight: v(r, q) and u(s, r, q), in batches of questions."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from kbtools.comparison.gold import rows_of
from kbtools.comparison.pools import Pools
from kbtools.kb.contract import KnowledgeBase
from kbtools.questions import AnnotatedQuestion
from kbtools.ranking.contracts import RelationScorer, SubjectScorer
from kbtools.ranking.joint import checked
from kbtools.text.question import MarkedQuestion, Question

AT_ONCE = 1024
"""Mentions that are scored in one call; a question's mentions stay together."""

Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Questions `first` to `end`, without the latter, and what is asked of a scorer: a row per mention."""

    first: int
    end: int
    asked: list[MarkedQuestion]


def make_batches(pools: Pools, questions: Sequence[AnnotatedQuestion]) -> Iterator[Batch]:
    """Cut the questions into batches; those without candidates ask nothing."""
    starts = pools.first("mentions")
    begins, ends = pools.column("mention_start").tolist(), pools.column("mention_end").tolist()
    first = 0
    while first < len(pools):
        end = max(first + 1, int(np.searchsorted(starts, starts[first] + AT_ONCE, side="right")) - 1)
        asked = []
        for at in range(first, end):
            question = Question.read(questions[at].text)
            asked += [MarkedQuestion(question, begins[row], ends[row]) for row in range(starts[at], starts[at + 1])]
        yield Batch(first, end, asked)
        first = end


def score_relations(
    kb: KnowledgeBase,
    pools: Pools,
    questions: Sequence[AnnotatedQuestion],
    scorer: RelationScorer,
    progress: Progress,
) -> NDArray[np.float32]:
    """Give v of each mention and each relation of its question's pool: by question, then mention, then relation."""
    mentions, relations = pools.first("mentions"), pools.first("relations")
    relation, found = pools.column("relation"), [np.empty(0, dtype=np.float32)]
    for batch in make_batches(pools, questions):
        if batch.asked:
            v = checked(scorer, partial(scorer.score, batch.asked), shape=(len(batch.asked), len(kb.relations)))
            for at in range(batch.first, batch.end):
                own = slice(int(mentions[at] - mentions[batch.first]), int(mentions[at + 1] - mentions[batch.first]))
                found.append(v[own, relation[relations[at] : relations[at + 1]]].astype(np.float32).reshape(-1))
        progress(batch.end)
    return np.concatenate(found)


def score_subjects(
    kb: KnowledgeBase,
    pools: Pools,
    questions: Sequence[AnnotatedQuestion],
    scorer: SubjectScorer,
    progress: Progress,
) -> NDArray[np.float32]:
    """Give u of each entry."""
    rows = rows_of(kb, pools.subject_ids).astype(np.uint32)
    mentions, entries = pools.first("mentions"), pools.first("entries")
    found = [np.empty(0, dtype=np.float32)]
    for batch in make_batches(pools, questions):
        if batch.asked:
            own = slice(int(entries[batch.first]), int(entries[batch.end]))
            which = pools.column("entry_mention")[own].astype(np.int64) - mentions[batch.first]
            subjects = rows[pools.column("entry_subject")[own]]
            ask = partial(scorer.score, batch.asked, which=which, subjects=subjects)
            u = checked(scorer, ask, shape=(len(subjects),))
            found.append(u.astype(np.float32))
        progress(batch.end)
    return np.concatenate(found)
