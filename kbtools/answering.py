"""Answer questions: prune, score, rank, fetch the objects; the Python side of `kbtools query`."""

import time
from pathlib import Path

import numpy as np

from kbtools.candidates import Candidates, gather_candidates
from kbtools.errors import BrokenPlugin
from kbtools.ids import is_literal, literal_text
from kbtools.knowledge import KnowledgeBase
from kbtools.ngrams import Question
from kbtools.plugins import BACKENDS, SCORERS, load_plugin
from kbtools.pruning.table import DEFAULT, Pruner, make_pruner
from kbtools.ranking import Ranking, rank
from kbtools.results import Answer, Candidate, Mention, Result
from kbtools.scoring import RelationScorer

SCORER = "lexical"
TOP = 10


def open_kb(path: str | Path, *, backend: str = "embedded") -> "Answerer":
    """Open a knowledge base for questions.

    Raises KBMissing where there is none, KBUnusable for one of another version or a damaged one.
    """
    make = load_plugin(BACKENDS, backend)
    if not callable(make):
        raise BrokenPlugin(f"backend {backend!r} is no class", name=backend)
    return Answerer(make(path))


class Answerer:
    """A knowledge base with the pruners and scorers made for it so far."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb = kb
        self.pruners: dict[str, Pruner] = {}
        self.scorers: dict[str, RelationScorer] = {}

    def pruner(self, name: str) -> Pruner:
        if name not in self.pruners:
            self.pruners[name] = make_pruner(name, self.kb)
        return self.pruners[name]

    def scorer(self, name: str) -> RelationScorer:
        if name not in self.scorers:
            make = load_plugin(SCORERS, name)
            if not callable(make):
                raise BrokenPlugin(f"scorer {name!r} is no class", name=name)
            self.scorers[name] = make(self.kb.relations)
        return self.scorers[name]

    def query(self, text: str, *, pruning: str = DEFAULT, scorer: str = SCORER, top: int | None = TOP) -> Result:
        """Answer a question; `top` limits the candidates, None keeps the whole pool.

        A question without candidates, an empty one among them, gives a result without any.
        """
        pruner, scored_by = self.pruner(pruning), self.scorer(scorer)
        begun = time.perf_counter()
        question = Question.read(text)
        candidates = gather_candidates(self.kb, pruner.links(question))
        ranking = rank(self.kb, question, candidates, scorer=scored_by, top=top)
        found = self.candidates(text, candidates, ranking)
        answers = self.answers(candidates, ranking)
        milliseconds = round(1000 * (time.perf_counter() - begun), 3)
        return Result(text, pruning, scorer, found, ranking.tied, answers, milliseconds)

    def candidates(self, text: str, pool: Candidates, ranking: Ranking) -> tuple[Candidate, ...]:
        """Write out the best candidates of a pool."""
        at = np.array(ranking.best, dtype=np.int64)
        subjects = pool.subjects[pool.subject[at]]
        ids, names = self.kb.ids(subjects), self.kb.names(subjects)
        found = []
        for position, subject, name in zip(ranking.best, ids, names, strict=True):
            link = pool.links[pool.link[pool.subject[position]]]
            found.append(
                Candidate(
                    subject=subject,
                    subject_name=name,
                    relation=self.kb.relations[int(pool.relation[position])],
                    score=float(ranking.scores[position]),
                    mention=Mention(text[link.start : link.end], link.start, link.end),
                    matched_name=link.name,
                    rung=link.rung.label,
                    parts={part: round(float(values[position]), 6) for part, values in ranking.parts.items()},
                )
            )
        return tuple(found)

    def answers(self, pool: Candidates, ranking: Ranking) -> tuple[Answer, ...]:
        """Fetch the objects of the first candidate, by id."""
        if not ranking.best:
            return ()
        first = ranking.best[0]
        objects = self.kb.objects_of(int(pool.subjects[pool.subject[first]]), int(pool.relation[first]))
        named = zip(self.kb.ids(objects), self.kb.names(objects), strict=True)
        return tuple(
            Answer(entity, name if name or not is_literal(entity) else literal_text(entity))
            for entity, name in sorted(named, key=lambda pair: pair[0])
        )
