"""The contract of taggers."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbtools.entry_points import TAGGERS, load_class
from kbtools.pruning.tagging import MOST_WORDS, words_of
from kbtools.suites.checking import TOLERANCE, Claim, check_claims, close, is_trainable, maker, rebuilt
from kbtools.suites.world import LONG, marked_questions, world
from kbtools.text.question import Question

Spans = list[NDArray[np.float64]]


def check_tagger(name: str) -> Iterator[str]:
    """Check a tagger, and yield each claim that holds."""
    plugin = load_class(TAGGERS, name)
    make = maker(TAGGERS, name, untrained=world())
    yield from check_claims(name, claims(make))
    if is_trainable(plugin):
        yield from check_claims(name, [("saved and loaded, it tags the same", lambda: is_rebuilt(make()))])


def claims(make: Callable[[], Any]) -> list[Claim]:
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


def is_rebuilt(tagger: Any) -> bool:
    questions = [marked.question for marked in marked_questions()]
    with tempfile.TemporaryDirectory() as folder:
        again = rebuilt(tagger, Path(folder, "model"), world())
    return same(tagger.spans(questions), again.spans(questions))
