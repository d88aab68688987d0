"""Facts read backwards where nothing else is likely: questions asked again in the view that has both directions."""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain

from kbtools.answering.result_writing import links_without_facts
from kbtools.answering.results import Result
from kbtools.kb.contract import KnowledgeBase
from kbtools.linking.link_confidence import LinkConfidence
from kbtools.text.question import Question

_Ask = Callable[[Iterator[str]], Iterable[list[Result]]]

_FORWARDS, _BACKWARDS, _TWICE = 0.35, 0.5, 2.0
"""Facts are read backwards for a question whose confidence is below the first, and for one that also names what is the
subject of no fact. That reading is taken where its confidence reaches the second, and for the former so many times that
of the question. By `static`, 2 of 2,500 validation questions of FBSQ are lost, 0 up to 0.25; of the 159 whose fact is
also stored the other way round, asked without it, 52 % have the right object, 38 % if read forwards alone, 48 % up to
0.25. See benchmarks/inverse.py."""


def or_backwards(
    kb: KnowledgeBase, link_confidence: LinkConfidence, batch: list[Result], ask_backwards: _Ask
) -> Iterator[Result]:
    """Yield results, in place of unlikely ones those with facts read backwards where these are more likely."""
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
    """Return whether a content word beside the mention of the winner is in a name of what is no subject."""
    mention, question = result.candidates[0].mention, Question.read(result.question)
    rest = [
        word.start
        for word in question.tokens
        if word.is_word and not mention.start <= word.start < mention.end
        if link_confidence.content.has(word.text)
    ]
    links = links_without_facts(kb, question) if rest else []
    return any(link.start <= start < link.end for link in links for start in rest)
