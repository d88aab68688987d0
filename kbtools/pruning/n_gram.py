"""The paper's baselines, N-Gram and N-Gram+ (section Inference via Focused Pruning), and pruning by rarity.

The heuristics of N-Gram+ follow Bordes et al. 2015, since the paper only names them. Pruning by rarity, beyond the
paper, needs no training: it prefers mentions whose words few names contain.
"""

import math
from collections.abc import Sequence
from typing import ClassVar, TypeVar

from kbtools.kb.contract import KnowledgeBase
from kbtools.kb.views import question_languages, relation_labels
from kbtools.linking.fuzzy import Misspelling
from kbtools.linking.links import Link
from kbtools.linking.similarity import resemblance
from kbtools.linking.strict import StrictMatch, StrictNames, link_all_strictly, link_matches, with_facts
from kbtools.text.function_words import FUNCTION_WORDS, QUESTION_WORDS, has_content, has_word
from kbtools.text.lexicons import function_words, reads_english
from kbtools.text.ngrams import Ngram
from kbtools.text.normaliser import normal_form
from kbtools.text.question import Question
from kbtools.text.relation_words import words_of_all
from kbtools.text.rungs import Form, Rung

PART_WEIGHT = -2.0
"""Log-probability of a mention inside a longer variant or misspelt one; more than these rungs cost.

`iron kite 2` is the second film, although the rung of `Iron Kite` is stricter.
"""

# The next four: for 2,000 validation questions of FBSQ; 97.6 % of the gold pairs with a named subject are kept.
_MENTIONS_KEPT = 3
"""Mentions kept: two keep 0.6 points fewer gold pairs, four 0.2 more in a pool a quarter larger."""

RELATION_WORD, STOP_WORD = 0.5, 0.1
"""Factor on the rarity of a word in the relations' names, and the weight of a stop word.

Accuracy is 0.5 points lower with 0.25, 0.1 lower with 1, and the same for stop words from 0.1 to 1.
"""

TEMPERATURE = 1.0
"""Log-probability per unit of weight: accuracy is 0.8 points lower at 0.5, the same at 2."""

WORDS_REMEMBERED = 100_000
"""Words whose rarity is cached, about 10 MB."""


class NGram:
    """The pruner `n-gram`: every n-gram that links strictly, and beyond the paper fuzzily around unexplained words."""

    version: ClassVar[int] = 2

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb = kb
        self.misspelling = Misspelling(kb)

    def links(self, questions: Sequence[Question]) -> list[list[Link]]:
        strict = link_all_strictly(self.kb, questions)
        fuzzy = self.misspelling.links(questions, strict=[with_facts(self.kb, links) for links in strict])
        return [_weigh_parts(links + misspelt) for links, misspelt in zip(strict, fuzzy, strict=True)]


def _weigh_parts(links: list[Link]) -> list[Link]:
    """Return links with a lower weight for mentions that are part of a longer one."""
    whole = {(link.start, link.end) for link in links if link.rung in (Rung.VARIANT, Rung.FUZZY)}
    return [link._replace(weight=link.weight + PART_WEIGHT) if _is_part(link, whole) else link for link in links]


def _is_part(link: Link, spans: set[tuple[int, int]]) -> bool:
    """Return whether a mention is part of a longer one."""
    return any(
        start <= link.start and link.end <= end and (start, end) != (link.start, link.end) for start, end in spans
    )


class NGramPlus:
    """The pruner `n-gram+`: no n-grams of only stop or question words, and none inside a longer one that links.

    Such n-grams may be titles: several words (`The Who`) are always kept, a single one (`It`) if nothing else links,
    and a question word (`Who`) if nothing else is left.
    """

    version: ClassVar[int] = 2

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb = kb
        self.names = StrictNames(kb)
        self.misspelling = Misspelling(kb)

    def links(self, questions: Sequence[Question]) -> list[list[Link]]:
        strict = self.names.matches(questions)
        misspelt = self.misspelling.links(questions, strict=strict)
        return [self.keep(*parts) for parts in zip(questions, strict, misspelt, strict=True)]

    def keep(self, question: Question, strict: Sequence[StrictMatch], misspelt: Sequence[Link]) -> list[Link]:
        content = [match for match in strict if has_content(match.ngram.form)]
        titles = [match for match in strict if " " in match.ngram.form and not has_content(match.ngram.form)]
        if content or misspelt or titles:
            named: list[Link | StrictMatch] = [*content, *misspelt]
            kept = longest(content, named) + longest(titles)
            return link_matches(self.kb, question, kept) + longest(misspelt, named)
        titled = [match for match in strict if match.ngram.form not in QUESTION_WORDS and has_word(match.ngram.form)]
        return link_matches(self.kb, question, longest(titled or strict))


_M = TypeVar("_M", Link, StrictMatch)


def longest(links: Sequence[_M], among: Sequence[Link | StrictMatch] | None = None) -> list[_M]:
    """Return the links that are not inside a longer one of `among`, by default of the links themselves."""
    outermost: set[tuple[int, int]] = set()
    reached = -1
    # Sorted by start, longer first: a span lies inside an earlier one if it ends no later.
    for start, opposite in sorted({(link.ngram.start, -link.ngram.end) for link in among or links}):
        if -opposite > reached:
            outermost.add((start, -opposite))
            reached = -opposite
    return [link for link in links if (link.ngram.start, link.ngram.end) in outermost]


class NGramIdf:
    """The pruner `n-gram-idf`: the linked n-grams with the rarest words.

    The weight of a link is a log-probability over the kept n-grams, up to a constant. A misspelt mention weighs as much
    as the name that it resembles.
    """

    version: ClassVar[int] = 2

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb = kb
        self.forms = kb.manifest.statistics["forms"]
        self.names = StrictNames(kb)
        self.misspelling = Misspelling(kb)
        self.relation_words = words_of_all(text for labels in relation_labels(kb) for text in labels)
        languages = question_languages(kb)
        self.stop_words = function_words(languages) | (FUNCTION_WORDS if reads_english(languages) else frozenset())
        self.rarities = dict.fromkeys(self.stop_words, STOP_WORD)

    def links(self, questions: Sequence[Question]) -> list[list[Link]]:
        strict = self.names.matches(questions)
        fuzzy = self.misspelling.links(questions, strict=strict)
        # Fuzzy links share the weight of their mention, spelt as in the nearest name; their own weights compare the
        # names.
        forms = [
            [_words_in(question, match.ngram) for match in matches] + [_spelt(misspelt[0]) for _ in misspelt]
            for question, matches, misspelt in zip(questions, strict, fuzzy, strict=True)
        ]
        self.learn({word for group in forms for form in group for word in form.split(" ")})
        return [self.keep(*parts) for parts in zip(questions, strict, fuzzy, forms, strict=True)]

    def keep(
        self, question: Question, strict: Sequence[StrictMatch], fuzzy: Sequence[Link], forms: Sequence[str]
    ) -> list[Link]:
        """Return the links of the mentions with the highest weights; `forms` are their words as names spell them."""
        weight_of = {form: self.weigh(form) for form in dict.fromkeys(forms)}
        weights = [weight_of[form] for form in forms]
        best = sorted(set(weights), reverse=True)[:_MENTIONS_KEPT]
        kept = [(match, weight) for match, weight in zip(strict, weights, strict=False) if weight >= best[-1]]
        misspelt = [link for link in fuzzy if weights[-1] >= best[-1] or link.rung is Rung.FUZZY]
        links = link_matches(self.kb, question, [match for match, _ in kept]) + misspelt
        own_weights = [weight for match, weight in kept for _ in match.names] + [weights[-1] for _ in misspelt]
        return [
            link._replace(weight=TEMPERATURE * (weight - best[0]) + link.weight)
            for link, weight in zip(links, own_weights, strict=True)
        ]

    def weigh(self, form: str) -> float:
        """Return the sum of the rarities of a form's words; punctuation that is not a title has half a stop word's
        weight."""
        if not has_word(form) and not has_content(form):
            return STOP_WORD / 2
        return sum(self.rarities[word] for word in form.split(" "))

    def learn(self, words: set[str]) -> None:
        """Cache the inverse document frequencies of words among the names of the knowledge base."""
        if len(self.rarities) > WORDS_REMEMBERED:
            self.rarities = dict.fromkeys(self.stop_words, STOP_WORD)
        # Not a set difference with the keys: that takes time for every cached word.
        new = sorted(word for word in words if word not in self.rarities)
        for word, names in zip(new, self.kb.name_frequency(new), strict=True):
            rarity = math.log((self.forms + 1) / (names + 1))
            in_relation = word in self.relation_words or word.removesuffix("s") in self.relation_words
            self.rarities[word] = rarity * (RELATION_WORD if in_relation else 1.0)


def _words_in(question: Question, ngram: Ngram) -> str:
    """Return the words of a mention as the question spells them."""
    if ngram.reading in (Form.OTHERWISE, Form.SHORTENED):
        return " ".join(token.text for token in question.tokens[ngram.first : ngram.last + 1] if token.is_word)
    return ngram.form


def _spelt(link: Link) -> str:
    """Return the words of a mention as the similar name spells them."""
    name = normal_form(link.name)
    alike = resemblance(link.ngram.form, name)
    return " ".join(alike.words) if alike else name
