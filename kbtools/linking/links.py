"""A link: some words of a question, the name that they match, and the entities that bear the name."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kbtools.kb.contract import KnowledgeBase
from kbtools.kb.rows import EntityRows
from kbtools.text.ngrams import Ngram
from kbtools.text.rungs import Rung


class Link(NamedTuple):
    """A mention, the name it matched, and the entities that bear the name.

    `start` and `end` are characters of the question. `weight` is what the pruner thinks of the mention, a
    log-probability up to a constant, 0 if it has no opinion; `similarity` is 0 to 100 and below 100 only on the fuzzy
    rung, where it is of names, and on the rung `near`, where it is of vectors.
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


def keep_type(kb: KnowledgeBase, links: Sequence[Link], type_row: int) -> list[Link]:
    """Keep of each link the entities that have a type, and the links that keep any."""
    typed = []
    for link in links:
        grouped = kb.types_of(link.entities)
        places = np.repeat(np.arange(len(link.entities)), np.diff(grouped.starts))
        entities = link.entities[np.unique(places[grouped.values == type_row])]
        if len(entities):
            typed.append(link._replace(entities=entities))
    return typed
