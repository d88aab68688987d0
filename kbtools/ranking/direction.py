"""The direction in which a question reads a relation, forwards or backwards, from its wording.

It needs no training and complements any relation scorer, which scores the relation itself.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from kbtools.kb.contract import KnowledgeBase, relation_texts
from kbtools.kb.rows import EntityRows
from kbtools.kb.views import BothWays
from kbtools.ranking.contracts import RelationScorer, as_scores
from kbtools.text.function_words import FUNCTION_WORDS
from kbtools.text.question import MarkedQuestion
from kbtools.text.relation_words import (
    AIDS,
    ARTICLES,
    OPENERS,
    PLACES,
    SYMBOL,
    answer_kinds,
    kind_stems,
    relation_parts,
    stems,
)

# Chosen on 2,000 validation questions of FBSQ, which are as accurate with inverse relations as without, and on the 590
# training and validation questions whose fact is also stored in the other direction: asked without the forward fact,
# half of them are right. Values that made no difference are from a logistic regression over the wording of the same
# questions; see benchmarks/inverse.py.
KIND = 1.0
"""Log-probability added to a relation and direction with answers of the requested kind."""

PRIOR = -1.5
"""Log-odds that a relation is read backwards; those below are added."""

KIND_OF_SUBJECT, KIND_OF_OBJECT, NAMED_KIND = 1.5, -1.0, -3.0
"""The requested kind is that of the relation's subjects, of its objects, or a word of its label."""

AGENT = 4.2
"""The mention is an agent, and so is the object of the relation, as of `directed_by`."""

PLACE = 0.4
"""A preposition of place precedes the mention."""

PATIENT, VALUE = 3.0, 3.0
"""The mention undergoes the relation's verb, or is the relation's value. Both are too rare in FBSQ to measure; the
numbers are from the questions of tests/kbtools/ranking/test_direction.py."""

_BLOCKS, _BLOCK = 64, 64
"""Blocks of entities, and entities per block: 35 ms on FBSQ, where they have facts of two thirds of the relations."""

_AGENTS = ("er", "ers", "or", "ors", "ist", "ists")
"""Endings of agents: the object of `author` and `director` is an agent, like that of `directed_by`."""


class Directions:
    """Evidence of the direction in which questions read relations: their labels, and the types of both sides.

    `labels`, `subjects` and `objects` map a stem to the rows of relations with the stem in their label, or in the types
    of that side. `agentive` marks relations whose object is an agent.
    """

    def __init__(self, kb: BothWays) -> None:
        texts = relation_texts(kb.kb)
        self.count = len(texts)
        self.agentive = np.zeros(self.count, dtype=np.bool_)
        self.labels: dict[str, list[int]] = {}
        self.subjects: dict[str, list[int]] = {}
        self.objects: dict[str, list[int]] = {}
        types = subject_types(kb)
        for row, text in enumerate(texts):
            *kinds, label = relation_parts(text) or [[]]
            self.agentive[row] = label[-1:] == ["by"] or any(word.endswith(_AGENTS) for word in label)
            label_stems = stems(word for word in label if word not in FUNCTION_WORDS)
            of_subjects = stems(word for part in kinds for word in part) | types.get(row, set())
            for table, words in (
                (self.labels, label_stems),
                (self.subjects, of_subjects - label_stems),
                (self.objects, types.get(row + self.count, set()) - label_stems),
            ):
                for stem in words:
                    table.setdefault(stem, []).append(row)

    def log_probabilities(self, question: MarkedQuestion) -> NDArray[np.float64]:
        """Return the log-probability added to each relation read forwards, and backwards: (2, relations)."""
        words = question.words(symbol=SYMBOL)
        at = words.index(SYMBOL) if SYMBOL in words else len(words)
        before, after = words[:at], words[at + 1 :]
        near = [word for word in before if word not in ARTICLES]
        # `orbits` in `what orbits X` is not a kind of answer.
        verb = near[-1:] if len(near) > 1 and near[-2] in OPENERS | {"that"} else []
        kinds = kind_stems(answer_kinds(words) - set(verb))
        of_subjects, of_objects = self.having(self.subjects, kinds), self.having(self.objects, kinds)
        named = self.having(self.labels, kinds)
        odds = PRIOR + KIND_OF_SUBJECT * of_subjects + NAMED_KIND * named + KIND_OF_OBJECT * (of_objects & ~named)
        # `by X` or `did X ...`: X is the agent.
        if "by" in near[-3:] or (after and not AIDS.isdisjoint(before)):
            odds += AGENT * self.agentive
        if not PLACES.isdisjoint(near[-2:]):
            odds += PLACE
        # `what orbits X` or `what is X orbited by`: X undergoes the verb.
        odds += PATIENT * (self.labelled(verb + (after if after[-1:] == ["by"] else [])) & ~self.agentive)
        # `whose capital is X`, `has X as its capital` or `what is X the capital of`: X is the value.
        as_value = after if after[:1] == ["as"] or after[-1:] == ["of"] else []
        odds += VALUE * self.labelled(as_value + (before if "whose" in before else []))
        # The logarithms of p and 1 - p; logaddexp(0, x) is log(1 + exp(x)).
        both = -np.logaddexp(0.0, [odds, -odds])
        directed: NDArray[np.float64] = both + KIND * np.array([of_objects | named, of_subjects])
        return directed

    def labelled(self, words: Iterable[str]) -> NDArray[np.bool_]:
        """Return whether the label of each relation has one of some words: (relations,)."""
        return self.having(self.labels, stems(words))

    def having(self, table: dict[str, list[int]], wanted: set[str]) -> NDArray[np.bool_]:
        """Return whether each relation is listed in a table under one of some stems: (relations,)."""
        marks = np.zeros(self.count, dtype=np.bool_)
        marks[[row for stem in wanted for row in table.get(stem, ())]] = True
        return marks


class DirectedScorer:
    """A scorer of relations and their inverses: v of the relation plus the log-probability of the direction."""

    def __init__(self, scorer: RelationScorer, directions: Directions) -> None:
        self.scorer, self.directions = scorer, directions

    def score(self, questions: Sequence[MarkedQuestion]) -> NDArray[np.float64]:
        shape = len(questions), self.directions.count
        v = as_scores(self.scorer.score(questions), scorer=type(self.scorer).__name__, shape=shape)
        return self.directed(v, questions)

    def directed(self, v: NDArray[np.float64], questions: Sequence[MarkedQuestion]) -> NDArray[np.float64]:
        """Return v of relations, then of their inverses: (questions, 2 · relations)."""
        count = self.directions.count
        directed = [self.directions.log_probabilities(question) for question in questions]
        return (v[:, None] + np.array(directed).reshape(-1, 2, count)).reshape(-1, 2 * count)


def subject_types(kb: BothWays) -> dict[int, set[str]]:
    """Return the stems of the types that at least half of each relation's subjects have.

    The subjects of an inverse relation are the objects of the relation itself.
    """
    entities = _sample_entities(kb)
    relations, types = kb.relations_of(entities), kb.types_of(entities)
    subjects = np.bincount(relations.values, minlength=len(kb.relations))
    # One number for each relation and type of each entity.
    typed = [
        np.add.outer(
            relations.values[relations.starts[at] : relations.starts[at + 1]].astype(np.int64) * len(kb.types),
            types.values[types.starts[at] : types.starts[at + 1]].astype(np.int64),
        ).reshape(-1)
        for at in range(len(entities))
    ]
    pairs, counts = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *typed]), return_counts=True)
    usual = [divmod(pair, len(kb.types)) for pair in pairs[2 * counts >= subjects[pairs // len(kb.types)]].tolist()]
    words = _type_words(kb, sorted({kind for _, kind in usual}))
    stems_of: dict[int, set[str]] = {}
    for relation, kind in usual:
        stems_of.setdefault(relation, set()).update(words[kind])
    return stems_of


def _sample_entities(kb: KnowledgeBase) -> EntityRows:
    """Return the rows of some entities, in blocks that are contiguous on disk; all of a small knowledge base."""
    entities = kb.entity_rows()
    starts = np.linspace(0, max(len(entities) - _BLOCK, 0), _BLOCKS).astype(np.int64)
    places = np.unique(np.add.outer(starts, np.arange(_BLOCK)))
    rows: EntityRows = entities[places[places < len(entities)]]
    return rows


def _type_words(kb: KnowledgeBase, types: Sequence[int]) -> dict[int, set[str]]:
    """Return the stems of the words of types, from the name of a type that is an entity or else from its id."""
    ids = [kb.types[kind] for kind in types]
    rows = kb.rows(ids)
    names = iter(kb.names(np.array([row for row in rows if row is not None], dtype=np.uint32)))
    texts = [type_id if row is None else next(names) or type_id for type_id, row in zip(ids, rows, strict=True)]
    return {kind: stems((relation_parts(text) or [[]])[-1]) for kind, text in zip(types, texts, strict=True)}
