"""Strict linking: from the n-grams of a question to the entities whose names they are."""

import string
from collections.abc import Iterable, Sequence
from itertools import accumulate, compress
from typing import NamedTuple, Protocol, TypeVar

import numpy as np

from kbtools.kb.contract import KnowledgeBase, NameMatch
from kbtools.kb.rows import EntityRows
from kbtools.linking.links import MOST_BEARERS, MOST_COUNTED, Link, bound
from kbtools.text.ngrams import Ngram
from kbtools.text.question import Question
from kbtools.text.readings import every_ngram
from kbtools.text.rungs import Form, compare

SYMBOLS = "+#*$%@^="
ALIAS = -0.1
"""Log-probability of an alias where another entity has it as its name: more than popularity may gain."""

PUNCTUATION = string.punctuation + "“”‘’«»…–—¿¡"


class StrictMatch(NamedTuple):
    """An n-gram with a name that is stored under its form, its bearers, and the weight of a link to them."""

    ngram: Ngram
    name: NameMatch
    entities: EntityRows
    weight: float


class Linked(Protocol):
    """A link, or a match that may become one, by the entities that it leads to."""

    @property
    def entities(self) -> EntityRows: ...


L = TypeVar("L", bound=Linked)


def link_strictly(kb: KnowledgeBase, question: Question, among: Iterable[Ngram] | None = None) -> list[Link]:
    """Link some n-grams, by default all of a question, to every name stored under their form."""
    return link_matches(kb, question, match_strictly(kb, question, among))


def link_matches(kb: KnowledgeBase, question: Question, matches: Iterable[StrictMatch]) -> list[Link]:
    """Make links of matches: of those that are kept alone, since the words of most questions are names of many."""
    return bound(kb, [strict_link(question, ngram, name, weight=weight) for ngram, name, _, weight in matches])


def match_strictly(kb: KnowledgeBase, question: Question, among: Iterable[Ngram] | None = None) -> list[StrictMatch]:
    """Match some n-grams, by default all of a question, with every name stored under their form."""
    if among is None:
        among = every_ngram(question, lengths=kb.manifest.lengths, table=kb.manifest.variants)
    candidates = list(among)
    matches = kb.lookup([ngram.form for ngram in candidates])
    return [
        StrictMatch(
            ngram, match, match.entities, ALIAS if match.is_alias and is_outranked(match, matches[ngram.form]) else 0.0
        )
        for ngram in candidates
        if ngram.form in matches
        for match in matches[ngram.form]
        if not (ngram.reading is match.form is Form.SHORTENED)  # each without an initial of its own
    ]


def with_facts(kb: KnowledgeBase, links: Sequence[L]) -> list[L]:
    """Keep the links, or matches, that lead to a subject of some fact: the others open up no candidate."""
    if not links:
        return []
    # Nearly every link is told by its first entity; the others are read of those alone that are not.
    kept = kb.fact_counts(np.array([link.entities[0] for link in links], dtype=np.uint32)).tolist()
    unsure = [at for at, facts in enumerate(kept) if not facts and len(links[at].entities) > 1]
    if unsure:
        bearers = [links[at].entities[:MOST_COUNTED] for at in unsure]
        # One call for the bearers of all links, then a sum over the stretch of each: a call a link would do the same.
        counts = kb.fact_counts(np.concatenate(bearers))
        starts = list(accumulate([len(rows) for rows in bearers[:-1]], initial=0))
        for at, facts in zip(unsure, np.add.reduceat(counts, starts).tolist(), strict=True):
            kept[at] = facts
    return list(compress(links, kept))


def is_outranked(alias: NameMatch, matches: Sequence[NameMatch]) -> bool:
    """Tell whether the alias of a match is the name of another entity."""
    if matches[0].is_alias or matches[0].form is not Form.NORMAL:  # names in their normal form come first
        return False
    named_rows = [match.entities for match in matches if match.form is Form.NORMAL and not match.is_alias]
    if sum(map(len, named_rows)) > MOST_BEARERS:
        return not np.isin(alias.entities, np.concatenate(named_rows)).all()
    # Sets of a few rows: np.isin takes ten times as long on them.
    named = {row for rows in named_rows for row in rows.tolist()}
    return not named.issuperset(alias.entities.tolist())


def strict_link(question: Question, ngram: Ngram, match: NameMatch, *, weight: float) -> Link:
    """Say how an n-gram matched a name, and which of the question's characters it covers."""
    start, end = ngram.start, ngram.end
    name = match.name
    if match.form is Form.NORMAL:
        if not (name[0].isalnum() and name[-1].isalnum()) and ngram.form[0] not in PUNCTUATION:
            start, end = cover(question.text, start, end, name)
        rung = compare(question.text[start : end_of_symbols(question.text, end)], name)
    else:
        rung = match.form.rung
    if ngram.reading is not Form.NORMAL:
        rung = max(rung, ngram.reading.rung)
    return Link(ngram, start, end, name, rung, match.entities, weight)


def cover(text: str, start: int, end: int, name: str) -> tuple[int, int]:
    """Widen a span over the punctuation around it that the name has too: `c` becomes `c++` for the name `C++`."""
    tail = name[len(name.rstrip(PUNCTUATION)) :] if not name[-1].isalnum() else ""
    head = name[: len(name) - len(name.lstrip(PUNCTUATION))] if not name[0].isalnum() else ""
    if tail and text.startswith(tail, end):
        end += len(tail)
    if head and text.endswith(head, 0, start):
        start -= len(head)
    return start, end


def end_of_symbols(text: str, end: int) -> int:
    """Find where the signs end that hang on a word: a `C` before `++` is not the name `C` as it is spelt."""
    while end < len(text) and text[end] in SYMBOLS:
        end += 1
    return end
