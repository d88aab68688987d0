"""Questions that facts alone do not answer: for a number of answers, for the greatest of them, or for yes or no."""

import re
from dataclasses import replace
from itertools import pairwise

from kbtools.answering.missing_facts import UNLIKELY
from kbtools.answering.results import Result
from kbtools.kb.ids import is_literal
from kbtools.ranking.score import DECIMALS
from kbtools.text.function_words import AUXILIARIES
from kbtools.text.question import Question
from kbtools.text.relation_words import relation_words

_SUPERLATIVES = """biggest cheapest earliest fastest fewest greatest heaviest highest largest latest least longest
lowest newest oldest richest shortest slowest smallest tallest youngest""".split()

_ASKING = AUXILIARIES - {"am", "be", "been", "being"}

_OUTSIDE = re.compile(rf"many|{'|'.join(_SUPERLATIVES)}|\s*(?:{'|'.join(sorted(_ASKING))})\b", re.IGNORECASE)
"""What every such question contains; most others are done with after it."""


def in_scope(result: Result, abstain: float | None) -> Result:
    """Return a result, doubtful if its question asks for more than a fact; below `abstain`, without its answers."""
    if not (result.answered and _OUTSIDE.search(result.question) and (doubt := _doubt(result))):
        return result
    confidence = round(result.confidence * UNLIKELY, DECIMALS)
    unsure = replace(result, confidence=confidence, doubtful=True, doubt=doubt)
    return replace(unsure, answered=False, answers=(), answers_total=0) if confidence < (abstain or 0) else unsure


def _doubt(result: Result) -> str | None:
    """Return what a question asks for that its answers are not, None if nothing says so."""
    first, several = result.candidates[0], result.answers_total > 1
    tokens = [token for token in Question.read(result.question).tokens if token.is_word]
    words = [token.text for token in tokens if not first.mention.start <= token.start < first.mention.end]
    if ("how", "many") in pairwise(words) and (several or not is_literal(result.answers[0].id)):
        return "the question asks for a number, and answers are not counted"
    named = relation_words(f"{first.relation}.{first.relation_name or ''}")
    asked = [word for word in words if word in _SUPERLATIVES and word not in named]
    if several and asked:
        return f"the question asks for the {asked[0]}, and answers are not compared"
    if tokens[0].text in _ASKING and first.mention.start > tokens[0].start and "or" not in words:
        return "the question asks for yes or no, and answers are facts"
    return None
