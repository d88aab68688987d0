"""The relation scorer `encoder`: questions against the names of relations, by a pretrained encoder of sentences."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kbtools.kb.contract import KnowledgeBase, relation_texts
from kbtools.scorers.checkpoint import Checkpoint, SavedNetwork, match_rows, read_checkpoint, restore_network
from kbtools.scorers.devices import resolve_device
from kbtools.scorers.encoder_network import EncoderNetwork
from kbtools.scorers.encoder_training import EncoderTask
from kbtools.scorers.lexical import LexicalScorer
from kbtools.scorers.pretrained import Pretrained, PretrainedRecord, SentenceEncoder, read_pretrained
from kbtools.scorers.splits import Splits
from kbtools.scorers.training_settings import PretrainedSettings
from kbtools.scorers.vector_cache import encode_once
from kbtools.text.question import MarkedQuestion
from kbtools.text.relation_words import relation_parts

PRONOUN = "it"
"""The word that stands for the mention: encoders have read it in sentences, which no symbol of ours is in."""

LEXICAL, TRAINED_LEXICAL = 0.5, 0.15
"""Weight of the score of `lexical` where nothing is trained, and beside a trained encoder.

The first: of the questions that `SHARPNESS` was chosen on, 75.6 % are right at 0, 76.6 % at 0.25, 76.7 % at 0.75. The
second, without `UNSEEN`: relation first of all, and given the subject where training has not seen it, of the validation
questions of FBSQ: 77.3 and 92.5 % at 0, 77.6 and 93.5 % at 0.1, 77.4 and 94.4 % at 0.2, 75.8 and 94.4 % at 0.5.
"""

BY_ROW = ("names", "learned")
"""The weights that have an entry for each relation."""


class EncoderScorer(SavedNetwork):
    """The plugin `encoder`: f(q)·E(r), a cosine where nothing is trained, and a share of the score of `lexical`."""

    settings: ClassVar = PretrainedSettings()
    """The settings of its training, which are others than those of networks over words."""

    def __init__(self, network: EncoderNetwork, rows: Sequence[str], *, texts: Sequence[str], weight: float) -> None:
        self.network = network
        self.rows = tuple(rows)
        self.lexical = LexicalScorer(texts)
        self.weight = weight

    @classmethod
    def zero_shot(cls, relations: Sequence[str], *, device: str = "cpu") -> Self:
        """Make a scorer from what the relations are called."""
        place = resolve_device(device)
        scorer = cls.new(read_pretrained(), relations, texts=relations, weight=LEXICAL)
        scorer.network.to(place)
        return scorer

    @classmethod
    def origin(cls) -> str:
        """Tell one pretrained encoder from another."""
        return read_pretrained().digest

    @classmethod
    def new(cls, pretrained: Pretrained, rows: Sequence[str], *, texts: Sequence[str], weight: float) -> Self:
        """Make a scorer that has learned nothing yet, of relations and what they are called."""
        network = EncoderNetwork(pretrained.encoder, len(rows))
        network.names.copy_(name_vectors(pretrained, texts))
        return cls(network.eval(), rows, texts=texts, weight=weight)

    @classmethod
    def task(cls, kb: KnowledgeBase, splits: Splits, settings: PretrainedSettings, *, models: Path) -> EncoderTask:
        """Make an untrained scorer, and what it learns."""
        pretrained = read_pretrained(settings.encoder.pretrained)
        scorer = cls.new(pretrained, kb.relations, texts=relation_texts(kb), weight=TRAINED_LEXICAL)
        texts = [cls.text(question) for question in splits.train.questions]
        return EncoderTask(scorer, texts, settings.encoder, kb=kb, splits=splits)

    @classmethod
    def load(cls, folder: Path, kb: KnowledgeBase, *, device: str = "cpu") -> Self:
        """Rebuild a trained scorer, its rows in the order of the knowledge base's; raise ModelError for other rows."""
        saved = read_checkpoint(folder)
        order = match_rows(folder, trained=saved.rows, present=kb.relations, what="relations")
        weights = saved.weights | {name: saved.weights[name][order] for name in BY_ROW}
        network = EncoderNetwork(SentenceEncoder(PretrainedRecord(**saved.config)), len(kb.relations))
        restored = restore_network(network, weights, folder=folder, device=device)
        return cls(restored, kb.relations, texts=relation_texts(kb), weight=TRAINED_LEXICAL)

    def checkpoint(self) -> Checkpoint:
        return Checkpoint(asdict(self.network.encoder.record), (), self.rows, self.network.state_dict())

    @staticmethod
    def text(question: MarkedQuestion) -> str:
        """Write a question with a pronoun for the mention."""
        return " ".join(question.words(symbol=PRONOUN))

    def score(self, questions: Sequence[MarkedQuestion]) -> NDArray[np.float64]:
        # With a pronoun for the mention many questions read alike, and one score serves them.
        texts: dict[str, int] = {}
        places = [texts.setdefault(self.text(question), len(texts)) for question in questions]
        scores: NDArray[np.float64] = self.score_texts(list(texts))[places].astype(np.float64)
        return scores + self.weight * self.lexical.score(questions)

    def score_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Score texts of any length: (texts, relations)."""
        self.network.eval()
        vectors = self.network.encoder.encode(texts)
        with torch.inference_mode():
            scores: NDArray[np.float32] = self.network.compare(vectors).float().cpu().numpy()
        return scores


def name_vectors(pretrained: Pretrained, relations: Sequence[str]) -> Tensor:
    """Give the mean of the vectors of a relation's whole name and of its last two parts: (relations, dim)."""
    parts = [relation_parts(relation) for relation in relations]
    texts = [joined(name) for name in parts] + [joined(name[-2:]) for name in parts]
    # A text that several relations share is encoded once.
    distinct = {text: row for row, text in enumerate(dict.fromkeys(texts))}
    vectors = encode_once(pretrained, list(distinct))
    whole, last = vectors[[distinct[text] for text in texts]].view(2, len(relations), pretrained.encoder.dim)
    mean: Tensor = (whole + last) / 2
    return mean


def joined(parts: Sequence[Sequence[str]]) -> str:
    return " ".join(word for part in parts for word in part)
