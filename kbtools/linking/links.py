"""A link: words of a question, the name that they match, and the entities with that name."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kbtools.kb.contract import KnowledgeBase
from kbtools.kb.rows import EntityRows
from kbtools.text.ngrams import Ngram
from kbtools.text.rungs import Rung

MOST_LINKED = 1_000
"""The most entities of a link. The commonest name of FBSQ has half as many; a name with a hundred thousand bearers then
takes no longer than a few questions."""

MOST_COUNTED = 10_000
"""The most entities of one name whose facts are counted, the first by id; counting a hundred thousand takes as long as
eight questions."""


class Link(NamedTuple):
    """A mention, the name it matched, and the entities with that name.

    `start` and `end` are character offsets in the question. `weight` is the pruner's log-probability of the mention, up
    to a constant, 0 if it has no opinion. `similarity` is 0 to 100: of names on the fuzzy rung, of vectors on the rung
    `near`, 100 on all others. `left_out` counts the entities of the name beyond MOST_LINKED.
    """

    ngram: Ngram
    start: int
    end: int
    name: str
    rung: Rung
    entities: EntityRows
    weight: float = 0.0
    similarity: float = 100.0
    left_out: int = 0

    @property
    def entity_lists(self) -> list[EntityRows]:
        """The entities as a list of one; a match has one list per name."""
        return [self.entities]

    @property
    def order(self) -> tuple[float, int, float, int, int]:
        """The sort key, best first: weight, rung, similarity, length, place."""
        return (-self.weight, self.rung, -self.similarity, self.start - self.end, self.start)


def keep_most_facts(kb: KnowledgeBase, entities: EntityRows) -> EntityRows:
    """Return the MOST_LINKED entities with the most facts, ties by id."""
    if len(entities) <= MOST_LINKED:
        return entities
    entities = entities[:MOST_COUNTED]
    facts = kb.fact_counts(entities)
    least = np.partition(facts, len(facts) - MOST_LINKED)[len(facts) - MOST_LINKED]
    kept = facts > least
    kept[np.flatnonzero(facts == least)[: MOST_LINKED - np.count_nonzero(kept)]] = True
    most: EntityRows = entities[kept]
    return most


def limit_entities(kb: KnowledgeBase, links: Sequence[Link]) -> list[Link]:
    """Return the links with the MOST_LINKED entities that have the most facts, and the number left out."""
    return [
        link
        if len(link.entities) <= MOST_LINKED
        else link._replace(entities=keep_most_facts(kb, link.entities), left_out=len(link.entities) - MOST_LINKED)
        for link in links
    ]


def keep_type(kb: KnowledgeBase, links: Sequence[Link], type_row: int) -> list[Link]:
    """Return the links restricted to entities of a type, without links that have none."""
    typed = []
    for link in links:
        grouped = kb.types_of(link.entities)
        places = np.repeat(np.arange(len(link.entities)), np.diff(grouped.starts))
        entities = link.entities[np.unique(places[grouped.values == type_row])]
        if len(entities):
            typed.append(link._replace(entities=entities))
    return typed
