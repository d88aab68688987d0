"""What a pruner hands to the scorers: linked entities, and the subject-relation pairs that they open up."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kbtools.kb.contract import KnowledgeBase
from kbtools.kb.rows import EntityRows
from kbtools.text.ngrams import Ngram
from kbtools.text.rungs import Rung


class Link(NamedTuple):
    """A mention, the name it matched, and the entities that bear the name.

    `weight` is what the pruner thinks of the mention, a log-probability up to a constant, 0 if it has no opinion;
    `similarity` is 0 to 100 and below 100 only on the fuzzy rung, where it is of names, and on the rung `near`, where
    it is of vectors.
    """

    ngram: Ngram
    start: int
    end: int
    name: str
    rung: Rung
    entities: EntityRows
    weight: float = 0.0
    similarity: float = 100.0

    @property
    def order(self) -> tuple[float, int, float, int, int]:
        """Sort the better link first: weight, rung, similarity, length, place."""
        return (-self.weight, self.rung, -self.similarity, self.start - self.end, self.start)


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """The pool C of the paper, in columns: pair k is `subjects[subject[k]]` with `relation[k]`.

    Every subject stands once, with the best of its links: subject j was linked by `links[link[j]]`.
    """

    links: Sequence[Link]
    subjects: EntityRows
    link: NDArray[np.int64]
    subject: NDArray[np.int64]
    relation: NDArray[np.uint32]

    def __len__(self) -> int:
        return len(self.relation)


def gather_candidates(kb: KnowledgeBase, links: Sequence[Link]) -> Candidates:
    """Open links up into pairs: C = {(s, r) : M(s, w), s -> r} (paper, section Focused Pruning)."""
    ordered = sorted(links, key=lambda link: link.order)
    if not ordered:
        none = np.empty(0, dtype=np.int64)
        return Candidates((), none.astype(np.uint32), none, none, none.astype(np.uint32))
    linked = np.concatenate([link.entities for link in ordered])
    origin = np.repeat(np.arange(len(ordered)), [len(link.entities) for link in ordered])
    subjects, first = np.unique(linked, return_index=True)
    pairs = kb.relations_of(subjects)
    subject = np.repeat(np.arange(len(subjects)), np.diff(pairs.starts))
    return Candidates(ordered, subjects, origin[first], subject, pairs.values)
