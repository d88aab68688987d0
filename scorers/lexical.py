"""The scorer that needs no training: the words that a relation's name shares with the rest of the question."""

import math
import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kbtools.text.normaliser import fold, split_words
from kbtools.text.question import MarkedQuestion

STEM = 5
"""Letters by which two words are held to be forms of one: `directed` and `director` share five."""

CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
"""Where a name in camel case, such as DBpedia's `birthPlace`, has its words."""

HOST = re.compile(r"^[a-z]+://[^/]*/")

LAST, REST = 1.0, 0.4
"""What a word counts in the last part of a relation's name, and before it."""

CUE, SHARPNESS = 0.6, 4.0
"""What a cue counts beside a shared word; how much log-probability a whole shared name is worth."""

FUNCTION_WORDS = frozenset(
    "a an and are as at by did do does for in is of on or s that the this to was were with".split()
)

CUES = {
    "where": "place location city country containedby",
    "when": "date year",
    "who": "person author artist created directed",
    "born": "birth",
    "die": "death",
    "died": "death",
    "wrote": "written author",
    "made": "created",
    "sings": "artist",
    "nationality": "nationality",
    "from": "nationality",
    "kind": "genre",
    "type": "genre",
    "job": "profession",
}
"""Words of questions and the words of relations that they hint at."""


def stem(word: str) -> str:
    return word[:STEM]


class LexicalScorer:
    """Score relations by shared stems, each weighted by its rarity among the relations."""

    def __init__(self, relations: Sequence[str]) -> None:
        self.count = len(relations)
        weights = [name_weights(relation) for relation in relations]
        frequency = Counter(word for found in weights for word in found)
        columns: dict[str, list[tuple[int, float]]] = {}
        for row, found in enumerate(weights):
            weighed = {word: weight * math.log(1 + self.count / frequency[word]) for word, weight in found.items()}
            length = math.sqrt(sum(weighed.values()))
            for word, weight in weighed.items():
                columns.setdefault(word, []).append((row, SHARPNESS * weight / length))
        self.columns = {
            word: (np.array([row for row, _ in entries]), np.array([weight for _, weight in entries]))
            for word, entries in columns.items()
        }

    def score(self, asked: Sequence[MarkedQuestion]) -> NDArray[np.float64]:
        scores = np.zeros((len(asked), self.count))
        for row, one in enumerate(asked):
            for word, weight in hinted(one.context()).items():
                if word in self.columns:
                    relations, weights = self.columns[word]
                    scores[row, relations] += weight * weights
        return scores


def name_weights(relation: str) -> dict[str, float]:
    """Weigh the stems of a relation's name, which `/`, `.`, `_`, `#` and camel case divide; the last part says most."""
    parts = [part for part in re.split(r"[/.#]+", HOST.sub("", relation)) if part]
    weights: dict[str, float] = {}
    for part in parts:
        for word in split_words(fold(CAMEL.sub(" ", part.replace("_", " ")))):
            if word not in FUNCTION_WORDS:
                weights[stem(word)] = max(weights.get(stem(word), 0.0), LAST if part == parts[-1] else REST)
    return weights


def hinted(words: Sequence[str]) -> dict[str, float]:
    """Weigh the stems that a context speaks of: its own words in full, those it hints at in part."""
    found: dict[str, float] = {}
    for word in words:
        for hint in CUES.get(word, "").split():
            found[stem(hint)] = max(found.get(stem(hint), 0.0), CUE)
        if word not in FUNCTION_WORDS:
            found[stem(word)] = 1.0
    return found
