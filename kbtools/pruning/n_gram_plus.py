"""N-Gram+ pruning: the second baseline, with heuristics after Bordes et al. 2015, which the paper only names."""

from collections.abc import Sequence
from typing import ClassVar, Protocol, TypeVar

from kbtools.kb.contract import KnowledgeBase
from kbtools.linking.fuzzy import Misspelling
from kbtools.linking.links import Link
from kbtools.linking.strict import StrictMatch, StrictNames, link_matches
from kbtools.text.function_words import QUESTION_WORDS, has_content, has_word
from kbtools.text.ngrams import Ngram
from kbtools.text.question import Question


class NGramPlus:
    """Drop n-grams of stop or question words alone, and those inside a longer one that links.

    Titles may be made of such words: those of several (`The Who`) stay, single ones (`It`) where nothing else
    links, and question words (`Who`) where nothing else is left.
    """

    version: ClassVar[int] = 2

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb = kb
        self.names = StrictNames(kb)
        self.misspelling = Misspelling(kb)

    def links(self, questions: Sequence[Question]) -> list[list[Link]]:
        strict = self.names.matches(questions)
        misspelt = self.misspelling.links(questions, strict=strict)
        return [self.keep(*own) for own in zip(questions, strict, misspelt, strict=True)]

    def keep(self, question: Question, strict: Sequence[StrictMatch], misspelt: Sequence[Link]) -> list[Link]:
        content = [match for match in strict if has_content(match.ngram.form)]
        titles = [match for match in strict if " " in match.ngram.form and not has_content(match.ngram.form)]
        if content or misspelt or titles:
            named: list[Mentioned] = [*content, *misspelt]
            kept = longest(content, named) + longest(titles)
            return link_matches(self.kb, question, kept) + longest(misspelt, named)
        spoken = [match for match in strict if match.ngram.form not in QUESTION_WORDS and has_word(match.ngram.form)]
        return link_matches(self.kb, question, longest(spoken or strict))


class Mentioned(Protocol):
    """A link, or a match that may become one, by the words that it stands on."""

    @property
    def ngram(self) -> Ngram: ...


M = TypeVar("M", bound=Mentioned)


def longest(links: Sequence[M], among: Sequence[Mentioned] | None = None) -> list[M]:
    """Drop the links inside a longer one among others, by default among themselves."""
    outermost: set[tuple[int, int]] = set()
    reached = -1
    # By start, the longer first: inside a longer one is what ends no later than one before it does.
    for start, opposite in sorted({(link.ngram.start, -link.ngram.end) for link in among or links}):
        if -opposite > reached:
            outermost.add((start, -opposite))
            reached = -opposite
    return [link for link in links if (link.ngram.start, link.ngram.end) in outermost]
