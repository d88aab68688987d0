"""A pruner: the mention is the longest name in the question."""

from collections.abc import Sequence
from typing import ClassVar

from kbtools.kb.contract import KnowledgeBase
from kbtools.linking.links import Link
from kbtools.linking.strict import link_all_strictly
from kbtools.text.question import Question


class Longest:
    """A pruner that keeps the longest mentions that link strictly."""

    version: ClassVar[int] = 1

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb = kb

    def links(self, questions: Sequence[Question]) -> list[list[Link]]:
        return [longest(links) for links in link_all_strictly(self.kb, questions)]


def longest(links: Sequence[Link]) -> list[Link]:
    """Return the links of the longest mentions."""
    most = max((link.end - link.start for link in links), default=0)
    return [link for link in links if link.end - link.start == most]
