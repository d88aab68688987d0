"""Words shared by a question and labels in a language: by stems, and by the ends of compounds."""

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from kbtools.text.lexicons import Lexicon, respelt
from kbtools.text.relation_words import relation_words

_SHARPNESS, _HINT, _PART, _WHOLE = 8.0, 0.6, 0.6, 0.3
"""Log-probability of a whole shared label, as in `lexical`; the weight of a word hinted at by one of the question; and
that of a word that is part of another, as `ort` of `geburtsort`.
"""

_SHORTEST_HINT, _SHORTEST_PART = 3, 4
"""Least number of letters of a hint, and of a word of a question that is part of another word."""

_STEMMERS = {
    "ar": "arabic", "da": "danish", "de": "german", "el": "greek", "es": "spanish", "fi": "finnish", "fr": "french",
    "hu": "hungarian", "it": "italian", "nb": "norwegian", "nl": "dutch", "nn": "norwegian", "no": "norwegian",
    "pt": "portuguese", "ro": "romanian", "ru": "russian", "sv": "swedish", "ta": "tamil", "tr": "turkish",
}  # fmt: skip
"""The Snowball stemmers in tantivy, by language; words of other languages are compared unstemmed."""

_STEMS_REMEMBERED = 50_000


@lru_cache(_STEMS_REMEMBERED)
def stem(language: str, word: str) -> str:
    """Return the stem of a folded word in a language."""
    cut, word = _stem_word(language), respelt(language, word)
    return "".join(cut(word)) if cut else word


@cache
def _stem_word(language: str) -> Callable[[str], list[str]] | None:
    """Return the stemmer of a language, None if there is none."""
    if language not in _STEMMERS:
        return None
    # Imported here, since questions in English do not need it.
    from tantivy import Filter, TextAnalyzerBuilder, Tokenizer

    analyse: Callable[[str], list[str]] = (
        TextAnalyzerBuilder(Tokenizer.raw()).filter(Filter.stemmer(_STEMMERS[language])).build().analyze
    )
    return analyse


class LabelWords:
    """The words of labels in a language, each weighted by its rarity among the labels."""

    def __init__(self, labels: Sequence[str], lexicon: Lexicon) -> None:
        self.lexicon = lexicon
        self.stem = partial(stem, lexicon.language)
        stems_of = [self.stems(label) for label in labels]
        frequency = Counter(word for stems in stems_of for word in stems)
        self.words = sorted(frequency)
        self.backwards = sorted((word[::-1], at) for at, word in enumerate(self.words))
        places = {word: at for at, word in enumerate(self.words)}
        rarity = {word: math.log(1 + len(labels) / count) for word, count in frequency.items()}
        columns: list[tuple[list[int], list[float]]] = [([], []) for _ in self.words]
        for row, stems in enumerate(stems_of):
            length = math.sqrt(sum(rarity[word] for word in stems))
            for word in stems:
                rows, weights = columns[places[word]]
                rows.append(row)
                weights.append(_SHARPNESS * rarity[word] / length)
        self.columns = [(np.array(rows), np.array(weights)) for rows, weights in columns]
        self.count = len(labels)
        self.known: dict[str, dict[int, float]] = {}

    def stems(self, label: str) -> set[str]:
        """Return the stems of a label, without function words unless it has no others."""
        words = relation_words(label)
        content = [word for word in words if word not in self.lexicon.function_words]
        return {self.stem(word) for word in content or words}

    def score(self, context: Sequence[str]) -> NDArray[np.float64]:
        """Score the labels for the words of a question around a mention: (labels,)."""
        present: dict[int, float] = {}
        for word in dict.fromkeys(context):
            if word not in self.known:
                self.known[word] = self.matches(word)
            for place, weight in self.known[word].items():
                present[place] = min(1.0, present.get(place, 0.0) + weight)
        scores = np.zeros(self.count)
        for place, weight in present.items():
            rows, weights = self.columns[place]
            scores[rows] += weight * weights
        return scores

    def matches(self, word: str) -> dict[int, float]:
        """Return the places of the label words that a word of a question refers to, with the weight of each."""
        weights: dict[int, float] = {}
        if word not in self.lexicon.function_words:
            weights.update(self.alike(self.stem(word), word, least=_SHORTEST_PART))
        for hint in self.lexicon.hinted(word):
            # Compared unstemmed, since `foundation` begins with the stem of `founder`.
            for place, weight in self.alike(hint, hint, least=_SHORTEST_HINT).items():
                weights[place] = max(weights.get(place, 0.0), _HINT * weight)
        return weights

    def alike(self, start: str, end: str, *, least: int) -> dict[int, float]:
        """Return the places of words with the same stem, and of words that begin or end with this word."""
        stem = self.stem(end)
        weights: dict[int, float] = {}
        if len(start) >= least:
            weights |= {at: _part_weight(start, word) for at, word in self.starting(self.words, start)}
        for ending in {end, stem}:
            if len(ending) >= least:
                weights |= {self.backwards[at][1]: _part_weight(ending, word) for at, word in self.ending(ending[::-1])}
        at = bisect_left(self.words, stem)
        return weights | ({at: 1.0} if self.words[at : at + 1] == [stem] else {})

    def starting(self, words: Sequence[str], start: str) -> Iterator[tuple[int, str]]:
        for place in range(bisect_left(words, start), len(words)):
            if not words[place].startswith(start):
                return
            yield place, words[place]

    def ending(self, start: str) -> Iterator[tuple[int, str]]:
        for place in range(bisect_left(self.backwards, (start, 0)), len(self.backwards)):
            if not self.backwards[place][0].startswith(start):
                return
            yield place, self.backwards[place][0]


def _part_weight(part: str, whole: str) -> float:
    """Return the weight of a part of a word by its share of the letters."""
    return _PART + _WHOLE * len(part) / len(whole)
