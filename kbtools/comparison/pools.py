"""The candidates of every question under one pruner, in columns: kept once, joined with every scorer."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbtools.comparison.column_store import Columns

KINDS = ("links", "mentions", "entries", "relations", "pairs")
"""What a question has several of; of each there is a column that counts them by question."""


@dataclass(frozen=True, eq=False)
class Pools:
    """Pools of all questions end to end; each row points into what stands above it.

    links       link_start, link_end, link_rung, link_similarity, link_weight
    mentions    mention_start, mention_end: the spans that scorers are asked about
    entries     entry_subject (a position in `subject_ids`, which ascend), entry_link, entry_mention, entry_facts
    relations   relation: those of a question's pool, once each, as rows of the knowledge base
    pairs       pair_entry, pair_relation (a position among the relations), namesakes: the pairs of the pool that
                have a pair's span, rung, similarity and relation, itself among them
    questions   gold_entry, gold_pair: positions, ABSENT where the gold was pruned away; seconds of pruning
    """

    columns: Columns

    def __len__(self) -> int:
        return len(self.columns["pairs"])

    def column(self, name: str) -> NDArray[Any]:
        return self.columns[name]

    @property
    def subject_ids(self) -> list[str]:
        ids: list[str] = self.columns.facts["subject_ids"]
        return ids

    def question_of(self, kind: str) -> NDArray[np.int64]:
        """Say which question each link, mention, entry, relation or pair belongs to."""
        return np.repeat(np.arange(len(self)), self.column(kind))

    def first(self, kind: str) -> NDArray[np.int64]:
        """Say where those of each question start; one more than the questions."""
        return np.concatenate([[0], np.cumsum(self.column(kind), dtype=np.int64)])

    @cached_property
    def question_of_pair(self) -> NDArray[np.int64]:
        return self.question_of("pairs")

    @cached_property
    def link_of_pair(self) -> NDArray[np.int64]:
        found: NDArray[np.int64] = self.column("entry_link")[self.column("pair_entry")].astype(np.int64)
        return found

    @cached_property
    def relation_of_pair(self) -> NDArray[np.int64]:
        """Give the relation of each pair as a row of the knowledge base."""
        found: NDArray[np.int64] = self.column("relation")[self.column("pair_relation")].astype(np.int64)
        return found
