"""Priors: how likely a name means each of its bearers, before anything else is known of it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kbtools.kb.contract import KnowledgeBase
from kbtools.kb.rows import EntityRows

SHARPNESS = 0.6
"""The weight of a logarithm of a number of facts: of 1,699 ambiguous mentions in validation questions of FBSQ, the gold
subject has the highest likelihood there, 0.21 nats above equal shares; 0.3 and 1 lose 0.05 and 0.06."""


@dataclass(frozen=True, slots=True, eq=False)
class Prior:
    """p(entity | name) of some bearers, and what each is from: numbers of facts, or a sentence about counts."""

    values: NDArray[np.float64]
    facts_out: NDArray[np.int64]
    facts_in: NDArray[np.int64] | None
    counted: dict[int, str]

    def at(self, places: NDArray[np.int64]) -> "Prior":
        """Give the priors at some places."""
        facts_in = None if self.facts_in is None else self.facts_in[places]
        counted = {new: self.counted[old] for new, old in enumerate(places.tolist()) if old in self.counted}
        return Prior(self.values[places], self.facts_out[places], facts_in, counted)

    def reason(self, place: int) -> str:
        """Say what a prior rests on."""
        facts = f"{self.facts_out[place]:,} facts out"
        facts += "" if self.facts_in is None else f" and {self.facts_in[place]:,} in"
        return f"prior {self.values[place]:.3f}, from {self.counted.get(place, facts)}"


def share_names(kb: KnowledgeBase, entities: EntityRows, forms: Sequence[str], group: NDArray[np.int64]) -> Prior:
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
    return Prior(values, facts_out, facts_in, counted)
