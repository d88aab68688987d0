"""The relation scorer `encoder`: questions against the names of relations, by a pretrained encoder of sentences."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kbtools.scorers.devices import resolve_device
from kbtools.scorers.lexical import LexicalScorer
from kbtools.scorers.pretrained import Pretrained, read_pretrained
from kbtools.scorers.vector_cache import encode_once
from kbtools.text.question import MarkedQuestion
from kbtools.text.relation_words import relation_parts

PRONOUN = "it"
"""The word that stands for the mention: encoders have read it in sentences, which no symbol of ours is in."""

# Accuracy with n-gram-idf on the first 3,000 validation questions of FBSQ, of the named: 76.6 % with these two, 69.8 %
# with `lexical` alone.
SHARPNESS = 15.0
"""Log-probability of a cosine of 1: 76.8 % at 10, 76.4 % at 20."""

LEXICAL = 0.5
"""Weight of the score of `lexical`: 75.6 % at 0, 76.6 % at 0.25, 76.7 % at 0.75."""


class ZeroShotScorer:
    """Cosines of questions with the names of relations, beside `lexical`; nothing is trained on questions."""

    def __init__(self, pretrained: Pretrained, relations: Sequence[str]) -> None:
        self.encoder = pretrained.encoder
        self.lexical = LexicalScorer(relations)
        self.relations = relation_vectors(pretrained, relations)

    def score(self, questions: Sequence[MarkedQuestion]) -> NDArray[np.float64]:
        texts: dict[str, int] = {}
        places = [texts.setdefault(question_text(question), len(texts)) for question in questions]
        with torch.inference_mode():
            cosines = (self.encoder.encode(list(texts)) @ self.relations.T).cpu().numpy().astype(np.float64)
        scores: NDArray[np.float64] = SHARPNESS * cosines[places] + LEXICAL * self.lexical.score(questions)
        return scores


class EncoderScorer:
    """The plugin `encoder`, which answers before any training."""

    @classmethod
    def zero_shot(cls, relations: Sequence[str], *, device: str = "cpu") -> ZeroShotScorer:
        """Make a scorer from what the relations are called."""
        place = resolve_device(device)
        pretrained = read_pretrained()
        pretrained.encoder.to(place)
        return ZeroShotScorer(pretrained, relations)

    @classmethod
    def origin(cls) -> str:
        """Tell one pretrained encoder from another."""
        return read_pretrained().digest


def question_text(question: MarkedQuestion) -> str:
    """Write a question with a pronoun for the mention."""
    return " ".join(question.words(symbol=PRONOUN))


def relation_vectors(pretrained: Pretrained, relations: Sequence[str]) -> Tensor:
    """Give the mean of the vectors of a relation's whole name and of its last two parts: (relations, dim)."""
    parts = [relation_parts(relation) for relation in relations]
    texts = [joined(name) for name in parts] + [joined(name[-2:]) for name in parts]
    # A text that several relations share is encoded once.
    distinct = {text: row for row, text in enumerate(dict.fromkeys(texts))}
    vectors = encode_once(pretrained, list(distinct))
    whole, last = vectors[[distinct[text] for text in texts]].view(2, len(relations), -1)
    mean: Tensor = (whole + last) / 2
    return mean


def joined(parts: Sequence[Sequence[str]]) -> str:
    return " ".join(word for part in parts for word in part)
