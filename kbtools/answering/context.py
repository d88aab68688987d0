"""Namesakes ranked by context: static vectors of the sentence and of each entity's description, types and facts."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kbtools.answering.entity_reader import EntityReader
from kbtools.answering.name_candidates import NameCandidates
from kbtools.entry_points import SCORERS, load_class
from kbtools.kb.contract import relation_texts
from kbtools.kb.rows import EntityRows
from kbtools.text.question import MarkedQuestion, Question
from kbtools.text.relation_words import relation_words

_SCORER = "static"

_SHARPNESS = 8.0
"""Log-probability of a cosine of 1. For 1,435 ambiguous names in FBSQ's validation questions the right bearers are most
likely at this value, and 77.4 % are first; 75.7 at 4, 77.6 at 12, 49.4 by the prior alone."""

_NAMESAKES = 50
"""Bearers of a name that are ranked by context, those with the highest prior."""

_FACTS, _MOST_FACTS = 12, 1_000
"""Facts read per entity, and the fact count above which none are read."""

_REMEMBERED = 100_000
"""Entity vectors cached in memory: 100 MB."""


class ContextRanker:
    """A ranker of the bearers of a name by their context, with a cache of entity vectors."""

    def __init__(self, reader: EntityReader) -> None:
        self.kb, self.reader = reader.kb, reader
        self.scorer = load_class(SCORERS, _SCORER)(())
        self.relations = [" ".join(relation_words(text)[-3:]) for text in relation_texts(self.kb)]
        self.vectors: dict[int, NDArray[np.float32]] = {}

    def rank(self, sentence: Question, bearers: NameCandidates) -> NameCandidates:
        """Return the bearers with those linked as well as the first ranked by prior and context."""
        first = bearers.links[0]
        alike = [(link.rung, link.similarity) == (first.rung, first.similarity) for link in bearers.links[:_NAMESAKES]]
        count = len(alike) if all(alike) else alike.index(False)
        if count < 2:
            return bearers
        (around,) = self.scorer.embed([MarkedQuestion(sentence, first.start, first.end)])
        shares = self.prior_weights(bearers.prior.values[:count], self.vectors_of(bearers.entities[:count]) @ around)
        order = np.concatenate([np.argsort(-shares, kind="stable"), np.arange(count, len(bearers.entities))])
        prior = bearers.prior
        values = np.concatenate([shares, prior.values[count:]])
        counted = {place: f"{prior.source(place)} and the text around" for place in range(count)}
        ranked = replace(prior, values=values, counted=prior.counted | counted).at(order)
        return NameCandidates(bearers.entities[order], [bearers.links[place] for place in order.tolist()], ranked)

    def prior_weights(self, prior: NDArray[np.float64], cosines: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return the prior reweighted by cosine, with the same sum."""
        weights = prior * np.exp(_SHARPNESS * (cosines - cosines.max()))
        shares: NDArray[np.float64] = weights * (prior.sum() / weights.sum())
        return shares

    def vectors_of(self, entities: EntityRows) -> NDArray[np.float32]:
        """Return a unit vector of what is known about each entity: (entities, dim)."""
        new = [row for row in entities.tolist() if row not in self.vectors]
        if new:
            if len(self.vectors) + len(new) > _REMEMBERED:
                self.vectors = {}
                new = entities.tolist()
            texts = [MarkedQuestion(Question.read(text), 0, 0) for text in self.texts(np.array(new, dtype=np.uint32))]
            self.vectors |= zip(new, self.scorer.embed(texts), strict=True)
        return np.stack([self.vectors[row] for row in entities.tolist()])

    def texts(self, entities: EntityRows) -> list[str]:
        """Return the description, types and first facts of each entity as text."""
        described, types = self.kb.descriptions(entities), self.reader.types_of(entities)
        kinds = [
            " ".join(" ".join(relation_words(kind.name or kind.id)[-2:]) for kind in entity_types)
            for entity_types in types
        ]
        return [
            f"{description or ''} {kind} {facts}"
            for description, kind, facts in zip(described, kinds, self.fact_texts(entities), strict=True)
        ]

    def fact_texts(self, entities: EntityRows) -> Sequence[str]:
        """Return the first facts of each entity as text, empty for one with very many."""
        few = entities[self.kb.fact_counts(entities) <= _MOST_FACTS]
        written: dict[int, list[tuple[int, int]]] = {row: [] for row in entities.tolist()}
        for subject, relation, other in self.kb.facts_of(few).tolist() if len(few) else ():
            if len(written[subject]) < _FACTS:
                written[subject].append((relation, other))
        others = np.unique(np.array([other for facts in written.values() for _, other in facts], dtype=np.uint32))
        names = dict(zip(others.tolist(), [label.name or "" for label in self.reader.labels(others)], strict=True))
        return [
            " ".join(f"{self.relations[relation]} {names[other]}" for relation, other in facts)
            for facts in written.values()
        ]
