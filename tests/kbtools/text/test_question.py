"""Questions: what is read of them, and the words around a mention."""

import pytest

from kbtools.text.question import MarkedQuestion, Question


def test_words_within_reach_of_a_mention_speak_of_the_relation() -> None:
    words = [f"w{place}" for place in range(200)]
    text = " ".join(words)
    start = text.index("w100 ")

    marked = MarkedQuestion(Question.read(text), start, start + 4)

    assert marked.words() == words[100 - 64 : 100 + 65]
    assert marked.context() == words[100 - 64 : 100] + words[101 : 100 + 65]


def test_a_short_question_is_read_whole_and_its_mention_is_one_symbol() -> None:
    marked = MarkedQuestion(Question.read("who wrote harry potter, and why?"), 10, 22)

    assert marked.words(symbol="<m>") == ["who", "wrote", "<m>", "and", "why"]
    assert marked.words() == ["who", "wrote", "harry", "potter", "and", "why"]


def test_of_a_very_long_question_the_end_is_not_read() -> None:
    question = Question.read("a " * 10_000 + "end")

    assert (len(question.tokens), question.unread) == (10_000, 3)


def test_the_same_words_beside_the_mention_are_no_part_of_it() -> None:
    marked = MarkedQuestion(Question.read("dune by dune, duneless"), 0, 4)

    assert marked.words(symbol="<m>") == ["<m>", "by", "dune", "duneless"]
    assert marked.context() == ["by", "dune", "duneless"]


def test_a_word_that_goes_beyond_the_mention_is_no_part_of_it() -> None:
    marked = MarkedQuestion(Question.read("the book of dune"), 5, 15)

    assert marked.words(symbol="<m>") == ["the", "book", "<m>", "dune"]
    assert marked.context() == ["the", "book", "dune"]


def test_fewer_letters_are_read_of_scripts_without_spaces() -> None:
    question = Question.read("\u5b57" * 2_001 + " a ")

    assert (question.tokens[-1].end, question.unread) == (2_000, 3)
    assert Question.read("\u5b57" * 2_000).unread == 0


def test_a_question_is_a_value_that_nobody_changes() -> None:
    one, other = (MarkedQuestion(Question.read("who wrote dune"), 10, 14) for _ in range(2))

    assert (one, hash(one)) == (other, hash(other))
    for record, name in ((one, "start"), (one.question, "text")):
        with pytest.raises(AttributeError):
            setattr(record, name, 3)
