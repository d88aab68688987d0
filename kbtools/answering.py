"""Answer questions: prune, score, rank, fetch the objects; the Python side of `kbtools query`."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kbtools.kb.contract import KnowledgeBase
from kbtools.kb.ids import is_literal, literal_text
from kbtools.linking.candidates import Candidates, gather_candidates
from kbtools.plugins import BACKENDS, load_class
from kbtools.pruning.dense import EmbedQuestions
from kbtools.pruning.pruners import DEFAULT, Pruner, guide_of, make_pruner
from kbtools.pruning.tagging import Tagger
from kbtools.ranking.contracts import RelationScorer, SubjectScorer
from kbtools.ranking.joint import DEFAULT as DEFAULT_WEIGHTS
from kbtools.ranking.joint import WITH_SUBJECT, Weights
from kbtools.ranking.models import make_embedder, make_relation_scorer, make_subject_scorer, make_tagger
from kbtools.ranking.ranking import Ranking, rank
from kbtools.ranking.weights import ranking_key, read_weights
from kbtools.results import Answer, Candidate, Mention, Result
from kbtools.text.question import Question

SCORER = "lexical"
TAGGER = "bigru-crf+"
TOP = 10

TOGETHER = 64
"""Questions that are announced together."""


def open_kb(
    path: str | Path,
    *,
    backend: str = "embedded",
    models: str | Path | None = None,
    tagger: str = TAGGER,
    device: str = "cpu",
) -> "Answerer":
    """Open a knowledge base for questions; `models` is the folder that kbtools train made, for trained scorers.

    Raises KBMissing where there is none, KBUnusable for one of another version or a damaged one.
    """
    make = load_class(BACKENDS, backend)
    return Answerer(make(path), models=None if models is None else Path(models), tagger=tagger, device=device)


@dataclass(frozen=True, slots=True, eq=False)
class Ranked:
    """A question with its ranked pool, and the seconds that took."""

    text: str
    pruning: str
    scorer: str
    pool: Candidates
    ranking: Ranking
    seconds: float

    @property
    def best_pair(self) -> tuple[int, int] | None:
        """Give the subject and relation that stand first."""
        if not self.ranking.best:
            return None
        first = self.ranking.best[0]
        return int(self.pool.subjects[self.pool.subject[first]]), int(self.pool.relation[first])


class Answerer:
    """A knowledge base with the pruners and scorers made for it so far."""

    def __init__(
        self, kb: KnowledgeBase, *, models: Path | None = None, tagger: str = TAGGER, device: str = "cpu"
    ) -> None:
        self.kb = kb
        self.models = models
        self.tagger = tagger
        self.device = device
        self.pruners: dict[str, Pruner] = {}
        self.scorers: dict[str, RelationScorer] = {}
        self.subject_scorers: dict[str, SubjectScorer] = {}
        self.chosen = read_weights(models)

    def pruner(self, name: str) -> Pruner:
        if name not in self.pruners:
            self.pruners[name] = make_pruner(name, self.kb, tagger=self.make_tagger, embedder=self.make_embedder)
        return self.pruners[name]

    def make_tagger(self) -> Tagger:
        return make_tagger(self.tagger, self.kb, models=self.models, device=self.device)

    def make_embedder(self) -> EmbedQuestions:
        return make_embedder(self.kb, models=self.models, device=self.device)

    def scorer(self, name: str) -> RelationScorer:
        if name not in self.scorers:
            self.scorers[name] = make_relation_scorer(name, self.kb, models=self.models, device=self.device)
        return self.scorers[name]

    def subject_scorer(self, name: str) -> SubjectScorer:
        if name not in self.subject_scorers:
            self.subject_scorers[name] = make_subject_scorer(name, self.kb, models=self.models, device=self.device)
        return self.subject_scorers[name]

    def weights(self, *, pruning: str, scorer: str, subject: str | None) -> Weights:
        """Give what each part of a score counts: as chosen for just these if it was, else the defaults."""
        key = ranking_key(pruning=self.pruning_key(pruning), scorer=scorer, subject=subject)
        return self.chosen.get(key, WITH_SUBJECT if subject else DEFAULT_WEIGHTS)

    def pruning_key(self, pruning: str) -> str:
        """Name a pruner, and the tagger or the subject scorer that guides it."""
        match guide_of(self.pruner(pruning)):
            case "tagger":
                return f"{pruning}/{self.tagger}"
            case "vectors":
                return f"{pruning}/{self.kb.vectors().origin.subject}"
        return pruning

    def query(
        self,
        text: str,
        *,
        pruning: str = DEFAULT,
        scorer: str = SCORER,
        subject: str | None = None,
        top: int | None = TOP,
    ) -> Result:
        """Answer a question; `top` limits the candidates, None keeps the whole pool.

        A question without candidates, an empty one among them, gives a result without any.
        """
        return self.result(self.ranked(text, pruning=pruning, scorer=scorer, subject=subject, top=top))

    def query_many(
        self,
        texts: Sequence[str],
        *,
        pruning: str = DEFAULT,
        scorer: str = SCORER,
        subject: str | None = None,
        top: int | None = TOP,
    ) -> Iterator[Result]:
        """Answer questions as `query` does, fetching what some of them need in the same requests."""
        for start in range(0, len(texts), TOGETHER):
            some = texts[start : start + TOGETHER]
            if len(some) > 1:
                self.kb.expect([Question.read(text) for text in some])
            ranked = [self.ranked(text, pruning=pruning, scorer=scorer, subject=subject, top=top) for text in some]
            self.kb.expect_objects([pair for one in ranked if (pair := one.best_pair)])
            for one in ranked:
                yield self.result(one)

    def ranked(self, text: str, *, pruning: str, scorer: str, subject: str | None, top: int | None) -> Ranked:
        """Prune and rank."""
        pruner, scored_by = self.pruner(pruning), self.scorer(scorer)
        subjects_by = self.subject_scorer(subject) if subject else None
        weights = self.weights(pruning=pruning, scorer=scorer, subject=subject)
        begun = time.perf_counter()
        question = Question.read(text)
        pool = gather_candidates(self.kb, pruner.links(question))
        ranking = rank(self.kb, question, pool, scorer=scored_by, subject=subjects_by, weights=weights, top=top)
        return Ranked(text, pruning, scorer, pool, ranking, time.perf_counter() - begun)

    def result(self, ranked: Ranked) -> Result:
        """Write out a ranking, and fetch the objects of its first candidate."""
        begun = time.perf_counter()
        found = self.candidates(ranked.text, ranked.pool, ranked.ranking)
        answers = self.answers(ranked)
        milliseconds = round(1000 * (ranked.seconds + time.perf_counter() - begun), 3)
        tied = ranked.ranking.tied
        return Result(ranked.text, ranked.pruning, ranked.scorer, found, tied, answers, milliseconds)

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

    def answers(self, ranked: Ranked) -> tuple[Answer, ...]:
        """Fetch the objects of the first candidate, by id."""
        pair = ranked.best_pair
        if pair is None:
            return ()
        objects = self.kb.objects_of(*pair)
        named = zip(self.kb.ids(objects), self.kb.names(objects), strict=True)
        return tuple(
            Answer(entity, name if name or not is_literal(entity) else literal_text(entity))
            for entity, name in sorted(named, key=lambda pair: pair[0])
        )
