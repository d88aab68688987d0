"""The focused tagger: a BiGRU whose outputs are the emissions of a CRF (paper, section Focused Pruning)."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from kbtools.kb.contract import KnowledgeBase
from kbtools.pruning.tagging import words_of
from kbtools.ranking.model_store import Stamp, class_path
from kbtools.scorers.base import group_by_length
from kbtools.scorers.checkpoint import Checkpoint, load_weights, read_checkpoint, write_checkpoint
from kbtools.scorers.crf import span_log_probabilities
from kbtools.scorers.devices import AT_ONCE, resolve_device, scoring
from kbtools.scorers.gazetteer import BITS, Gazetteer
from kbtools.scorers.settings import EncoderConfig
from kbtools.scorers.vocabulary import WordEmbedding, collect_words, initialise
from kbtools.scorers.words import WordVectors
from kbtools.text.question import Question

TAGS = 2


class TaggerNetwork(nn.Module):
    """H(q) from two layers of BiGRU over words, and over bits of a gazetteer if there are any; A is a parameter."""

    def __init__(self, config: EncoderConfig, vocabulary: Sequence[str], *, bits: int) -> None:
        super().__init__()
        self.config = config
        self.vocabulary = tuple(vocabulary)
        self.embedding = WordEmbedding(vocabulary, config.words_dim, word_dropout=config.word_dropout)
        self.gru = nn.GRU(
            config.words_dim + bits,
            config.hidden,
            config.layers,
            bidirectional=True,
            dropout=config.dropout if config.layers > 1 else 0.0,
        )
        self.dropout = nn.Dropout(config.dropout)
        self.emissions = nn.Linear(2 * config.hidden, TAGS)
        self.transitions = nn.Parameter(torch.zeros(TAGS, TAGS))

    def forward(self, tokens: Tensor, bits: Tensor) -> Tensor:
        """Tokens (batch, length), bits (batch, length, bits) -> emissions (batch, length, tags)."""
        read = torch.cat([self.dropout(self.embedding(tokens)), bits], dim=2)
        states, _ = self.gru(read.transpose(0, 1))
        emissions: Tensor = self.emissions(self.dropout(states)).transpose(0, 1)
        return emissions


class BiGRUTagger:
    """The tagger `bigru-crf`: words alone, as in the paper."""

    gazetteer: ClassVar[bool] = False

    def __init__(self, network: TaggerNetwork, kb: KnowledgeBase) -> None:
        self.network = network
        self.names = Gazetteer(kb) if self.gazetteer else None

    @classmethod
    def new(
        cls, config: EncoderConfig, *, kb: KnowledgeBase, texts: Sequence[Sequence[str]], words: WordVectors, seed: int
    ) -> Self:
        """Make an untrained tagger that knows the words of some texts."""
        torch.manual_seed(seed)
        vocabulary = collect_words(texts, words, most=config.known_words)
        network = TaggerNetwork(config, vocabulary, bits=BITS if cls.gazetteer else 0)
        initialise(network)
        network.embedding.initialise(words, spare=config.spare)
        return cls(network.eval(), kb)

    @classmethod
    def load(cls, folder: Path, kb: KnowledgeBase, *, device: str = "cpu") -> Self:
        """Rebuild a trained tagger; it serves any knowledge base."""
        saved = read_checkpoint(folder)
        bits = BITS if cls.gazetteer else 0
        network = TaggerNetwork(EncoderConfig(**saved.config), saved.vocabulary, bits=bits)
        load_weights(network, saved.weights, folder)
        return cls(network.to(resolve_device(device)).eval(), kb)

    def save(self, folder: Path, stamp: Stamp | None = None) -> None:
        """Write the tagger to a folder; without a stamp its plugin is known as `module:Class`."""
        network = self.network
        config, weights = asdict(network.config), network.state_dict()
        checkpoint = Checkpoint(config, network.vocabulary, (), weights)
        write_checkpoint(folder, checkpoint, stamp or Stamp(class_path(type(self))))

    def read(self, question: Question) -> tuple[list[str], NDArray[np.float32]]:
        """Read what the network sees of a question: its words, and their bits."""
        words = words_of(question)
        bits = self.names.bits(question) if self.names else np.zeros((len(words), 0), dtype=np.float32)
        return words, bits

    def emissions(self, texts: Sequence[Sequence[str]], bits: Sequence[NDArray[np.float32]]) -> Tensor:
        """Give H(q) of texts of one length: (batch, length, tags)."""
        device = self.network.transitions.device
        tokens = self.network.embedding.look_up(texts).to(device)
        emissions: Tensor = self.network(tokens, torch.from_numpy(np.stack(bits)).to(device))
        return emissions

    def spans(self, questions: Sequence[Question]) -> list[NDArray[np.float64]]:
        texts, bits = zip(*map(self.read, questions), strict=True) if questions else ((), ())
        found: list[NDArray[np.float64]] = [np.empty((0, 0)) for _ in questions]
        self.network.eval()
        with scoring():
            for rows in group_by_length(texts, most=AT_ONCE):
                if not texts[rows[0]]:
                    continue
                emissions = self.emissions([texts[row] for row in rows], [bits[row] for row in rows])
                spans = span_log_probabilities(emissions, self.network.transitions).double().cpu().numpy()
                for row, span in zip(rows, spans, strict=True):
                    found[row] = span
        return found


class GazetteerTagger(BiGRUTagger):
    """The tagger `bigru-crf+`: words, and what the names of the knowledge base say of them."""

    gazetteer = True
