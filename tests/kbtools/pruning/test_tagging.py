"""Tagging: the words that a tagger reads, and which of them a mention covers."""

import pytest

from kbtools.pruning.pruners import opening, word_places, word_span, words_of
from kbtools.text.ngrams import Ngram
from kbtools.text.question import Question


def test_a_tagger_reads_a_hundred_words() -> None:
    words = [f"w{place}" for place in range(150)]
    question = Question.read(" , ".join(words))

    assert words_of(question) == words[:100]
    assert word_places(question) == list(range(0, 200, 2))
    assert opening(question).text == question.text
    assert words_of(Question.read(" ".join(words[:100]))) == words[:100]


@pytest.mark.parametrize(
    ("first", "last", "span"), [(0, 0, (0, 0)), (2, 4, (1, 2)), (1, 1, None), (1, 2, (1, 1)), (198, 200, (99, 99))]
)
def test_a_mention_covers_words(first: int, last: int, span: tuple[int, int] | None) -> None:
    question = Question.read(" , ".join(["word"] * 150))

    assert word_span(question, Ngram("", first, last, 0, 0)) == span
