"""Pools of candidates: the subject-relation pairs that the links of one or many questions lead to."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbtools.kb.contract import KnowledgeBase
from kbtools.kb.rows import EntityRows
from kbtools.linking.links import Link
from kbtools.quick_records import quick_record

KINDS = ("link", "mention", "subject", "relation", "pair")
"""The kinds of rows of a pool; each kind has a column of counts per question."""

COLUMNS: dict[str, tuple[str, type[np.generic]]] = {
    "link_start": ("link", np.int32),
    "link_end": ("link", np.int32),
    "link_rung": ("link", np.int8),
    "link_similarity": ("link", np.float64),
    "link_weight": ("link", np.float64),
    "link_confidence": ("link", np.float64),
    "mention_start": ("mention", np.int32),
    "mention_end": ("mention", np.int32),
    "subject": ("subject", np.uint32),
    "subject_link": ("subject", np.int32),
    "subject_mention": ("subject", np.int32),
    "subject_facts": ("subject", np.int64),
    "relation": ("relation", np.uint32),
    "pair_subject": ("pair", np.int32),
    "pair_relation": ("pair", np.int32),
}
"""The kind and the stored width of each column."""

_POINTERS = {
    "subject_link": "link",
    "subject_mention": "mention",
    "pair_subject": "subject",
    "pair_relation": "relation",
}
"""Columns of positions among the rows of another kind."""


@quick_record
@dataclass(frozen=True, eq=False)
class Pools:
    """The pools C of the paper (Eq. 3) of some questions, concatenated, as columns.

    counts      (questions,) for each of KINDS
    links       start and end in characters, rung, similarity 0 to 100, weight, confidence 0 to 1: (links,)
    mentions    the distinct spans of links, which scorers are asked about: (mentions,)
    subjects    each entity of a pool once, with its best link, mention and number of facts: (subjects,)
    relations   those of a pool, distinct and ascending, as rows of the knowledge base: (relations,)
    pairs       the candidates: positions of a subject and of a relation: (pairs,)
    """

    counts: dict[str, NDArray[np.int64]]
    link_start: NDArray[np.int64]
    link_end: NDArray[np.int64]
    link_rung: NDArray[np.int64]
    link_similarity: NDArray[np.float64]
    link_weight: NDArray[np.float64]
    link_confidence: NDArray[np.float64]
    mention_start: NDArray[np.int64]
    mention_end: NDArray[np.int64]
    subject: EntityRows
    subject_link: NDArray[np.int64]
    subject_mention: NDArray[np.int64]
    subject_facts: NDArray[np.int64]
    relation: NDArray[np.uint32]
    pair_subject: NDArray[np.int64]
    pair_relation: NDArray[np.int64]

    def __len__(self) -> int:
        """Return the number of questions."""
        return len(self.counts["pair"])

    @property
    def pairs(self) -> int:
        """The number of candidates of all questions."""
        return len(self.pair_subject)

    def first(self, kind: str) -> NDArray[np.int64]:
        """Return the first row of each question, and the end of the last: (questions + 1,)."""
        counts = self.counts[kind]
        starts = np.zeros(len(counts) + 1, dtype=np.int64)
        counts.cumsum(out=starts[1:])
        return starts

    def question_of(self, kind: str) -> NDArray[np.int64]:
        """Return the question of each row of a kind."""
        return np.repeat(np.arange(len(self)), self.counts[kind])

    @cached_property
    def question_of_pair(self) -> NDArray[np.int64]:
        return self.question_of("pair")

    @cached_property
    def v_of_mention(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The start and number of the scores v of each mention, one per relation of its pool."""
        sizes = self.counts["relation"].repeat(self.counts["mention"])
        return sizes.cumsum() - sizes, sizes

    @cached_property
    def link_of_pair(self) -> NDArray[np.int64]:
        return self.subject_link[self.pair_subject]

    @cached_property
    def subject_of_pair(self) -> EntityRows:
        """The subject of each candidate as a row of the knowledge base."""
        return self.subject[self.pair_subject]

    @cached_property
    def relation_of_pair(self) -> NDArray[np.uint32]:
        """The relation of each candidate as a row of the knowledge base."""
        return self.relation[self.pair_relation]

    def with_mentions(self, mentions: NDArray[np.bool_]) -> "Pools":
        """Return pools for scorers that read only the marked mentions: (mentions,)."""
        counted = np.bincount(self.question_of("mention")[mentions], minlength=len(self))
        return replace(
            self,
            counts={**self.counts, "mention": counted},
            mention_start=self.mention_start[mentions],
            mention_end=self.mention_end[mentions],
        )


def take_questions(pools: Pools, questions: NDArray[np.bool_]) -> Pools:
    """Return the pools of the marked questions: (questions,)."""
    counts = {kind: number[questions] for kind, number in pools.counts.items()}
    columns: dict[str, NDArray[Any]] = {}
    for name, (kind, _) in COLUMNS.items():
        column = getattr(pools, name)[questions.repeat(pools.counts[kind])]
        if name in _POINTERS:
            pointed = counts[_POINTERS[name]]
            moved = pools.first(_POINTERS[name])[:-1][questions] - (pointed.cumsum() - pointed)
            column = column - moved.repeat(counts[kind])
        columns[name] = column
    return Pools(counts, **columns)


def order_links(links: Sequence[Link]) -> list[Link]:
    """Return links, best first; a pool keeps the first link of each entity."""
    return sorted(links, key=attrgetter("order"))


def gather_pool(
    kb: KnowledgeBase, links: Sequence[Link], *, link_confidence: NDArray[np.float64] | None = None
) -> Pools:
    """Return the pool of a question's sorted links: C = {(s, r) : M(s, w), s -> r} (paper, Focused Pruning).

    The confidence in each link, (links,), is 1 by default.
    """
    if not links:
        return _EMPTY
    # Unzipped at once, instead of one loop over links per field.
    _, starts, ends, _, rungs, entities, weights, similarities, _ = zip(*links, strict=True)
    # A dict of the few spans: np.unique takes longer than this whole function.
    link_spans = list(zip(starts, ends, strict=True))
    spans = {span: at for at, span in enumerate(sorted(set(link_spans)))}
    mention_start, mention_end = np.array(list(spans)).T
    # Columns of one type become one array, and enums become int first; either way saves half of the time.
    mention, link_start, link_end, link_rung = np.array(
        ([spans[span] for span in link_spans], starts, ends, [*map(int, rungs)])
    )
    link_weight, link_similarity = np.array((weights, similarities), dtype=np.float64)
    linked = np.arange(len(links)).repeat([len(rows) for rows in entities])
    # Links are sorted best first, so the first occurrence of an entity is its best link.
    subjects, first = distinct(np.concatenate(entities))
    subject_link = linked[first]
    relations_of = kb.relations_of(subjects)
    # One pair for each relation of each subject.
    relations, _ = distinct(relations_of.values)
    pair_relation = relations.searchsorted(relations_of.values)
    pair_subject = np.arange(len(subjects)).repeat(relations_of.starts[1:] - relations_of.starts[:-1])
    sizes = (len(links), len(spans), len(subjects), len(relations), len(pair_subject))
    return Pools(
        counts=dict(zip(KINDS, np.array(sizes).reshape(-1, 1), strict=True)),
        link_start=link_start,
        link_end=link_end,
        link_rung=link_rung,
        link_similarity=link_similarity,
        link_weight=link_weight,
        link_confidence=np.array([1.0] * len(links)) if link_confidence is None else link_confidence,
        mention_start=mention_start,
        mention_end=mention_end,
        subject=subjects,
        subject_link=subject_link,
        subject_mention=mention[subject_link],
        subject_facts=kb.fact_counts(subjects),
        relation=relations,
        pair_subject=pair_subject,
        pair_relation=pair_relation,
    )


def distinct(rows: NDArray[np.uint32]) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Return the distinct rows, ascending, and the first position of each.

    It takes half as long as np.unique on the few rows of a question.
    """
    order = rows.argsort(kind="stable")
    ascending = rows[order]
    is_new = np.empty(len(rows), dtype=np.bool_)
    is_new[:1] = True
    np.not_equal(ascending[1:], ascending[:-1], out=is_new[1:])
    return ascending[is_new], order[is_new]


def concatenate_pools(pools: Sequence[Pools]) -> Pools:
    """Return the concatenated pools of questions, with narrow columns."""
    counts = {kind: np.concatenate([_EMPTY.counts[kind][:0], *(pool.counts[kind] for pool in pools)]) for kind in KINDS}
    columns: dict[str, NDArray[Any]] = {}
    for name, (kind, dtype) in COLUMNS.items():
        column = np.concatenate([getattr(_EMPTY, name), *(getattr(pool, name) for pool in pools)])
        # Positions within one pool are shifted by the rows of all pools before it.
        if name in _POINTERS:
            before = np.cumsum(counts[_POINTERS[name]]) - counts[_POINTERS[name]]
            column = column + np.repeat(before, counts[kind])
        columns[name] = column.astype(dtype)
    return Pools(counts, **columns)


_NOTHING = {name: np.empty(0, dtype=dtype) for name, (_, dtype) in COLUMNS.items()}
_EMPTY = Pools({kind: np.zeros(1, dtype=np.int64) for kind in KINDS}, **_NOTHING)
"""The pool of one question without links."""
