"""The contracts of scorers, taggers, rankers and pruners.

A ranker learns from candidates in which one feature marks the gold one, with noise. Pruners are guided by a uniform
tagger and random vectors.
"""

import functools
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbtools.entry_points import RANKERS, SCORERS, SUBJECT_SCORERS, TAGGERS, construct, import_object, load_class
from kbtools.kb.vector_index import ExactVectors
from kbtools.linking.links import Link
from kbtools.pruning.pruners import MOST_WORDS, Pruner, make_pruner, words_of
from kbtools.ranking.contracts import Trained, VectorScorer, ZeroShot, as_scores
from kbtools.ranking.features import Features
from kbtools.suites.claims import (
    QUESTIONS,
    TOLERANCE,
    Claim,
    batch_claims,
    check_claims,
    close,
    is_trainable,
    maker,
    marked_questions,
    saved_and_loaded,
    world,
)
from kbtools.text.question import MarkedQuestion, Question
from kbtools.text.rungs import Rung

_LEARNED_FROM, _CANDIDATES = 300, 6
"""Questions that a ranker learns from, and candidates of each, enough for leaves of a hundred candidates."""


def check_relation_scorer(name: str) -> Iterator[str]:
    """Check a relation scorer, and yield each claim that holds."""
    plugin = load_class(SCORERS, name)
    make_untrained = plugin.zero_shot if isinstance(plugin, ZeroShot) else plugin
    if isinstance(plugin, ZeroShot) or not isinstance(plugin, Trained):
        yield from check_claims(name, _untrained_claims(name, make_untrained))
    if isinstance(plugin, Trained):
        make = maker(SCORERS, name, untrained=world().relations)
        claims = [
            ("saved and loaded, it scores the same", lambda: _is_relation_scorer_rebuilt(make())),
            ("its gradients are finite", lambda: _has_finite_gradients(plugin)),
        ]
        yield from check_claims(name, [*_relation_claims(name, make), *claims])
    if hasattr(plugin, "score_some"):
        make = maker(SCORERS, name, untrained=world().relations)
        yield from check_claims(
            name, [("some relations score as they do with all", lambda: _scores_some_alike(make()))]
        )


def _untrained_claims(name: str, plugin: Callable[[Sequence[str]], Any]) -> list[Claim]:
    """Return the claims about a scorer that is made only from the relations."""

    def score(relations: Sequence[str]) -> NDArray[Any]:
        return np.asarray(construct(name, lambda: plugin(relations)).score(marked_questions()))

    relations = world().relations
    return [
        *_relation_claims(name, lambda: construct(name, lambda: plugin(relations))),
        ("the order of relations changes no score", lambda: close(score(relations), score(relations[::-1])[:, ::-1])),
    ]


def _relation_claims(name: str, make: Callable[[], Any]) -> list[Claim]:
    model = functools.cache(make)

    def score(batch: list[MarkedQuestion], make: Callable[[], Any] = model) -> NDArray[np.float64]:
        return as_scores(make().score(batch), scorer=name, shape=(len(batch), len(world().relations)))

    return [
        ("a finite score for every relation of every question", lambda: score(marked_questions()) is not None),
        *batch_claims("score", score, lambda batch: score(batch, make)),
        ("no questions, no scores", lambda: np.size(model().score([])) == 0),
    ]


def _scores_some_alike(scorer: Any) -> bool:
    """Return whether `score_some` agrees with `score`."""
    some = np.arange(1, len(world().relations), 2, dtype=np.uint32)[::-1]
    questions = marked_questions()
    return close(scorer.score_some(questions, some), scorer.score(questions)[:, some])


def _is_relation_scorer_rebuilt(scorer: Any) -> bool:
    again = saved_and_loaded(scorer, world())
    return bool(np.array_equal(scorer.score(marked_questions()), again.score(marked_questions())))


def _has_finite_gradients(plugin: object) -> bool:
    small_task: Callable[..., Any] = import_object("kbtools.scorers.fitting.training:small_task")
    with tempfile.TemporaryDirectory() as models:
        task = small_task(plugin, world(), marked_questions(), models=Path(models))
        task.network.train()
        # One question at a time, since an encoder takes texts of one length.
        for row in range(len(task.lengths)):
            task.loss(np.array([row])).sum().backward()
    gradients = [parameter.grad for parameter in task.network.parameters() if parameter.grad is not None]
    return bool(gradients) and all(bool(gradient.isfinite().all()) for gradient in gradients)


def check_subject_scorer(name: str) -> Iterator[str]:
    """Check a subject scorer, and yield each claim that holds."""
    make = maker(SUBJECT_SCORERS, name, untrained=world())
    claims = _subject_claims(name, make)
    if is_trainable(load_class(SUBJECT_SCORERS, name)):
        claims.append(("saved and loaded, it scores the same", lambda: _is_subject_scorer_rebuilt(name, make())))
    if isinstance(make(), VectorScorer):
        claims.append(("its vectors are finite and of its dim", lambda: _has_vectors(make())))
    yield from check_claims(name, claims)


def _every_subject() -> NDArray[np.uint32]:
    return np.arange(world().manifest.counts["entities"].unique, dtype=np.uint32)


def _score_all(name: str, scorer: Any, questions: list[MarkedQuestion]) -> NDArray[np.float64]:
    """Return the score of every entity for every question: (questions, entities)."""
    # One row for each entity of each question.
    which = np.repeat(np.arange(len(questions)), len(_every_subject()))
    subjects = np.tile(_every_subject(), len(questions))
    scores = as_scores(scorer.score(questions, which=which, subjects=subjects), scorer=name, shape=(len(subjects),))
    return scores.reshape(len(questions), -1)


def _subject_claims(name: str, make: Callable[[], Any]) -> list[Claim]:
    model, questions, subjects = functools.cache(make), marked_questions(), _every_subject()

    def score(batch: list[MarkedQuestion]) -> NDArray[np.float64]:
        return _score_all(name, model(), batch)

    def score_subjects(rows: NDArray[np.uint32]) -> NDArray[np.float64]:
        which = np.zeros(len(rows), dtype=np.int64)
        scores = model().score(questions[:1], which=which, subjects=rows)
        return as_scores(scores, scorer=name, shape=(len(rows),))

    return [
        ("a finite score for every subject of every question", lambda: score(questions) is not None),
        *batch_claims("score", score, lambda batch: _score_all(name, make(), batch)),
        (
            "the order of subjects changes no score",
            lambda: close(score_subjects(subjects), score_subjects(subjects[::-1])[::-1]),
        ),
        (
            "other subjects beside it change no score",
            lambda: close(score_subjects(subjects)[:2], score_subjects(subjects[:2])),
        ),
        ("no subjects, no scores", lambda: score_subjects(subjects[:0]).size == 0),
    ]


def _is_subject_scorer_rebuilt(name: str, scorer: Any) -> bool:
    again = saved_and_loaded(scorer, world())
    scores, expected = (_score_all(name, each, marked_questions()) for each in (scorer, again))
    return bool(np.array_equal(scores, expected))


def _has_vectors(scorer: VectorScorer) -> bool:
    vectors = scorer.embed_questions(marked_questions()), scorer.embed_subjects(_every_subject())
    counts = len(marked_questions()), len(_every_subject())
    return all(
        np.shape(table) == (count, scorer.dim) and bool(np.isfinite(table).all())
        for table, count in zip(vectors, counts, strict=True)
    )


class EvenTagger:
    """A tagger in which every n-gram is equally probable."""

    def spans(self, questions: Sequence[Question]) -> list[NDArray[np.float64]]:
        # n words have n (n + 1) / 2 spans, the upper triangle, which share the probability equally.
        counts = [len(words_of(question)) for question in questions]
        return [
            np.where(np.triu(np.ones((count, count))) == 1, -np.log(max(1, count * (count + 1) / 2)), -np.inf)
            for count in counts
        ]


def check_tagger(name: str) -> Iterator[str]:
    """Check a tagger, and yield each claim that holds."""
    make = maker(TAGGERS, name, untrained=world())
    claims = _tagger_claims(make)
    if is_trainable(load_class(TAGGERS, name)):
        claims.append(("saved and loaded, it tags the same", lambda: _is_tagger_rebuilt(make())))
    yield from check_claims(name, claims)


def _tagger_claims(make: Callable[[], Any]) -> list[Claim]:
    model, questions = functools.cache(make), marked_questions()
    endless = MarkedQuestion(Question.read("texas " + "and so on " * MOST_WORDS), 0, 0)

    def tag(batch: list[MarkedQuestion]) -> list[NDArray[np.float64]]:
        return _spans_of(model(), batch)

    return [
        (
            "each question has spans (words, words)",
            lambda: [span.shape for span in tag(questions)] == [(len(words_of(q.question)),) * 2 for q in questions],
        ),
        ("log-probabilities are at most 0", lambda: all((span <= TOLERANCE).all() for span in tag(questions))),
        (
            "they are minus infinity if a span would end before it begins, and numbers otherwise",
            lambda: all(map(_is_triangular, tag(questions))),
        ),
        (
            "the probabilities of a question's spans add up to 1 at most",
            lambda: all(np.exp(span).sum() <= 1 + TOLERANCE for span in tag(questions)),
        ),
        *batch_claims("span", tag, lambda batch: _spans_of(make(), batch)),
        ("no questions, no spans", lambda: tag([]) == []),
        (
            f"the first {MOST_WORDS} words of a longer question are read",
            lambda: tag([endless])[0].shape == (MOST_WORDS, MOST_WORDS),
        ),
    ]


def _spans_of(tagger: Any, questions: list[MarkedQuestion]) -> list[NDArray[np.float64]]:
    spans: list[NDArray[np.float64]] = tagger.spans([marked.question for marked in questions])
    return spans


def _is_triangular(span: NDArray[np.float64]) -> bool:
    # The upper triangle with its diagonal holds the spans that do not end before they begin.
    upper = np.triu(np.ones(span.shape, dtype=bool))
    return bool(np.isfinite(span[upper]).all() and (span[~upper] == -np.inf).all())


def _is_tagger_rebuilt(tagger: Any) -> bool:
    again = saved_and_loaded(tagger, world())
    return all(map(close, _spans_of(tagger, marked_questions()), _spans_of(again, marked_questions())))


def check_ranker(name: str) -> Iterator[str]:
    """Check a ranker, and yield each claim that holds."""
    plugin = load_class(RANKERS, name)
    features, gold = _draw_candidates(seed=1)
    yield from check_claims(
        name, _ranker_claims(name, lambda: construct(name, lambda: plugin.fit(features, gold, seed=1)))
    )


def _draw_candidates(*, seed: int) -> tuple[Features, NDArray[np.bool_]]:
    """Return random candidates with three features, the first of which usually marks the gold candidate."""
    random = np.random.default_rng(seed)
    values = random.normal(size=(_LEARNED_FROM * _CANDIDATES, 3))
    liked = (values[:, 0] + 0.1 * random.normal(size=len(values))).reshape(_LEARNED_FROM, _CANDIDATES)
    gold = np.arange(_CANDIDATES) == liked.argmax(axis=1)[:, np.newaxis]
    names = ("relation.mean", "subject", "mention")
    return Features(names, values, np.full(_LEARNED_FROM, _CANDIDATES)), gold.reshape(-1)


def _ranker_claims(name: str, make: Callable[[], Any]) -> list[Claim]:
    ranker = make()
    features, gold = _draw_candidates(seed=2)
    some, none = (features.of(np.arange(_LEARNED_FROM) < count) for count in (2, 0))
    backwards = Features(features.names, features.values[::-1], features.counts[::-1])

    def score(fitted: Any, asked: Features) -> NDArray[np.float64]:
        return as_scores(fitted.score(asked), scorer=name, shape=(len(asked.values),))

    def explain(asked: Features) -> NDArray[np.float64]:
        return as_scores(ranker.explain(asked), scorer=name, shape=asked.values.shape)

    scores = score(ranker, features)
    best, right = (values.reshape(_LEARNED_FROM, _CANDIDATES).argmax(axis=1) for values in (scores, gold))
    return [
        ("it learns a feature that predicts new questions", lambda: bool((best == right).mean() > 0.5)),
        ("the contributions of its features add up to the score", lambda: close(explain(features).sum(axis=1), scores)),
        ("other questions beside it change no score", lambda: close(score(ranker, some), scores[: len(some.values)])),
        ("the order of candidates changes no score", lambda: close(score(ranker, backwards)[::-1], scores)),
        ("same seed, same scores", lambda: bool(np.array_equal(score(make(), features), scores))),
        (
            "saved and loaded, it scores the same",
            lambda: bool(np.array_equal(score(saved_and_loaded(ranker), features), scores)),
        ),
        ("no candidates, no scores", lambda: score(ranker, none).size == 0),
    ]


def _embed_evenly(questions: Sequence[MarkedQuestion]) -> NDArray[np.float32]:
    """Return the same vector for every question."""
    return np.tile(np.eye(3, dtype=np.float32)[0], (len(questions), 1))


def check_pruner(name: str) -> Iterator[str]:
    """Check a pruner, and yield each claim that holds."""
    # Random vectors, since the contract does not depend on what is near.
    kb: Any = world()
    count = kb.manifest.counts["entities"].unique
    vectors = np.random.default_rng(7).normal(size=(count, 3)).astype(np.float32)
    kb.vector_index = ExactVectors(np.arange(count, dtype=np.uint32), vectors)
    yield from check_claims(
        name, _pruner_claims(lambda: make_pruner(name, kb, tagger=EvenTagger, embedder=lambda: _embed_evenly), count)
    )


def _pruner_claims(make: Callable[[], Pruner], entities: int) -> list[Claim]:
    texts = [text for text, _ in QUESTIONS]

    def links(text: str) -> list[Link]:
        return make().links([Question.read(text)])[0]

    def each(holds: Callable[[Link], bool]) -> bool:
        return all(holds(link) for text in texts for link in links(text))

    def in_order(sequence: Sequence[str]) -> dict[str, list[object]]:
        pruner = make()
        return {text: _spelt(pruner.links([Question.read(text)])[0]) for text in sequence}

    def together() -> dict[str, list[object]]:
        return dict(zip(texts, map(_spelt, make().links([Question.read(text) for text in texts])), strict=True))

    return [
        ("an empty question has no links", lambda: links("") == links("   ") == []),
        (
            "a mention lies within the text of its question",
            lambda: all(0 <= link.start < link.end <= len(text) for text in texts for link in links(text)),
        ),
        (
            "a link has entities of the knowledge base, each once and ascending",
            lambda: each(lambda link: _are_entities(link.entities, entities)),
        ),
        ("a rung is one of the ladder", lambda: each(lambda link: link.rung in Rung)),
        (
            "a weight is a finite number, a similarity more than 0 and at most 100",
            lambda: each(lambda link: bool(np.isfinite(link.weight)) and 0 < link.similarity <= 100),
        ),
        ("asked again, it gives the same links", lambda: in_order(texts) == in_order(texts)),
        ("questions asked before change no link", lambda: in_order(texts) == in_order(texts[::-1])),
        ("questions pruned together keep the links that each has alone", lambda: together() == in_order(texts)),
        ("a question of five thousand words is answered", lambda: links("dune " * 5_000) is not None),
    ]


def _are_entities(rows: NDArray[np.uint32], entities: int) -> bool:
    return len(rows) > 0 and bool((np.diff(rows.astype(np.int64)) > 0).all()) and int(rows[-1]) < entities


def _spelt(links: list[Link]) -> list[object]:
    """Return links in a comparable form."""
    return [(*link[:5], link.entities.tolist(), *link[6:]) for link in links]
