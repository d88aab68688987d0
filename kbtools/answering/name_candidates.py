"""The entities that a name may mean, ranked by how well the name fits and by their prior."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rapidfuzz import fuzz

from kbtools.errors import UnknownEntity
from kbtools.kb.contract import KnowledgeBase
from kbtools.kb.ids import canonical_id
from kbtools.kb.rows import EntityRows
from kbtools.linking.fuzzy import link_fuzzily, links_to
from kbtools.linking.links import Link, limit_entities
from kbtools.linking.similarity import Resemblance, resemblance
from kbtools.text.ngrams import Ngram
from kbtools.text.normaliser import normal_form
from kbtools.text.printable import plural
from kbtools.text.readings import HUMP, rewrite
from kbtools.text.rewritings import contradict, title_of
from kbtools.text.rungs import Form, Rung, compare
from kbtools.text.variants import core_form, name_forms

SHARPNESS = 0.6
"""The exponent of fact counts in the prior. Of 0.3, 0.6 and 1 it gives the gold subjects of 1,699 ambiguous mentions in
FBSQ's validation questions the highest likelihood: 0.21 nats above equal shares; the others lose 0.05 and 0.06."""

STEP = 5.0
"""Points of a score per rung; the prior changes a score by at most this."""

_OTHER_WORD = 0.7
"""Factor on the similarity of a name with a different word, `University of Tal` for `Mer`."""

_LONGER = 60.0
"""Lowest similarity of a name with an additional word, such as a middle name."""

_SAME_BEGINNING = 200
"""Names with the given prefix that are checked for a legal form or a subtitle after it."""


def link_name(kb: KnowledgeBase, name: str) -> list[Link]:
    """Return the links of a name to entities with one of its forms; fuzzy ones if brackets contradict each other."""
    forms, core = name_forms(name), core_form(name)
    for text in rewrite(normal_form(name).split(" "), kb.manifest.variants):
        forms.setdefault(text, Form.OTHERWISE)
    forms.setdefault(normal_form(HUMP.sub(" ", name)), Form.OTHERWISE)
    forms.setdefault(title_of(name), Form.BRACKET)
    forms.setdefault(core, Form.SHORTENED)
    matches = kb.lookup(list(forms))
    links = []
    for form, form_kind in forms.items():
        for match in matches.get(form, ()):
            link = Link(whole(name, form), 0, len(name), match.name, Rung.VARIANT, match.entities)
            if {form_kind, match.form} == {Form.SHORTENED}:  # each lacks an initial of the other
                continue
            if form_kind is match.form is Form.NORMAL:
                link = link._replace(rung=compare(name, match.name))
            elif Form.NORMAL in (form_kind, match.form):
                link = link._replace(rung=max(form_kind.rung, match.form.rung))
            elif contradict(name, match.name):
                link = _unlike(link, name)
            links.append(link)
    return links or _link_longer(kb, name, core)


def _link_longer(kb: KnowledgeBase, name: str, core: str) -> list[Link]:
    """Return the links of a name to longer names that add a legal form or subtitle, fuzzy if the name has its own."""
    forms, title = kb.forms_with_prefix(f"{core} ", limit=_SAME_BEGINNING), title_of(name)
    links = [
        Link(whole(name, core), 0, len(name), match.name, Rung.VARIANT, match.entities)
        for form_matches in (kb.lookup(forms) if forms else {}).values()
        for match in form_matches
        if match.form is Form.NORMAL and (core_form(match.name) == core or title_of(match.name) == title)
    ]
    return links if core == normal_form(name) else [_unlike(link, name) for link in links]


def _unlike(link: Link, name: str) -> Link:
    """Return a fuzzy link in place of one whose name has a contradicting bracket or legal form."""
    alike = fuzz.ratio(normal_form(name), normal_form(link.name))
    return link._replace(rung=Rung.FUZZY, similarity=_OTHER_WORD * alike)


def link_similar_names(kb: KnowledgeBase, name: str) -> list[Link]:
    """Return the links of a name to similar names and to names with one more word; different words lower the score."""
    asked, core = whole(name, normal_form(name)), core_form(name)
    (links,) = link_fuzzily(kb, [asked])
    alike = {link.name: resemblance(core, core_form(link.name)) for link in links}
    if not any(words and not words.lost for words in alike.values()):
        (longer,) = kb.similar([asked.form], cutoff=_LONGER)
        near = [(match, resemblance(core, match.form)) for match in longer]
        forms = {match.form: match.similarity for match, words in near if words and words.lost and not words.slips}
        matches = kb.lookup(list(forms))
        more = [link for form, similarity in forms.items() for link in links_to(matches, asked, form, similarity)]
        links += limit_entities(kb, [link for link in more if link.name not in alike])
        alike |= {link.name: Resemblance((), 0, 1) for link in more}
    return [
        link if alike[link.name] or _respaced(core, core_form(link.name))
        else link._replace(similarity=_OTHER_WORD * link.similarity)
        for link in links
    ]  # fmt: skip


def _respaced(one: str, other: str) -> bool:
    """Return whether two forms have the same words in another order, or the same letters."""
    return sorted(one.split(" ")) == sorted(other.split(" ")) or one.replace(" ", "") == other.replace(" ", "")


def whole(name: str, form: str) -> Ngram:
    """Return a whole name as one n-gram."""
    return Ngram(form, 0, 0, 0, len(name))


@dataclass(frozen=True, slots=True, eq=False)
class _Prior:
    """p(entity | name) of some bearers and its source: fact counts, or in `counted` a sentence about other counts."""

    values: NDArray[np.float64]
    facts_out: NDArray[np.int64]
    facts_in: NDArray[np.int64] | None
    counted: dict[int, str]

    def at(self, places: NDArray[np.int64]) -> "_Prior":
        """Return the priors at the given places."""
        facts_in = None if self.facts_in is None else self.facts_in[places]
        counted = {new: self.counted[old] for new, old in enumerate(places.tolist()) if old in self.counted}
        return _Prior(self.values[places], self.facts_out[places], facts_in, counted)

    def source(self, place: int) -> str:
        """Return the source of a prior in words."""
        facts = f"{plural(self.facts_out[place], 'fact')} out"
        facts += "" if self.facts_in is None else f" and {self.facts_in[place]:,} in"
        return self.counted.get(place, facts)

    def reason(self, place: int) -> str:
        return f"prior {self.values[place]:.3f}, from {self.source(place)}"


@dataclass(frozen=True, slots=True, eq=False)
class NameCandidates:
    """The entities of some links, each with its best link, best first: (entities,) each."""

    entities: EntityRows
    links: list[Link]
    prior: _Prior

    def scores(self, limit: int | None) -> list[float]:
        """Return the scores of the first entities, 0 to 100: by rung, then similarity, then prior.

        A rung is STEP points wide; fuzzy and vector matches score below every strict one.
        """
        scores = []
        for link, prior in zip(self.links[:limit], self.prior.values.tolist(), strict=False):
            if link.rung < Rung.FUZZY:
                scores.append(100.0 - STEP * (link.rung - 1) - STEP * (1.0 - prior))
            else:
                scores.append((100.0 - STEP * (Rung.FUZZY - 1)) * link.similarity / 100.0 - (1.0 - prior) / 100.0)
        return scores


def rank_by_name(kb: KnowledgeBase, links: Sequence[Link], *, of_type: int | None = None) -> NameCandidates:
    """Return the bearers of linked names by rung, then similarity, then prior, then row.

    The prior is shared among bearers on the same rung by the same form, with `of_type` only those of the type.
    """
    links = sorted(links, key=lambda link: (link.rung, -link.similarity))
    linked = np.repeat(np.arange(len(links)), [len(link.entities) for link in links])
    entities = np.concatenate([_NOBODY, *(link.entities for link in links)])
    # Links are sorted best first, so the first occurrence of an entity is its best link.
    entities, first = np.unique(entities, return_index=True)
    link_of = linked[first]
    if of_type is not None:
        grouped = kb.types_of(entities)
        owners = np.repeat(np.arange(len(entities)), np.diff(grouped.starts))
        chosen = np.unique(owners[grouped.values == of_type])
        entities, link_of = entities[chosen], link_of[chosen]
    rungs = np.array([link.rung for link in links], dtype=np.int64)[link_of]
    similarities = np.array([link.similarity for link in links], dtype=np.float64)[link_of]
    forms = [(link.rung, normal_form(link.name) if link.rung is Rung.FUZZY else link.ngram.form) for link in links]
    numbers = {form: number for number, form in enumerate(dict.fromkeys(forms))}
    group = np.array([numbers[form] for form in forms], dtype=np.int64)[link_of]
    prior = share_names(kb, entities, [form for _, form in numbers], group)
    # The last key decides first: rung, then similarity, then prior, then row.
    order = np.lexsort((entities, -prior.values, -similarities, rungs))
    return NameCandidates(entities[order], [links[place] for place in link_of[order]], prior.at(order))


_NOBODY = np.empty(0, dtype=np.uint32)


def find_entity(kb: KnowledgeBase, spelling: str) -> int:
    """Return the row of an id, or else of a name, the bearer with the most facts; raise UnknownEntity if neither
    fits."""
    (row,) = kb.rows([canonical_id(spelling)])
    if row is not None:
        return row
    form = normal_form(spelling)
    matches = kb.lookup([form]).get(form, ())
    if not matches:
        raise UnknownEntity(f"no entity has the id or the name {spelling!r}", entity=spelling)
    bearers = np.unique(np.concatenate([match.entities for match in matches]))
    return int(bearers[np.argmax(kb.fact_counts(bearers))])


def share_names(kb: KnowledgeBase, entities: EntityRows, forms: Sequence[str], group: NDArray[np.int64]) -> _Prior:
    """Return the prior of each entity among the bearers of its form, whose index in `forms` is its `group`.

    The shares are proportional to a power of smoothed fact counts. If the knowledge base has counts of the form, or
    else of its entities, these decide, and the shares weigh as much as one count.
    """
    facts_out, facts_in = kb.fact_counts(entities), kb.incoming_counts(entities)
    weights = (1.0 + facts_out + (0 if facts_in is None else facts_in)) ** SHARPNESS
    values = weights / np.bincount(group, weights)[group]
    counted: dict[int, str] = {}
    for number, form in enumerate(forms):
        (places,) = np.nonzero(group == number)
        bearers = entities[places]
        for counts, what in ((kb.name_counts(form, bearers), "the name"), (kb.name_counts("", bearers), "its bearers")):
            if counts is not None and (total := int(counts.sum())):
                values[places] = (counts + values[places]) / (total + 1)
                sentences = (f"{count:,} of {total:,} counts of {what}" for count in counts.tolist())
                counted.update(zip(places.tolist(), sentences, strict=True))
                break
    return _Prior(values, facts_out, facts_in, counted)
