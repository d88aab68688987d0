"""Names inside words: in scripts without spaces and before Korean particles."""

import pytest

from kbtools.text.normaliser import normal_form
from kbtools.text.question import Question
from kbtools.text.readings import are_parts, divisions, every_ngram, rewrite
from kbtools.text.rungs import Form
from tests.work import calls_of

LENGTHS = range(1, 4)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("成都的人口是多少？", "成都"),
        ("東京の人口は？", "東京"),
        ("서울의 인구는?", "서울"),
        ("서울에서는", "서울"),
        ("ประชากรของกรุงเทพเท่าไร", "กรุงเทพ"),
        ("ประเทศភ្នំពេញនៅ", "ភ្នំពេញ"),
        ("ရန်ကုန်မြို့သည်", "ရန်ကုန်"),
        ("iPhoneの値段", "iphone"),
        ("ジョン・レノンの妻", "ジョン レノン"),
    ],
)
def test_a_name_is_found_inside_a_run_of_letters(text: str, name: str) -> None:
    ngrams = [ngram for ngram in every_ngram(Question.read(text), lengths=LENGTHS) if ngram.form == normal_form(name)]

    assert {text[ngram.start : ngram.end].casefold().replace("・", " ") for ngram in ngrams} == {name}


def test_a_name_divided_by_a_dot_is_also_read_as_one_word() -> None:
    every = every_ngram(Question.read("ジョン・レノンの妻"), lengths=LENGTHS)

    spans = {
        ngram.reading: (ngram.form, ngram.start, ngram.end) for ngram in every if (ngram.start, ngram.end) == (0, 7)
    }
    assert spans == {Form.NORMAL: ("ジョン レノン", 0, 7), Form.OTHERWISE: ("ジョンレノン", 0, 7)}


def test_a_name_inside_a_run_has_two_to_twenty_four_characters() -> None:
    run = "一丁七万丈三上下不与丐丑专且世丘丙业丛东丝丞丢两严"
    forms = {ngram.form for ngram in every_ngram(Question.read(run + "的人口"), lengths=LENGTHS)}

    assert {run[:2], run[:24], run[1:25]} <= forms
    assert not forms & {run[:1], run[3:4], run[:25]}


@pytest.mark.parametrize("text", ["what is iphone", "où est łódź", "кто такой пушкин", "서울"])
def test_spaced_scripts_have_no_names_inside_words(text: str) -> None:
    question = Question.read(text)
    edges = {token.start for token in question.tokens} | {token.end for token in question.tokens}

    assert {edge for ngram in every_ngram(question, lengths=LENGTHS) for edge in (ngram.start, ngram.end)} <= edges


def test_a_long_run_costs_no_more_than_its_length() -> None:
    once, twice = (Question.read("成都的人口" * times) for times in (200, 400))

    assert calls_of(every_ngram, twice, lengths=LENGTHS) < 2.5 * calls_of(every_ngram, once, lengths=LENGTHS)


@pytest.mark.parametrize(
    "text", ["成都的人口", "서울의 인구는?", "ジョン・レノンの妻 who", "iPhoneの値段", "成都的人口 a b c d e"]
)
def test_no_ngram_comes_twice(text: str) -> None:
    ngrams = every_ngram(Question.read(text), lengths=LENGTHS)

    assert len(ngrams) == len(set(ngrams))


@pytest.mark.parametrize(("words", "forms"), [(1, {"b"}), (2, {"a b", "b a", "b b"})])
def test_words_are_rewritten_in_every_way_up_to_a_limit(words: int, forms: set[str]) -> None:
    table = {"a": [("a", "b")]}

    assert set(rewrite(["a"] * words, table)) == forms
    assert len(rewrite(["a"] * 9, table)) == 31


@pytest.mark.parametrize(
    ("word", "parts"),
    [
        ("NewYork", ["new york"]),
        ("route66", ["route 66"]),
        ("HTMLPage", ["html page"]),
        ("xyzzyq", ["xy zzyq", "xyz zyq", "xyzz yq"]),
        ("xyzzy", []),
        ("xyzzy'q", []),
        ("because", []),
        ("Because", []),
        ("aardvark", []),
        ("abdomen", ["ab domen", "abd omen", "abdo men", "abdom en"]),
        ("x" * 24, [f"{'x' * at} {'x' * (24 - at)}" for at in range(2, 23)]),
        ("x" * 25, []),
    ],
)
def test_a_word_is_divided_at_its_humps_or_a_rare_one_at_each_letter(word: str, parts: list[str]) -> None:
    assert divisions(word) == parts


@pytest.mark.parametrize(
    ("before", "word", "joined"),
    [("super", "man", True), ("xy", "zzyq", True), ("x", "yzzyq", False), ("ab", "cde", False),
     ("the", "mummy", False), ("blink", "182", False)],
)  # fmt: skip
def test_two_content_words_of_some_length_may_be_one(before: str, word: str, joined: bool) -> None:
    assert are_parts(before, word) is joined


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ("who is #NewYork now", {"new york": "NewYork", "is new york": "is #NewYork", "new york now": "NewYork now",
                                 "is new york now": "is #NewYork now", "newyorknow": "NewYork now",
                                 "is newyorknow": "is #NewYork now"}),
        ("#super man", {"superman": "super man"}),
        ("the #super man is", {"superman": "super man", "the superman": "the #super man", "superman is": "super man is",
                               "the superman is": "the #super man is"}),
        ("# ab cde", {}),
        ("who is NewYork", {}),
    ],
)  # fmt: skip
def test_words_of_a_tag_are_written_apart_or_together_with_a_word_on_either_side(
    text: str, spans: dict[str, str]
) -> None:
    every = every_ngram(Question.read(text), lengths=range(1, 5))
    otherwise = [ngram for ngram in every if ngram.reading is Form.OTHERWISE]

    assert len(otherwise) == len({ngram.form for ngram in otherwise})
    assert {ngram.form: text[ngram.start : ngram.end] for ngram in otherwise} == spans
