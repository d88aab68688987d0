"""A link: some words of a question, the name that they match, and the entities that have the name."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kbtools.kb.contract import KnowledgeBase
from kbtools.kb.rows import EntityRows
from kbtools.text.ngrams import Ngram
from kbtools.text.rungs import Rung

MOST_LINKED = 1_000
"""Entities of one name that a link leads to: twice as many as the commonest name of FBSQ has entities, so that a name
of a hundred thousand takes no longer than a few questions do."""

MOST_COUNTED = 10_000
"""Entities of one name whose facts are counted to choose them, the first by id: all of a hundred thousand take as long
as eight questions."""


class Link(NamedTuple):
    """A mention, the name it matched, and the entities that have the name.

    `start` and `end` are characters of the question. `weight` is what the pruner thinks of the mention, a
    log-probability up to a constant, 0 if it has no opinion; `similarity` is 0 to 100 and below 100 only on the fuzzy
    rung, where it is of names, and on the rung `near`, where it is of vectors. `left_out` counts the entities of the
    name beyond MOST_LINKED, which it does not lead to.
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
        """Return the entities of its name, in a list, as a match has one for each of its names."""
        return [self.entities]

    @property
    def order(self) -> tuple[float, int, float, int, int]:
        """Sort the better link first: weight, rung, similarity, length, place."""
        return (-self.weight, self.rung, -self.similarity, self.start - self.end, self.start)


def keep_most_facts(kb: KnowledgeBase, entities: EntityRows) -> EntityRows:
    """Return the MOST_LINKED with the most facts among the entities of a name, of equal ones the first by id."""
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
    """Limit each link to the MOST_LINKED of its name with the most facts, and count the others."""
    return [
        link
        if len(link.entities) <= MOST_LINKED
        else link._replace(entities=keep_most_facts(kb, link.entities), left_out=len(link.entities) - MOST_LINKED)
        for link in links
    ]


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
