"""Answer questions: prune, score, rank, fetch the objects; the Python side of `kbtools query`."""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from kbtools.kb.contract import KnowledgeBase
from kbtools.kb.ids import is_literal, literal_text
from kbtools.linking.links import Link
from kbtools.plugins import BACKENDS, load_class
from kbtools.pruning.dense import EmbedQuestions
from kbtools.pruning.pruners import DEFAULT, Pruner, guide_of, make_pruner, prune
from kbtools.pruning.tagging import Tagger
from kbtools.ranking.contracts import RelationScorer, SubjectScorer
from kbtools.ranking.models import make_embedder, make_relation_scorer, make_subject_scorer, make_tagger
from kbtools.ranking.order import Ranking, rank
from kbtools.ranking.pools import Pools, gather_pool, order_links
from kbtools.ranking.weights import Weights, default_weights, ranking_key, read_weights
from kbtools.results import Answer, Candidate, Mention, Result
from kbtools.text.question import Question

SCORER = "lexical"
TAGGER = "bigru-crf+"
TOP = 10

TOGETHER = 64
"""Questions that are announced together: on a cluster their names are asked for in one request."""


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
class LinkedPool:
    """The links that a pruner keeps of a question, the better first, and the pool that they open up."""

    links: list[Link]
    pool: Pools


@dataclass(frozen=True, slots=True, eq=False)
class RankedPool:
    """A question with its links, its ranked pool, and the seconds that took."""

    text: str
    pruning: str
    scorer: str
    links: list[Link]
    pool: Pools
    ranking: Ranking
    seconds: float

    @property
    def best_pair(self) -> tuple[int, int] | None:
        """Give the subject and relation that stand first, as rows."""
        if not self.ranking.best:
            return None
        first = self.ranking.best[0]
        return int(self.pool.subject_of_pair[first]), int(self.pool.relation_of_pair[first])


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
        self.weights_by_key = read_weights(models)

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
        return self.weights_by_key.get(key, default_weights(subject))

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
        texts: Iterable[str],
        *,
        pruning: str = DEFAULT,
        scorer: str = SCORER,
        subject: str | None = None,
        top: int | None = TOP,
    ) -> Iterator[Result]:
        """Answer questions as `query` does, fetching what some of them need in the same requests."""
        remaining = iter(texts)
        while batch := list(islice(remaining, TOGETHER)):
            if len(batch) > 1:
                self.kb.expect([Question.read(text) for text in batch])
            pools = [self.ranked(text, pruning=pruning, scorer=scorer, subject=subject, top=top) for text in batch]
            self.kb.expect_objects([pair for ranked in pools if (pair := ranked.best_pair)])
            for ranked in pools:
                yield self.result(ranked)

    def gather(self, question: Question, *, pruning: str) -> LinkedPool:
        """Prune: link a question, and open the links up."""
        links = order_links(prune(self.pruner(pruning), question))
        return LinkedPool(links, gather_pool(self.kb, links))

    def ranked(self, text: str, *, pruning: str, scorer: str, subject: str | None, top: int | None) -> RankedPool:
        """Prune and rank."""
        self.pruner(pruning)  # made before the clock starts, as the scorers are
        relations_by = self.scorer(scorer)
        subjects_by = self.subject_scorer(subject) if subject else None
        weights = self.weights(pruning=pruning, scorer=scorer, subject=subject)
        begun = time.perf_counter()
        question = Question.read(text)
        linked = self.gather(question, pruning=pruning)
        ranking = rank(
            self.kb, question, linked.pool, scorer=relations_by, subject=subjects_by, weights=weights, top=top
        )
        seconds = time.perf_counter() - begun
        return RankedPool(text, pruning, scorer, linked.links, linked.pool, ranking, seconds)

    def result(self, ranked: RankedPool) -> Result:
        """Write out a ranking, and fetch the objects of its first candidate."""
        begun = time.perf_counter()
        candidates, answers = self.candidates(ranked), self.answers(ranked)
        milliseconds = round(1000 * (ranked.seconds + time.perf_counter() - begun), 3)
        return Result(
            ranked.text, ranked.pruning, ranked.scorer, candidates, ranked.ranking.tied, answers, milliseconds
        )

    def candidates(self, ranked: RankedPool) -> tuple[Candidate, ...]:
        """Write out the best candidates of a pool."""
        pool, ranking = ranked.pool, ranked.ranking
        best = np.array(ranking.best, dtype=np.int64)
        subjects = pool.subject_of_pair[best]
        ids, names = self.kb.ids(subjects), self.kb.names(subjects)
        candidates = []
        for position, subject, name in zip(ranking.best, ids, names, strict=True):
            link = ranked.links[pool.link_of_pair[position]]
            candidates.append(
                Candidate(
                    subject=subject,
                    subject_name=name,
                    relation=self.kb.relations[int(pool.relation_of_pair[position])],
                    score=float(ranking.scores[position]),
                    mention=Mention(ranked.text[link.start : link.end], link.start, link.end),
                    matched_name=link.name,
                    rung=link.rung.label,
                    parts={part: round(float(values[position]), 6) for part, values in ranking.parts.items()},
                )
            )
        return tuple(candidates)

    def answers(self, ranked: RankedPool) -> tuple[Answer, ...]:
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
