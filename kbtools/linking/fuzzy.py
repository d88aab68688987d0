"""Fuzzy linking: from words of a question that strict linking leaves unexplained to the names that resemble them."""

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
from kbtools.text.ngrams import Ngram
from kbtools.text.question import Question
from kbtools.text.readings import inner_ngrams
from kbtools.text.rungs import Form, Rung

_LONGEST_SPAN = 10
"""Words of a mention that may be misspelt; few names have more, and the n-grams to look up grow with it."""

SPANS_TRIED, _MOST_OUTSIDE = 24, 1
"""Mentions that are looked up fuzzily before a question is given up, and words such as `is` inside one.

Of 800 validation questions of FBSQ with a slip, the right name comes first for 89.9 % with 8 and none, 91.2 % with 24
and none, 92.0 % with 24 or 32 and one.
"""

SLIPS_CUTOFF, _SLIP_CUTOFF = 80.0, 70.0
"""Similarity of a name with several slips, 0 to 100, and of one with a single slip or a word more or less."""

_MOST_INNER = 480
"""Parts of words without spaces that are looked up fuzzily, those of some 24 characters: a quarter of a second at the
size of FB5M, where a question would have no candidate otherwise."""

_REACH = 5
"""Words of a name on either side of one with a slip, in running text."""

_ARTICLES = frozenset({"a", "an", "the"})

# The next two: accuracy on 2,000 validation questions of FBSQ is the same with half and twice as much, and 800 with a
# slip in the name (benchmarks/slips.py) have the entity in the pool for 96 %.
_NAMES_KEPT = 10
"""Names that resemble a mention, the nearest first."""

_SHARPNESS, _FEWER, _REWRITTEN = 10.0, 1.0, -1.0
"""Log-probability of similarity, of a word more, and of a name found by a rewriting, among names alike."""


_NOBODY = np.empty(0, dtype=np.uint32)


def link_fuzzily(kb: KnowledgeBase, ngrams: Sequence[Ngram], *, cutoff: float = 0.0) -> list[list[Link]]:
    """Link each n-gram to the names most similar to it, at most twenty (paper, section Focused Pruning).

    The likeliest to be meant comes first. The cutoff leaves out names within two edits, too, where the n-gram may be
    no name.
    """
    similar = kb.similar([ngram.form for ngram in ngrams]) if ngrams else []
    similar = [[name for name in own if name.similarity >= cutoff] for own in similar]
    forms = [name.form for own in similar for name in own]
    matches = kb.lookup(forms) if forms else {}
    return [
        limit_entities(kb, [link for name in own for link in links_to(matches, ngram, name.form, name.similarity)])
        for ngram, own in zip(ngrams, similar, strict=True)
    ]


def links_to(
    matches: Mapping[str, Sequence[NameMatch]],
    ngram: Ngram,
    form: str,
    similarity: float,
    *,
    weight: float = 0.0,
    but: EntityRows = _NOBODY,
) -> Iterator[Link]:
    """Yield links of an n-gram to the names stored under a form, without the entities in `but`."""
    for match in matches.get(form, ()):
        entities = match.entities[np.isin(match.entities, but, invert=True)] if len(but) else match.entities
        if len(entities):
            own_weight = weight if match.form is Form.NORMAL else weight + _REWRITTEN
            yield Link(
                ngram, ngram.start, ngram.end, match.name, Rung.FUZZY, entities,
                weight=own_weight, similarity=similarity,
            )  # fmt: skip


class NearName(NamedTuple):
    """A name that resembles an n-gram, by its form."""

    ngram: Ngram
    form: str
    similarity: float
    resemblance: Resemblance

    @property
    def order(self) -> tuple[int, float, int, int]:
        """Sort the nearest name first: words in favour, similarity, length and place of the n-gram."""
        return (-self.resemblance.score, -self.similarity, self.ngram.first - self.ngram.last, self.ngram.first)


def _begins_and_ends_well(ngram: Ngram, weak: Container[str]) -> bool:
    """Return whether a name may begin and end as an n-gram does: with an initial, or no word that says little."""
    words = ngram.form.split(" ")
    return all(len(word) == 1 or word not in weak for word in (words[0], words[-1]))


def _nearest(similar: Sequence[tuple[Ngram, list[SimilarName]]]) -> list[NearName]:
    """Return the names that n-grams may be misspellings of, among those similar to each, the nearest first."""
    names: list[NearName] = []
    slip: Ngram | None = None
    for ngram, own in similar:
        if slip and not (ngram.first <= slip.first and slip.last <= ngram.last):
            continue  # one slip explains all of its words, so that only a longer mention could be nearer
        for name in own:
            alike = resemblance(ngram.form, name.form)
            if alike and (alike.slips <= 1 or name.similarity >= SLIPS_CUTOFF):
                names.append(NearName(ngram, name.form, name.similarity, alike))
                slip = ngram if alike.is_slip else slip
    return sorted(names, key=lambda name: name.order)[:_NAMES_KEPT]


class Misspelling:
    """The misspelt mentions of questions.

    A content word is suspect if strict links leave it unexplained.
    """

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb = kb
        self.content = ContentWords(kb)

    def links(
        self, questions: Sequence[Question], *, strict: Sequence[Sequence[Link | StrictMatch]] | None = None
    ) -> list[list[Link]]:
        """Link the n-grams around suspect words of each question to the names that resemble them, the nearest first.

        Entities that are linked strictly keep their stricter link. The weight of a link says how much less its name
        resembles the mention than the nearest name does.
        """
        strict = [()] * len(questions) if strict is None else strict
        links: list[list[Link]] = [[] for _ in questions]
        spans = {place: own for place, own in enumerate(self.spans(questions, strict)) if own}
        if not spans:
            return links
        linked = {
            place: np.concatenate(
                [_NOBODY, *(keep_most_facts(self.kb, rows) for link in own for rows in link.entity_lists)]
            )
            for place, own in enumerate(strict)
            if place in spans
        }
        weak = self.content.weak
        named = ([ngram for ngram in own if _begins_and_ends_well(ngram, weak)] for own in spans.values())
        inverted = link_inverted(self.kb, list(named))
        for place, own in zip(list(spans), inverted, strict=True):
            if own:
                links[place] = [link for link in own if not np.isin(link.entities, linked[place]).all()]
                del spans[place]
        spans = {place: own[:SPANS_TRIED] for place, own in spans.items()}
        near = self.near_names(spans, cutoff=SLIPS_CUTOFF, edits_only=True)
        far = {place: own for place, own in spans.items() if not near[place]}
        near |= self.near_names(far, cutoff=_SLIP_CUTOFF, edits_only=False)
        for place in [place for place in far if not near[place]]:
            inner = _inner_spans(questions[place], strict[place])
            near |= self.near_names({place: inner}, cutoff=_SLIP_CUTOFF, edits_only=True, shortest=SHORTEST_SLIP)
        matches = self.kb.lookup([name.form for names in near.values() for name in names])
        for place, names in near.items():
            for name in names:
                weight = _SHARPNESS * math.log(min(1.0, name.similarity / names[0].similarity))
                weight += _FEWER * (name.resemblance.score - names[0].resemblance.score)
                to_name = links_to(matches, name.ngram, name.form, name.similarity, weight=weight, but=linked[place])
                links[place] += limit_entities(self.kb, list(to_name))
        return links

    def near_names(
        self, spans: Mapping[int, Sequence[Ngram]], *, cutoff: float, edits_only: bool, shortest: int = 0
    ) -> dict[int, list[NearName]]:
        """Return the names that n-grams of each question may be misspellings of, for all questions in one look-up."""
        forms = [ngram.form for own in spans.values() for ngram in own]
        similar = iter(self.kb.similar(forms, cutoff=cutoff, edits_only=edits_only) if forms else ())
        return {
            place: _nearest(
                [
                    (ngram, [name for name in names if len(name.form) >= shortest and name.similarity >= cutoff])
                    for ngram, names in zip(own, similar, strict=False)
                ]
            )
            for place, own in spans.items()
        }

    def spans(self, questions: Sequence[Question], strict: Sequence[Sequence[Link | StrictMatch]]) -> list[list[Ngram]]:
        """Return the first n-grams of each question that have a suspect word and could be a name.

        Those that begin and end well come first, then the longest. A single word is misspelt only if no name has it.
        """
        suspects = [self.suspects(question, own) for question, own in zip(questions, strict, strict=True)]
        words = [word for own in suspects for word in own.values()]
        counts = iter(self.kb.name_frequency(words) if words else ())
        unknown = [{place for place in own if next(counts) == 0} for own in suspects]
        return [
            self.spans_around(question, set(own), new) if own else []
            for question, own, new in zip(questions, suspects, unknown, strict=True)
        ]

    def suspects(self, question: Question, strict: Sequence[Link | StrictMatch]) -> dict[int, str]:
        """Return the content words of a question that no strict link explains, by their place among the words."""
        words = [(place, token.text) for place, token in enumerate(question.tokens) if token.is_word]
        content = [(position, place, text) for position, (place, text) in enumerate(words) if self.content.has(text)]
        mentions = {(link.ngram.first, link.ngram.last): link.ngram.form for link in strict} if content else {}
        explained = {
            place for (first, last), form in mentions.items() if has_content(form) for place in range(first, last + 1)
        }
        return {position: text for position, place, text in content if place not in explained}

    def spans_around(self, question: Question, suspects: set[int], unknown: set[int]) -> list[Ngram]:
        """Return the n-grams to try around suspect words; unknown words are in no name."""
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
        return [
            Ngram(
                " ".join(texts[first : last + 1]),
                words[first][0], words[last][0], words[first][1].start, words[last][1].end,
            )
            for _, _, first, last in sorted(spans)
        ]  # fmt: skip


def link_slips(kb: KnowledgeBase, sentences: Sequence[Question], strict: Sequence[Sequence[Link]]) -> list[list[Link]]:
    """Link, in sentences of a text, names of several content words to those that differ by one slip.

    The slip is in a word that is rare in the language and in no name, beside words that are in some.
    """
    suspects = [_rare_words(question, own) for question, own in zip(sentences, strict, strict=True)]
    near = [{at for word in own for at in range(word - _REACH, word + _REACH + 1)} for own in suspects]
    texts = [[token.text for token in question.tokens if token.is_word] for question in sentences]
    wanted = sorted(
        {words[at] for words, places in zip(texts, near, strict=True) for at in places if 0 <= at < len(words)}
    )
    counts = dict(zip(wanted, kb.name_frequency(wanted), strict=True)) if wanted else {}
    spans = [
        _slip_spans(question, {at for at in own if not counts[words[at]]}, counts)
        for question, own, words in zip(sentences, suspects, texts, strict=True)
    ]
    forms = [ngram.form for own in spans for ngram in own]
    similar = iter(kb.similar(forms, cutoff=SLIPS_CUTOFF, edits_only=True) if forms else ())
    names = [
        [
            name
            for name in _nearest([(ngram, next(similar)) for ngram in own])
            if name.resemblance.is_slip and name.similarity >= SLIPS_CUTOFF
        ]
        for own in spans
    ]
    matches = kb.lookup([name.form for own in names for name in own])
    return [
        limit_entities(kb, [link for name in own for link in links_to(matches, name.ngram, name.form, name.similarity)])
        for own in names
    ]


def _rare_words(question: Question, strict: Sequence[Link]) -> list[int]:
    """Return the places, among the words, of long words that are rare in the language and in no strict link."""
    linked = {place for link in strict for place in range(link.ngram.first, link.ngram.last + 1)}
    words = [(place, token.text) for place, token in enumerate(question.tokens) if token.is_word]
    return [
        at
        for at, (place, word) in enumerate(words)
        if len(word) >= SHORTEST_SLIP and place not in linked and word.isalpha() and commonness(word) <= ORDINARY
    ]


def _slip_spans(question: Question, unknown: set[int], counts: Mapping[str, int]) -> list[Ngram]:
    """Return the longest runs of words around one that is in no name, whose other words are in some."""
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
        Ngram(
            " ".join(token.text for _, token in words[begin : end + 1]),
            words[begin][0], words[end][0], words[begin][1].start, words[end][1].end,
        )
        for begin, end in longest
    ]  # fmt: skip


def _inner_spans(question: Question, strict: Sequence[Link | StrictMatch]) -> list[Ngram]:
    """Return the parts of words to look up fuzzily, in scripts without spaces, where no part of the word is a name."""
    if question.text.isascii():
        return []
    linked = [range(link.ngram.first, link.ngram.last + 1) for link in strict]
    ngrams = (
        ngram
        for ngram in inner_ngrams(question, frozenset({1}))
        if len(ngram.form) >= SHORTEST_SLIP and not any(ngram.first in places for places in linked)
    )
    return list(islice(ngrams, _MOST_INNER))
