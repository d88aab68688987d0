"""N-Gram pruning: the paper's first baseline (section Inference via Focused Pruning)."""

from collections.abc import Sequence
from typing import ClassVar

from kbtools.kb.contract import KnowledgeBase
from kbtools.linking.fuzzy import Misspelling
from kbtools.linking.links import Link
from kbtools.linking.strict import link_all_strictly, with_facts
from kbtools.text.question import Question
from kbtools.text.rungs import Rung

PART_WEIGHT = -2.0
"""Log-probability of a mention that is part of a longer one, written otherwise or misspelt: less than such rungs cost.

`iron kite 2` is the second film, not the first, though the rung of `Iron Kite` is stricter.
"""


class NGram:
    """Keep every n-gram that links strictly and, where these leave words unexplained, those that link fuzzily.

    Fuzzy links are beyond the paper.
    """

    version: ClassVar[int] = 2

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb = kb
        self.misspelling = Misspelling(kb)

    def links(self, questions: Sequence[Question]) -> list[list[Link]]:
        strict = link_all_strictly(self.kb, questions)
        fuzzy = self.misspelling.links(questions, strict=[with_facts(self.kb, own) for own in strict])
        return [weigh_parts(own + misspelt) for own, misspelt in zip(strict, fuzzy, strict=True)]


def weigh_parts(links: list[Link]) -> list[Link]:
    """Weigh the mentions that are part of a longer one less."""
    whole = {(link.start, link.end) for link in links if link.rung in (Rung.VARIANT, Rung.FUZZY)}
    return [link._replace(weight=link.weight + PART_WEIGHT) if is_part(link, whole) else link for link in links]


def is_part(link: Link, spans: set[tuple[int, int]]) -> bool:
    """Return whether a mention is part of a longer one."""
    return any(
        start <= link.start and link.end <= end and (start, end) != (link.start, link.end) for start, end in spans
    )
