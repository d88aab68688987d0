"""Questions that the answers do not fit: for a number of them, the greatest, yes or no, or another kind of value."""

import re
from collections.abc import Callable, Collection
from dataclasses import replace
from itertools import pairwise

from kbtools.answering.missing_facts import ONLY_OBJECT, UNLIKELY
from kbtools.answering.results import Answer, Candidate, Result
from kbtools.kb.ids import is_literal, literal_text
from kbtools.ranking.score import DECIMALS
from kbtools.text.function_words import AUXILIARIES, QUESTION_WORDS, STOP_WORDS
from kbtools.text.question import Question
from kbtools.text.relation_words import relation_words, stems_of

_SUPERLATIVES = """biggest cheapest earliest fastest fewest greatest heaviest highest largest latest least longest
lowest newest oldest richest shortest slowest smallest tallest youngest""".split()

_ASKING = AUXILIARIES - {"am", "be", "been", "being"}

_TRUTH = frozenset("yes no y n true false ja nein oui non si sí não sim nee".split())
"""Values that answer a question for yes or no, if it names their relation: `is it open` of the column `Open`."""

_TIME = re.compile(
    r"\d|\b(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|mon|tue|wed|thu|fri|sat|sun|spring|autumn|fall|winter|"
    r"dail|week|month|year|annual|century|morning|noon|afternoon|evening|night|dawn|dusk|now|today|never|always)",
    re.IGNORECASE,
)
"""A digit, or the beginning of a word for a time: every text that states a time has one of them."""

_NO_PLACE = re.compile(
    r"((before|after|about|around|circa|ca?\.?)\s*)?(1\d\d\d|20\d\d)|\d{1,4}[./-]\d{1,2}[./-]\d{1,4}.*|"
    r"(?=(\D*\d){6})[+(]?\d[\d()]*([ /-]+[\d()]+)+",
    re.IGNORECASE,
)
"""A year, a date or a telephone number."""

_NUMBER = re.compile(r"\d|\b(no|none|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)\b", re.IGNORECASE)

_AGENT, _PLACE = r"\w(er|or|ist)( ?s)?$|\bby$", r"place|city|town|country|location|address|site"
_SUITED = {
    "who": _AGENT,
    "whom": _AGENT,
    "whose": _AGENT,
    "where": _PLACE,
    "when": r"\b(year|date|time|day)s?\b|\b(on|in)$",
}
"""The names of relations that suit a question word."""

_NEAR = 6.0
"""How much less a suitable relation may score, in natural logarithms: e^6 is 400."""

_MEASURED = frozenset("deep far heavy high many old tall wide".split())
"""Words after `how` that ask for a number."""

_EMPTY = frozenset(
    "a about an are do does is it me s tell that the this was were what whats which who you know".split()
)
"""Words that name no relation."""

_TELLING = frozenset("about definition description meaning note notes remarks summary".split())
"""Words of relations that describe their subject."""

_OUTSIDE = re.compile(
    rf"\d|how|when|where|who|{'|'.join(_SUPERLATIVES)}|\s*(?:{'|'.join(sorted(_ASKING))})\b", re.IGNORECASE
)
"""Every such question contains one of these; most others are settled by this search alone."""


def prefer_suited(
    result: Result,
    ask: Callable[[], Result],
    answers_of: Callable[[Candidate], tuple[tuple[Answer, ...], int]],
) -> Result:
    """Return a result whose relation suits the question: `Founder`, not `Founded`, for `who founded it`.

    The relation is searched among the candidates that `ask` returns, if all answers are values of another kind. The
    candidates before it are left out, and a relation to a person must share a stem with the question.
    """
    if not result.answered or not is_literal(result.answers[0].id) or not _OUTSIDE.search(result.question):
        return result
    words = _words_around(result)
    asking = next((word for word in words if word in QUESTION_WORDS), "")
    if asking not in _SUITED or not _unfit_values(words, [answer.id for answer in result.answers]):
        return result
    first, *others = ask().candidates
    stems = _stems(first)
    for place, other in enumerate(others):
        same = (other.subject, other.mention, other.inverse) == (first.subject, first.mention, first.inverse)
        related = asking == "where" or not stems.isdisjoint(_stems(other))
        named = " ".join(relation_words(other.relation_name or other.relation))
        if same and related and first.score - other.score < _NEAR and re.search(_SUITED[asking], named):
            answers, total = answers_of(other)
            if not _unfit_values(words, [answer.id for answer in answers]):
                shown = (other, *others[place + 1 :][: len(result.candidates) - 1])
                return replace(result, candidates=shown, tied=1, answers=answers, answers_total=total)
    return result


def _words_around(result: Result) -> list[str]:
    """Return the words of a question without those of its mention."""
    mention = result.candidates[0].mention
    tokens = Question.read(result.question).tokens
    return [token.text for token in tokens if token.is_word and not mention.start <= token.start < mention.end]


def _stems(candidate: Candidate) -> set[str]:
    """Return the stems of the words of a relation."""
    named = relation_words(f"{candidate.relation}.{candidate.relation_name or ''}")
    return {stem for word in named for stem in stems_of(word)}


def in_scope(
    result: Result,
    abstain: float | None,
    *,
    relations_of: Callable[[str], Collection[int]],
    read_forwards: Callable[[Result], bool],
) -> Result:
    """Return a result, doubtful if its answers do not fit its question; below `abstain`, without its answers."""
    if not result.answered:
        return result
    doubt = _doubt(result) if _OUTSIDE.search(result.question) else None
    if not doubt and result.candidates[0].inverse and read_forwards(result):
        doubt = ONLY_OBJECT
    if not doubt and _is_vague(result) and len(relations_of(result.candidates[0].subject)) > 1:
        doubt = "the question names no relation"
    if not doubt:
        return result
    confidence = round(result.confidence * UNLIKELY, DECIMALS)
    unsure = replace(result, confidence=confidence, doubtful=True, doubt=doubt)
    return replace(unsure, answered=False, answers=(), answers_total=0) if confidence < (abstain or 0) else unsure


def _is_vague(result: Result) -> bool:
    """Return whether a question contains only the name of its subject, and is answered by a value."""
    first = result.candidates[0]
    if not is_literal(result.answers[0].id) or not _TELLING.isdisjoint(relation_words(first.relation)):
        return False
    return _EMPTY.issuperset(_words_around(result))


def _doubt(result: Result) -> str | None:
    """Return why the answers do not fit the question, None if they may fit."""
    first, several = result.candidates[0], result.answers_total > 1
    tokens = [token for token in Question.read(result.question).tokens if token.is_word]
    words = _words_around(result)
    if ("how", "many") in pairwise(words) and (several or not is_literal(result.answers[0].id)):
        return "the question asks for a number, and answers are not counted"
    named = relation_words(f"{first.relation}.{first.relation_name or ''}")
    asked = [word for word in words if word in _SUPERLATIVES and word not in named]
    if several and asked:
        return f"the question asks for the {asked[0]}, and answers are not compared"
    # `Was kostet X` is German for `what does X cost`.
    named_late = any(token.start < first.mention.start for token in tokens[1:])
    german = words[:1] == ["was"] and named_late and STOP_WORDS.isdisjoint(words[1:])
    if tokens[0].text in _ASKING and first.mention.start > tokens[0].start and "or" not in words and not german:
        told = all(literal_text(answer.id).casefold() in _TRUTH for answer in result.answers)
        if not (told and any(_stems(first) & stems_of(word) for word in words)):
            return "the question asks for yes or no, and answers are facts"
    numbered = [word for word in named if re.search(r"\d", word) and word not in words]
    for word in words:
        for other in numbered if word not in named else ():
            if re.sub(r"\d+", "0", word) == re.sub(r"\d+", "0", other):
                return f"the question says {word}, and the relation {other}"
    return _unfit_values(words, [answer.id for answer in result.answers])


def _unfit_values(words: list[str], answers: list[str]) -> str | None:
    """Return the kind of value that a question asks for, if all answers are of another kind."""
    if not all(map(is_literal, answers)):
        return None
    values = [literal_text(answer) for answer in answers]
    asking, after = next(((a, b) for a, b in pairwise([*words, ""]) if a in QUESTION_WORDS), ("", ""))
    if asking == "when" and not any(map(_TIME.search, values)):
        return "the question asks when, and no answer is a time"
    if asking == "where" and all(map(_NO_PLACE.fullmatch, values)):
        return "the question asks where, and no answer is a place"
    if asking in ("who", "whom", "whose") and not any(letter.isalpha() for value in values for letter in value):
        return "the question asks who, and no answer is a name"
    if asking == "how" and after in _MEASURED and not any(map(_NUMBER.search, values)):
        return "the question asks for a number, and no answer has one"
    return None
