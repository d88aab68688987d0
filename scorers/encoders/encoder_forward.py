"""The network of `encoder` without torch: what `EncoderNetwork` gives."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbtools.scorers.encoders.sentence_forward import SentenceForward

SHARPNESS = 15.0
"""Log-probability of a cosine of 1. Untrained, with n-gram-idf and half of `lexical`, on the first 3,000 validation
questions of FBSQ, of the named: 76.6 % are right, 76.8 % at 10, 76.4 % at 20; with `lexical` alone 69.8 %."""

UNSEEN = 1.0
"""What a relation gains that has learned nothing, beside those that questions were seen of. On FBSQ's validation split,
of the questions of such relations, given the subject, 96.3 % are right, 94.4 % without it, 98.1 % at 1.5; of all
relations the right one is first in 77.4 %, 77.5 % without it, 77.1 % at 1.5."""

PREFIX = "encoder.transformer."
"""What the names of a transformer's weights begin with in the network that training makes."""


class EncoderForward:
    """Scores f(q)·E(r), where E(r) is the vector of a relation's name and a learned part beside it."""

    def __init__(self, encoder: SentenceForward, names: NDArray[np.float32], learned: NDArray[np.float32]) -> None:
        self.encoder = encoder
        self.names, self.learned = names, learned
        self.relations = np.float32(SHARPNESS) * (names + learned)
        self.gains = np.float32(UNSEEN) * (learned == 0).all(axis=1)

    def score_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Score texts of any length: (texts, relations)."""
        scores: NDArray[np.float32] = self.encoder.encode(texts) @ self.relations.T + self.gains
        return scores

    def state(self) -> Mapping[str, NDArray[Any]]:
        """Give the weights by their names in the network that training makes."""
        transformer = {f"{PREFIX}{name}": array for name, array in self.encoder.weights.items()}
        return {**transformer, "names": self.names, "learned": self.learned}
