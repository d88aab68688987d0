"""A ranking turned into a result: its candidates, and the answers of the first one."""

import time
from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np

from kbtools.answering.explaining import reading_text
from kbtools.answering.limits import DOUBTFUL, Limits
from kbtools.answering.missing_facts import UNLIKELY
from kbtools.answering.results import Answer, Candidate, FrozenDict, Mention, Named, Reading, Result
from kbtools.kb.contract import KnowledgeBase
from kbtools.kb.ids import is_literal, literal_text
from kbtools.kb.rows import EntityRows
from kbtools.kb.views import BothWays, read_direction
from kbtools.linking.links import Link
from kbtools.linking.partial_names import entities_with_words
from kbtools.linking.strict import link_strictly, with_facts
from kbtools.pruning.pruners import guide_of
from kbtools.ranking.opened_system import OpenedSystem, Ranking
from kbtools.ranking.score import DECIMALS
from kbtools.text.question import Question

_SUGGESTED = 3
"""The number of entities suggested if a question names none."""


def write_result(
    opened: OpenedSystem,
    ranking: Ranking,
    objects: Sequence[EntityRows],
    limits: Limits,
    *,
    type_row: int | None,
    confidence: float,
    doubt: str | None,
    seconds: float,
) -> Result:
    """Return the result of a ranking, with the answers of its first candidate unless they are withheld.

    `objects` are those of the likeliest candidates; if they differ, the result has readings instead of an answer.
    `doubt` says why its facts do not answer the question. `seconds` is the time that the question has taken so far.
    """
    begun = time.perf_counter()
    confidence *= UNLIKELY if doubt else 1
    kb, system = opened.kb, opened.system
    candidates = write_candidates(kb, ranking)
    split = ranking.level > 1 and not _agree(kb, ranking, objects)
    answered = bool(ranking.best) and not split and confidence >= (limits.abstain or 0)
    without_facts = () if ranking.best else _list_without_facts(kb, ranking.question, limit=limits.answers)
    answers, total = write_answers(kb, objects[0], limit=limits.answers) if answered else ((), 0)
    return Result(
        question=ranking.question.text,
        unread=ranking.question.unread,
        pruning=system.pruner,
        tagger=system.guide if guide_of(opened.pruner) == "tagger" else None,
        scorer=system.scorer,
        subject_scorer=system.subject_scorer,
        ranker=system.ranker_name,
        scored_by=",".join(ranking.scored_by) if ranking.scored_by else None,
        weights=system.counting(),
        type=None if type_row is None else kb.types[type_row],
        candidates=candidates,
        tied=ranking.tied,
        without_facts=without_facts,
        answers=answers,
        answers_total=total,
        milliseconds=round(1000 * (seconds + time.perf_counter() - begun), 3),
        inverse=isinstance(kb, BothWays),
        # Each name counts once.
        bearers_left_out=sum(number for _, number in {(link.name, link.left_out) for link in ranking.links}),
        confidence=round(confidence, DECIMALS),
        answered=answered,
        taught=opened.taught or None,
        doubtful=not answered or confidence < DOUBTFUL,
        readings=_write_readings(kb, candidates, objects, limit=limits.answers) if split else (),
        readings_total=ranking.level if split else 0,
        suggestions=None if ranking.best or without_facts else _suggest(opened, ranking.question),
        doubt=doubt,
    )


def fetch_objects(kb: KnowledgeBase, pairs: Iterable[tuple[int, int]]) -> dict[tuple[int, int], EntityRows]:
    """Return the objects of each pair, fetched once and in one request."""
    distinct = list(dict.fromkeys(pairs))
    return dict(zip(distinct, kb.objects_of(distinct), strict=True)) if distinct else {}


def _agree(kb: KnowledgeBase, ranking: Ranking, objects: Sequence[EntityRows]) -> bool:
    """Return whether all candidates tied with the first have the same answers; `objects` are those of the first few."""
    if not all(np.array_equal(objects[0], other) for other in objects[1:]):
        return False
    rest = fetch_objects(kb, ranking.all_level) if ranking.level > len(objects) else {}
    return all(np.array_equal(objects[0], other) for other in rest.values())


def _write_readings(
    kb: KnowledgeBase, candidates: Sequence[Candidate], objects: Sequence[EntityRows], *, limit: int | None
) -> tuple[Reading, ...]:
    """Return the likeliest candidates as readings, each with its answers."""
    return tuple(
        Reading(reading_text(candidate), *write_answers(kb, rows, limit=limit))
        for candidate, rows in zip(candidates, objects, strict=False)
    )


def _list_without_facts(kb: KnowledgeBase, question: Question, *, limit: int | None) -> tuple[Named, ...]:
    """Return the entities in a question without candidates that are the subject of no fact."""
    named = {row: link.name for link in links_without_facts(kb, question) for row in link.entities.tolist()}
    rows = np.array(list(named)[:limit], dtype=np.uint32)
    return tuple(Named(entity_id, named[row]) for entity_id, row in zip(kb.ids(rows), rows.tolist(), strict=True))


def _suggest(opened: OpenedSystem, question: Question) -> tuple[Named, ...] | None:
    """List entities whose names have a word of a question, which names none; return None if there are none."""
    content, kb = opened.link_confidence.content, opened.kb
    rows = entities_with_words(kb, question, is_content=content.has, limit=_SUGGESTED)
    return tuple(Named(*named) for named in zip(kb.ids(rows), kb.names(rows), strict=True)) or None


def links_without_facts(kb: KnowledgeBase, question: Question) -> list[Link]:
    """Return the links of a question to entities that are the subject of no fact."""
    links = link_strictly(kb, question)
    # By identity: two links of one span and name may differ only in their entities.
    factual = {id(link) for link in with_facts(kb, links)}
    return [link for link in links if id(link) not in factual]


def write_candidates(kb: KnowledgeBase, ranking: Ranking) -> tuple[Candidate, ...]:
    """Return the best candidates of a ranking."""
    pool = ranking.pool
    if not ranking.best:
        return ()
    best = np.array(ranking.best, dtype=np.int64)
    subjects = _describe_subjects(kb, pool.subject[pool.pair_subject[best]].tolist())
    relations, relation_names = kb.relations, kb.relation_names
    # Rounded as whole columns, which is much faster than value by value.
    links = [ranking.links[at] for at in pool.link_of_pair[best].tolist()]
    text, spans = ranking.question.text, {(link.start, link.end) for link in links}
    mentions = {(start, end): Mention(text[start:end], start, end) for start, end in spans}
    directions, scores = pool.relation[pool.pair_relation[best]].tolist(), ranking.scores[best].tolist()
    names, parts = tuple(ranking.parts), np.array(list(ranking.parts.values())).round(DECIMALS).T.tolist()
    candidates = []
    for (subject, name, description, types), link, direction, score, own_parts in zip(
        subjects, links, directions, scores, parts, strict=True
    ):
        relation, inverse = read_direction(kb, direction)
        candidates.append(
            Candidate(
                subject=subject,
                subject_name=name,
                types=types,
                relation=relations[relation],
                relation_name=relation_names[relation],
                score=score,
                mention=mentions[link.start, link.end],
                matched_name=link.name,
                rung=link.rung.label,
                parts=FrozenDict(zip(names, own_parts, strict=True)),
                inverse=inverse,
                subject_description=description,
            )
        )
    return tuple(candidates)


def write_answers(kb: KnowledgeBase, objects: EntityRows, *, limit: int | None) -> tuple[tuple[Answer, ...], int]:
    """Return the first objects of the winning candidate, by id, and their total.

    Rows are numbered in the order of ids, so the first rows are the first ids, and only their names are fetched.
    """
    first = objects[:limit]
    named = zip(kb.ids(first), kb.names(first), strict=True)
    answers = (
        Answer(entity_id, name if name or not is_literal(entity_id) else literal_text(entity_id))
        for entity_id, name in sorted(named, key=lambda pair: pair[0])
    )
    return tuple(answers), len(objects)


_Described = tuple[str, str | None, str | None, tuple[str, ...]]


def _describe_subjects(kb: KnowledgeBase, subjects: list[int]) -> list[_Described]:
    """Return id, name, description and types of each subject, each fetched once."""
    places = {row: at for at, row in enumerate(dict.fromkeys(subjects))}
    rows = np.array(list(places), dtype=np.uint32)
    types, kinds = kb.types_of(rows), kb.types
    names = [kinds[row] for row in types.values.tolist()]
    own_types = [tuple(names[first:last]) for first, last in pairwise(types.starts.tolist())]
    described = list(zip(kb.ids(rows), kb.names(rows), kb.descriptions(rows), own_types, strict=True))
    return [described[places[row]] for row in subjects]
