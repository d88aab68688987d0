"""Resemblance: which mentions may be misspellings of which names, word by word."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import OSA

from kbtools.linking.fuzzy import NearName
from kbtools.linking.similarity import EDITS_CUTOFF, Resemblance, keep, resemblance, singular
from kbtools.text.function_words import FUNCTION_WORDS
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
        pytest.param("ab cdef", "abcde", id="few letters of the name"),
        pytest.param("abcde", "ab cdef", id="few letters of the mention"),
        pytest.param("the river rhine", "river rhine", id="the name and an article more"),
        pytest.param("of the a frankenstien", "frankenstein", id="three function words more"),
    ],
)
def test_other_words_are_no_misspelling(mention: str, name: str) -> None:
    assert resemblance(mention, name) is None


RUN = st.lists(
    st.sampled_from("the of k kite kites kiet klamps lamps lamp river rivers".split()), min_size=1, max_size=5
)


def slips_of(one: str, other: str) -> int | None:
    """Count edits, a plural or an initial as one; None for words that are too far apart or too short."""
    short, long = sorted((one, other), key=len)
    edits = OSA.distance(one, other)
    if one == other:
        return 0
    if len(short) == 1:
        return 1 if long[0] == short and len(long) > 1 else None
    if len(long) <= 3:
        return None
    return 1 if singular(one) == singular(other) else edits if edits <= (1 if len(long) <= 5 else 2) else None


def is_light(word: str) -> bool:
    return len(word) == 1 or word in FUNCTION_WORDS


def naive(mention: str, name: str) -> tuple[int, int] | None:
    """Leave out words of the longer run in every way, and take the cheapest that is allowed; else join all words."""
    spoken, written = mention.split(" "), name.split(" ")
    surplus = len(written) - len(spoken)
    may_lose = surplus > 0 and len(written) >= 3 and not is_light(spoken[-1])
    ways: list[tuple[int, int, list[str]]] = []
    for lost in combinations(range(max(len(spoken), len(written))), abs(surplus)):
        left = [without(spoken, lost if surplus < 0 else ()), without(written, lost if surplus > 0 else ())]
        dear = sum(not is_light((written if surplus > 0 else spoken)[place]) for place in lost)
        slips = [slips_of(*pair) for pair in zip(*left, strict=True)]
        if None not in slips and dear <= may_lose:
            ways.append((dear, sum(slips), left[1]))
    _, cost, kept = min(ways, default=(0, 0, []))
    shortest = 4 if len(written) > 1 else 2
    if abs(surplus) <= 2 and (cost or surplus >= 0) and any(len(word) >= shortest for word in kept):
        return cost, abs(surplus)
    together, apart = "".join(spoken), "".join(written)
    edits = OSA.distance(together, apart)
    return (edits, 0) if surplus and min(len(together), len(apart)) >= 6 and edits <= 1 else None


def without(words: list[str], places: tuple[int, ...]) -> list[str]:
    return [word for place, word in enumerate(words) if place not in places]


@given(RUN, RUN)
def test_words_are_aligned_as_every_way_to_leave_some_out_would(spoken: list[str], written: list[str]) -> None:
    alike = resemblance(" ".join(spoken), " ".join(written))

    assert (alike and (alike.slips, alike.lost)) == naive(" ".join(spoken), " ".join(written))


@given(st.text("abesxy", min_size=2, max_size=8), st.text("abesxy", min_size=2, max_size=8))
def test_slips_are_edits_and_plurals(one: str, other: str) -> None:
    alike = resemblance(f"lamps {one}", f"lamps {other}")

    assert (alike and alike.slips) == slips_of(one, other)


def plural_of(word: str) -> str:
    return word[:-1] + "ies" if word.endswith("y") else word + ("es" if word.endswith(("s", "x")) else "s")


@pytest.mark.parametrize("word", ["fox", "city", "test", "lass", "berry", "quiz"])
def test_a_word_and_its_plural_are_one_slip_apart(word: str) -> None:
    assert slips_of(word, plural_of(word)) == 1
    assert singular(plural_of(word)) == word


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


@pytest.mark.parametrize("word", ["bus", "gas", "lens", "status", "news", "series", "species", "crisis", "glass"])
def test_words_that_end_in_s_are_in_the_singular(word: str) -> None:
    assert singular(word) == word


def test_of_two_ways_to_align_words_the_cheaper_is_kept() -> None:
    states: dict[int, tuple[int, int, tuple[str, ...]]] = {1: (1, 0, ("a",))}

    keep(states, 1, (1, 1, ("b",)))
    keep(states, 2, (2, 0, ("c",)))
    keep(states, 1, (0, 2, ("d",)))
    keep(states, 1, (0, 2, ("e",)))

    assert states == {1: (0, 2, ("d",)), 2: (2, 0, ("c",))}
    assert EDITS_CUTOFF == 60.0
