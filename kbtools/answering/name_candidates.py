"""The entities that a name may mean, by how well the name fits and how likely each is meant before anything else."""

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
from kbtools.text.readings import HUMP, rewrite
from kbtools.text.rewritings import contradict, title_of
from kbtools.text.rungs import Form, Rung, compare
from kbtools.text.variants import core_form, name_forms

SHARPNESS = 0.6
"""The weight of a logarithm of a number of facts: of 1,699 ambiguous mentions in validation questions of FBSQ, the gold
subject has the highest likelihood there, 0.21 nats above equal shares; 0.3 and 1 lose 0.05 and 0.06."""

STEP = 5.0
"""Points of a score that a rung spans: the prior moves a candidate by no more than this."""


_OTHER_WORD = 0.7
"""What is left of the similarity of a name in which another word stands, `University of Tal` for `Mer`."""

_LONGER = 60.0
"""Similarity from which a name that has a word more than was asked, such as a middle name, is taken."""


_SAME_BEGINNING = 200
"""Names that begin with a name and may have a legal form or a subtitle behind it."""


def link_name(kb: KnowledgeBase, name: str) -> list[Link]:
    """Link a name to all that is stored under one of its forms, fuzzily where brackets contradict each other."""
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
            if {form_kind, match.form} == {Form.SHORTENED}:  # each without an initial of its own
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
    """Link a name to those that go on behind it with a legal form or a subtitle, fuzzily where it has another one."""
    forms, title = kb.forms_with_prefix(f"{core} ", limit=_SAME_BEGINNING), title_of(name)
    links = [
        Link(whole(name, core), 0, len(name), match.name, Rung.VARIANT, match.entities)
        for own in (kb.lookup(forms) if forms else {}).values()
        for match in own
        if match.form is Form.NORMAL and (core_form(match.name) == core or title_of(match.name) == title)
    ]
    return links if core == normal_form(name) else [_unlike(link, name) for link in links]


def _unlike(link: Link, name: str) -> Link:
    """Make a link fuzzy whose name shares its form with another, and has another bracket or legal form."""
    alike = fuzz.ratio(normal_form(name), normal_form(link.name))
    return link._replace(rung=Rung.FUZZY, similarity=_OTHER_WORD * alike)


def link_similar_names(kb: KnowledgeBase, name: str) -> list[Link]:
    """Link a name to those that resemble it, and to those with a word more; less surely where another word stands."""
    asked, spoken = whole(name, normal_form(name)), core_form(name)
    (links,) = link_fuzzily(kb, [asked])
    alike = {link.name: resemblance(spoken, core_form(link.name)) for link in links}
    if not any(own and not own.lost for own in alike.values()):
        (longer,) = kb.similar([asked.form], cutoff=_LONGER)
        near = [(own, resemblance(spoken, own.form)) for own in longer]
        forms = {own.form: own.similarity for own, words in near if words and words.lost and not words.slips}
        matches = kb.lookup(list(forms))
        more = [link for form, similarity in forms.items() for link in links_to(matches, asked, form, similarity)]
        links += limit_entities(kb, [link for link in more if link.name not in alike])
        alike |= {link.name: Resemblance((), 0, 1) for link in more}
    return [
        link if alike[link.name] or _respaced(spoken, core_form(link.name))
        else link._replace(similarity=_OTHER_WORD * link.similarity)
        for link in links
    ]  # fmt: skip


def _respaced(one: str, other: str) -> bool:
    """Return whether two forms have the same words in another order, or the same letters."""
    return sorted(one.split(" ")) == sorted(other.split(" ")) or one.replace(" ", "") == other.replace(" ", "")


def whole(name: str, form: str) -> Ngram:
    """Take all of a name as one n-gram."""
    return Ngram(form, 0, 0, 0, len(name))


@dataclass(frozen=True, slots=True, eq=False)
class _Prior:
    """p(entity | name) of some bearers, and what each is from: numbers of facts, or a sentence about counts."""

    values: NDArray[np.float64]
    facts_out: NDArray[np.int64]
    facts_in: NDArray[np.int64] | None
    counted: dict[int, str]

    def at(self, places: NDArray[np.int64]) -> "_Prior":
        """Return the priors at some places."""
        facts_in = None if self.facts_in is None else self.facts_in[places]
        counted = {new: self.counted[old] for new, old in enumerate(places.tolist()) if old in self.counted}
        return _Prior(self.values[places], self.facts_out[places], facts_in, counted)

    def source(self, place: int) -> str:
        """Return what a prior rests on, in words."""
        facts = f"{self.facts_out[place]:,} facts out"
        facts += "" if self.facts_in is None else f" and {self.facts_in[place]:,} in"
        return self.counted.get(place, facts)

    def reason(self, place: int) -> str:
        return f"prior {self.values[place]:.3f}, from {self.source(place)}"


@dataclass(frozen=True, slots=True, eq=False)
class NameCandidates:
    """The entities of some links, once each by the best of its links, best first: (entities,) each."""

    entities: EntityRows
    links: list[Link]
    prior: _Prior

    def scores(self, limit: int | None) -> list[float]:
        """Score the first bearers, 0 to 100: the rung decides, then the similarity, then the prior.

        A rung is STEP points wide; fuzzy matches, and what was found by vectors, lie below the last strict one.
        """
        scores = []
        for link, prior in zip(self.links[:limit], self.prior.values.tolist(), strict=False):
            if link.rung < Rung.FUZZY:
                scores.append(100.0 - STEP * (link.rung - 1) - STEP * (1.0 - prior))
            else:
                scores.append((100.0 - STEP * (Rung.FUZZY - 1)) * link.similarity / 100.0 - (1.0 - prior) / 100.0)
        return scores


def rank_by_name(kb: KnowledgeBase, links: Sequence[Link], *, of_type: int | None = None) -> NameCandidates:
    """Rank the bearers of linked names by rung, then similarity, then prior; equal ones stand by their rows.

    The prior is shared among those found on the same rung by the same form, and of the type if one is asked for.
    """
    links = sorted(links, key=lambda link: (link.rung, -link.similarity))
    linked = np.repeat(np.arange(len(links)), [len(link.entities) for link in links])
    entities = np.concatenate([_NOBODY, *(link.entities for link in links)])
    # Links stand best first, so that the first place of an entity is its best link.
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
    """Find an entity by its id, else by its name, of several bearers the one with the most facts."""
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
    """Share each name among its bearers; those of the k-th form are where `group` is k.

    The shares are a softmax of smoothed logarithms of numbers of facts. Where the knowledge base has counts of the
    form, or else of entities, they decide, and those shares stand for one count more.
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
