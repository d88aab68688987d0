"""A question with its ranked pool, out of which candidates and answers are written."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from kbtools.answering.results import Answer, Bearer, Candidate, FrozenDict, Mention
from kbtools.kb.contract import KnowledgeBase
from kbtools.kb.ids import is_literal, literal_text
from kbtools.kb.rows import EntityRows
from kbtools.kb.views import read_direction
from kbtools.linking.links import Link
from kbtools.linking.strict import link_strictly, with_facts
from kbtools.linking.trust import LinkTrust
from kbtools.quick_records import quick_record
from kbtools.ranking.order import Ranking
from kbtools.ranking.pools import Pools
from kbtools.ranking.rankers import Scoring
from kbtools.ranking.score import DECIMALS
from kbtools.ranking.system import System
from kbtools.text.question import Question


@quick_record
@dataclass(frozen=True, slots=True, eq=False)
class RankedPool:
    """A question with its links, its ranked pool, what scored it, and the seconds that took."""

    question: Question
    system: System
    links: list[Link]
    pool: Pools
    ranking: Ranking
    scoring: Scoring
    seconds: float

    @property
    def best_pair(self) -> tuple[int, int] | None:
        """Give the subject and relation that stand first, as rows."""
        if not self.ranking.best:
            return None
        first = self.ranking.best[0]
        pool = self.pool
        return int(pool.subject[pool.pair_subject[first]]), int(pool.relation[pool.pair_relation[first]])

    @property
    def bearers_left_out(self) -> int:
        """Count the bearers of the linked names, each name once, that links do not lead to."""
        return sum(number for _, number in {(link.name, link.left_out) for link in self.links})

    def trust(self, trust: LinkTrust) -> float:
        """Give the trust in the link of the first candidate, the mean of those that are tied; 0 without candidates."""
        scores = self.ranking.scores
        if not len(scores):
            return 0.0
        tied = self.pool.link_of_pair[scores == scores.max()]
        return float(trust.of(self.question, [self.links[at] for at in tied.tolist()]).mean())

    def without_facts(self, kb: KnowledgeBase, *, limit: int | None) -> tuple[Bearer, ...]:
        """List the entities that a question without candidates names, and that are the subject of no fact."""
        if self.pool.pairs:
            return ()
        links = link_strictly(kb, self.question)
        # By identity: two links of one span and name may differ in their entities alone.
        factual = {id(link) for link in with_facts(kb, links)}
        named = {row: link.name for link in links if id(link) not in factual for row in link.entities.tolist()}
        rows = np.array(list(named)[:limit], dtype=np.uint32)
        return tuple(Bearer(entity_id, named[row]) for entity_id, row in zip(kb.ids(rows), rows.tolist(), strict=True))

    def candidates(self, kb: KnowledgeBase) -> tuple[Candidate, ...]:
        """Write out the best candidates of a pool."""
        pool, ranking = self.pool, self.ranking
        if not ranking.best:
            return ()
        best = np.array(ranking.best, dtype=np.int64)
        subjects = describe_subjects(kb, pool.subject[pool.pair_subject[best]].tolist())
        relations, relation_names = kb.relations, kb.relation_names
        # Columns of the best candidates, rounded at once: by far sooner than a look at each column for each of them.
        links = [self.links[at] for at in pool.link_of_pair[best].tolist()]
        text, spans = self.question.text, {(link.start, link.end) for link in links}
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

    def answers(self, kb: KnowledgeBase, objects: EntityRows, *, limit: int | None) -> tuple[tuple[Answer, ...], int]:
        """Write out the objects of the first candidate, by id, and count all of them.

        Every home numbers its entities in the order of their ids, so that the first rows are the first ids, and the
        names of a million objects are not fetched for twenty.
        """
        first = objects[:limit]
        named = zip(kb.ids(first), kb.names(first), strict=True)
        answers = (
            Answer(entity, name if name or not is_literal(entity) else literal_text(entity))
            for entity, name in sorted(named, key=lambda pair: pair[0])
        )
        return tuple(answers), len(objects)


Described = tuple[str, str | None, str | None, tuple[str, ...]]


def describe_subjects(kb: KnowledgeBase, subjects: list[int]) -> list[Described]:
    """Give id, name, description and types of each subject: one with several relations is read once."""
    places = {row: at for at, row in enumerate(dict.fromkeys(subjects))}
    rows = np.array(list(places), dtype=np.uint32)
    types, kinds = kb.types_of(rows), kb.types
    names = [kinds[row] for row in types.values.tolist()]
    own_types = [tuple(names[first:last]) for first, last in pairwise(types.starts.tolist())]
    described = list(zip(kb.ids(rows), kb.names(rows), kb.descriptions(rows), own_types, strict=True))
    return [described[places[row]] for row in subjects]
