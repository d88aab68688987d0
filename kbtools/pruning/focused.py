"""Focused pruning: a tagger says where a question names its subject (paper, section Focused Pruning)."""

from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np

from kbtools.kb.contract import KnowledgeBase
from kbtools.linking.fuzzy import Misspelling, link_fuzzily
from kbtools.linking.links import Link
from kbtools.linking.strict import link_strictly, with_facts
from kbtools.pruning.pruners import Guide
from kbtools.pruning.tagging import ExpectedTags, Tagger, opening, word_places
from kbtools.text.ngrams import Ngram
from kbtools.text.question import Question
from kbtools.text.readings import every_ngram

KEPT, MARGIN = 3, 8.0
"""Mentions that `focused-k` keeps, and how far below the best their log-probability may be.

As many mentions as `n-gram-idf` keeps; e^-8 is one in 3,000, where the tagger marks 5 in 100 questions of FBSQ wrongly.
"""

SIMILAR = 5
"""Names that `focused-k` keeps of those that a misspelt mention may mean: by judgement, not measured."""

MOST_SIMILAR = 20
"""Entities that `focused` keeps of those whose names are like its mention (paper, section Focused Pruning)."""

TRIED = 4
"""Mentions that are looked up fuzzily where none links strictly, each at the price of a fuzzy look-up (6 ms)."""

NOBODY = np.empty(0, dtype=np.uint32)


class Focused:
    """The pruner `focused`: the most probable n-gram, strictly, else fuzzily: at most twenty entities.

    Of the bearers of one name those with the most facts are kept.
    """

    guide: ClassVar[Guide] = "tagger"
    version: ClassVar[int] = 2

    def __init__(self, kb: KnowledgeBase, tagger: Tagger) -> None:
        self.kb = kb
        self.tags = ExpectedTags(tagger)

    def expect(self, questions: Sequence[Question]) -> None:
        self.tags.expect(questions)

    def links(self, question: Question) -> list[Link]:
        for mention, weight in self.mentions(question):
            return weigh(self.strictly(question, mention) or self.nearest(self.fuzzily(mention)), weight)
        return []

    def nearest(self, links: list[Link]) -> list[Link]:
        """Cut links, the most similar first, to the first MOST_SIMILAR entities."""
        kept: list[Link] = []
        seen = NOBODY
        for link in links:
            entities = np.setdiff1d(link.entities, seen)
            room = MOST_SIMILAR - len(seen)
            if len(entities) > room:
                popular = np.argsort(-self.kb.fact_counts(entities).astype(np.int64), kind="stable")
                entities = np.sort(entities[popular[:room]])
            if len(entities):
                kept.append(link._replace(entities=entities))
                seen = np.concatenate([seen, entities])
        return kept

    def mentions(self, question: Question) -> Iterator[tuple[list[Ngram], float]]:
        """Yield the n-grams of words, the most probable first: the forms that each has, and log p(w|q)."""
        spans = self.tags.of(question)
        places = word_places(question)
        forms: dict[tuple[int, int], list[Ngram]] = {}
        for ngram in every_ngram(opening(question), lengths=range(1, len(places) + 1)):
            forms.setdefault((ngram.first, ngram.last), []).append(ngram)
        # The same order as sorting (first, last) by falling probability, ties by place, without a list of pairs.
        for entry in np.argsort(-spans, axis=None, kind="stable"):
            first, last = divmod(int(entry), len(places))
            if last < first:
                return
            yield forms[places[first], places[last]], float(spans[first, last])

    def strictly(self, question: Question, mention: list[Ngram]) -> list[Link]:
        return link_strictly(self.kb, question, mention)

    def fuzzily(self, mention: list[Ngram]) -> list[Link]:
        return link_fuzzily(self.kb, mention[0], but=NOBODY)


class FocusedKB(Focused):
    """The pruner `focused-kb`: the most probable n-gram that links strictly, else the first that links fuzzily."""

    def links(self, question: Question) -> list[Link]:
        ranked = list(self.mentions(question))
        for mention, weight in ranked:
            if links := self.strictly(question, mention):
                return weigh(links, weight)
        for mention, weight in ranked[:TRIED]:
            if links := self.fuzzily(mention):
                return weigh(links, weight)
        return []


class FocusedK(Focused):
    """The pruner `focused-k`: the few most probable n-grams that link, none far less probable than the first.

    Beside them stand the names that a misspelt mention may mean, and, where the most probable n-gram of all links to
    nothing, the names like it. Beyond the paper.
    """

    def __init__(self, kb: KnowledgeBase, tagger: Tagger) -> None:
        super().__init__(kb, tagger)
        self.misspelling = Misspelling(kb)

    def links(self, question: Question) -> list[Link]:
        ranked = list(self.mentions(question))
        links: list[Link] = []
        mentions, best = 0, -np.inf
        for place, (mention, weight) in enumerate(ranked):
            if mentions == KEPT or (mentions and weight < best - MARGIN):
                break
            mention_links = self.strictly(question, mention)
            if not mention_links and place == 0:
                mention_links = self.fuzzily(mention)[:SIMILAR]
            if mention_links:
                mentions, best = mentions + 1, max(best, weight)
                links += weigh(mention_links, weight)
        weights = {(mention[0].first, mention[0].last): weight for mention, weight in ranked}
        strict = with_facts(self.kb, link_strictly(self.kb, question))
        for link in self.misspelling.links(question, strict=strict)[:SIMILAR]:
            probable = weights.get((link.ngram.first, link.ngram.last), -np.inf)
            links.append(link._replace(weight=link.weight + max(probable, best - MARGIN) if links else link.weight))
        return links


def weigh(links: list[Link], weight: float) -> list[Link]:
    """Give links the log-probability of their mention."""
    return [link._replace(weight=weight) for link in links]
