"""The contracts of taggers and of pruners; a tagger and vectors that know nothing guide a pruner here."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbtools.entry_points import TAGGERS, load_class
from kbtools.kb.vector_index import ExactVectors
from kbtools.linking.links import Link
from kbtools.pruning.pruners import MOST_WORDS, Pruner, make_pruner, words_of
from kbtools.suites.checking import (
    LONG,
    QUESTIONS,
    TOLERANCE,
    Claim,
    check_claims,
    close,
    is_trainable,
    maker,
    marked_questions,
    rebuilt,
    world,
)
from kbtools.text.question import MarkedQuestion, Question
from kbtools.text.rungs import Rung

Spans = list[NDArray[np.float64]]


class EvenTagger:
    """A tagger that holds every n-gram equally probable."""

    def spans(self, questions: Sequence[Question]) -> list[NDArray[np.float64]]:
        # n words have n (n + 1) / 2 spans: the upper triangle shares the probability evenly.
        counts = [len(words_of(question)) for question in questions]
        return [
            np.where(np.triu(np.ones((count, count))) == 1, -np.log(max(1, count * (count + 1) / 2)), -np.inf)
            for count in counts
        ]


def embed_evenly(questions: Sequence[MarkedQuestion]) -> NDArray[np.float32]:
    """Embed every question as the first direction."""
    return np.tile(np.eye(3, dtype=np.float32)[0], (len(questions), 1))


def check_pruner(name: str) -> Iterator[str]:
    """Check a pruner, and yield each claim that holds."""
    # Vectors that mean nothing: the contract of a dense pruner does not depend on what is near.
    kb: Any = world()
    count = kb.manifest.counts["entities"].unique
    vectors = np.random.default_rng(7).normal(size=(count, 3)).astype(np.float32)
    kb.vector_index = ExactVectors(np.arange(count, dtype=np.uint32), vectors)
    yield from check_claims(
        name, pruner_claims(lambda: make_pruner(name, kb, tagger=EvenTagger, embedder=lambda: embed_evenly), count)
    )


def pruner_claims(make: Callable[[], Pruner], entities: int) -> list[Claim]:
    texts = [text for text, _ in QUESTIONS]

    def links(text: str) -> list[Link]:
        return make().links([Question.read(text)])[0]

    def each(holds: Callable[[Link], bool]) -> bool:
        return all(holds(link) for text in texts for link in links(text))

    def in_order(sequence: Sequence[str]) -> dict[str, list[object]]:
        pruner = make()
        return {text: spelt(pruner.links([Question.read(text)])[0]) for text in sequence}

    def together() -> dict[str, list[object]]:
        return dict(zip(texts, map(spelt, make().links([Question.read(text) for text in texts])), strict=True))

    return [
        ("an empty question has no links", lambda: links("") == links("   ") == []),
        (
            "a mention lies within the text of its question",
            lambda: all(0 <= link.start < link.end <= len(text) for text in texts for link in links(text)),
        ),
        (
            "a link has entities of the knowledge base, each once and ascending",
            lambda: each(lambda link: are_entities(link.entities, entities)),
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


def are_entities(rows: NDArray[np.uint32], entities: int) -> bool:
    return len(rows) > 0 and bool((np.diff(rows.astype(np.int64)) > 0).all()) and int(rows[-1]) < entities


def spelt(links: list[Link]) -> list[object]:
    """Write links out as what can be compared."""
    return [(*link[:5], link.entities.tolist(), *link[6:]) for link in links]


def check_tagger(name: str) -> Iterator[str]:
    """Check a tagger, and yield each claim that holds."""
    plugin = load_class(TAGGERS, name)
    make = maker(TAGGERS, name, untrained=world())
    yield from check_claims(name, tagger_claims(make))
    if is_trainable(plugin):
        yield from check_claims(name, [("saved and loaded, it tags the same", lambda: is_tagger_rebuilt(make()))])


def tagger_claims(make: Callable[[], Any]) -> list[Claim]:
    questions = [marked.question for marked in marked_questions()]
    endless = Question.read("texas " + "and so on " * MOST_WORDS)

    def tag(batch: list[Question]) -> Spans:
        spans: Spans = make().spans(batch)
        return spans

    return [
        (
            "each question has spans (words, words)",
            lambda: [span.shape for span in tag(questions)] == [(len(words_of(q)),) * 2 for q in questions],
        ),
        ("log-probabilities are at most 0", lambda: all((span <= TOLERANCE).all() for span in tag(questions))),
        (
            "they are minus infinity where a span would end before it begins, and numbers elsewhere",
            lambda: all(map(is_triangular, tag(questions))),
        ),
        (
            "the probabilities of a question's spans add up to 1 at most",
            lambda: all(np.exp(span).sum() <= 1 + TOLERANCE for span in tag(questions)),
        ),
        (
            "the size of a batch changes nothing",
            lambda: same(tag(questions), [span for question in questions for span in tag([question])]),
        ),
        ("the order of questions changes nothing", lambda: same(tag(questions), tag(questions[::-1])[::-1])),
        (
            "a longer question beside it changes nothing",
            lambda: same(tag(questions), tag([*questions, Question.read(LONG)])[:-1]),
        ),
        ("same seed, same spans", lambda: same(tag(questions), tag(questions))),
        ("no questions, no spans", lambda: tag([]) == []),
        (
            f"of a longer question the first {MOST_WORDS} words are read",
            lambda: tag([endless])[0].shape == (MOST_WORDS, MOST_WORDS),
        ),
    ]


def is_triangular(span: NDArray[np.float64]) -> bool:
    # The upper triangle, diagonal included, is the spans that end where they begin or later.
    upper = np.triu(np.ones(span.shape, dtype=bool))
    return bool(np.isfinite(span[upper]).all() and (span[~upper] == -np.inf).all())


def same(spans: Spans, expected: Spans) -> bool:
    return len(spans) == len(expected) and all(map(close, spans, expected))


def is_tagger_rebuilt(tagger: Any) -> bool:
    questions = [marked.question for marked in marked_questions()]
    with tempfile.TemporaryDirectory() as folder:
        again = rebuilt(tagger, Path(folder, "model"), world())
    return same(tagger.spans(questions), again.spans(questions))
