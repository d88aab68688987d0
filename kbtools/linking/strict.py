"""Strict linking: from the n-grams of a question to the entities with that name."""

import string
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate, compress
from typing import NamedTuple, TypeVar

import numpy as np

from kbtools.kb.contract import KnowledgeBase, NameMatch
from kbtools.kb.rows import EntityRows
from kbtools.linking.links import MOST_COUNTED, MOST_LINKED, Link, limit_entities
from kbtools.text.ngrams import Ngram
from kbtools.text.question import Question
from kbtools.text.readings import every_ngram
from kbtools.text.rungs import Form, Rung, compare

_SYMBOLS = "+#*$%@^="
ALIAS_WEIGHT = -0.1
"""Log-probability of an alias that is another entity's name; it outweighs popularity."""

_FORMS_REMEMBERED = 10_000
"""Forms whose names are cached, as many as an embedded knowledge base caches."""

_LONGEST_INVERTED = 4
"""The most words of an inverted name: first, middle and last names."""

_PUNCTUATION = string.punctuation + "“”‘’«»…–—¿¡"

Weighed = tuple[NameMatch, float]
"""A name that is stored under a form, and the weight of a link to it."""


class StrictMatch(NamedTuple):
    """An n-gram and the names stored under its form, each with the weight of a link to it.

    Links are made only for the few names that are kept; most words of a question are names in a dozen spellings.
    """

    ngram: Ngram
    names: Sequence[Weighed]

    @property
    def entity_lists(self) -> list[EntityRows]:
        """The entities of each name."""
        return [name.entities for name, _ in self.names]


_NEW, _NEW_LINK = partial(tuple.__new__, StrictMatch), partial(tuple.__new__, Link)


_L = TypeVar("_L", Link, NameMatch)


def link_strictly(kb: KnowledgeBase, question: Question, among: Iterable[Ngram] | None = None) -> list[Link]:
    """Return links from n-grams, by default all of the question, to every name stored under their form."""
    (links,) = link_all_strictly(kb, [question], None if among is None else [list(among)])
    return links


def link_all_strictly(
    kb: KnowledgeBase, questions: Sequence[Question], among: Sequence[Sequence[Ngram]] | None = None
) -> list[list[Link]]:
    """Return the links of `link_strictly` for each question, with one look-up."""
    ngrams = [ngrams_of(kb, question) for question in questions] if among is None else among
    names = find_names(kb, [ngram for question_ngrams in ngrams for ngram in question_ngrams])
    return [
        link_matches(kb, question, match_names(question_ngrams, names))
        for question, question_ngrams in zip(questions, ngrams, strict=True)
    ]


def find_names(kb: KnowledgeBase, ngrams: Iterable[Ngram]) -> dict[str, list[Weighed]]:
    """Return the names stored under the forms of n-grams, with weights."""
    return {form: _weigh_names(names) for form, names in kb.lookup([ngram.form for ngram in ngrams]).items()}


def link_matches(kb: KnowledgeBase, question: Question, matches: Iterable[StrictMatch]) -> list[Link]:
    """Return the links of matches."""
    links = [
        _strict_link(question, match.ngram, name, weight=weight) for match in matches for name, weight in match.names
    ]
    return limit_entities(kb, links)


def ngrams_of(kb: KnowledgeBase, question: Question) -> list[Ngram]:
    """Return the n-grams of a question that may be names in a knowledge base."""
    manifest = kb.manifest
    return every_ngram(question, lengths=manifest.lengths, table=manifest.variants, likely=kb.likely_runs)


def link_inverted(kb: KnowledgeBase, ngrams: Sequence[Iterable[Ngram]]) -> list[list[Link]]:
    """Return links from the longest n-grams of each question that are names of persons with the last name first.

    They need no comma: `rowling j k`, `venn orla`.
    """
    inverted = [
        [ngram._replace(form=form, reading=Form.OTHERWISE) for ngram in question_ngrams for form in invert(ngram.form)]
        for question_ngrams in ngrams
    ]
    forms = [ngram.form for group in inverted for ngram in group]
    matches = kb.lookup(forms) if forms else {}
    return [_longest_links(kb, group, matches) for group in inverted]


def _longest_links(
    kb: KnowledgeBase, ngrams: Sequence[Ngram], matches: Mapping[str, Sequence[NameMatch]]
) -> list[Link]:
    """Return links from the longest n-grams that match a name or a rewriting of one."""
    links = [
        Link(ngram, ngram.start, ngram.end, match.name, Rung.VARIANT, match.entities)
        for ngram in ngrams
        for match in matches.get(ngram.form, ())
        if match.form in (Form.NORMAL, Form.OTHERWISE)
    ]
    longest = max((link.end - link.start for link in links), default=0)
    return limit_entities(kb, [link for link in links if link.end - link.start == longest])


def invert(form: str) -> Iterator[str]:
    """Yield a form with its first word at the end, then with its last word in front."""
    words = form.split(" ")
    if 1 < len(words) <= _LONGEST_INVERTED:
        yield " ".join([*words[1:], words[0]])
        if len(words) > 2:
            yield " ".join([words[-1], *words[:-1]])


def match_names(ngrams: Iterable[Ngram], names: Mapping[str, Sequence[Weighed]]) -> list[StrictMatch]:
    """Return the n-grams that have names, with these."""
    # Built as bare tuples: calling the class takes three times as long.
    matches = [_NEW((ngram, weighed)) for ngram in ngrams if (weighed := names.get(ngram.form))]
    return [match if match.ngram.reading is not Form.SHORTENED else _unshortened(match) for match in matches]


def _unshortened(match: StrictMatch) -> StrictMatch:
    """Return a match of a shortened n-gram without shortened names: each may lack an initial of the other."""
    return match._replace(names=[weighed for weighed in match.names if weighed[0].form is not Form.SHORTENED])


class StrictNames:
    """The names of subjects that questions link to strictly, with a cache of recent forms."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb = kb
        self.remembered: dict[str, tuple[Sequence[NameMatch], list[Weighed]]] = {}

    def matches(self, questions: Sequence[Question]) -> list[list[StrictMatch]]:
        """Return the matches of each question's n-grams with names of entities that have facts."""
        ngrams = [ngrams_of(self.kb, question) for question in questions]
        stored = self.kb.lookup([ngram.form for question_ngrams in ngrams for ngram in question_ngrams])
        remembered, names = self.remembered, {}
        for form, form_names in stored.items():
            known = remembered.get(form)
            # Weights of a different list, as after an update or in another view, are computed again.
            if known and known[0] is form_names:
                names[form] = known[1]
        if len(names) < len(stored):
            new = self.weigh({form: form_names for form, form_names in stored.items() if form not in names})
            self.remember(new, stored)
            names |= new
        return [match_names(question_ngrams, names) for question_ngrams in ngrams]

    def weigh(self, stored: Mapping[str, Sequence[NameMatch]]) -> dict[str, list[Weighed]]:
        """Return the names with facts under each form, with weights, in one look-up."""
        kept = {
            id(name) for name in with_facts(self.kb, [name for form_names in stored.values() for name in form_names])
        }
        return {
            form: [(name, weight) for name, weight in _weigh_names(form_names) if id(name) in kept]
            for form, form_names in stored.items()
        }

    def remember(self, names: Mapping[str, list[Weighed]], stored: Mapping[str, Sequence[NameMatch]]) -> None:
        """Cache names, except those of very many entities."""
        if len(self.remembered) + len(names) > _FORMS_REMEMBERED:
            self.remembered = {}
        for form, weighed in names.items():
            if sum([len(name.entities) for name in stored[form]]) <= MOST_LINKED:
                self.remembered[form] = stored[form], weighed


def _weigh_names(names: Sequence[NameMatch]) -> list[Weighed]:
    """Return names with link weights: ALIAS_WEIGHT for an alias that is another entity's name, else 0."""
    # Names in normal form come first, and among these names before aliases.
    named = [name.entities for name in names if name.form is Form.NORMAL and not name.is_alias]
    if not named or not any(name.is_alias for name in names):
        return [(name, 0.0) for name in names]
    rows = np.concatenate(named)
    # A set for few rows: np.isin takes ten times as long.
    few = set(rows.tolist()) if len(rows) <= MOST_LINKED else None

    def is_outranked(alias: NameMatch) -> bool:
        return not (np.isin(alias.entities, rows).all() if few is None else few.issuperset(alias.entities.tolist()))

    return [(name, ALIAS_WEIGHT if name.is_alias and is_outranked(name) else 0.0) for name in names]


def with_facts(kb: KnowledgeBase, links: Sequence[_L]) -> list[_L]:
    """Return the links, or matches, with an entity that is the subject of a fact; others have no candidates."""
    if not links:
        return []
    # The first entity decides nearly every link; the others are read only if it has no fact.
    kept = kb.fact_counts(np.array([link.entities[0] for link in links], dtype=np.uint32)).tolist()
    unsure = [at for at, facts in enumerate(kept) if not facts and len(links[at].entities) > 1]
    if unsure:
        entities = [links[at].entities[:MOST_COUNTED] for at in unsure]
        # One call for the entities of all links and a sum over each replace a call per link.
        counts = kb.fact_counts(np.concatenate(entities))
        starts = list(accumulate([len(rows) for rows in entities[:-1]], initial=0))
        for at, facts in zip(unsure, np.add.reduceat(counts, starts).tolist(), strict=True):
            kept[at] = facts
    return list(compress(links, kept))


def _strict_link(question: Question, ngram: Ngram, match: NameMatch, *, weight: float) -> Link:
    """Return the link of an n-gram to a name, with its rung and the characters it covers."""
    start, end = ngram.start, ngram.end
    name = match.name
    if match.form is Form.NORMAL:
        if not (name[0].isalnum() and name[-1].isalnum()) and ngram.form[0] not in _PUNCTUATION:
            start, end = _cover(question.text, start, end, name)
        rung = compare(question.text[start : _end_of_symbols(question.text, end)], name)
    else:
        rung = match.form.rung
    if ngram.reading is not Form.NORMAL:
        rung = max(rung, ngram.reading.rung)
    return _NEW_LINK((ngram, start, end, name, rung, match.entities, weight, 100.0, 0))


def _cover(text: str, start: int, end: int, name: str) -> tuple[int, int]:
    """Return a span widened over adjacent punctuation that the name has: `c` becomes `c++` for the name `C++`."""
    tail = name[len(name.rstrip(_PUNCTUATION)) :] if not name[-1].isalnum() else ""
    head = name[: len(name) - len(name.lstrip(_PUNCTUATION))] if not name[0].isalnum() else ""
    if tail and text.startswith(tail, end):
        end += len(tail)
    if head and text.endswith(head, 0, start):
        start -= len(head)
    return start, end


def _end_of_symbols(text: str, end: int) -> int:
    """Return the end of the symbols after a word: `C` before `++` is not the exact name `C`."""
    while end < len(text) and text[end] in _SYMBOLS:
        end += 1
    return end
