"""The relation scorer `static`: meaning without a network, from one vector per token of an encoder's vocabulary."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kbtools.scorers.networks.checkpoint import read_weights
from kbtools.scorers.relations.lexical import LexicalScorer
from kbtools.text.lexicons import ENGLISH, language_of
from kbtools.text.question import MarkedQuestion
from kbtools.text.relation_words import spelt_parts

_VECTORS = Path(__file__).with_name("static.safetensors")
"""Made from all-MiniLM-L6-v2 by benchmarks/make_static_vectors.py."""

PRONOUN = "it"
"""The word in place of the mention: encoders know it from sentences, unlike our symbol."""

_SHARPNESS, _LEXICAL = 10.0, 0.5
"""Log-probability of a cosine of 1, and the weight of the score of `lexical`, as for `encoder`."""

_OTHER_LANGUAGE = 0.2
"""Weight of the vectors of labels in other languages, since tokens and vectors are English. Of the 60 questions of
benchmarks/languages, 57 or 58 are right from 0.1 to 1; others such as `wie gross ist die Schweiz` need a lower weight.
"""

_WORDS = re.compile(r"\w+|[^\w\s]")
_UNKNOWN, _INSIDE = "[UNK]", "##"

_LONGEST_WORD = 100
"""Longest word split into tokens; a longer one is unknown, as in BERT."""

_REMEMBERED_WORDS = 50_000
"""Words whose tokens are cached, some 10 MB."""


class _TokenVectors(NamedTuple):
    """The rows of tokens, their vectors in 8 bits (tokens, dim), and their scale factors (tokens,)."""

    rows: dict[str, int]
    vectors: NDArray[np.int8]
    scales: NDArray[np.float32]


class StaticScorer:
    """The relation scorer `static`: cosines of question and relation names, plus a share of the score of `lexical`.

    The vector of a text is the sum of its tokens' vectors, scaled to length 1.
    """

    version: ClassVar[int] = 2

    def __init__(self, relations: Sequence[str]) -> None:
        parts = [spelt_parts(relation) for relation in relations]
        names = [[word for part in parts_of for word in part] for parts_of in parts]
        lasts = [[word for part in parts_of[-2:] for word in part] for parts_of in parts]
        self.names = (encode_words(names) + encode_words(lasts)) / 2 * language_shares(relations)
        self.lexical = LexicalScorer(relations)

    def score(self, questions: Sequence[MarkedQuestion]) -> NDArray[np.float64]:
        return self.score_embedded(self.embed(questions), questions)

    def embed(self, questions: Sequence[MarkedQuestion]) -> NDArray[np.float32]:
        return encode_words([question.words(symbol=PRONOUN) for question in questions])

    def score_embedded(self, vectors: NDArray[np.float32], questions: Sequence[MarkedQuestion]) -> NDArray[np.float64]:
        cosines = (vectors @ self.names.T).astype(np.float64)
        return _SHARPNESS * cosines + _LEXICAL * self.lexical.score(questions)

    def score_some(
        self, questions: Sequence[MarkedQuestion], relations: NDArray[np.unsignedinteger]
    ) -> NDArray[np.float64]:
        cosines: NDArray[np.float64] = (self.embed(questions) @ self.names[relations].T).astype(np.float64)
        return _SHARPNESS * cosines + _LEXICAL * self.lexical.score(questions).take(relations, axis=1)


def language_shares(relations: Sequence[str]) -> NDArray[np.float32]:
    """Return the weight of the vector of each relation's name: (relations, 1)."""
    shares = [1.0 if language_of(relation) == ENGLISH else _OTHER_LANGUAGE for relation in relations]
    return np.array(shares, dtype=np.float32)[:, None]


@cache
def token_vectors() -> _TokenVectors:
    """Read the table of token vectors."""
    weights = read_weights(_VECTORS)
    tokens = weights["tokens"].tobytes().decode().split("\n")
    return _TokenVectors({token: row for row, token in enumerate(tokens)}, weights["vectors"], weights["scales"])


def encode_words(texts: Sequence[Sequence[str]]) -> NDArray[np.float32]:
    """Return the vectors of texts given as words: (texts, dim), of length 1, or 0 for a text without words."""
    table = token_vectors()
    encoded = np.zeros((len(texts), table.vectors.shape[1]), dtype=np.float32)
    for vector, words in zip(encoded, texts, strict=True):
        if rows := [row for word in words for row in word_pieces(word)]:
            np.dot(table.scales[rows], table.vectors[rows].astype(np.float32), out=vector)
            vector /= max(float(np.linalg.norm(vector)), 1e-9)
    return encoded


@lru_cache(_REMEMBERED_WORDS)
def word_pieces(word: str) -> tuple[int, ...]:
    """Return the rows of a word's tokens, longest pieces first as in WordPiece (Wu et al. 2016)."""
    folded = unicodedata.normalize("NFD", word.lower())
    plain = "".join(letter for letter in folded if unicodedata.category(letter) != "Mn")
    return tuple(row for part in _WORDS.findall(plain) for row in _split_part(part))


def _split_part(part: str) -> Iterator[int]:
    rows, start, pieces = token_vectors().rows, 0, []
    if len(part) > _LONGEST_WORD:
        return iter((rows[_UNKNOWN],))
    while start < len(part):
        prefix = _INSIDE if start else ""
        end = next((end for end in range(len(part), start, -1) if prefix + part[start:end] in rows), None)
        if end is None:
            return iter((rows[_UNKNOWN],))
        pieces.append(rows[prefix + part[start:end]])
        start = end
    return iter(pieces)
