"""A relation scorer without training: words shared by a relation's name and the rest of the question."""

import math
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from kbtools.scorers.relations.label_words import LabelWords
from kbtools.text.lexicons import ENGLISH, language_of, lexicon
from kbtools.text.question import MarkedQuestion
from kbtools.text.relation_words import spelt_parts

_STEM = 5
"""Leading letters by which two words count as forms of one: `directed` and `director` share five."""

# The next four: the accuracy on 2,000 validation questions of FBSQ is 58.3 % with these values.
LAST, REST = 1.0, 0.4
"""Weight of a word in the last part of a relation's name, and in earlier parts: 57.9 % at 0.2, 58.5 % at 0.6."""

CUE, _SHARPNESS = 0.6, 4.0
"""Weight of a cue relative to a shared word, 57.7 % at 0.3 and 57.1 % at 1; log-probability of a whole shared name."""

_IGNORED = frozenset("a an and are as at by did do does for in is of on or s that the this to was were with".split())

_CUES = {
    "where": "place location city country containedby", "when": "date year",
    "who": "person author artist created directed", "born": "birth", "die": "death", "died": "death",
    "wrote": "written author", "made": "created", "sings": "artist", "nationality": "nationality",
    "from": "nationality", "kind": "genre", "type": "genre", "job": "profession",
}  # fmt: skip
"""Words of questions, and the words of relations that they hint at."""


def _stem(word: str) -> str:
    return word[:_STEM]


_HINTS = {word: [_stem(hint) for hint in hints.split()] for word, hints in _CUES.items()}


class LexicalScorer:
    """The relation scorer `lexical`: shared stems, each weighted by its rarity among the relations.

    `columns` maps each stem to the rows of its relations and their weights: a score is the sum of the columns of the
    question's stems, which replaces a loop over all relations. Labels in other languages are compared by the words of
    those languages.
    """

    version: ClassVar[int] = 2

    def __init__(self, relations: Sequence[str]) -> None:
        self.count = len(relations)
        languages = [language_of(relation) for relation in relations]
        rows = {
            language: np.flatnonzero([members == language for members in languages])
            for language in sorted(set(languages))
        }
        english = rows.pop(ENGLISH, np.empty(0, dtype=np.int64))
        self.others = [
            (members, LabelWords([relations[row] for row in members.tolist()], lexicon(tag)))
            for tag, members in rows.items()
        ]
        self.english = english if rows else slice(None)
        self.columns = _relation_columns(tuple(relations[row] for row in english.tolist()))

    def score(self, questions: Sequence[MarkedQuestion]) -> NDArray[np.float64]:
        scores = np.zeros((len(questions), self.count))
        columns = self.columns
        for whole, question in zip(scores, questions, strict=True):
            context = question.context()
            english = whole[self.english]
            for word, weight in hinted(context).items():
                if word in columns:
                    relations, weights = columns[word]
                    english[relations] += weight * weights
            if self.others:
                whole[self.english] = english
            for rows, words in self.others:
                whole[rows] = words.score(context)
        return scores


@lru_cache(4)
def _relation_columns(relations: tuple[str, ...]) -> dict[str, tuple[NDArray[np.int64], NDArray[np.float64]]]:
    """Return the rows of the relations with each stem, and their weights; cached, since `encoder` uses it too."""
    weights = [name_weights(relation) for relation in relations]
    frequency = Counter(word for stems in weights for word in stems)
    columns: dict[str, list[tuple[int, float]]] = {}
    for row, stems in enumerate(weights):
        weighed = {word: weight * math.log(1 + len(relations) / frequency[word]) for word, weight in stems.items()}
        length = math.sqrt(sum(weighed.values()))
        for word, weight in weighed.items():
            columns.setdefault(word, []).append((row, _SHARPNESS * weight / length))
    return {
        word: (np.array([row for row, _ in entries]), np.array([weight for _, weight in entries]))
        for word, entries in columns.items()
    }


def name_weights(relation: str) -> dict[str, float]:
    """Return the weights of the stems of a relation's name; those of its last part weigh most."""
    weights: dict[str, float] = {}
    parts = spelt_parts(relation)
    for part in parts:
        for word in part:
            if word not in _IGNORED:
                weights[_stem(word)] = max(weights.get(_stem(word), 0.0), LAST if part is parts[-1] else REST)
    return weights


def hinted(words: Sequence[str]) -> dict[str, float]:
    """Return the weights of the stems in a context: full for its own words, partial for hints."""
    weights: dict[str, float] = {}
    for word in words:
        if word in _HINTS:
            for hint in _HINTS[word]:
                weights.setdefault(hint, CUE)
        if word not in _IGNORED:
            weights[_stem(word)] = 1.0
    return weights
