"""The direction that a question reads a relation in, from subject to object or backwards, as its wording tells.

It needs no training, and stands beside any relation scorer: that one scores the relation, this one its two directions.
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

# Chosen on 2,000 validation questions of FBSQ, which are as accurate with these as without inverse relations, and on
# the 590 training and validation questions whose fact is also stored the other way round: asked without the fact that
# they ask for, half of them are right. Where nothing told values apart, those of a logistic regression over the wording
# of the same questions; see benchmarks/inverse.py.
KIND = 1.0
"""Log-probability that a relation gains, in a direction, where the answer's kind is asked for."""

PRIOR = -1.5
"""Log-odds that a relation is read backwards; the others are added to it."""

KIND_OF_SUBJECT, KIND_OF_OBJECT, NAMED_KIND = 1.5, -1.0, -3.0
"""The answer's kind is that of the relation's subjects, that of its objects, or a word of its label."""

AGENT = 4.2
"""The mention is who does something, and so is the object of the relation, as that of `directed_by`."""

PLACE = 0.4
"""A preposition of place stands before the mention."""

PATIENT, VALUE = 3.0, 3.0
"""The mention is what something is done to by a relation's verb, or what the relation has as its value: too rare in
FBSQ to measure, from the questions of tests/kbtools/ranking/test_direction.py."""

_BLOCKS, _BLOCK = 64, 64
"""Blocks of entities, and entities in each: 35 ms on FBSQ, where they have facts of two thirds of the relations."""

_AGENTS = ("er", "ers", "or", "ors", "ist", "ists")
"""Endings of those who do something: under `author` and `director` the object is an agent, as under `directed_by`."""


class Directions:
    """Evidence of the direction that questions read relations in: their labels, and the types on either side of them.

    `labels` holds for each stem the rows of the relations whose label has it, `subjects` and `objects` of those that
    have a type with the stem there. `agentive` marks relations under which the object is who does something.
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
            own = stems(word for word in label if word not in FUNCTION_WORDS)
            of_subjects = stems(word for part in kinds for word in part) | types.get(row, set())
            for table, words in (
                (self.labels, own),
                (self.subjects, of_subjects - own),
                (self.objects, types.get(row + self.count, set()) - own),
            ):
                for stem in words:
                    table.setdefault(stem, []).append(row)

    def log_probabilities(self, question: MarkedQuestion) -> NDArray[np.float64]:
        """Return what is added to the score of a relation read forwards, and backwards: (2, relations)."""
        words = question.words(symbol=SYMBOL)
        at = words.index(SYMBOL) if SYMBOL in words else len(words)
        before, after = words[:at], words[at + 1 :]
        near = [word for word in before if word not in ARTICLES]
        # `orbits` in `what orbits X` is no kind of answer.
        verb = near[-1:] if len(near) > 1 and near[-2] in OPENERS | {"that"} else []
        kinds = kind_stems(answer_kinds(words) - set(verb))
        of_subjects, of_objects = self.having(self.subjects, kinds), self.having(self.objects, kinds)
        named = self.having(self.labels, kinds)
        odds = PRIOR + KIND_OF_SUBJECT * of_subjects + NAMED_KIND * named + KIND_OF_OBJECT * (of_objects & ~named)
        # `by X`, or `did X ...`: X is who does it.
        if "by" in near[-3:] or (after and not AIDS.isdisjoint(before)):
            odds += AGENT * self.agentive
        if not PLACES.isdisjoint(near[-2:]):
            odds += PLACE
        # `what orbits X`, or `what is X orbited by`: X is what it is done to.
        odds += PATIENT * (self.labelled(verb + (after if after[-1:] == ["by"] else [])) & ~self.agentive)
        # `whose capital is X`, `has X as its capital`, `what is X the capital of`: X is the value.
        as_value = after if after[:1] == ["as"] or after[-1:] == ["of"] else []
        odds += VALUE * self.labelled(as_value + (before if "whose" in before else []))
        # The logarithms of p and 1 - p; logaddexp(0, x) is log(1 + exp(x)).
        both = -np.logaddexp(0.0, [odds, -odds])
        directed: NDArray[np.float64] = both + KIND * np.array([of_objects | named, of_subjects])
        return directed

    def labelled(self, words: Iterable[str]) -> NDArray[np.bool_]:
        """Mark the relations whose label has one of some words: (relations,)."""
        return self.having(self.labels, stems(words))

    def having(self, table: dict[str, list[int]], wanted: set[str]) -> NDArray[np.bool_]:
        """Mark the relations that a table has under one of some stems: (relations,)."""
        marks = np.zeros(self.count, dtype=np.bool_)
        marks[[row for stem in wanted for row in table.get(stem, ())]] = True
        return marks


class DirectedScorer:
    """A scorer of relations and their inverses: v of the relation, and the log-probability of the direction."""

    def __init__(self, scorer: RelationScorer, directions: Directions) -> None:
        self.scorer, self.directions = scorer, directions

    def score(self, questions: Sequence[MarkedQuestion]) -> NDArray[np.float64]:
        shape = len(questions), self.directions.count
        v = as_scores(self.scorer.score(questions), scorer=type(self.scorer).__name__, shape=shape)
        return self.directed(v, questions)

    def directed(self, v: NDArray[np.float64], questions: Sequence[MarkedQuestion]) -> NDArray[np.float64]:
        """Return v of relations, and of their inverses behind them: (questions, 2 · relations)."""
        count = self.directions.count
        directed = [self.directions.log_probabilities(question) for question in questions]
        return (v[:, None] + np.array(directed).reshape(-1, 2, count)).reshape(-1, 2 * count)


def subject_types(kb: BothWays) -> dict[int, set[str]]:
    """Return the stems of the types that at least half of a relation's subjects have.

    The subjects of an inverse relation are the objects of the one that it inverts.
    """
    entities = _sample_entities(kb)
    relations, types = kb.relations_of(entities), kb.types_of(entities)
    subjects = np.bincount(relations.values, minlength=len(kb.relations))
    # For every entity, for every relation it has, for every type it has: one number that says relation and type.
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
    """Return the rows of some entities in blocks, which lie together on a disk, all of a small knowledge base."""
    entities = kb.entity_rows()
    starts = np.linspace(0, max(len(entities) - _BLOCK, 0), _BLOCKS).astype(np.int64)
    places = np.unique(np.add.outer(starts, np.arange(_BLOCK)))
    rows: EntityRows = entities[places[places < len(entities)]]
    return rows


def _type_words(kb: KnowledgeBase, types: Sequence[int]) -> dict[int, set[str]]:
    """Return the stems of the words of types: of the name where a type is an entity as well, else of its id."""
    ids = [kb.types[kind] for kind in types]
    rows = kb.rows(ids)
    names = iter(kb.names(np.array([row for row in rows if row is not None], dtype=np.uint32)))
    texts = [type_id if row is None else next(names) or type_id for type_id, row in zip(ids, rows, strict=True)]
    return {kind: stems((relation_parts(text) or [[]])[-1]) for kind, text in zip(types, texts, strict=True)}
