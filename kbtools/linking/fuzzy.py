"""Fuzzy linking: from words of a question that strict linking leaves unexplained to the names that resemble them."""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np

from kbtools.kb.contract import KnowledgeBase, SimilarName
from kbtools.kb.rows import EntityRows
from kbtools.linking.content_words import OUTSIDE, WEAK, ContentWords
from kbtools.linking.links import Link, bound, foremost
from kbtools.linking.resemblance import SHORTEST_SLIP, Resemblance, resemblance
from kbtools.linking.strict import StrictMatch
from kbtools.linking.turned import link_turned
from kbtools.text.function_words import has_content
from kbtools.text.ngrams import Ngram
from kbtools.text.question import Question
from kbtools.text.rungs import Form, Rung
from kbtools.text.unspaced import inner_ngrams

LONGEST_SPAN = 10
"""Words of a mention that may be misspelt; few names have more, and the n-grams to look up grow with it."""

TRIED = 8
"""Mentions that are looked up fuzzily before a question is given up."""

LEAST, LOOSEST = 80.0, 70.0
"""Similarity of a name with several slips, 0 to 100, and of one with a single slip or a word more or less."""

MOST_INNER = 480
"""Parts of words without spaces that are looked up fuzzily, those of some 24 characters: a quarter of a second at the
size of FB5M, where a question would have no candidate otherwise."""

ARTICLES = frozenset({"a", "an", "the"})

# The next two, like the number of mentions: accuracy on 2,000 validation questions of FBSQ is the same with half and
# twice as much, and 800 with a slip in the name (benchmarks/slips.py) have the entity in the pool for 94 %.
KEPT = 10
"""Names that resemble a mention, the nearest first."""

SHARPNESS, FEWER, REWRITTEN = 10.0, 1.0, -1.0
"""Log-probability of similarity, of a word more, and of a name found by a rewriting, among names alike."""


def link_fuzzily(kb: KnowledgeBase, ngram: Ngram, *, but: EntityRows) -> list[Link]:
    """Link an n-gram to the names most similar to it, at most twenty (paper, section Focused Pruning).

    Entities in `but` are left out: they have a stricter link.
    """
    similar = kb.similar(ngram.form)
    return links_to(kb, ngram, {name.form: name.similarity for name in similar}, but=but)


def links_to(kb: KnowledgeBase, ngram: Ngram, similar: dict[str, float], *, but: EntityRows) -> list[Link]:
    """Link an n-gram to names by their forms, each with its similarity."""
    matches = kb.lookup(list(similar))
    links = []
    for form, similarity in similar.items():
        for match in matches.get(form, ()):
            entities = match.entities[np.isin(match.entities, but, invert=True)]
            if len(entities):
                links.append(
                    Link(
                        ngram, ngram.start, ngram.end, match.name, Rung.FUZZY, entities,
                        weight=0.0 if match.form is Form.NORMAL else REWRITTEN, similarity=similarity,
                    )
                )  # fmt: skip
    return bound(kb, links)


class Near(NamedTuple):
    """A name that resembles an n-gram, by its form."""

    ngram: Ngram
    form: str
    similarity: float
    resemblance: Resemblance

    @property
    def order(self) -> tuple[int, float, int, int]:
        """Sort the nearest name first: words in favour, similarity, length and place of the n-gram."""
        return (-self.resemblance.score, -self.similarity, self.ngram.first - self.ngram.last, self.ngram.first)


def begins_and_ends_well(ngram: Ngram) -> bool:
    """Tell whether an n-gram may begin and end a name: with initials, and with no word that says little."""
    words = ngram.form.split(" ")
    return all(len(word) == 1 or word not in WEAK for word in (words[0], words[-1]))


def nearest(similar: Iterable[tuple[Ngram, list[SimilarName]]]) -> list[Near]:
    """Keep of the names similar to n-grams those that these may be misspellings of, the nearest first."""
    names: list[Near] = []
    slip: Ngram | None = None
    for ngram, own in similar:
        if slip and not (ngram.first <= slip.first and slip.last <= ngram.last):
            continue  # one slip explains all of its words, so that only a longer mention could be nearer
        for name in own:
            alike = resemblance(ngram.form, name.form)
            if alike and (alike.slips <= 1 or name.similarity >= LEAST):
                names.append(Near(ngram, name.form, name.similarity, alike))
                slip = ngram if alike.is_slip else slip
    return sorted(names, key=lambda name: name.order)[:KEPT]


class Misspelling:
    """The misspelt mentions of a question.

    A content word is suspect if strict links leave it unexplained.
    """

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb = kb
        self.content = ContentWords(kb)

    def links(self, question: Question, *, strict: Sequence[Link | StrictMatch] = ()) -> list[Link]:
        """Link the n-grams around suspect words to the names that resemble them, the nearest first.

        Entities that are linked strictly keep their stricter link. The weight of a link says how much less its name
        resembles the mention than the nearest name does.
        """
        spans = list(self.spans(question, strict=strict))
        if not spans:
            return []
        linked = np.concatenate(
            [np.empty(0, dtype=np.uint32), *(foremost(self.kb, rows) for link in strict for rows in link.bearers)]
        )
        turned = link_turned(self.kb, filter(begins_and_ends_well, spans))
        if turned:
            return [link for link in turned if not np.isin(link.entities, linked).all()]
        spans = spans[:TRIED]
        names = self.within_edits(spans) or self.similar(spans) or self.inside_words(question, strict)
        links = []
        for name in names:
            weight = SHARPNESS * math.log(min(1.0, name.similarity / names[0].similarity))
            weight += FEWER * (name.resemblance.score - names[0].resemblance.score)
            own = links_to(self.kb, name.ngram, {name.form: name.similarity}, but=linked)
            links += [link._replace(weight=weight + link.weight) for link in own]
        return links

    def within_edits(self, spans: Sequence[Ngram]) -> list[Near]:
        """Find the names that n-grams are two edits from, for all of them in one look-up."""
        names = self.kb.within_edits([ngram.form for ngram in spans], cutoff=LEAST)
        return nearest(zip(spans, names, strict=True))

    def similar(self, spans: Sequence[Ngram]) -> list[Near]:
        """Find the names that resemble n-grams at all, a look-up for each: where none is within edits."""
        self.kb.expect_similar([ngram.form for ngram in spans], cutoff=LOOSEST)
        return nearest((ngram, self.kb.similar(ngram.form, cutoff=LOOSEST)) for ngram in spans)

    def inside_words(self, question: Question, strict: Sequence[Link | StrictMatch]) -> list[Near]:
        """Find the names that resemble a part of a word, in scripts without spaces, where no part of it is a name."""
        if question.text.isascii():
            return []
        linked = [range(link.ngram.first, link.ngram.last + 1) for link in strict]
        ngrams = (
            ngram
            for ngram in inner_ngrams(question, frozenset({1}))
            if len(ngram.form) >= SHORTEST_SLIP and not any(ngram.first in places for places in linked)
        )
        inner = list(islice(ngrams, MOST_INNER))
        names = self.kb.within_edits([ngram.form for ngram in inner], cutoff=LOOSEST) if inner else []
        return nearest(
            (ngram, [name for name in own if len(name.form) >= SHORTEST_SLIP])
            for ngram, own in zip(inner, names, strict=True)
        )

    def spans(self, question: Question, *, strict: Sequence[Link | StrictMatch] = ()) -> Iterator[Ngram]:
        """Yield the n-grams with a suspect word that could be a name: first those that begin and end well, the longest.

        A single word is misspelt only if no name holds it.
        """
        words = [(place, token) for place, token in enumerate(question.tokens) if token.is_word]
        texts = [token.text for _, token in words]
        content = [position for position, text in enumerate(texts) if self.content.has(text)]
        mentions = {(link.ngram.first, link.ngram.last): link.ngram.form for link in strict} if content else {}
        explained = {
            place for (first, last), form in mentions.items() if has_content(form) for place in range(first, last + 1)
        }
        suspects = {position for position in content if words[position][0] not in explained}
        if not suspects:
            return
        counts = self.kb.name_frequency([texts[position] for position in suspects])
        unknown = {position for position, count in zip(suspects, counts, strict=True) if count == 0}
        spans = []
        for first in range(len(words)):
            for last in range(first, min(first + LONGEST_SPAN, len(words))):
                if texts[last] in OUTSIDE:
                    break
                inside = suspects.intersection(range(first, last + 1))
                if inside and (first < last or inside & unknown):
                    faults = (
                        texts[first] in WEAK - ARTICLES,
                        texts[last] in WEAK,
                        first > 0 and not self.content.may_end_before(texts[first - 1]),
                        last + 1 < len(words) and not self.content.may_end_before(texts[last + 1]),
                    )
                    spans.append((sum(faults), first - last, first, last))
        for _, _, first, last in sorted(spans):
            form = " ".join(texts[first : last + 1])
            yield Ngram(form, words[first][0], words[last][0], words[first][1].start, words[last][1].end)
