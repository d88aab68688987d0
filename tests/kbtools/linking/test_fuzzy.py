"""Fuzzy linking: where it is tried, what it finds, and what it leaves alone."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kbtools.answering.answerer import Answerer
from kbtools.kb.contract import KnowledgeBase
from kbtools.linking import fuzzy
from kbtools.linking.fuzzy import SLIPS_CUTOFF, SPANS_TRIED, Misspelling, link_fuzzily, link_slips, links_to
from kbtools.linking.strict import link_strictly
from kbtools.pruning.pruners import make_pruner
from kbtools.text.ngrams import Ngram
from kbtools.text.question import Question
from kbtools.text.rungs import Rung
from tests.conftest import World


def spans(kb: KnowledgeBase, text: str) -> list[str]:
    return [ngram.form for ngram in Misspelling(kb).spans([Question.read(text)], [()])[0]]


@pytest.mark.parametrize(
    ("text", "mention", "subject"),
    [
        ("who wrote frankenstien", "frankenstien", "m.0kba093"),
        ("Who directed Pirates of the Carribean?", "Pirates of the Carribean", "m.01vksx"),
        ("where was Sasha Vujacik born", "Sasha Vujacik", "m.07f3jg"),
    ],
)
def test_a_misspelt_mention_is_linked_fuzzily(sample: Answerer, text: str, mention: str, subject: str) -> None:
    links = Misspelling(sample.kb).links([Question.read(text)])[0]
    assert {text[link.start : link.end] for link in links} == {mention}
    assert {link.rung for link in links} == {Rung.FUZZY}
    assert all(80 <= link.similarity < 100 for link in links)
    assert subject in {one for link in links for one in sample.kb.ids(link.entities)}


@pytest.mark.parametrize("text", ["", "?", "who wrote frankenstein", "who wrote 1986", "what is it", "user1002 topics"])
def test_nothing_is_misspelt_where_every_word_is_known_short_or_holds_digits(sample: Answerer, text: str) -> None:
    assert spans(sample.kb, text) == []


@pytest.mark.parametrize("text", ["who directed it", "what was it written by", "name the currency", "is it described"])
def test_words_that_relations_or_questions_are_made_of_are_not_misspelt(sample: Answerer, text: str) -> None:
    assert spans(sample.kb, text) == []


def test_a_misspelt_name_may_have_a_word_inside_that_questions_are_made_of(make_kb: Any, new_world: Any) -> None:
    names = (("m.1", "Maldoror"), ("m.2", "Maldoror Is Dead"))
    kb = make_kb("memory", new_world((("m.1", "r", "m.2"),), names))

    links = Misspelling(kb).links([Question.read("what was the release type of maldcoror is dead")])[0]

    assert [(link.ngram.form, link.name) for link in links][:1] == [("maldcoror is dead", "Maldoror Is Dead")]


def test_spans_that_begin_and_end_well_come_first_the_longest_of_them_first(sample: Answerer) -> None:
    strict = link_strictly(sample.kb, Question.read("old"))
    question = Question.read("who is the autor of the old carribean")
    found = [ngram.form for ngram in Misspelling(sample.kb).spans([question], [strict])[0]]
    assert found[:2] == ["the autor of the old carribean", "autor of the old carribean"]
    assert found.index("the old carribean") < found.index("old carribean") < found.index("carribean")
    assert found.index("carribean") < found.index("of the old carribean")
    assert not any(form.startswith("who ") for form in found)


def test_a_span_names_its_characters(sample: Answerer) -> None:
    text = "who wrote «frankenstien»?"
    every = Misspelling(sample.kb).spans([Question.read(text)], [()])[0]
    (span,) = [ngram for ngram in every if " " not in ngram.form]
    assert text[span.start : span.end] == span.form == "frankenstien"


def test_entities_that_are_linked_strictly_keep_their_link(sample: Answerer) -> None:
    question = Question.read("frankenstein or frankenstien")
    strict = link_strictly(sample.kb, question)
    assert strict
    assert Misspelling(sample.kb).links([question], strict=[strict])[0] == []


def test_a_fuzzy_link_leaves_out_the_entities_told_and_keeps_their_namesakes(tiny: KnowledgeBase) -> None:
    ngram = Ngram("pariss", 0, 0, 0, 6)
    paris = np.array(tiny.rows(["m.01paris"]), dtype=np.uint32)
    matches = tiny.lookup(["paris"])
    everyone = {one for link in link_fuzzily(tiny, [ngram])[0] for one in tiny.ids(link.entities)}
    others = {one for link in links_to(matches, ngram, "paris", 90.0, without=paris) for one in tiny.ids(link.entities)}
    assert everyone == {"m.01paris", "m.02paris"}
    assert others == {"m.02paris"}


def test_at_most_twenty_forms_are_linked(
    make_kb: Callable[[str, World], Any], backend: str, new_world: type[World]
) -> None:
    named = tuple((f"m.{letter}{other}", f"solaris{letter}{other}") for letter in "abcdef" for other in "abcdef")
    kb = make_kb(backend, new_world(facts=(("m.aa", "r", "o"),), names=named))
    assert len(link_fuzzily(kb, [Ngram("solaris", 0, 0, 0, 7)])[0]) == 20


NAMES = (
    ("a", "Mississippi River"),
    ("b", "Upper Mississippi River"),
    ("c", "Mississippi River Delta"),
    ("d", "Mississippi River Museum"),
    ("e", "Jon Tarr"),
    ("f", "John Lennox"),
    ("g", "The Keeper of the Seven Lamps"),
    ("h", "Keeper"),
    ("i", "Country Roads"),
)


@pytest.fixture(scope="module")
def rivers(make_kb: Any, backend: str, new_world: Any) -> KnowledgeBase:
    """Give a knowledge base with names inside each other, and with a relation whose words begin as `country` does."""
    facts = tuple((entity, "place.county.maker", "m") for entity, _ in NAMES)
    kb: KnowledgeBase = make_kb(backend, new_world(facts=facts, names=NAMES))
    return kb


@pytest.mark.parametrize(
    ("text", "entity"),
    [
        pytest.param("maker of missisippi river", "a", id="nearest, not longest"),
        pytest.param("maker of jon lennox", "f", id="a slip that is a word of another name"),
        pytest.param("who is the maker of keeper of seven lamp", "g", id="words left out, beside a strict link"),
        pytest.param("maker of countyr roads", "i", id="letters of a relation's word"),
        pytest.param("maker of the keepr of the seven lamps", "g", id="begins and ends with function words"),
    ],
)
def test_the_name_that_a_mention_resembles_most_comes_first(rivers: KnowledgeBase, text: str, entity: str) -> None:
    question = Question.read(text)
    first, *others = Misspelling(rivers).links([question], strict=[link_strictly(rivers, question)])[0]

    assert rivers.ids(first.entities) == [entity]
    assert first.weight == 0.0
    assert all(link.weight < 0.0 for link in others)


def test_a_name_weighs_less_by_its_similarity_the_words_it_has_more_and_a_rewriting(
    make_kb: Any, new_world: Any
) -> None:
    names = (
        ("a", "Upper Lake Winola Bridge"),
        ("b", "Upper Lake Winola Bridge Ruins"),
        ("c", "Upper Lake Vinola Bridges"),
        ("d", "Upper Lake Vinola Bridges (film)"),
    )
    facts = tuple((entity, "r", "o") for entity, _ in names)
    kb: KnowledgeBase = make_kb("memory", new_world(facts=facts, names=names))

    links = Misspelling(kb).links([Question.read("how long is uper laek winolla bridge")])[0]

    nearest, longer, farther, rewritten = (
        max((link for link in links if link.name == name), key=lambda link: link.weight) for _, name in names
    )
    assert nearest.weight == 0.0
    assert longer.weight == pytest.approx(10 * math.log(longer.similarity / nearest.similarity) - 1)
    assert farther.weight == pytest.approx(10 * math.log(farther.similarity / nearest.similarity))
    assert rewritten.weight == pytest.approx(10 * math.log(rewritten.similarity / nearest.similarity) - 1)


def test_words_of_a_name_that_links_strictly_are_not_misspelt(make_kb: Any, new_world: Any) -> None:
    names = (("a", "Jon Tarr"), ("b", "Jon Tarrs"), ("c", "Jons Tarr"))
    kb: KnowledgeBase = make_kb("memory", new_world(facts=tuple((e, "r", "o") for e, _ in names), names=names))
    question = Question.read("who made jon tarr")

    assert Misspelling(kb).links([question], strict=[link_strictly(kb, question)])[0] == []
    assert {link.name for link in Misspelling(kb).links([question])[0]} == {"Jon Tarrs", "Jons Tarr"}


@pytest.mark.parametrize(
    ("text", "name", "kept"),
    [
        pytest.param("who made winter bell", "Winter Bell Ringers", True, id="73: one word more"),
        pytest.param("who made belx tone", "Bell Tones", True, id="84: two slips"),
        pytest.param("who made belx tonx", "Bell Tone", False, id="78: two slips"),
    ],
)
def test_a_less_similar_name_is_linked_where_one_slip_or_word_explains_it(
    make_kb: Any, new_world: Any, text: str, name: str, kept: bool
) -> None:
    kb: KnowledgeBase = make_kb("memory", new_world(facts=(("a", "r", "o"),), names=(("a", name),)))

    assert [link.name for link in Misspelling(kb).links([Question.read(text)])[0]] == [name] * kept


def test_ten_names_that_resemble_a_mention_are_kept(make_kb: Any, new_world: Any) -> None:
    names = tuple((letter, f"solaris{letter}") for letter in "abcdefghijkl")
    kb: KnowledgeBase = make_kb("memory", new_world(facts=(("a", "r", "o"),), names=names))

    assert len(Misspelling(kb).links([Question.read("who made solariz")])[0]) == 10


@pytest.mark.parametrize("pruning", ["n-gram", "n-gram+", "n-gram-idf"])
def test_no_pruner_drops_the_nearest_name(rivers: KnowledgeBase, pruning: str) -> None:
    links = make_pruner(pruning, rivers).links([Question.read("maker of missisippi river")])[0]

    assert min(links, key=lambda link: link.order).name == "Mississippi River"


def test_where_a_name_is_two_edits_away_none_that_is_farther_is_linked(make_kb: Any, new_world: Any) -> None:
    names = (("a", "Upper Lake Winola Bridge"), ("b", "Upper Lake Winola Bridge Ruins"))
    kb: KnowledgeBase = make_kb("memory", new_world(facts=tuple((e, "r", "o") for e, _ in names), names=names))

    assert [link.name for link in Misspelling(kb).links([Question.read("where is upper lake winolla bridge")])[0]] == [
        "Upper Lake Winola Bridge"
    ]


def test_limits_of_misspellings_are_those_that_were_measured() -> None:
    assert (SLIPS_CUTOFF, fuzzy._SLIP_CUTOFF, SPANS_TRIED, fuzzy._MOST_OUTSIDE) == (80.0, 70.0, 24, 1)
    assert (fuzzy._NAMES_KEPT, fuzzy._LONGEST_SPAN, fuzzy._REACH, fuzzy._MOST_INNER) == (10, 10, 5, 480)
    assert (fuzzy._SHARPNESS, fuzzy._FEWER, fuzzy._REWRITTEN) == (10.0, 1.0, -1.0)


@pytest.mark.parametrize(("cutoff", "names"), [(0.0, ["Kitez", "Kitty"]), (85.0, ["Kitez"]), (95.0, [])])
def test_a_cutoff_also_holds_for_names_within_edits(
    make_kb: Any, new_world: Any, cutoff: float, names: list[str]
) -> None:
    kb = make_kb("memory", new_world((("a", "r", "o"), ("b", "r", "o")), (("a", "Kitez"), ("b", "Kitty"))))

    (links,) = link_fuzzily(kb, [Ngram("kite", 0, 0, 0, 4)], cutoff=cutoff)

    assert [link.name for link in links] == names


def test_a_single_word_that_is_in_a_name_is_not_misspelt(make_kb: Any, new_world: Any) -> None:
    kb = make_kb("memory", new_world((("a", "r", "o"),), (("a", "Brenwick Tandery"),)))

    assert (spans(kb, "brenwick"), spans(kb, "brenwik")) == ([], ["brenwik"])
    assert spans(kb, "brenwick brenwik") == ["brenwick brenwik", "brenwik"]


def test_a_name_of_three_letters_is_not_misspelt_inside_a_run(make_kb: Any, new_world: Any) -> None:
    kb = make_kb("memory", new_world((("a", "r", "o"),), (("a", "東京駅"), ("b", "東京塔駅前口"))))

    (links,) = Misspelling(kb).links([Question.read("東京塔駅はどこ")])

    assert "東京駅" not in {link.name for link in links}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("they saw the abdomen kite there", ["Abdomem Kite"]),
        ("they saw the ability kite there", []),
        ("they saw a crimson lanternn there", []),
        ("they saw scarlet lanternn there", ["Scarlet Lantern"]),
        ("they saw scarlet lanternn kite there", ["Scarlet Lantern Kite"]),
    ],
)
def test_a_rare_word_of_a_text_may_be_one_slip_of_a_name(
    make_kb: Any, new_world: Any, text: str, names: list[str]
) -> None:
    entities = (
        "Abdomem Kite",
        "Abilitty Kite",
        "The Crimson Lantern Of",
        "Scarlet Lantern",
        "Kite",
        "Crimson",
        "Scarlet Lantern Kite",
    )
    facts = tuple((name, "r", "o") for name in entities)
    kb = make_kb("memory", new_world(facts, tuple((name, name) for name in entities)))

    (links,) = link_slips(kb, [Question.read(text)], [[]])

    assert [link.name for link in links] == names
