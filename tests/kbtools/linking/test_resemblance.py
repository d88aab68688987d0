"""Resemblance: which mentions may be misspellings of which names, word by word."""

import pytest

from kbtools.linking.fuzzy import NearName
from kbtools.linking.similarity import Resemblance, resemblance, singular
from kbtools.text.ngrams import Ngram


@pytest.mark.parametrize(
    ("mention", "name", "words", "slips", "lost"),
    [
        ("missisippi river", "mississippi river", "mississippi river", 1, 0),
        ("marta quinlan", "martha quinlan", "martha quinlan", 1, 0),
        ("anne teller", "ann teller", "ann teller", 1, 0),
        ("the dark kinght", "the dark knight", "the dark knight", 1, 0),
        ("hypothermia", "hyperthermia", "hyperthermia", 2, 0),
        ("joan strelow", "joan p strelow", "joan strelow", 0, 1),
        ("brenna k clinnok", "brenna clinnock", "brenna clinnock", 1, 1),
        ("b vitulina", "barella vitulina", "barella vitulina", 1, 0),
        ("keeper of seven lamps", "the keeper of the seven lamps", "keeper of seven lamps", 0, 2),
        ("winter bell", "winter bell ringers", "winter bell", 0, 1),
        ("function test", "function tests", "function tests", 1, 0),
        ("old city", "old cities", "old cities", 1, 0),
        ("vankerk", "van kerk", "van kerk", 0, 0),
        ("mc dorran", "mcdorran", "mcdorran", 0, 0),
        ("abc def", "abcdef", "abcdef", 0, 0),
    ],
)
def test_a_mention_stands_for_the_words_of_a_name(mention: str, name: str, words: str, slips: int, lost: int) -> None:
    alike = resemblance(mention, name)

    assert alike is not None
    assert (" ".join(alike.words), alike.slips, alike.lost) == (words, slips, lost)
    assert alike.score == len(words.split()) - lost
    assert alike.is_slip is (slips <= 1 and lost == 0)


@pytest.mark.parametrize(
    ("mention", "name"),
    [
        pytest.param("memory b cell", "memory t cell", id="other initial"),
        pytest.param("north korea", "south korea", id="other word"),
        pytest.param("word one", "word one word two", id="half a title"),
        pytest.param("in france", "france", id="the name itself is in the mention"),
        pytest.param("pirates of the", "pirates of the caribbean", id="ends in function words"),
        pytest.param("orla vennick", "orla venn", id="a longer word"),
        pytest.param("cat", "bat", id="a short word"),
        pytest.param("xylo", "x", id="an initial alone"),
        pytest.param("the of", "the on", id="nothing but function words"),
        pytest.param("ab cde", "abcde", id="few letters that are joined"),
        pytest.param("the river rhine", "river rhine", id="the name and an article more"),
    ],
)
def test_other_words_are_no_misspelling(mention: str, name: str) -> None:
    assert resemblance(mention, name) is None


@pytest.mark.parametrize(
    ("plural", "word"),
    [("foxes", "fox"), ("cities", "city"), ("tests", "test"), ("glass", "glass"), ("buses", "bus"), ("ties", "tie")],
)
def test_plurals_lose_their_ending(plural: str, word: str) -> None:
    assert singular(plural) == word


def test_the_nearest_name_shares_more_words_is_more_similar_longer_and_earlier() -> None:
    def near(score: int, similarity: float, first: int, last: int) -> NearName:
        return NearName(Ngram("", first, last, 0, 0), "", similarity, Resemblance(("word",) * score, 1, 0))

    ordered = [near(2, 80, 5, 5), near(1, 95, 5, 5), near(1, 90, 3, 4), near(1, 90, 0, 0), near(1, 90, 1, 1)]

    assert sorted((ordered[at] for at in (4, 3, 2, 1, 0)), key=lambda name: name.order) == ordered
