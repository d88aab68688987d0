"""A pruner: the mention is the longest name in the question."""

from typing import ClassVar

from kbtools.kb.contract import KnowledgeBase
from kbtools.linking.links import Link
from kbtools.linking.strict import link_strictly
from kbtools.text.question import Question


class Longest:
    """Keep the links of the longest mentions that link strictly."""

    version: ClassVar[int] = 1

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb = kb

    def links(self, question: Question) -> list[Link]:
        links = link_strictly(self.kb, question)
        longest = max((link.end - link.start for link in links), default=0)
        return [link for link in links if link.end - link.start == longest]
