"""N-Gram+ pruning: the second baseline, with heuristics after Bordes et al. 2015, which the paper only names."""

from collections.abc import Sequence
from typing import ClassVar

from kbtools.kb.contract import KnowledgeBase
from kbtools.linking.fuzzy import Misspelling
from kbtools.linking.links import Link
from kbtools.linking.strict import link_strictly, with_facts
from kbtools.text.function_words import QUESTION_WORDS, has_content, is_spoken
from kbtools.text.question import Question


class NGramPlus:
    """Drop n-grams of stop or question words alone, and those inside a longer one that links.

    Titles may be made of such words: those of several (`The Who`) stay, single ones (`It`) where nothing else
    links, and question words (`Who`) where nothing else is left.
    """

    version: ClassVar[int] = 2

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb = kb
        self.misspelling = Misspelling(kb)

    def links(self, question: Question) -> list[Link]:
        strict = with_facts(self.kb, link_strictly(self.kb, question))
        content = [link for link in strict if has_content(link.ngram.form)]
        content += self.misspelling.links(question, strict=strict)
        titles = [link for link in strict if " " in link.ngram.form and not has_content(link.ngram.form)]
        if content or titles:
            return longest(content) + longest(titles)
        spoken = [link for link in strict if link.ngram.form not in QUESTION_WORDS and is_spoken(link.ngram.form)]
        return longest(spoken or strict)


def longest(links: Sequence[Link]) -> list[Link]:
    """Drop the links inside a longer one."""
    outermost: set[tuple[int, int]] = set()
    reached = -1
    # By start, the longer first: inside a longer one is what ends no later than one before it does.
    for start, opposite in sorted({(link.ngram.start, -link.ngram.end) for link in links}):
        if -opposite > reached:
            outermost.add((start, -opposite))
            reached = -opposite
    return [link for link in links if (link.ngram.start, link.ngram.end) in outermost]
