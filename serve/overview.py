"""A knowledge base at a glance: its frequent types, its languages, and sample questions."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from kbtools.answering.answerer import Answerer
from kbtools.kb.contract import KnowledgeBase
from kbtools.kb.language_tags import UND
from kbtools.kb.rows import EntityRows
from kbtools.serve.vocabulary import Vocabulary
from kbtools.text.relation_words import relation_parts

_BARS = 8
"""Most types and languages shown."""

_QUESTIONS, _TRIED = 6, 60
"""Questions shown, and most questions asked to find them."""

_SUBJECTS = 300
"""Entities with the most facts in the sample, from whose facts questions are made."""

_FEW = 3
"""Most answers of a sample question: with many, it would read as a list."""

_LONGEST_NAME = 40

_PREPOSITIONS = frozenset("at for from in of on to with".split())


class _Asked(NamedTuple):
    """A question and the pair it was made from."""

    question: str
    subject: str
    relation: str


def make_overview(answerer: Answerer, vocabulary: Vocabulary) -> dict[str, Any]:
    """Describe a knowledge base; `share` is the share of sampled entities with the type."""
    languages = [(tag, names) for tag, names in answerer.kb.manifest.languages.items() if tag != UND]
    languages.sort(key=lambda language: (-language[1], language[0]))
    return {
        "types": _frequent_types(answerer.kb, vocabulary.sample),
        "languages": [{"language": tag, "names": names} for tag, names in languages[:_BARS]],
        "questions": _answerable_questions(answerer, vocabulary.sample),
    }


def _frequent_types(kb: KnowledgeBase, sample: EntityRows) -> list[dict[str, Any]]:
    """Return the most frequent types of a sample of entities, ties by row."""
    counts = np.bincount(kb.types_of(sample).values, minlength=len(kb.types))
    rows = [row for row in np.argsort(-counts, kind="stable")[:_BARS].tolist() if counts[row]]
    ids = [kb.types[row] for row in rows]
    entities = {id: row for id, row in zip(ids, kb.rows(ids), strict=True) if row is not None}
    names = dict(zip(entities, kb.names(np.array([*entities.values()], dtype=np.uint32)), strict=True))
    return [
        {"id": id, "name": names.get(id), "share": round(float(counts[row]) / len(sample), 6)}
        for id, row in zip(ids, rows, strict=True)
    ]


def _answerable_questions(answerer: Answerer, sample: EntityRows) -> list[str]:
    """Return questions about different relations that are answered with the fact they were made from."""
    right: list[str] = []
    relations: set[str] = set()
    tried = 0
    for candidate in _questions_of(answerer.kb, sample):
        if tried == _TRIED or len(right) == _QUESTIONS:
            break
        if candidate.relation in relations:
            continue
        tried += 1
        result = answerer.query(candidate.question, top=1, answers=1)
        if not result.doubtful and (result.candidates[0].subject, result.candidates[0].relation) == candidate[1:]:
            right.append(candidate.question)
            relations.add(candidate.relation)
    return right


def _questions_of(kb: KnowledgeBase, sample: EntityRows) -> Iterator[_Asked]:
    """Yield a question for each entity with many facts, then a second one for each, and so on."""
    rows = sample[np.argsort(-kb.fact_counts(sample), kind="stable")[:_SUBJECTS]]
    names, ids, grouped = kb.names(rows), kb.ids(rows), kb.relations_of(rows)
    relations = np.split(grouped.values, grouped.starts[1:-1])
    for turn in range(max(map(len, relations), default=0)):
        for place, name in enumerate(names):
            if name is None or len(name) > _LONGEST_NAME or turn >= len(relations[place]):
                continue
            relation = int(relations[place][(place + turn) % len(relations[place])])
            question = question_about(name, kb.relation_names[relation] or kb.relations[relation])
            (objects,) = kb.objects_of([(int(rows[place]), relation)])
            if question and len(objects) <= _FEW:
                yield _Asked(question, ids[place], kb.relations[relation])


def question_about(name: str, relation: str) -> str | None:
    """Return a question for a relation of a name; None if the relation makes no plain English question."""
    words = (relation_parts(relation) or [[]])[-1]
    if len(words) > 1 and words[-1] == "by":
        return f"who was {name} {words[-2]} by?"
    many = bool(words) and words[-1].endswith("s") and not words[-1].endswith("ss")
    if not words or words[-1] in _PREPOSITIONS or (many and len(words) == 1):  # Words such as `contains` are not nouns.
        return None
    return f"what {'are' if many else 'is'} the {' '.join(words)} of {name}?"
