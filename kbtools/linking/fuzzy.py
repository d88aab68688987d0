"""Fuzzy linking: from words of a question that no strict link explains to similar names."""

import math
from collections.abc import Container, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np

from kbtools.kb.contract import KnowledgeBase, NameMatch, SimilarName
from kbtools.kb.rows import EntityRows
from kbtools.linking.link_confidence import WEAK, ContentWords
from kbtools.linking.links import Link, keep_most_facts, limit_entities
from kbtools.linking.similarity import SHORTEST_SLIP, Resemblance, resemblance
from kbtools.linking.strict import StrictMatch, link_inverted
from kbtools.text.common_words import ORDINARY, commonness
from kbtools.text.function_words import has_content
from kbtools.text.ngrams import Ngram, span_ngram
from kbtools.text.question import Question
from kbtools.text.readings import inner_ngrams
from kbtools.text.rungs import Form, Rung

_LONGEST_SPAN = 10
"""The most words of a misspelt mention; few names are longer, and longer ones mean more n-grams to look up."""

SPANS_TRIED, _MOST_OUTSIDE = 24, 1
"""The most mentions per question that are looked up fuzzily, and the most words such as `is` inside one.

Of 800 validation questions of FBSQ with a slip, the right name comes first for 89.9 % with 8 and none, 91.2 % with 24
and none, 92.0 % with 24 or 32 and one.
"""

SLIPS_CUTOFF, _SLIP_CUTOFF = 80.0, 70.0
"""Lowest similarity, 0 to 100, of a name with several slips, and of one with a single slip or a word more or less."""

_MOST_INNER = 480
"""The most parts of words without spaces that are looked up fuzzily, all those of some 24 characters. It takes 0.25 s
at the size of FB5M, only for questions that would have no candidate."""

_REACH = 5
"""The most words of a name before or after the misspelt one, in running text."""

_ARTICLES = frozenset({"a", "an", "the"})

# The next two: accuracy on 2,000 validation questions of FBSQ is the same with half and twice the values, and of 800
# with a misspelt name (benchmarks/slips.py) 96 % have the entity in the pool.
_NAMES_KEPT = 10
"""The most similar names that a misspelt mention may link to."""

_SHARPNESS, _FEWER, _REWRITTEN = 10.0, 1.0, -1.0
"""Log-probability per logarithm of similarity, per word more, and for a rewritten name, among similar names."""

_NOBODY = np.empty(0, dtype=np.uint32)


def link_fuzzily(kb: KnowledgeBase, ngrams: Sequence[Ngram], *, cutoff: float = 0.0) -> list[list[Link]]:
    """Return links from each n-gram to the most similar names, at most twenty (paper, section Focused Pruning).

    They are sorted by likelihood. The cutoff also applies to names within two edits.
    """
    similar = kb.similar([ngram.form for ngram in ngrams]) if ngrams else []
    similar = [[name for name in names if name.similarity >= cutoff] for names in similar]
    forms = [name.form for names in similar for name in names]
    matches = kb.lookup(forms) if forms else {}
    return [
        limit_entities(kb, [link for name in names for link in links_to(matches, ngram, name.form, name.similarity)])
        for ngram, names in zip(ngrams, similar, strict=True)
    ]


def links_to(
    matches: Mapping[str, Sequence[NameMatch]],
    ngram: Ngram,
    form: str,
    similarity: float,
    *,
    weight: float = 0.0,
    without: EntityRows = _NOBODY,
) -> Iterator[Link]:
    """Yield links from an n-gram to the names stored under a form, without the entities in `without`."""
    for match in matches.get(form, ()):
        entities = match.entities[np.isin(match.entities, without, invert=True)] if len(without) else match.entities
        if len(entities):
            own_weight = weight if match.form is Form.NORMAL else weight + _REWRITTEN
            yield Link(
                ngram, ngram.start, ngram.end, match.name, Rung.FUZZY, entities,
                weight=own_weight, similarity=similarity,
            )  # fmt: skip


class NearName(NamedTuple):
    """A name that resembles an n-gram, given by its form."""

    ngram: Ngram
    form: str
    similarity: float
    resemblance: Resemblance

    @property
    def order(self) -> tuple[int, float, int, int]:
        """The sort key, nearest first: by words in favour, similarity, then length and place of the n-gram."""
        return (-self.resemblance.score, -self.similarity, self.ngram.first - self.ngram.last, self.ngram.first)


def _begins_and_ends_well(ngram: Ngram, weak: Container[str]) -> bool:
    """Return whether the first and last word of an n-gram are not weak words, or are initials."""
    words = ngram.form.split(" ")
    return all(len(word) == 1 or word not in weak for word in (words[0], words[-1]))


def _nearest(similar: Sequence[tuple[Ngram, list[SimilarName]]]) -> list[NearName]:
    """Return the nearest of the similar names of n-grams, nearest first."""
    names: list[NearName] = []
    slip: Ngram | None = None
    for ngram, candidates in similar:
        if slip and not (ngram.first <= slip.first and slip.last <= ngram.last):
            # One slip explains all of its words, so only a longer mention could be nearer.
            continue
        for name in candidates:
            alike = resemblance(ngram.form, name.form)
            if alike and (alike.slips <= 1 or name.similarity >= SLIPS_CUTOFF):
                names.append(NearName(ngram, name.form, name.similarity, alike))
                slip = ngram if alike.is_slip else slip
    return sorted(names, key=lambda name: name.order)[:_NAMES_KEPT]


class Misspelling:
    """The misspelt mentions of questions, around content words that no strict link explains."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb = kb
        self.content = ContentWords(kb)

    def links(
        self, questions: Sequence[Question], *, strict: Sequence[Sequence[Link | StrictMatch]] | None = None
    ) -> list[list[Link]]:
        """Return links from n-grams with unexplained words to similar names, nearest first.

        Strictly linked entities are left out. The weight of a link compares the resemblance of its name with the
        nearest.
        """
        strict = [()] * len(questions) if strict is None else strict
        links: list[list[Link]] = [[] for _ in questions]
        spans = {place: ngrams for place, ngrams in enumerate(self.spans(questions, strict)) if ngrams}
        if not spans:
            return links
        linked = {
            place: np.concatenate(
                [_NOBODY, *(keep_most_facts(self.kb, rows) for link in matches for rows in link.entity_lists)]
            )
            for place, matches in enumerate(strict)
            if place in spans
        }
        weak = self.content.weak
        named = ([ngram for ngram in ngrams if _begins_and_ends_well(ngram, weak)] for ngrams in spans.values())
        inverted = link_inverted(self.kb, list(named))
        for place, inverted_links in zip(list(spans), inverted, strict=True):
            if inverted_links:
                links[place] = [link for link in inverted_links if not np.isin(link.entities, linked[place]).all()]
                del spans[place]
        spans = {place: ngrams[:SPANS_TRIED] for place, ngrams in spans.items()}
        near = self.near_names(spans, cutoff=SLIPS_CUTOFF, edits_only=True)
        far = {place: ngrams for place, ngrams in spans.items() if not near[place]}
        near |= self.near_names(far, cutoff=_SLIP_CUTOFF, edits_only=False)
        for place in [place for place in far if not near[place]]:
            inner = _inner_spans(questions[place], strict[place])
            near |= self.near_names({place: inner}, cutoff=_SLIP_CUTOFF, edits_only=True, shortest=SHORTEST_SLIP)
        matches = self.kb.lookup([name.form for names in near.values() for name in names])
        for place, names in near.items():
            for name in names:
                weight = _SHARPNESS * math.log(min(1.0, name.similarity / names[0].similarity))
                weight += _FEWER * (name.resemblance.score - names[0].resemblance.score)
                to_name = links_to(
                    matches, name.ngram, name.form, name.similarity, weight=weight, without=linked[place]
                )
                links[place] += limit_entities(self.kb, list(to_name))
        return links

    def near_names(
        self, spans: Mapping[int, Sequence[Ngram]], *, cutoff: float, edits_only: bool, shortest: int = 0
    ) -> dict[int, list[NearName]]:
        """Return the names that n-grams may be misspellings of, with one look-up for all questions."""
        forms = [ngram.form for ngrams in spans.values() for ngram in ngrams]
        similar = iter(self.kb.similar(forms, cutoff=cutoff, edits_only=edits_only) if forms else ())
        return {
            place: _nearest(
                [
                    (ngram, [name for name in names if len(name.form) >= shortest and name.similarity >= cutoff])
                    for ngram, names in zip(ngrams, similar, strict=False)
                ]
            )
            for place, ngrams in spans.items()
        }

    def spans(self, questions: Sequence[Question], strict: Sequence[Sequence[Link | StrictMatch]]) -> list[list[Ngram]]:
        """Return the n-grams of each question to try, which have an unexplained word and could be a name.

        Those with good first and last words come first, then the longest. A single word must be in no name at all.
        """
        suspects = [self.suspects(question, links) for question, links in zip(questions, strict, strict=True)]
        words = [word for places in suspects for word in places.values()]
        counts = iter(self.kb.name_frequency(words) if words else ())
        unknown = [{place for place in places if next(counts) == 0} for places in suspects]
        return [
            self.spans_around(question, set(places), new) if places else []
            for question, places, new in zip(questions, suspects, unknown, strict=True)
        ]

    def suspects(self, question: Question, strict: Sequence[Link | StrictMatch]) -> dict[int, str]:
        """Return the content words of a question that no strict link explains, by their place among its words."""
        words = [(place, token.text) for place, token in enumerate(question.tokens) if token.is_word]
        content = [(position, place, text) for position, (place, text) in enumerate(words) if self.content.has(text)]
        mentions = {(link.ngram.first, link.ngram.last): link.ngram.form for link in strict} if content else {}
        explained = {
            place for (first, last), form in mentions.items() if has_content(form) for place in range(first, last + 1)
        }
        return {position: text for position, place, text in content if place not in explained}

    def spans_around(self, question: Question, suspects: set[int], unknown: set[int]) -> list[Ngram]:
        """Return the n-grams to try around unexplained words; `unknown` words are in no name."""
        words = [(place, token) for place, token in enumerate(question.tokens) if token.is_word]
        texts = [token.text for _, token in words]
        weak, outside = self.content.weak, self.content.outside
        spans = []
        for first in range(len(words)):
            crossed = 0
            for last in range(first, min(first + _LONGEST_SPAN, len(words))):
                crossed += texts[last] in outside
                if crossed > _MOST_OUTSIDE or texts[first] in outside:
                    break
                inside = suspects.intersection(range(first, last + 1))
                if texts[last] not in outside and inside and (first < last or inside & unknown):
                    faults = (
                        crossed,
                        texts[first] in weak - _ARTICLES,
                        texts[last] in weak,
                        first > 0 and not self.content.may_end_before(texts[first - 1]),
                        last + 1 < len(words) and not self.content.may_end_before(texts[last + 1]),
                    )
                    spans.append((sum(faults), first - last, first, last))
        ordered = sorted(spans)
        return [span_ngram(words, first, last, " ".join(texts[first : last + 1])) for _, _, first, last in ordered]


def link_slips(kb: KnowledgeBase, sentences: Sequence[Question], strict: Sequence[Sequence[Link]]) -> list[list[Link]]:
    """Return links from n-grams of a text to names of several content words that differ by one slip.

    The misspelt word is rare in the language and in no name; the words beside it are in some name.
    """
    suspects = [_rare_words(question, links) for question, links in zip(sentences, strict, strict=True)]
    near = [{at for word in places for at in range(word - _REACH, word + _REACH + 1)} for places in suspects]
    texts = [[token.text for token in question.tokens if token.is_word] for question in sentences]
    wanted = sorted(
        {words[at] for words, places in zip(texts, near, strict=True) for at in places if 0 <= at < len(words)}
    )
    counts = dict(zip(wanted, kb.name_frequency(wanted), strict=True)) if wanted else {}
    spans = [
        _slip_spans(question, {at for at in places if not counts[words[at]]}, counts)
        for question, places, words in zip(sentences, suspects, texts, strict=True)
    ]
    forms = [ngram.form for ngrams in spans for ngram in ngrams]
    similar = iter(kb.similar(forms, cutoff=SLIPS_CUTOFF, edits_only=True) if forms else ())
    names = [
        [
            name
            for name in _nearest([(ngram, next(similar)) for ngram in ngrams])
            if name.resemblance.is_slip and name.similarity >= SLIPS_CUTOFF
        ]
        for ngrams in spans
    ]
    matches = kb.lookup([name.form for nearest in names for name in nearest])
    return [
        limit_entities(
            kb, [link for name in nearest for link in links_to(matches, name.ngram, name.form, name.similarity)]
        )
        for nearest in names
    ]


def _rare_words(question: Question, strict: Sequence[Link]) -> list[int]:
    """Return the places, among all words, of long and rare words that are in no strict link."""
    linked = {place for link in strict for place in range(link.ngram.first, link.ngram.last + 1)}
    words = [(place, token.text) for place, token in enumerate(question.tokens) if token.is_word]
    return [
        at
        for at, (place, word) in enumerate(words)
        if len(word) >= SHORTEST_SLIP and place not in linked and word.isalpha() and commonness(word) <= ORDINARY
    ]


def _slip_spans(question: Question, unknown: set[int], counts: Mapping[str, int]) -> list[Ngram]:
    """Return the longest runs of words around an unknown one whose other words are in some name."""
    words = [(place, token) for place, token in enumerate(question.tokens) if token.is_word]
    spans = set()
    for at in unknown:
        capital = question.text[words[at][1].start].isupper()

        def fits(place: int) -> bool:
            return bool(counts[words[place][1].text]) and place not in unknown

        first, last = at, at
        while first > 0 and at - first < _REACH and fits(first - 1):
            first -= 1
        while last + 1 < len(words) and last - at < _REACH and fits(last + 1):
            last += 1
        ends = [
            place
            for place in range(first, last + 1)
            if words[place][1].text not in WEAK and (not capital or question.text[words[place][1].start].isupper())
        ]
        spans |= {(begin, end) for begin in ends if begin <= at for end in ends if begin < end >= at}
    longest = sorted(spans, key=lambda span: (span[0] - span[1], span))[:SPANS_TRIED]
    return [
        span_ngram(words, begin, end, " ".join(token.text for _, token in words[begin : end + 1]))
        for begin, end in longest
    ]


def _inner_spans(question: Question, strict: Sequence[Link | StrictMatch]) -> list[Ngram]:
    """Return parts of words in scripts without spaces to look up fuzzily, for words without a part that is a name."""
    if question.text.isascii():
        return []
    linked = [range(link.ngram.first, link.ngram.last + 1) for link in strict]
    ngrams = (
        ngram
        for ngram in inner_ngrams(question, frozenset({1}))
        if len(ngram.form) >= SHORTEST_SLIP and not any(ngram.first in places for places in linked)
    )
    return list(islice(ngrams, _MOST_INNER))
