"""Trained networks that score a question's words against rows: the relations, or the types, of a knowledge base."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray

from kbtools.kb.contract import KnowledgeBase
from kbtools.ranking.model_store import Stamp, class_path
from kbtools.scorers.base import Encoder, group_by_length
from kbtools.scorers.checkpoint import Checkpoint, load_weights, match_rows, read_checkpoint, write_checkpoint
from kbtools.scorers.devices import AT_ONCE, resolve_device, scoring
from kbtools.scorers.dot import BY_ROW, DotScorer
from kbtools.scorers.settings import EncoderConfig
from kbtools.scorers.vocabulary import SYMBOL, UNKNOWN
from kbtools.scorers.words import WordVectors
from kbtools.text.question import MarkedQuestion


class TrainedNetwork(ABC):
    """A dot scorer over the rows of a table; a subclass says what the rows are, and names its encoder.

    With `symbol`, a symbol stands for the mention in what the network reads.
    """

    encoder: ClassVar[type[Encoder]]
    symbol: ClassVar[bool] = False
    what: ClassVar[str]
    biased: ClassVar[bool] = False

    def __init__(self, network: DotScorer, rows: Sequence[str]) -> None:
        self.network = network
        self.rows = tuple(rows)

    @classmethod
    @abstractmethod
    def rows_of(cls, kb: KnowledgeBase) -> Sequence[str]:
        """List what the table has a row for."""
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
        torch.manual_seed(seed)
        names = cls.names_of(rows)
        read = [*texts, *names] if cls.encoder.names else texts
        vocabulary = cls.encoder.collect(read, words=words, config=config)
        network = DotScorer(cls.encoder.build(config, vocabulary), names, biased=cls.biased)
        network.initialise(words)
        return cls(network.eval(), rows)

    @classmethod
    def load(cls, folder: Path, kb: KnowledgeBase, *, device: str = "cpu") -> Self:
        """Rebuild a trained network, its rows in the order of the knowledge base's; raise ModelError for other rows."""
        saved = read_checkpoint(folder)
        rows = cls.rows_of(kb)
        order = match_rows(folder, trained=saved.rows, present=rows, what=cls.what)
        weights = saved.weights | {name: saved.weights[name][order] for name in BY_ROW if name in saved.weights}
        encoder = cls.encoder.build(EncoderConfig(**saved.config), saved.vocabulary)
        network = DotScorer(encoder, cls.names_of(rows), biased=cls.biased)
        load_weights(network, weights, folder)
        return cls(network.to(resolve_device(device)).eval(), rows)

    def save(self, folder: Path, stamp: Stamp | None = None) -> None:
        """Write the network to a folder; without a stamp its plugin is known as `module:Class`."""
        encoder = self.network.encoder
        config, weights = asdict(encoder.config), self.network.state_dict()
        checkpoint = Checkpoint(config, encoder.vocabulary, self.rows, weights)
        write_checkpoint(folder, checkpoint, stamp or Stamp(class_path(type(self))))

    @classmethod
    def text(cls, asked: MarkedQuestion) -> tuple[str, ...]:
        """Read the words that the network sees; a question without any is one unknown word."""
        return tuple(asked.words(symbol=SYMBOL if cls.symbol else None)) or (UNKNOWN,)

    def score_asked(self, asked: Sequence[MarkedQuestion]) -> NDArray[np.float32]:
        """Score questions, those that read the same only once: (questions, rows)."""
        texts: dict[tuple[str, ...], int] = {}
        places = [texts.setdefault(self.text(one), len(texts)) for one in asked]
        return self.score_texts(list(texts))[places]

    def score_texts(self, texts: Sequence[Sequence[str]]) -> NDArray[np.float32]:
        """Score texts of any length: (texts, rows)."""
        scores = np.empty((len(texts), len(self.rows)), dtype=np.float32)
        self.network.eval()
        with scoring():
            for rows in group_by_length(texts, most=AT_ONCE):
                scores[rows] = self.network.scores([texts[row] for row in rows]).float().cpu().numpy()
        return scores
