"""Focused pruning: a tagger finds the mention of the subject (paper, section Focused Pruning). Beyond the paper, a
tagger also weighs the mentions of `n-gram-idf`."""

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from kbtools.kb.contract import KnowledgeBase
from kbtools.linking.fuzzy import SLIPS_CUTOFF, Misspelling, link_fuzzily
from kbtools.linking.links import Link
from kbtools.linking.strict import (
    Weighed,
    find_names,
    link_all_strictly,
    link_matches,
    match_names,
    ngrams_of,
    with_facts,
)
from kbtools.pruning.n_gram import NGramIdf
from kbtools.pruning.pruners import Guide, Tagger, opening, tag, word_places, word_span
from kbtools.text.ngrams import Ngram
from kbtools.text.question import Question
from kbtools.text.readings import every_ngram
from kbtools.text.rungs import Rung

_MENTIONS_KEPT, MARGIN = 3, 8.0
"""The most mentions that `focused-k` keeps, as many as `n-gram-idf`, and the largest log-probability below the best.

e^-8 is one in 3,000, while the tagger is wrong in 5 of 100 questions of FBSQ.
"""

_NAMES_KEPT = 5
"""Names that `focused-k` keeps for a misspelt mention; by judgement, not measured."""

ENTITIES_KEPT = 20
"""Entities that `focused` keeps of a mention that links fuzzily (paper, section Focused Pruning)."""

_MENTIONS_TRIED = 4
"""The most mentions that are looked up fuzzily if none links strictly; each takes 6 ms."""

_NOBODY = np.empty(0, dtype=np.uint32)

_Mention = tuple[list[Ngram], float]
"""The n-grams of the same words, one per form, and log p(w|q)."""

RARITY = 0.5
"""Weight of a mention's rarity beside log p(w|q). With four relation scorers and `type-cosine`, 72.7 % of FBSQ's
validation questions are right at 0.5 and 1, 72.4 % at 0; with trees 73.3, 73.1 and 73.1 %."""

IMPROBABLE = -20.0
"""The lowest log p(w|q), also of words the tagger does not read: punctuation, and words after the hundredth."""


class Focused:
    """The pruner `focused`: the most probable n-gram, linked strictly or else fuzzily to at most twenty entities.

    Among the entities of one name, those with the most facts are kept.
    """

    guide: ClassVar[Guide] = "tagger"
    version: ClassVar[int] = 2

    def __init__(self, kb: KnowledgeBase, tagger: Tagger) -> None:
        self.kb = kb
        self.tagger = tagger

    def links(self, questions: Sequence[Question]) -> list[list[Link]]:
        best = [next(mentions, None) for mentions in self.mentions(questions)]
        strict = link_all_strictly(self.kb, questions, [mention[0] if mention else [] for mention in best])
        missed = [at for at, links in enumerate(strict) if best[at] and not links]
        fuzzy = self.fuzzily([mention for at in missed if (mention := best[at])])
        nearest = dict(zip(missed, map(self.nearest, fuzzy), strict=True))
        return [
            _weigh(links or nearest[at], mention[1]) if (mention := best[at]) else [] for at, links in enumerate(strict)
        ]

    def nearest(self, links: list[Link]) -> list[Link]:
        """Return links, sorted by similarity, with the first ENTITIES_KEPT entities."""
        kept: list[Link] = []
        seen = _NOBODY
        for link in links:
            entities = np.setdiff1d(link.entities, seen)
            room = ENTITIES_KEPT - len(seen)
            if len(entities) > room:
                popular = np.argsort(-self.kb.fact_counts(entities).astype(np.int64), kind="stable")
                entities = np.sort(entities[popular[:room]])
            if len(entities):
                kept.append(link._replace(entities=entities))
                seen = np.concatenate([seen, entities])
        return kept

    def mentions(self, questions: Sequence[Question]) -> list[Iterator[_Mention]]:
        """Return the mentions of each question, the most probable first."""
        return [_ranked_mentions(*pair) for pair in zip(questions, tag(self.tagger, questions), strict=True)]

    def fuzzily(self, mentions: Sequence[_Mention]) -> list[list[Link]]:
        """Return links from mentions to similar names."""
        return link_fuzzily(self.kb, [ngrams[0] for ngrams, _ in mentions], cutoff=SLIPS_CUTOFF)


def _ranked_mentions(question: Question, spans: NDArray[np.float64]) -> Iterator[_Mention]:
    """Yield the n-grams of each run of words, the most probable first."""
    places = word_places(question)
    forms: dict[tuple[int, int], list[Ngram]] = {}
    for ngram in every_ngram(opening(question), lengths=range(1, len(places) + 1)):
        forms.setdefault((ngram.first, ngram.last), []).append(ngram)
    # Sorts (first, last) by falling probability, ties by place, without a list of pairs.
    for entry in np.argsort(-spans, axis=None, kind="stable"):
        first, last = divmod(int(entry), len(places))
        if last < first:
            return
        yield forms[places[first], places[last]], float(spans[first, last])


class FocusedKB(Focused):
    """The pruner `focused-kb`: the most probable n-gram that links strictly, or else the first that links fuzzily."""

    def links(self, questions: Sequence[Question]) -> list[list[Link]]:
        ranked = [list(mentions) for mentions in self.mentions(questions)]
        names = find_names(self.kb, [ngram for mentions in ranked for ngrams, _ in mentions for ngram in ngrams])
        links = [self.first(*pair, names) for pair in zip(questions, ranked, strict=True)]
        for place in range(_MENTIONS_TRIED):
            left = [at for at, mention_links in enumerate(links) if not mention_links and place < len(ranked[at])]
            tried = [ranked[at][place] for at in left]
            for at, mention_links, (_, weight) in zip(left, self.fuzzily(tried), tried, strict=True):
                links[at] = _weigh(mention_links, weight)
        return links

    def first(
        self, question: Question, mentions: Sequence[_Mention], names: Mapping[str, Sequence[Weighed]]
    ) -> list[Link]:
        """Return the links of the first mention that has a name."""
        for ngrams, weight in mentions:
            if links := link_matches(self.kb, question, match_names(ngrams, names)):
                return _weigh(links, weight)
        return []


class FocusedK(Focused):
    """The pruner `focused-k`: the few most probable n-grams that link, within a margin of the first.

    It adds names for a misspelt mention and, if the most probable n-gram does not link, similar names. Beyond the
    paper.
    """

    def __init__(self, kb: KnowledgeBase, tagger: Tagger) -> None:
        super().__init__(kb, tagger)
        self.misspelling = Misspelling(kb)

    def links(self, questions: Sequence[Question]) -> list[list[Link]]:
        ranked = [list(mentions) for mentions in self.mentions(questions)]
        every = [ngrams_of(self.kb, question) for question in questions]
        probable = [ngram for mentions in ranked for ngrams, _ in mentions for ngram in ngrams]
        names = find_names(self.kb, [*probable, *(ngram for ngrams in every for ngram in ngrams)])
        missed = [
            at
            for at, mentions in enumerate(ranked)
            if mentions and not any(match.names for match in match_names(mentions[0][0], names))
        ]
        fuzzy = dict(zip(missed, self.fuzzily([ranked[at][0] for at in missed]), strict=True))
        strict = [
            with_facts(self.kb, link_matches(self.kb, question, match_names(ngrams, names)))
            for question, ngrams in zip(questions, every, strict=True)
        ]
        misspelt = self.misspelling.links(questions, strict=strict)
        return [
            self.keep(question, mentions, names, fuzzy.get(at, [])[:_NAMES_KEPT], near_links[:_NAMES_KEPT])
            for at, (question, mentions, near_links) in enumerate(zip(questions, ranked, misspelt, strict=True))
        ]

    def keep(
        self,
        question: Question,
        ranked: Sequence[_Mention],
        names: Mapping[str, Sequence[Weighed]],
        fuzzy: list[Link],
        misspelt: list[Link],
    ) -> list[Link]:
        """Return the links of the most probable mentions and of a misspelt one; `fuzzy` are links of the first
        mention."""
        links: list[Link] = []
        mentions, best = 0, -np.inf
        for place, (ngrams, weight) in enumerate(ranked):
            if mentions == _MENTIONS_KEPT or (mentions and weight < best - MARGIN):
                break
            mention_links = link_matches(self.kb, question, match_names(ngrams, names)) or (fuzzy if place == 0 else [])
            if mention_links:
                mentions, best = mentions + 1, max(best, weight)
                links += _weigh(mention_links, weight)
        weights = {(ngrams[0].first, ngrams[0].last): weight for ngrams, weight in ranked}
        for link in misspelt:
            probable = weights.get((link.ngram.first, link.ngram.last), -np.inf)
            links.append(link._replace(weight=link.weight + max(probable, best - MARGIN) if links else link.weight))
        return links


def _weigh(links: list[Link], weight: float) -> list[Link]:
    """Return links with the log-probability of their mention as weight."""
    return [link._replace(weight=weight) for link in links]


class FocusedIdf:
    """The pruner `focused-idf`: the links of `n-gram-idf`, weighed by log p(w|q) and half of their rarity.

    The tagger does not weigh misspelt mentions, since it was not trained on such words: of 1,887 validation questions
    of FBSQ with one slip in the name this raises the right answers from 69.7 to 82.1 %.
    """

    guide: ClassVar[Guide] = "tagger"
    version: ClassVar[int] = 2

    def __init__(self, kb: KnowledgeBase, tagger: Tagger) -> None:
        self.rarest = NGramIdf(kb)
        self.tagger = tagger

    def links(self, questions: Sequence[Question]) -> list[list[Link]]:
        links = self.rarest.links(questions)
        linked = [question for question, kept in zip(questions, links, strict=True) if kept]
        spans = iter(tag(self.tagger, linked) if linked else ())
        return [
            _weigh_links(question, kept, next(spans)) if kept else []
            for question, kept in zip(questions, links, strict=True)
        ]


def _weigh_links(question: Question, links: Sequence[Link], spans: NDArray[np.float64]) -> list[Link]:
    """Return links weighed by their rarity and the log-probability of their mention."""
    words = [word_span(question, link.ngram) for link in links]
    probable = [IMPROBABLE if span is None else max(float(spans[span]), IMPROBABLE) for span in words]
    return [
        link._replace(weight=RARITY * link.weight + (weight if link.rung < Rung.FUZZY else 0.0))
        for link, weight in zip(links, probable, strict=True)
    ]
