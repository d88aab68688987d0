"""Gather the pools of one pruner: question by question, then what is known once all of them are there."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbtools.comparison.column_store import Columns
from kbtools.comparison.gold import ABSENT, Gold, expected
from kbtools.comparison.pools import KINDS, Pools
from kbtools.kb.contract import KnowledgeBase
from kbtools.kb.rows import EntityRows
from kbtools.linking.candidates import Candidates, gather_candidates
from kbtools.pruning.pruners import Pruner

WIDTHS = {
    "link_start": np.int32,
    "link_end": np.int32,
    "link_rung": np.int8,
    "link_similarity": np.float64,
    "link_weight": np.float64,
    "mention_start": np.int32,
    "mention_end": np.int32,
    "entry_subject": np.uint32,
    "entry_link": np.int32,
    "entry_mention": np.int32,
    "entry_facts": np.int64,
    "relation": np.uint32,
    "pair_entry": np.int32,
    "pair_relation": np.int32,
}
"""The columns that grow with every question, and how wide they are."""

POINTERS = {"entry_link": 0, "entry_mention": 1, "pair_entry": 2, "pair_relation": 3}
"""Columns that point at rows of a kind, by its place in KINDS."""


def gather_pools(
    kb: KnowledgeBase, pruner: Pruner, gold: Gold, *, fingerprint: str, progress: Callable[[int], None]
) -> Pools:
    """Prune every question; `progress` hears of each thousand."""
    columns: dict[str, list[NDArray[Any]]] = {name: [np.empty(0, dtype=kind)] for name, kind in WIDTHS.items()}
    counts, seconds = [], []
    before = np.zeros(len(KINDS), dtype=np.int64)
    for at, question in enumerate(expected(kb, gold.questions)):
        begun = time.perf_counter()
        pool = gather_candidates(kb, pruner.links(question))
        seconds.append(time.perf_counter() - begun)
        rows, count = lay_out(kb, pool)
        for name, kind in POINTERS.items():
            rows[name] = rows[name] + before[kind]
        for name, width in WIDTHS.items():
            columns[name].append(rows[name].astype(width))
        before += count
        counts.append(count)
        if at % 1000 == 999:
            progress(at + 1)
    found = {name: np.concatenate(parts) for name, parts in columns.items()}
    found |= dict(zip(KINDS, np.array(counts, dtype=np.int32).T, strict=True))
    return finish(kb, gold, found | {"seconds": np.array(seconds, dtype=np.float32)}, fingerprint)


def lay_out(kb: KnowledgeBase, pool: Candidates) -> tuple[dict[str, NDArray[Any]], list[int]]:
    """Lay out one pool; positions count from its own first row, subjects are rows of the knowledge base."""
    start = np.array([link.start for link in pool.links], dtype=np.int64)
    end = np.array([link.end for link in pool.links], dtype=np.int64)
    longest = int(end.max(initial=0)) + 1
    spans, mention = np.unique((start * longest + end)[pool.link], return_inverse=True)
    relations, column = np.unique(pool.relation, return_inverse=True)
    rows: dict[str, NDArray[Any]] = {
        "link_start": start,
        "link_end": end,
        "link_rung": np.array([link.rung for link in pool.links]),
        "link_similarity": np.array([link.similarity for link in pool.links]),
        "link_weight": np.array([link.weight for link in pool.links]),
        "mention_start": spans // longest,
        "mention_end": spans % longest,
        "entry_subject": pool.subjects,
        "entry_link": pool.link,
        "entry_mention": mention,
        "entry_facts": kb.fact_counts(pool.subjects),
        "relation": relations,
        "pair_entry": pool.subject,
        "pair_relation": column,
    }
    return rows, [len(pool.links), len(spans), len(pool.subjects), len(relations), len(pool)]


def finish(kb: KnowledgeBase, gold: Gold, arrays: dict[str, NDArray[Any]], fingerprint: str) -> Pools:
    """Add where the gold is, count the namesakes, and put ids in place of rows."""
    pools = Pools(Columns(fingerprint, arrays))
    entry = arrays["pair_entry"]
    question = pools.question_of("entries")
    is_subject = arrays["entry_subject"] == gold.subject[question]
    is_pair = is_subject[entry] & (pools.relation_of_pair == gold.relation[question[entry]])
    subject_ids, subjects = name_subjects(kb, arrays["entry_subject"])
    added: dict[str, NDArray[Any]] = {
        "entry_subject": subjects,
        "namesakes": count_namesakes(pools),
        "gold_entry": positions(question, is_subject, len(gold)),
        "gold_pair": positions(question[entry], is_pair, len(gold)),
    }
    return Pools(Columns(fingerprint, arrays | added, {"subject_ids": subject_ids}))


def name_subjects(kb: KnowledgeBase, rows: EntityRows) -> tuple[list[str], NDArray[np.uint32]]:
    """Exchange rows, which mean nothing outside of an open knowledge base, for positions in a sorted list of ids."""
    unique, inverse = np.unique(rows, return_inverse=True)
    ids = kb.ids(unique)
    order = sorted(range(len(ids)), key=ids.__getitem__)
    place = np.empty(len(ids), dtype=np.uint32)
    place[order] = np.arange(len(ids), dtype=np.uint32)
    return [ids[at] for at in order], place[inverse]


def count_namesakes(pools: Pools) -> NDArray[np.int32]:
    """Count, for each pair, the pairs that no question could tell from it: found alike, of the same relation."""
    if not len(pools.column("pair_entry")):
        return np.empty(0, dtype=np.int32)
    how = ("link_start", "link_end", "link_rung", "link_similarity")
    alike = np.stack([pools.question_of("links").astype(np.float64), *map(pools.column, how)])
    group = np.unique(alike, axis=1, return_inverse=True)[1].reshape(-1)[pools.link_of_pair]
    relation = pools.relation_of_pair
    _, inverse, count = np.unique(group * (relation.max() + 1) + relation, return_inverse=True, return_counts=True)
    return count[inverse].astype(np.int32)


def positions(question: NDArray[np.int64], found: NDArray[np.bool_], count: int) -> NDArray[np.int64]:
    """Say at which position each question has what was looked for; it has at most one."""
    where = np.full(count, ABSENT, dtype=np.int64)
    at = np.flatnonzero(found)
    where[question[at]] = at
    return where
