"""N-grams: every run of a question's words, under each form that a name may have."""

from collections.abc import Collection, Sequence
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kbtools.text.ngrams import ngrams
from kbtools.text.normaliser import normal_form
from kbtools.text.question import Question, Token
from kbtools.text.rewritings import APOSTROPHE, join_apostrophes

TEXT = st.text(st.sampled_from("abÉ1 '’.&?!()…℀\u0301\u200b\ufe0f\U0001f600"), max_size=12)
LENGTHS = st.sets(st.integers(1, 6))
LONGEST = 16
"""Characters of the longest name of punctuation: twelve `…` have 36."""

FOUND = "form", "first", "last", "start", "end", "joined"


def found(text: str, lengths: Collection[int] = range(1, 20)) -> list[tuple[Any, ...]]:
    return [tuple(getattr(ngram, name) for name in FOUND) for ngram in ngrams(Question.read(text), lengths=lengths)]


def forms(text: str, lengths: Collection[int] = range(1, 20)) -> set[str]:
    return {ngram.form for ngram in ngrams(Question.read(text), lengths=lengths)}


def naive(text: str, lengths: Collection[int]) -> set[tuple[object, ...]]:
    """Every pair of words, every run of punctuation and its parts, in no order."""
    question = Question.read(text)
    tokens = question.tokens
    runs = [
        (
            first,
            last,
            tokens[first].start,
            tokens[last].end,
            [token.text for token in tokens[first : last + 1] if token.is_word],
        )
        for first in range(len(tokens))
        for last in range(first, len(tokens))
        if tokens[first].is_word and tokens[last].is_word
    ]
    plain = {(" ".join(words), first, last, a, b, False) for first, last, a, b, words in runs if len(words) in lengths}
    glued = {
        (normal_form(join_apostrophes(text[a:b])), first, last, a, b, True)
        for first, last, a, b, _ in runs
        if APOSTROPHE.search(text[a:b])
    }
    return plain | {run for run in glued if len(run[0].split()) in lengths} | naive_punctuation(tokens, text)


def naive_punctuation(tokens: Sequence[Token], text: str) -> set[tuple[object, ...]]:
    marks = [
        (character, position, start, end)
        for position, token in enumerate(tokens)
        if not token.is_word
        for character, start, end in naive_marks(token, text)
    ]
    return {
        (form, marks[a][1], marks[b][1], marks[a][2], marks[b][3], False)
        for a in range(len(marks))
        for b in range(a, len(marks))
        if len(form := "".join(mark[0] for mark in marks[a : b + 1])) <= LONGEST
        if not any(token.is_word for token in tokens[marks[a][1] : marks[b][1] + 1])
    }


def naive_marks(token: Token, text: str) -> list[tuple[str, int, int]]:
    """The characters of a run that can be seen, one by one."""
    apart = [(normal_form(text[at]), at, at + 1) for at in range(token.start, token.end)]
    return [mark for mark in apart if mark[0]]


@example("????????………", set())
@given(TEXT.filter(lambda text: len(APOSTROPHE.findall(text)) <= 2 and "℀" not in text), LENGTHS)
def test_ngrams_are_every_run_of_words_and_of_punctuation(text: str, lengths: Collection[int]) -> None:
    assert set(found(text, lengths)) == naive(text, lengths)


@given(TEXT, LENGTHS)
def test_no_ngram_comes_twice(text: str, lengths: Collection[int]) -> None:
    assert len(found(text, lengths)) == len(set(found(text, lengths)))


@given(TEXT)
def test_an_ngram_of_words_is_the_normal_form_of_its_span(text: str) -> None:
    spans = [ngram for ngram in found(text) if not ngram[5] and "℀" not in text]
    assert all(normal_form(text[start:end]) == form for form, _, _, start, end, _ in spans)


def test_ten_words_have_fifty_five_ngrams() -> None:
    assert len(found("who was it that wrote the book of the jungle")) == 55


def test_only_the_lengths_that_names_have_are_yielded() -> None:
    assert found("who wrote it", [2]) == [("who wrote", 0, 1, 0, 9, False), ("wrote it", 1, 2, 4, 12, False)]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("which genre of album is harder.....faster?", "Harder.....Faster"),
        ("what is red cloud's war about", "Red Clouds War"),
        ("what is red cloud 's war about", "Red Clouds War"),
        ("what is peter’s point", "Peters Point"),
        ("what is peterʼs point", "Peter's Point"),
        ("what is peterʼs point", "Peters Point"),
        ("who is d'artagnan's son", "Dartagnans Son"),
        ("who sang (what's the story) morning glory", "(What's the Story) Morning Glory"),
        ("who leads !!! now", "!!!"),
        ("who leads !!!?", "!!!"),
        ("who made the album ( )?", "( )"),
        ("who made the album ( )?", "()"),
        ("who sang … ?", "…"),
        ("who sang ...", "…"),
        ("who sang !\u200b!\u200b!", "!!!"),
        ("who wrote ?", "?"),
        ("who made i ❤\ufe0f huckabees", "I ❤ Huckabees"),
        ("who sang ❤\ufe0f", "❤"),
        ("who made AT & T", "AT&T"),
        ("what is m/s", "m/s"),
    ],
)
def test_a_name_is_among_the_forms_of_a_question_that_holds_it(text: str, name: str) -> None:
    assert normal_form(name) in forms(text)


def test_likely_runs_are_told_by_the_words_as_they_are_folded() -> None:
    asked: list[tuple[list[str], frozenset[int]]] = []

    def likely(words: Sequence[str], lengths: frozenset[int]) -> list[tuple[int, int]]:
        asked.append((list(words), lengths))
        return [(1, 2)]

    every = ngrams(Question.read("Who, wrote IT?"), lengths=[2, 3], likely=likely)

    assert asked == [(["who", "wrote", "it"], frozenset({2, 3}))]
    assert [(ngram.form, ngram.start, ngram.end) for ngram in every if ngram.form > "a"] == [("wrote it", 5, 13)]


def test_an_apostrophe_is_joined_to_a_name_of_fewer_words_than_the_question_has() -> None:
    assert ("lakers", 0, 2, 0, 7, True) in found("laker's", [1])
    assert ("dartagnans", 0, 4, 0, 12, True) in found("d'artagnan's", [1])


@pytest.mark.parametrize("text", ["", "   ", "\u200b"])
def test_a_question_of_nothing_has_no_ngram(text: str) -> None:
    assert found(text) == []


@pytest.mark.parametrize("text", ["word " * 5_000, "? " * 5_000, "?" * 5_000, "it's " * 5_000, "'s" * 5_000])
def test_a_long_question_costs_no_more_than_its_length(text: str) -> None:
    assert len(found(text, [1, 2, 3])) < 100_000


def test_a_run_longer_than_any_name_is_asked_for_in_parts_alone() -> None:
    assert max(map(len, forms("?" * 40))) == 16


@pytest.mark.parametrize(("marks", "read"), [(256, True), (257, False)])
def test_a_run_of_punctuation_has_at_most_256_marks(marks: int, read: bool) -> None:
    assert bool(ngrams(Question.read("!" * marks), lengths=[1])) is read
