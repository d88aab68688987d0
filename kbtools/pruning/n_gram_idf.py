"""N-gram pruning by rarity: the mention is made of the words that few names hold. No training, beyond the paper."""

import math
from collections.abc import Sequence
from typing import ClassVar

from kbtools.kb.contract import KnowledgeBase, relation_texts
from kbtools.linking.fuzzy import Misspelling
from kbtools.linking.links import Link
from kbtools.linking.similarity import resemblance
from kbtools.linking.strict import StrictMatch, StrictNames, link_matches
from kbtools.text.function_words import FUNCTION_WORDS, has_content, has_word
from kbtools.text.ngrams import Ngram
from kbtools.text.normaliser import normal_form
from kbtools.text.question import Question
from kbtools.text.relation_words import words_of_all
from kbtools.text.rungs import Form, Rung

# The next four: 2,000 validation questions of FBSQ, whose gold pair is kept for 97.6 % of those with a named subject.
MENTIONS_KEPT = 3
"""Mentions kept, the weightiest first: two keep 0.6 points fewer pairs, four 0.2 more in a pool a quarter larger."""

RELATION_WORD, STOP_WORD = 0.5, 0.1
"""Share of its rarity that a word of the relations' names weighs; the weight of a stop word.

Accuracy is 0.5 points lower at 0.25 and 0.1 lower at 1; any weight of a stop word from 0.1 to 1 gives the same.
"""

TEMPERATURE = 1.0
"""Log-probability that a unit of weight is worth: accuracy is 0.8 points lower at 0.5, the same at 2."""

WORDS_REMEMBERED = 100_000
"""Words whose rarity is kept in memory, some 10 MB."""


class NGramIdf:
    """Weigh n-grams by the rarity of their words and keep the best that link.

    The weight of a link is a log-probability over the n-grams that were kept, up to a constant. Where a question has
    words that no name holds, what they may be misspellings of weighs as the names that they resemble.
    """

    version: ClassVar[int] = 2

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb = kb
        self.forms = kb.manifest.statistics["forms"]
        self.names = StrictNames(kb)
        self.misspelling = Misspelling(kb)
        self.relation_words = words_of_all(relation_texts(kb))
        self.rarities = dict.fromkeys(FUNCTION_WORDS, STOP_WORD)

    def links(self, questions: Sequence[Question]) -> list[list[Link]]:
        strict = self.names.matches(questions)
        fuzzy = self.misspelling.links(questions, strict=strict)
        # Fuzzy links weigh as their mention does, spelt as in the nearest name; their own weights say how near each is.
        forms = [
            [words_in(question, match.ngram) for match in own] + [spelt(misspelt[0]) for _ in misspelt]
            for question, own, misspelt in zip(questions, strict, fuzzy, strict=True)
        ]
        self.learn({word for own in forms for form in own for word in form.split(" ")})
        return [self.keep(*own) for own in zip(questions, strict, fuzzy, forms, strict=True)]

    def keep(
        self, question: Question, strict: Sequence[StrictMatch], fuzzy: Sequence[Link], forms: Sequence[str]
    ) -> list[Link]:
        """Keep the links of the weightiest mentions, whose words as names spell them are in `forms`."""
        weight_of = {form: self.weigh(form) for form in dict.fromkeys(forms)}
        weights = [weight_of[form] for form in forms]
        best = sorted(set(weights), reverse=True)[:MENTIONS_KEPT]
        kept = [(match, weight) for match, weight in zip(strict, weights, strict=False) if weight >= best[-1]]
        misspelt = [link for link in fuzzy if weights[-1] >= best[-1] or link.rung is Rung.FUZZY]
        links = link_matches(self.kb, question, [match for match, _ in kept]) + misspelt
        own_weights = [weight for match, weight in kept for _ in match.names] + [weights[-1] for _ in misspelt]
        return [
            link._replace(weight=TEMPERATURE * (weight - best[0]) + link.weight)
            for link, weight in zip(links, own_weights, strict=True)
        ]

    def weigh(self, form: str) -> float:
        """Sum the rarities of the words of a form; a mark that is not a title weighs half a stop word."""
        if not has_word(form) and not has_content(form):
            return STOP_WORD / 2
        return sum(self.rarities[word] for word in form.split(" "))

    def learn(self, words: set[str]) -> None:
        """Find the inverse document frequencies of words among the names of the knowledge base."""
        if len(self.rarities) > WORDS_REMEMBERED:
            self.rarities = dict.fromkeys(FUNCTION_WORDS, STOP_WORD)
        # No difference of sets: that with the keys of a dictionary takes time for all that is remembered.
        new = sorted(word for word in words if word not in self.rarities)
        for word, names in zip(new, self.kb.name_frequency(new), strict=True):
            rarity = math.log((self.forms + 1) / (names + 1))
            spoken_of = word in self.relation_words or word.removesuffix("s") in self.relation_words
            self.rarities[word] = rarity * (RELATION_WORD if spoken_of else 1.0)


def words_in(question: Question, ngram: Ngram) -> str:
    """Return the words of a mention as the question has them, even if its form is written otherwise."""
    if ngram.reading in (Form.OTHERWISE, Form.SHORTENED):
        return " ".join(token.text for token in question.tokens[ngram.first : ngram.last + 1] if token.is_word)
    return ngram.form


def spelt(link: Link) -> str:
    """Return the words of a mention as the name that it resembles spells them."""
    name = normal_form(link.name)
    alike = resemblance(link.ngram.form, name)
    return " ".join(alike.words) if alike else name
