"""N-gram pruners: which of the links each keeps, and the contract that all share."""

import math
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from evaluation import mention_coverage, pruning_figures

from kbtools.answering.answerer import Answerer
from kbtools.answering.questions import read_annotated
from kbtools.errors import BrokenPlugin, ModelMissing, UnknownPlugin
from kbtools.indexers.folder.memory import MemoryKB
from kbtools.kb.contract import KnowledgeBase
from kbtools.linking.strict import link_strictly
from kbtools.pruning import DEFAULT, UNGUIDED, make_pruner, n_gram
from kbtools.pruning.n_gram import NGramIdf, longest
from kbtools.ranking.pools import gather_pool, order_links
from kbtools.text.question import Question
from kbtools.text.rungs import Rung
from tests.conftest import World

every_pruner = pytest.mark.parametrize("pruning", list(UNGUIDED))


def mentions(kb: KnowledgeBase, text: str, pruning: str) -> set[str]:
    return {text[link.start : link.end] for link in make_pruner(pruning, kb).links([Question.read(text)])[0]}


def test_a_name_without_facts_leaves_its_words_unexplained() -> None:
    kb = MemoryKB([("b", "writer", "c")], [("b", "Frankenstein"), ("z", "Frankenstien")])

    links = make_pruner("n-gram", kb).links([Question.read("writer of frankenstien")])[0]

    assert {link.name for link in links} == {"Frankenstien", "Frankenstein"}


def test_a_title_of_function_words_inside_a_longer_one_is_left_out() -> None:
    kb = MemoryKB([("a", "singer", "c"), ("b", "singer", "c")], [("a", "The Who"), ("b", "Who Is The Who")])

    assert mentions(kb, "who is the who", "n-gram+") == {"who is the who"}


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("who directed it", {"n-gram": {"who", "it"}, "n-gram+": {"it"}, "n-gram-idf": {"who", "it"}}),
        ("what genre is the who", {"n-gram": {"the who", "who"}, "n-gram+": {"the who"}}),
        ("who", {"n-gram": {"who"}, "n-gram+": {"who"}, "n-gram-idf": {"who"}}),
        ("where is paris texas", {"n-gram": {"paris texas", "paris", "texas"}, "n-gram+": {"paris texas"}}),
        ("is hamlet by queen?", {"n-gram": {"hamlet", "queen", "?"}, "n-gram+": {"hamlet", "queen"}}),
        ("who wrote frankenstien", {"n-gram": {"who", "frankenstien"}, "n-gram+": {"frankenstien"}}),
        ("frankenstien", {"n-gram": {"frankenstien"}, "n-gram+": {"frankenstien"}, "n-gram-idf": {"frankenstien"}}),
        ("zebra crossing", {"n-gram": set(), "n-gram+": set(), "n-gram-idf": set()}),
        ("", {"n-gram": set(), "n-gram+": set(), "n-gram-idf": set()}),
        ("?", {"n-gram": {"?"}, "n-gram+": {"?"}, "n-gram-idf": {"?"}}),
    ],
)
def test_each_pruner_keeps_its_mentions(sample: Answerer, text: str, kept: dict[str, Any]) -> None:
    assert {pruning: mentions(sample.kb, text, pruning) for pruning in kept} == kept


def test_the_rarest_mention_weighs_most_and_three_are_kept(sample: Answerer) -> None:
    text = "who wrote it or hamlet or a clockwork orange"
    links = make_pruner("n-gram-idf", sample.kb).links([Question.read(text)])[0]
    weights = {text[link.start : link.end]: link.weight for link in links}
    assert len({link.weight for link in links}) <= 3
    assert weights["a clockwork orange"] == 0 == max(weights.values())
    assert weights["hamlet"] < 0


@pytest.mark.parametrize("pruning", ["n-gram+", "n-gram-idf"])
def test_a_longer_name_without_facts_hides_no_shorter_one(
    make_kb: Callable[[str, World], Any], backend: str, new_world: type[World], pruning: str
) -> None:
    names = (("a", "moon"), ("z", "blue moon"))
    kb = make_kb(backend, new_world(facts=(("a", "r", "z"),), names=names))
    assert mentions(kb, "who sang blue moon", pruning) == {"moon"}


def test_the_weight_of_a_mention_is_the_rarity_of_its_words(
    make_kb: Callable[[str, World], Any], backend: str, new_world: type[World]
) -> None:
    names = (("a", "red"), ("b", "red blue"), ("c", "red green"), ("d", "violet"))
    kb = make_kb(backend, new_world(facts=(("a", "r", "z"), ("d", "r", "z")), names=names))
    links = make_pruner("n-gram-idf", kb).links([Question.read("red violet")])[0]
    weights = {link.name: link.weight for link in links}
    assert weights == {"violet": 0, "red": pytest.approx(math.log(5 / 4) - math.log(5 / 2))}


def test_words_are_weighed_alike_after_others_were_forgotten(
    make_kb: Callable[[str, World], Any], new_world: type[World], monkeypatch: pytest.MonkeyPatch
) -> None:
    world = new_world(facts=(("a", "r", "z"), ("d", "r", "z")), names=(("a", "It"), ("d", "violet")))
    kb = make_kb("memory", world)
    questions = [Question.read("it or violet")] * 2
    before = [str(links) for links in make_pruner("n-gram-idf", kb).links(questions)]
    monkeypatch.setattr(n_gram, "WORDS_REMEMBERED", 0)

    pruner = make_pruner("n-gram-idf", kb)

    assert [str(pruner.links([question])[0]) for question in questions] == before


@pytest.mark.parametrize(("relation", "share"), [("colour.red", 0.5), ("colour.green", 1.0)])
def test_a_word_of_the_relations_weighs_half_its_rarity(
    make_kb: Callable[[str, World], Any], new_world: type[World], relation: str, share: float
) -> None:
    names = (("a", "red"), ("b", "red blue"), ("c", "blue"), ("d", "violet"))
    kb = make_kb("memory", new_world(facts=(("a", relation, "z"), ("d", relation, "z")), names=names))

    links = make_pruner("n-gram-idf", kb).links([Question.read("red violet")])[0]

    red, violet = share * math.log(5 / 3), math.log(5 / 2)
    assert {link.name: link.weight for link in links} == {"violet": 0, "red": pytest.approx(red - violet)}


@pytest.mark.parametrize(
    ("name", "relation", "weight"),
    [
        pytest.param("reds", "colour.red", 0.5 * math.log(3 / 2), id="the plural of a relation's word"),
        pytest.param("reds", "colour.green", math.log(3 / 2), id="no relation's word"),
        pytest.param("It", "colour.green", 0.1, id="a stop word"),
        pytest.param("?", "colour.green", 0.05, id="a mark"),
    ],
)
def test_common_words_weigh_less_than_their_rarity(
    make_kb: Callable[[str, World], Any], new_world: type[World], name: str, relation: str, weight: float
) -> None:
    facts = (("a", relation, "z"), ("d", relation, "z"))
    kb = make_kb("memory", new_world(facts=facts, names=(("a", name), ("d", "violet"))))

    links = make_pruner("n-gram-idf", kb).links([Question.read(f"{name} or violet")])[0]

    assert {link.name: link.weight for link in links} == {"violet": 0, name: pytest.approx(weight - math.log(3 / 2))}


@pytest.mark.parametrize(
    ("language", "light"),
    [("", {"the"}), ("en", {"the"}), ("de", {"der"}), ("de,en", {"the"}), ("xx", {"the"})],
)
def test_stop_words_are_those_of_the_languages_of_the_names(
    make_kb: Callable[[str, World], Any], new_world: type[World], language: str, light: set[str]
) -> None:
    spoken = tuple(("a", name, tag) for tag in language.split(",") for name in ("the violet", "der violet"))
    kb = make_kb("memory", new_world(facts=(("a", "r", "z"),), names=(), spoken=spoken, language=language or "en"))
    pruner = n_gram.NGramIdf(kb)

    pruner.learn({"the", "der"})

    assert {word for word in ("the", "der") if pruner.weigh(word) == n_gram.STOP_WORD} == light


def test_a_misspelt_mention_is_kept_beside_three_that_weigh_more(
    make_kb: Callable[[str, World], Any], new_world: type[World]
) -> None:
    names = (("a", "alpha beta gamma delta"), ("b", "epsilon zeta theta"), ("c", "iota kappa"), ("d", "lambdas"))
    kb = make_kb("memory", new_world(facts=tuple((entity, "r", "z") for entity, _ in names), names=names))

    kept = mentions(kb, "alpha beta gamma delta, epsilon zeta theta, iota kappa or lambdaz", "n-gram-idf")

    assert kept == {"alpha beta gamma delta", "epsilon zeta theta", "iota kappa", "lambdaz"}


@pytest.mark.parametrize("text", ["who made iron kite ii", "who made iron kite 2nd", "who made irn kite 2"])
def test_part_of_a_mention_that_is_written_otherwise_or_misspelt_weighs_less(
    make_kb: Callable[[str, World], Any], new_world: type[World], text: str
) -> None:
    names = (("a", "Kite"), ("b", "Iron Kite 2"))
    kb = make_kb("memory", new_world(facts=(("a", "r", "z"), ("b", "r", "z")), names=names))

    weights = {link.name: link.weight for link in make_pruner("n-gram", kb).links([Question.read(text)])[0]}

    assert weights == {"Kite": -2.0, "Iron Kite 2": 0.0}


def test_part_of_a_mention_as_it_is_spelt_weighs_in_full(
    make_kb: Callable[[str, World], Any], new_world: type[World]
) -> None:
    names = (("a", "Kite"), ("b", "Iron Kite 2"))
    kb = make_kb("memory", new_world(facts=(("a", "r", "z"), ("b", "r", "z")), names=names))

    links = make_pruner("n-gram", kb).links([Question.read("who made iron kite 2")])[0]

    assert {(link.name, link.weight) for link in links} == {("Kite", 0.0), ("Iron Kite 2", 0.0)}


def test_a_title_inside_a_longer_name_is_kept_beside_it(
    make_kb: Callable[[str, World], Any], new_world: type[World]
) -> None:
    names = (("a", "The Who"), ("b", "The Who Concert"))
    kb = make_kb("memory", new_world(facts=(("a", "r", "z"), ("b", "r", "z")), names=names))

    assert mentions(kb, "where was the who concert", "n-gram+") == {"the who", "the who concert"}


@every_pruner
def test_no_pruner_invents_a_strict_link(sample: Answerer, examples: Path, pruning: str) -> None:
    for gold in read_annotated(examples / "sample.valid.txt"):
        question = Question.read(gold.text)
        strict = {(link.start, link.end, link.name, link.rung) for link in link_strictly(sample.kb, question)}
        kept = make_pruner(pruning, sample.kb).links([question])[0]
        assert {(k.start, k.end, k.name, k.rung) for k in kept if k.rung is not Rung.FUZZY} <= strict
        assert max((link.weight for link in kept), default=0) == 0


@every_pruner
def test_a_question_and_its_context_in_other_case_keep_the_same_subjects(
    sample: Answerer, examples: Path, pruning: str
) -> None:
    pruner = make_pruner(pruning, sample.kb)

    def subjects(text: str) -> list[int]:
        return gather_pool(sample.kb, order_links(pruner.links([Question.read(text)])[0])).subject.tolist()

    texts = [gold.text for gold in read_annotated(examples / "sample.valid.txt")]
    assert [subjects(text.lower()) for text in texts] == [subjects(text.upper()) for text in texts]


def test_longest_equals_a_plain_loop(sample: Answerer) -> None:
    links = link_strictly(
        sample.kb, Question.read("harry potter and the philosopher's stone or the who in paris texas")
    )
    looped = []
    for link in links:
        inside = False
        for other in links:
            covers = other.ngram.first <= link.ngram.first and link.ngram.last <= other.ngram.last
            longer = other.ngram.last - other.ngram.first > link.ngram.last - link.ngram.first
            inside = inside or (covers and longer)
        if not inside:
            looped.append(link.name)
    assert [link.name for link in longest(links)] == looped
    assert len(looped) < len(links)


def test_an_unknown_pruner_is_named_with_those_there_are(tiny_memory: KnowledgeBase) -> None:
    with pytest.raises(UnknownPlugin, match=r"no pruner 'n-grams'; known: dense, .*, n-gram, n-gram\+, n-gram-idf; or"):
        make_pruner("n-grams", tiny_memory)
    assert DEFAULT in UNGUIDED


class Misguided:
    guide = "a star"


def test_what_no_pruner_can_be_guided_by_is_refused(tiny_memory: KnowledgeBase) -> None:
    with pytest.raises(BrokenPlugin, match="declares the guide 'a star', expected 'tagger', 'vectors' or None"):
        make_pruner(f"{__name__}:Misguided", tiny_memory)


def test_a_guided_pruner_needs_its_guide(tiny_memory: KnowledgeBase) -> None:
    with pytest.raises(ModelMissing, match="'focused' is guided by a tagger"):
        make_pruner("focused", tiny_memory)


@every_pruner
def test_every_pruner_recalls_the_gold_pairs_of_the_sample(sample: Answerer, examples: Path, pruning: str) -> None:
    questions = [
        question
        for split in ("train", "valid", "test")
        for question in read_annotated(examples / f"sample.{split}.txt")
    ]
    figures = pruning_figures(sample, questions, pruning=pruning)
    assert (figures.questions, figures.named) == (202, 202)
    assert figures.recalled / figures.named >= 0.95
    assert 0 < figures.median_pool <= figures.p95_pool
    assert not np.isnan(figures.mean_pool)


# FBSQ, where it is at hand


def test_fbsq_subjects_are_covered_and_n_gram_plus_halves_the_pool(fbsq: Answerer, fbsq_folder: Path) -> None:
    questions = list(islice(read_annotated(fbsq_folder / "annotated_fb_data_valid.txt"), 300))
    coverage = mention_coverage(fbsq.kb, questions)
    figures = {pruning: pruning_figures(fbsq, questions, pruning=pruning) for pruning in UNGUIDED}
    assert coverage.strict / coverage.named >= 0.95
    assert coverage.fuzzy / coverage.named >= 0.97
    assert figures["n-gram"].recalled / figures["n-gram"].named >= 0.95
    assert figures["n-gram+"].recalled / figures["n-gram+"].named >= 0.945
    assert figures["n-gram+"].mean_pool <= figures["n-gram"].mean_pool / 2


@pytest.mark.parametrize(
    "text", ["iron kite two", "iron kite two zebra quagga", "zebra iron kite two", "zebra iron kite two the"]
)
def test_words_beside_a_rewritten_mention_take_nothing_from_its_weight(text: str) -> None:
    kb = MemoryKB(
        [(entity, "r", "o") for entity in ("a", "b", "c")],
        [("a", "Iron Kite II"), ("b", "Zebra Quagga"), ("c", "Zebra")],
    )
    forms = kb.manifest.statistics["forms"]
    words = ["iron", "kite", "two", "zebra", "quagga"]
    counts = zip(words, kb.name_frequency(words), strict=True)
    rarity = {word: math.log((forms + 1) / (names + 1)) for word, names in counts}
    kite = sum(rarity[word] for word in ("iron", "kite", "two"))
    zebra = sum(rarity[word] for word in ("zebra", "quagga") if word in text)

    weights = {link.name: link.weight for link in NGramIdf(kb).links([Question.read(text)])[0]}

    other = {"Zebra Quagga": zebra} if "quagga" in text else {"Zebra": zebra} if zebra else {}
    whole = {"Iron Kite II": kite, **other}
    best = max(whole.values())
    assert {name: weights[name] for name in whole} == pytest.approx(
        {name: weight - best for name, weight in whole.items()}
    )
