"""Bearers of a name, in the order of how well the name fits and how likely each is meant."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kbtools.answering.priors import Prior, share_names
from kbtools.errors import UnknownEntity
from kbtools.kb.contract import KnowledgeBase
from kbtools.kb.ids import canonical_id
from kbtools.kb.rows import EntityRows
from kbtools.linking.fuzzy import link_fuzzily
from kbtools.linking.links import Link
from kbtools.text.name_forms import name_forms
from kbtools.text.ngrams import Ngram
from kbtools.text.normaliser import normal_form
from kbtools.text.rungs import Form, Rung, compare

STEP = 5.0
"""Points of a score that a rung spans: the prior moves a candidate by no more than this."""


def link_name(kb: KnowledgeBase, name: str) -> list[Link]:
    """Link a name to all that is stored under one of its forms."""
    forms = name_forms(name)
    matches = kb.lookup(list(forms))
    links = []
    for form, form_kind in forms.items():
        for match in matches.get(form, ()):
            if {form_kind, match.form} == {Form.SHORTENED}:  # each without an initial of its own
                continue
            same = form_kind is Form.NORMAL and match.form is Form.NORMAL
            rung = compare(name, match.name) if same else max(form_kind.rung, match.form.rung)
            links.append(Link(whole(name, form), 0, len(name), match.name, rung, match.entities))
    return links


def link_similar_names(kb: KnowledgeBase, name: str) -> list[Link]:
    """Link a name to those that resemble it."""
    (links,) = link_fuzzily(kb, [whole(name, normal_form(name))])
    return links


def whole(name: str, form: str) -> Ngram:
    """Take all of a name as one n-gram."""
    return Ngram(form, 0, 0, 0, len(name))


@dataclass(frozen=True, slots=True, eq=False)
class Bearers:
    """The entities of some links, once each by the best of its links, best first: (entities,) each."""

    entities: EntityRows
    links: list[Link]
    prior: Prior

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


def rank_bearers(kb: KnowledgeBase, links: Sequence[Link], *, of_type: int | None = None) -> Bearers:
    """Rank the bearers of linked names by rung, then similarity, then prior; equal ones stand by their rows.

    The prior is shared among those found on the same rung by the same form, and of the type if one is asked for.
    """
    links = sorted(links, key=lambda link: (link.rung, -link.similarity))
    linked = np.repeat(np.arange(len(links)), [len(link.entities) for link in links])
    entities = np.concatenate([NOBODY, *(link.entities for link in links)])
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
    return Bearers(entities[order], [links[place] for place in link_of[order]], prior.at(order))


NOBODY = np.empty(0, dtype=np.uint32)


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
