"""Spans of words that may be misspelt, and the confidence in links, are those of plain loops over all runs of words."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rapidfuzz import fuzz

from kbtools.kb.contract import KnowledgeBase, SimilarName
from kbtools.linking.fuzzy import SPANS_TRIED, Misspelling, link_slips
from kbtools.linking.link_confidence import BESIDE, ELSEWHERE, LOOSE, WEAK, LinkConfidence
from kbtools.linking.links import Link
from kbtools.linking.similarity import resemblance
from kbtools.text.common_words import ORDINARY, commonness
from kbtools.text.ngrams import Ngram
from kbtools.text.question import Question
from kbtools.text.rungs import Rung

WORDS = st.lists(
    st.sampled_from("who is the of a Kite kite lamp which tall zebra genre as in xylotone Quizzel ?".split()),
    min_size=1, max_size=13,
).map(" ".join)  # fmt: skip
NOBODY = np.empty(0, dtype=np.uint32)


def spoken(question: Question) -> list[tuple[int, Any]]:
    return [(place, token) for place, token in enumerate(question.tokens) if token.is_word]


def ngram_of(question: Question, first: int, last: int) -> Ngram:
    words = spoken(question)
    (begin, opening), (end, closing) = words[first], words[last]
    form = " ".join(token.text for _, token in words[first : last + 1])
    return Ngram(form, begin, end, opening.start, closing.end)


@given(WORDS, st.data())
def test_spans_around_suspect_words_are_all_that_could_be_a_name(
    tiny_memory: KnowledgeBase, text: str, data: st.DataObject
) -> None:
    question, misspelling = Question.read(text), Misspelling(tiny_memory)
    words = [token.text for _, token in spoken(question)]
    suspects = data.draw(st.sets(st.integers(0, max(len(words) - 1, 0))))
    unknown = data.draw(st.sets(st.sampled_from(sorted(suspects)))) if suspects else set()
    may_end_before = misspelling.content.may_end_before
    weak, outside = misspelling.content.weak, misspelling.content.outside

    spans = []
    for first in range(len(words)):
        for last in range(first, min(len(words), first + 10)):
            own = words[first : last + 1]
            inside = suspects & set(range(first, last + 1))
            outer = sum(word in outside for word in own)
            if own[0] in outside or own[-1] in outside or outer > 1 or not inside:
                continue
            if first == last and not inside & unknown:
                continue
            faults = outer + (own[0] in weak - {"a", "an", "the"}) + (own[-1] in weak)
            faults += first > 0 and not may_end_before(words[first - 1])
            faults += last + 1 < len(words) and not may_end_before(words[last + 1])
            spans.append((faults, -len(own), first, last))

    found = misspelling.spans_around(question, suspects, unknown)

    assert found == [ngram_of(question, first, last) for _, _, first, last in sorted(spans)]


class Recorder:
    """A knowledge base that remembers which forms it was asked for and finds none."""

    def __init__(self, known: Callable[[str], bool]) -> None:
        self.known = known
        self.asked: list[str] = []

    def name_frequency(self, words: Sequence[str]) -> list[int]:
        return [int(self.known(word)) for word in words]

    def similar(self, forms: Sequence[str], **_: object) -> list[list[SimilarName]]:
        self.asked += forms
        return [[] for _ in forms]

    def lookup(self, forms: Sequence[str]) -> dict[str, Any]:
        assert not forms
        return {}


@given(WORDS, st.sets(st.sampled_from("kite lamp zebra genre tall the of a".split())), st.sets(st.integers(0, 12)))
def test_in_a_text_the_runs_around_a_rare_unknown_word_are_looked_up(
    text: str, known: set[str], linked: set[int]
) -> None:
    question = Question.read(text)
    words = spoken(question)
    texts = [token.text for _, token in words]
    strict = [
        Link(ngram_of(question, at, at), 0, 0, "", Rung.EXACT, NOBODY) for at in sorted(linked) if at < len(words)
    ]
    unknown = {
        at
        for at, word in enumerate(texts)
        if len(word) >= 4 and word.isalpha() and commonness(word) <= ORDINARY and at not in linked and word not in known
    }
    capital = [text[token.start].isupper() for _, token in words]
    spans = set()
    for at in unknown:
        for begin in range(max(0, at - 5), at + 1):
            for end in range(at, min(len(words), at + 6)):
                others = set(range(begin, end + 1)) - {at}
                fits = all(texts[other] in known and other not in unknown for other in others)
                edges = all(texts[edge] not in WEAK and (not capital[at] or capital[edge]) for edge in (begin, end))
                if others and fits and edges:
                    spans.add((begin, end))
    longest = sorted(spans, key=lambda span: (span[0] - span[1], span))[:SPANS_TRIED]
    kb: Any = Recorder(known.__contains__)

    assert link_slips(kb, [question], [strict]) == [[]]

    assert kb.asked == [" ".join(texts[begin : end + 1]) for begin, end in longest]


@given(WORDS.filter(lambda text: text != "?"), st.data())
def test_confidence_counts_what_a_mention_leaves_over_as_a_loop_does(
    tiny_memory: KnowledgeBase, text: str, data: st.DataObject
) -> None:
    question, confidence = Question.read(text), LinkConfidence(tiny_memory)
    words = spoken(question)
    first, last = sorted(data.draw(st.tuples(*[st.integers(0, max(len(words) - 1, 0))] * 2)))
    rung = data.draw(st.sampled_from(Rung))
    if not words:
        return
    texts = [token.text for _, token in words]
    left = [
        confidence.content.has(word) and (place == 0 or texts[place - 1] not in ("how", "what", "which"))
        for place, word in enumerate(texts)
    ]
    expected = LOOSE.get(rung, 1.0)
    for sides in (range(first - 1, -1, -1), range(last + 1, len(texts))):
        beside = True
        for place in sides:
            beside = beside and left[place]
            expected *= (BESIDE if beside else ELSEWHERE) if left[place] else 1.0
    ngram = ngram_of(question, first, last)
    link = Link(ngram, ngram.start, ngram.end, "", rung, NOBODY)

    assert confidence.of(question, [link, link]) == pytest.approx([expected, expected])


FORMS = st.lists(
    st.sampled_from("iron kite irn kites lamp lmap river orla venn ven quinn".split()), min_size=1, max_size=4
).map(" ".join)


class Echo(Recorder):
    """A knowledge base in which given forms resemble each form that is asked for."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(lambda word: False)
        self.names = names

    def similar(self, forms: Sequence[str], **_: object) -> list[list[SimilarName]]:
        return [[SimilarName(name, fuzz.ratio(form, name)) for name in self.names if name != form] for form in forms]


@example([(1, "iron kitee"), (4, "orla venn"), (0, "the iron kitee")], ["iron kite", "orla vennn", "the iron kite"], 0)
@given(
    st.lists(st.tuples(st.integers(0, 7), FORMS), min_size=1, max_size=6),
    st.lists(FORMS, max_size=12, unique=True),
    st.sampled_from([0, 70, 85]),
)
def test_the_nearest_names_are_those_of_a_plain_loop(
    tiny_memory: KnowledgeBase, spans: list[tuple[int, str]], names: list[str], cutoff: float
) -> None:
    question = Question.read("iron kite lamp river orla venn quinn iron")
    ngrams = [ngram_of(question, at, min(at + len(form.split()), 8) - 1)._replace(form=form) for at, form in spans]
    expected: list[tuple[tuple[float, ...], Ngram, str]] = []
    covered: set[int] = set()
    for ngram in ngrams:
        if not covered <= set(range(ngram.first, ngram.last + 1)):
            continue
        for name in names:
            alike, ratio = resemblance(ngram.form, name), fuzz.ratio(ngram.form, name)
            if name != ngram.form and ratio >= cutoff and alike and (alike.slips <= 1 or ratio >= 80):
                order = (-alike.score, -ratio, ngram.first - ngram.last, ngram.first)
                expected.append((order, ngram, name))
                if alike.slips <= 1 and not alike.lost:
                    covered = set(range(ngram.first, ngram.last + 1))
    misspelling, kb = Misspelling(tiny_memory), Echo(names)
    misspelling.kb = kb  # type: ignore[assignment]

    near = misspelling.near_names({3: ngrams}, cutoff=cutoff, edits_only=False)

    assert [(name.ngram, name.form) for name in near[3]] == [
        (ngram, name) for _, ngram, name in sorted(expected, key=lambda found: found[0])[:10]
    ]


def test_a_name_of_fewer_words_weighs_less_though_it_is_more_similar(make_kb: Any, new_world: Any) -> None:
    names = (("a", "Xylora Brenwick Tandery"), ("b", "Brenwick Tandery"))
    kb = make_kb("memory", new_world(facts=(("a", "r", "o"), ("b", "r", "o")), names=names))

    (links,) = Misspelling(kb).links([Question.read("xylara brenwick tandary")])

    assert {link.name: link.weight for link in links} == {"Xylora Brenwick Tandery": 0.0, "Brenwick Tandery": -1.0}


def test_of_many_spans_that_may_be_misspelt_the_first_are_looked_up(tiny_memory: KnowledgeBase) -> None:
    misspelling, kb = Misspelling(tiny_memory), Recorder(lambda word: False)
    misspelling.kb = kb  # type: ignore[assignment]
    kb.lookup = lambda forms: {}  # type: ignore[method-assign]

    misspelling.links([Question.read(" ".join(f"quizz{letter}le" for letter in "abcdefghijkl"))])

    assert len(kb.asked) == 2 * SPANS_TRIED == 48  # at the usual cutoff, and at a lower one


@pytest.mark.parametrize(
    ("text", "mention"),
    [("東京スカイツリイの高さは", "東京スカイツリイ"), ("高さは東京スカイツリイ", "東京スカイツリイ")],
)
def test_a_misspelt_name_inside_a_run_of_letters_is_found(
    make_kb: Any, new_world: Any, text: str, mention: str
) -> None:
    kb = make_kb("memory", new_world(facts=(("a", "r", "o"),), names=(("a", "東京スカイツリー"),)))

    (links,) = Misspelling(kb).links([Question.read(text)])

    assert mention in {text[link.start : link.end] for link in links}
    assert {link.name for link in links} == {"東京スカイツリー"}
