"""N-Gram pruning: the paper's first baseline (section Inference via Focused Pruning)."""

from typing import ClassVar

from kbtools.kb.contract import KnowledgeBase
from kbtools.linking.fuzzy import Misspelling
from kbtools.linking.links import Link
from kbtools.linking.strict import link_strictly
from kbtools.text.question import Question


class NGram:
    """Keep every n-gram that links strictly; where none does, those that link fuzzily, which is beyond the paper."""

    version: ClassVar[int] = 1

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb = kb
        self.misspelling = Misspelling(kb)

    def links(self, question: Question) -> list[Link]:
        return link_strictly(self.kb, question) or self.misspelling.links(question)
