"""The one network of the paper, every score f(q)·E(x) (Eq. 10), over the relations or types of a knowledge base."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from kbtools.kb.contract import KnowledgeBase
from kbtools.scorers.base import Encoder, group_by_length, moved
from kbtools.scorers.checkpoint import Checkpoint, SavedNetwork, match_rows, read_checkpoint, restore_network
from kbtools.scorers.devices import AT_ONCE, build_network, scoring
from kbtools.scorers.training_settings import EncoderConfig
from kbtools.scorers.words import SYMBOL, UNKNOWN, WordVectors, initialise
from kbtools.text.question import MarkedQuestion

Inputs = tuple[Tensor, ...]

BY_ROW = ("table", "bias")
"""The parameters of a `DotScorer` that have an entry for each row."""


class DotScorer(nn.Module):
    """The scores of a text against every row of a table, which is learned, or encoded from the names of its rows."""

    def __init__(self, encoder: Encoder, names: Sequence[Sequence[str]], *, biased: bool = False) -> None:
        super().__init__()
        self.encoder = encoder
        self.names = [tuple(name) for name in names]
        self.known: Tensor | None = None
        self.collated: tuple[tuple[int, ...], Inputs] | None = None
        if not encoder.names:
            self.table = nn.Parameter(torch.empty(len(self.names), encoder.dim))
        if biased:
            self.bias = nn.Parameter(torch.empty(len(self.names)))
        self.biased = biased

    def initialise(self, words: WordVectors) -> None:
        """Draw the parameters, and take over given word vectors."""
        initialise(self)
        self.encoder.initialise(words)

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    def train(self, mode: bool = True) -> Self:
        if mode:
            self.known = None
            self.collated = None
        return super().train(mode)

    def vectors(self, rows: NDArray[np.int64] | None = None) -> Tensor:
        """Give E(x) of some rows, or of all: (rows, dim). Encoded names are kept at inference, never in training."""
        if not self.encoder.names:
            return self.table if rows is None or len(rows) == len(self.names) else self.table[torch.from_numpy(rows)]
        if rows is None and self.known is not None and not torch.is_grad_enabled():
            return self.known
        vectors = self.encode_names(tuple(range(len(self.names)) if rows is None else rows.tolist()))
        if rows is None and not self.training and not torch.is_grad_enabled():
            self.known = vectors
        return vectors

    def encode_names(self, rows: tuple[int, ...]) -> Tensor:
        """Encode the names of rows; what was collated for the last rows is kept."""
        if self.collated is None or self.collated[0] != rows:
            self.collated = rows, self.collate([self.names[row] for row in rows])
        encoded: Tensor = self.encoder(*self.collated[1])
        return encoded

    def scores(self, texts: Sequence[Sequence[str]], *, rows: NDArray[np.int64] | None = None) -> Tensor:
        """Give the scores of texts of one length against some rows, or against all: (texts, rows)."""
        scores: Tensor = self.encoder(*self.collate(texts)) @ self.vectors(rows).T
        return scores + self.bias if self.biased else scores

    def forward(self, *inputs: Tensor) -> Tensor:
        """Give the scores of collated texts against all rows: (batch, rows)."""
        scores: Tensor = self.encoder(*inputs) @ self.vectors().T
        return scores + self.bias if self.biased else scores

    def collate(self, texts: Sequence[Sequence[str]]) -> Inputs:
        """Make the tensors of texts of one length, on the network's device."""
        return moved(self.encoder.collate(texts), self.device)


class TrainedNetwork(SavedNetwork):
    """A dot scorer over the relations or the types of a knowledge base; a subclass names its encoder."""

    encoder: ClassVar[type[Encoder]]
    symbol: ClassVar[bool] = False
    """Whether a symbol stands for the mention in the words that the network reads."""

    what: ClassVar[str]
    """The rows in one word, for messages: relations, or types."""

    biased: ClassVar[bool] = False

    def __init__(self, network: DotScorer, rows: Sequence[str]) -> None:
        self.network = network
        self.rows = tuple(rows)

    @classmethod
    @abstractmethod
    def rows_of(cls, kb: KnowledgeBase) -> Sequence[str]:
        """List the relations or types that the table has a row for."""
        ...

    @classmethod
    @abstractmethod
    def names_of(cls, rows: Sequence[str]) -> list[list[str]]:
        """Split the name of each row into words."""
        ...

    @classmethod
    def new(
        cls,
        config: EncoderConfig,
        *,
        rows: Sequence[str],
        texts: Sequence[Sequence[str]],
        words: WordVectors,
        seed: int,
    ) -> Self:
        """Make an untrained network that knows the words of some texts."""
        names = cls.names_of(rows)
        encoded = [*texts, *names] if cls.encoder.names else texts
        vocabulary = cls.encoder.collect(encoded, words=words, config=config)
        torch.manual_seed(seed)
        network = build_network(lambda: DotScorer(cls.encoder.build(config, vocabulary), names, biased=cls.biased))
        network.initialise(words)
        return cls(network.eval(), rows)

    @classmethod
    def load(cls, folder: Path, kb: KnowledgeBase, *, device: str = "cpu") -> Self:
        """Rebuild a trained network, its rows in the order of the knowledge base's; raise ModelError for other rows."""
        saved = read_checkpoint(folder)
        rows = cls.rows_of(kb)
        # A table is learned in the order of the knowledge base it was trained on; this one may list its rows otherwise.
        order = match_rows(folder, trained=saved.rows, present=rows, what=cls.what)
        weights = saved.weights | {name: saved.weights[name][order] for name in BY_ROW if name in saved.weights}
        encoder = cls.encoder.build(EncoderConfig(**saved.config), saved.vocabulary)
        network = DotScorer(encoder, cls.names_of(rows), biased=cls.biased)
        return cls(restore_network(network, weights, folder=folder, device=device), rows)

    def checkpoint(self) -> Checkpoint:
        encoder = self.network.encoder
        return Checkpoint(asdict(encoder.config), encoder.vocabulary, self.rows, self.network.state_dict())

    @classmethod
    def text(cls, question: MarkedQuestion) -> tuple[str, ...]:
        """Read the words that the network sees; a question without any is one unknown word."""
        return tuple(question.words(symbol=SYMBOL if cls.symbol else None)) or (UNKNOWN,)

    def score_questions(self, questions: Sequence[MarkedQuestion]) -> NDArray[np.float32]:
        """Score questions, those that read the same only once: (questions, rows)."""
        # With a symbol for the mention many questions read alike, and one score serves them.
        texts: dict[tuple[str, ...], int] = {}
        places = [texts.setdefault(self.text(question), len(texts)) for question in questions]
        return self.score_texts(list(texts))[places]

    def score_texts(self, texts: Sequence[Sequence[str]]) -> NDArray[np.float32]:
        """Score texts of any length: (texts, rows)."""
        scores = np.empty((len(texts), len(self.rows)), dtype=np.float32)
        self.network.eval()
        with scoring(len(texts)):
            for rows in group_by_length(texts, most=AT_ONCE):
                scores[rows] = self.network.scores([texts[row] for row in rows]).float().cpu().numpy()
        return scores
