"""Pruners keep what plain loops over single questions keep, of any question over a knowledge base of awkward names."""

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbtools.entry_points import PRUNERS, list_plugins, load_class
from kbtools.indexers.folder.memory import MemoryKB
from kbtools.kb.contract import ABSENT
from kbtools.linking.fuzzy import SLIPS_CUTOFF, Misspelling, link_fuzzily
from kbtools.linking.links import Link
from kbtools.linking.similarity import resemblance
from kbtools.linking.strict import StrictNames, link_matches, link_strictly, with_facts
from kbtools.pruning.focused import Focused, FocusedIdf, FocusedK, FocusedKB
from kbtools.pruning.n_gram import NGram, NGramIdf, NGramPlus
from kbtools.pruning.pruners import UNGUIDED, Pruner, guide_of, label_mentions, opening, word_places, word_span
from kbtools.text.function_words import FUNCTION_WORDS, QUESTION_WORDS, has_content, has_word
from kbtools.text.ngrams import Ngram, ngrams
from kbtools.text.normaliser import normal_form
from kbtools.text.question import Question
from kbtools.text.readings import every_ngram
from kbtools.text.rungs import Form, Rung
from kbtools.text.variants import name_forms

NAMES = (
    *(("a", "Red Moon"), ("b", "Moon"), ("c", "The Who"), ("d", "Who"), ("e", "It"), ("f", "Reds"), ("g", "!!!")),
    *(("h", "Iron Kite 2"), ("i", "Kite"), ("j", "Blue Moon"), ("k", "Moon"), ("l", "Violet"), ("m", "Violet Kite")),
    *(("n", "What Is It"), ("o", "Genre Moon"), ("p", "Green Harbour Of Violet")),
)
KB = MemoryKB(
    [(entity, "colour.red" if entity in "ab" else "music.genre", "z") for entity, _ in NAMES if entity != "j"],
    NAMES,
    aliases=[("b", "Kite"), ("l", "Red Moon"), ("h", "Satellite")],
)
WORDS = "red reds moon who the it !!! kite 2 blue violet violett what is genre satelite zebra ?".split()
SPANS = (
    "red moon",
    "the who",
    "iron kite ii",
    "irn kite 2",
    "iron kite 2",
    "blue moon",
    "violett kite",
    "what is it",
    "green harbor violet",
)
QUESTIONS = st.lists(st.lists(st.sampled_from([*WORDS, *SPANS]), max_size=5).map(" ".join), max_size=3)
few = settings(max_examples=60, deadline=None)


def written(links: Sequence[Link]) -> list[str]:
    return sorted(
        str((link.ngram, link.name, link.rung, link.entities.tolist(), round(link.weight, 6))) for link in links
    )


def inside(link: Link, others: Sequence[Link]) -> bool:
    spans = [(other.start, other.end) for other in others if (other.start, other.end) != (link.start, link.end)]
    return any(start <= link.start and link.end <= end for start, end in spans)


def within(ngram: Ngram, others: Sequence[Ngram]) -> bool:
    spans = [(other.start, other.end) for other in others if (other.start, other.end) != (ngram.start, ngram.end)]
    return any(start <= ngram.start and ngram.end <= end for start, end in spans)


def plain_n_gram(question: Question) -> list[Link]:
    strict = link_strictly(KB, question)
    links = strict + Misspelling(KB).links([question], strict=[with_facts(KB, strict)])[0]
    longer = [link for link in links if link.rung in (Rung.VARIANT, Rung.FUZZY)]
    return [link._replace(weight=link.weight - 2.0 * inside(link, longer)) for link in links]


def plain_n_gram_plus(question: Question) -> list[Link]:
    (strict,) = StrictNames(KB).matches([question])
    (misspelt,) = Misspelling(KB).links([question], strict=[strict])
    content = [match for match in strict if has_content(match.ngram.form)]
    titles = [match for match in strict if match not in content and len(match.ngram.form.split()) > 1]
    named = [match.ngram for match in content] + [link.ngram for link in misspelt]
    if named or titles:
        kept = [match for match in content if not within(match.ngram, named)]
        kept += [match for match in titles if not within(match.ngram, [title.ngram for title in titles])]
        return link_matches(KB, question, kept) + [link for link in misspelt if not within(link.ngram, named)]
    single = [match for match in strict if match.ngram.form not in QUESTION_WORDS and has_word(match.ngram.form)]
    left = single or strict
    return link_matches(
        KB, question, [match for match in left if not within(match.ngram, [other.ngram for other in left])]
    )


FORMS = {normal_form(name) for _, name in (*NAMES, ("h", "Satellite"))}


def rarity(form: str) -> float:
    if not has_word(form) and not has_content(form):
        return 0.05
    names = {word: sum(word in other.split() for other in FORMS) for word in form.split()}
    share = {word: 0.5 if word in ("red", "reds", "genre") else 1.0 for word in names}
    return sum(
        0.1 if word in FUNCTION_WORDS else share[word] * math.log((len(FORMS) + 1) / (names[word] + 1))
        for word in form.split()
    )


def plain_n_gram_idf(question: Question) -> list[Link]:
    (strict,) = StrictNames(KB).matches([question])
    (fuzzy,) = Misspelling(KB).links([question], strict=[strict])
    words = [token.text for token in question.tokens]
    rare = []
    for match in strict:
        otherwise = match.ngram.reading in (Form.OTHERWISE, Form.SHORTENED)
        spoken = " ".join(words[match.ngram.first : match.ngram.last + 1])
        rare.append(rarity(spoken if otherwise else match.ngram.form))
    spelt = resemblance(fuzzy[0].ngram.form, normal_form(fuzzy[0].name)) if fuzzy else None
    misspelt = rarity(" ".join(spelt.words) if spelt else normal_form(fuzzy[0].name)) if fuzzy else -math.inf
    kept = sorted({*rare, *([misspelt] if fuzzy else [])}, reverse=True)[:3]
    weighed = [
        (link, weight)
        for match, weight in zip(strict, rare, strict=True)
        if weight in kept
        for link in link_matches(KB, question, [match])
    ]
    weighed += [(link, misspelt) for link in fuzzy if misspelt in kept or link.rung is Rung.FUZZY]
    return [link._replace(weight=weight - kept[0] + link.weight) for link, weight in weighed]


@pytest.mark.parametrize(
    ("pruner", "plain"),
    [(NGram, plain_n_gram), (NGramPlus, plain_n_gram_plus), (NGramIdf, plain_n_gram_idf)],
)
@given(texts=QUESTIONS)
@few
def test_an_unguided_pruner_keeps_what_a_plain_loop_keeps(
    pruner: Callable[[MemoryKB], Pruner], plain: Callable[[Question], list[Link]], texts: list[str]
) -> None:
    questions = [Question.read(text) for text in texts]

    links = pruner(KB).links(questions)

    assert [written(own) for own in links] == [written(plain(question)) for question in questions]


def test_the_unguided_pruners_are_those_without_a_guide() -> None:
    own = [name for name, points in list_plugins(PRUNERS).items() if points[0].value.startswith("kbtools.pruning.")]

    assert {name for name in own if guide_of(load_class(PRUNERS, name)) is None} == set(UNGUIDED)


# Guided pruners

LEVELS = (-0.5, -1.0, -4.0, -9.5, -30.0)


class Chance:
    """A tagger whose log-probabilities are chosen by a seed, many of them equal."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def spans(self, questions: Sequence[Question]) -> list[np.ndarray]:
        return [self.table(question) for question in questions]

    def table(self, question: Question) -> np.ndarray:
        words = len(word_places(question))
        chance = np.random.default_rng([self.seed, len(question.text)])
        return np.where(np.tri(words, k=-1) > 0, -np.inf, chance.choice(LEVELS, size=(words, words)))

    def ranked(self, question: Question) -> list[tuple[float, int, int, list[Ngram]]]:
        """List log p(w|q), first and last word, and the n-grams of each mention, the most probable first."""
        table, places = self.table(question), word_places(question)
        every = list(every_ngram(question, lengths=range(1, len(places) + 1)))
        spans = [(first, last) for last in range(len(places)) for first in range(last + 1)]
        return [
            (
                float(table[first, last]),
                first,
                last,
                [ngram for ngram in every if (ngram.first, ngram.last) == (places[first], places[last])],
            )
            for first, last in sorted(spans, key=lambda span: (-table[span], span))
        ]


def fuzzily(mention: list[Ngram]) -> list[Link]:
    return link_fuzzily(KB, mention[:1], cutoff=SLIPS_CUTOFF)[0]


def plain_focused(question: Question, tagger: Chance) -> list[Link]:
    for weight, _, _, mention in tagger.ranked(question)[:1]:
        links = link_strictly(KB, question, mention) or Focused(KB, tagger).nearest(fuzzily(mention))
        return [link._replace(weight=weight) for link in links]
    return []


def plain_focused_kb(question: Question, tagger: Chance) -> list[Link]:
    for weight, _, _, mention in tagger.ranked(question):
        if links := link_strictly(KB, question, mention):
            return [link._replace(weight=weight) for link in links]
    for weight, _, _, mention in tagger.ranked(question)[:4]:
        if links := fuzzily(mention):
            return [link._replace(weight=weight) for link in links]
    return []


def plain_focused_k(question: Question, tagger: Chance) -> list[Link]:
    strict = with_facts(KB, link_strictly(KB, question))
    (misspelt,) = Misspelling(KB).links([question], strict=[strict])
    kept: list[Link] = []
    weights: list[float] = []
    probable = {}
    for place, (weight, _, _, mention) in enumerate(tagger.ranked(question)):
        probable[mention[0].first, mention[0].last] = weight
        own = link_strictly(KB, question, mention) or (fuzzily(mention)[:5] if place == 0 else [])
        if own and len(weights) < 3 and weight >= max(weights, default=weight) - 8.0:
            kept += [link._replace(weight=weight) for link in own]
            weights.append(weight)
    for link in misspelt[:5]:
        least = max(weights, default=0.0) - 8.0
        own_weight = max(probable.get((link.ngram.first, link.ngram.last), least), least) if weights else 0.0
        kept.append(link._replace(weight=link.weight + own_weight))
    return kept


def plain_focused_idf(question: Question, tagger: Chance) -> list[Link]:
    table, places = tagger.table(question), word_places(question)
    weighed = []
    for link in NGramIdf(KB).links([question])[0]:
        words = [at for at, place in enumerate(places) if link.ngram.first <= place <= link.ngram.last]
        probable = max(float(table[words[0], words[-1]]), -20.0) if words else -20.0
        weighed.append(link._replace(weight=0.5 * link.weight + probable * (link.rung is not Rung.FUZZY)))
    return weighed


@pytest.mark.parametrize(
    ("pruner", "plain"),
    [
        (Focused, plain_focused),
        (FocusedKB, plain_focused_kb),
        (FocusedK, plain_focused_k),
        (FocusedIdf, plain_focused_idf),
    ],
)
@given(texts=QUESTIONS, seed=st.integers(0, 9))
@few
def test_a_guided_pruner_keeps_what_a_plain_loop_keeps(
    pruner: Callable[[MemoryKB, Chance], Pruner],
    plain: Callable[[Question, Chance], list[Link]],
    texts: list[str],
    seed: int,
) -> None:
    questions, tagger = [Question.read(text) for text in texts], Chance(seed)

    links = pruner(KB, tagger).links(questions)

    assert [written(own) for own in links] == [written(plain(question, tagger)) for question in questions]


class Facts:
    """A knowledge base of a few fact counts, many of them equal."""

    def fact_counts(self, entities: np.ndarray) -> np.ndarray:
        return entities % 3


@given(bearers=st.lists(st.sets(st.integers(0, 40), min_size=1, max_size=15).map(sorted), max_size=5))
@few
def test_the_nearest_names_are_cut_to_twenty_entities_each_under_its_nearest_name(bearers: list[list[int]]) -> None:
    (link, *_) = link_strictly(KB, Question.read("moon"))
    links = [link._replace(entities=np.array(own, dtype=np.uint32)) for own in bearers]
    left, kept = 20, []
    seen: set[int] = set()
    for own in bearers:
        new = sorted(sorted(set(own) - seen, key=lambda row: (-(row % 3), row))[:left])
        seen |= set(new)
        left -= len(new)
        kept += [new] if new else []

    nearest = Focused(Facts(), Chance(0)).nearest(links)  # type: ignore[arg-type]

    assert [link.entities.tolist() for link in nearest] == kept


# Mentions


@given(texts=QUESTIONS, rows=st.lists(st.integers(ABSENT, len(NAMES) - 1), min_size=3, max_size=3))
@few
def test_the_mention_of_a_subject_is_the_longest_of_its_names_that_stands_first(
    texts: list[str], rows: list[int]
) -> None:
    questions = [Question.read(text) for text in texts]
    subjects = np.array(rows[: len(texts)], dtype=np.int64)
    longest = []
    for question, subject in zip(questions, subjects.tolist(), strict=True):
        known = [] if subject == ABSENT else KB.names_of(np.array([subject], dtype=np.uint32))[0]
        forms = {form for name in known for form in name_forms(name.text)}
        named = [ngram for ngram in ngrams(question, lengths=range(1, 8)) if ngram.form in forms]
        longest.append(sorted(named, key=lambda ngram: (ngram.first - ngram.last, ngram.first, ngram.joined))[:1])

    mentions = label_mentions(KB, questions, subjects=subjects)

    assert [[mention] if mention else [] for mention in mentions] == longest


@pytest.mark.parametrize("words", [99, 100, 101])
def test_a_tagger_reads_a_hundred_words_and_the_marks_before_them(words: int) -> None:
    question = Question.read("what, " * words + "?")

    cut = opening(question)

    assert len(word_places(question)) == min(words, 100)
    assert len(cut.tokens) == (2 * words + 1 if words <= 100 else 200)
    assert cut.tokens == question.tokens[: len(cut.tokens)]


def test_a_mention_of_marks_alone_covers_no_word() -> None:
    question = Question.read("is !!! a band?")
    spans = {ngram.form: word_span(question, ngram) for ngram in ngrams(question, lengths=range(1, 6))}

    assert (spans["is"], spans["a band"], spans["!!!"]) == ((0, 0), (1, 2), None)
