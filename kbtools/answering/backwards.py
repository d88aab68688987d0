"""Questions without a likely answer, asked again with facts read in both directions."""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain

from kbtools.answering.result_writing import links_without_facts
from kbtools.answering.results import Result
from kbtools.kb.contract import KnowledgeBase
from kbtools.linking.link_confidence import LinkConfidence
from kbtools.text.question import Question

_Ask = Callable[[Iterator[str]], Iterable[list[Result]]]

_FORWARDS, _BACKWARDS, _TWICE = 0.35, 0.5, 2.0
"""Facts are read backwards if the confidence of a question is below the first number, or if the question also names an
entity that is the subject of no fact. The new reading is taken if its confidence is at least the second number, and in
the first case also the third number times the old confidence. With `static`, 2 of 2,500 validation questions of FBSQ
are lost (0 with 0.25 as the first number). Of 159 questions whose fact is also stored in the other direction, asked
without the forward fact, 52 % get the right object (48 % with 0.25, 38 % forwards only). See benchmarks/inverse.py."""


def or_backwards(
    kb: KnowledgeBase, link_confidence: LinkConfidence, batch: list[Result], ask_backwards: _Ask
) -> Iterator[Result]:
    """Yield each result, or the reading backwards if the result is unlikely and that is more likely."""
    least: dict[str, float] = {}
    for result in batch:
        if not result.candidates:
            least[result.question] = 0.0
        elif _names_mere_object(kb, link_confidence, result):
            least[result.question] = max(_BACKWARDS, result.confidence)
        elif result.readings or result.confidence < _FORWARDS:
            least[result.question] = max(_BACKWARDS, _TWICE * result.confidence)
    others = {
        other.question: other
        for other in chain.from_iterable(ask_backwards(iter(least)))
        if other.candidates and other.candidates[0].inverse and other.confidence >= least[other.question]
    }
    return (others.get(result.question, result) for result in batch)


def _names_mere_object(kb: KnowledgeBase, link_confidence: LinkConfidence, result: Result) -> bool:
    """Return whether a content word outside the winner's mention names an entity that is the subject of no fact."""
    mention, question = result.candidates[0].mention, Question.read(result.question)
    rest = [
        word.start
        for word in question.tokens
        if word.is_word and not mention.start <= word.start < mention.end
        if link_confidence.content.has(word.text)
    ]
    links = links_without_facts(kb, question) if rest else []
    return any(link.start <= start < link.end for link in links for start in rest)
