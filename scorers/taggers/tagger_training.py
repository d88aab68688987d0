"""The torch network of the focused tagger, and its objective (paper, Parameter Estimation)."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from kbtools.scorers.fitting.measures import SENTENCES_RIGHT
from kbtools.scorers.fitting.splits import Splits, label_questions
from kbtools.scorers.networks.checkpoint import Checkpoint
from kbtools.scorers.networks.devices import arrays, build_network, restore_network, scoring
from kbtools.scorers.networks.export import export_graph
from kbtools.scorers.networks.training_settings import EncoderConfig
from kbtools.scorers.networks.word_networks import WordEmbedding, initialise
from kbtools.scorers.networks.words import WordVectors, collect_words
from kbtools.scorers.taggers.tagger import BiGRUTagger

_TAGS = 2
"""O and SUB."""


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
        self.emissions = nn.Linear(2 * config.hidden, _TAGS)
        self.transitions = nn.Parameter(torch.zeros(_TAGS, _TAGS))

    def forward(self, tokens: Tensor, bits: Tensor) -> Tensor:
        """Tokens (batch, length), bits (batch, length, bits) -> emissions (batch, length, tags)."""
        inputs = torch.cat([self.dropout(self.embedding(tokens)), bits], dim=2)
        states, _ = self.gru(inputs.transpose(0, 1))
        emissions: Tensor = self.emissions(self.dropout(states)).transpose(0, 1)
        return emissions

    def of_texts(self, texts: Sequence[Sequence[str]], bits: Sequence[NDArray[np.float32]]) -> Tensor:
        """Return H(q) of texts of one length: (batch, length, tags)."""
        device = self.transitions.device
        tokens = self.embedding.look_up(texts).to(device)
        emissions: Tensor = self(tokens, torch.from_numpy(np.stack(bits)).to(device))
        return emissions

    def emit(self, texts: Sequence[Sequence[str]], bits: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
        """Return H(q) of texts of one length, without gradients: (batch, length, tags)."""
        self.eval()
        with scoring(len(texts)):
            emissions: NDArray[np.float32] = self.of_texts(texts, bits).float().cpu().numpy()
        return emissions

    def tag_pairs(self) -> NDArray[np.float32]:
        """Return A: (tags, tags)."""
        return np.asarray(self.transitions.detach().cpu().numpy())

    def checkpoint(self) -> Checkpoint:
        """Return everything needed to rebuild the network."""
        bits = torch.zeros(1, 2, self.gru.input_size - self.config.words_dim)
        tokens = torch.ones(1, 2, dtype=torch.int64)
        inputs = {"tokens": (tokens, ("batch", "length")), "bits": (bits, ("batch", "length"))}
        graph, laid_out = export_graph(self, inputs)
        return Checkpoint(asdict(self.config), self.vocabulary, (), {**arrays(self), **laid_out}, graph)


def make_tagger_network(
    config: EncoderConfig, *, bits: int, texts: Sequence[Sequence[str]], words: WordVectors, seed: int
) -> TaggerNetwork:
    """Build an untrained network that knows the words of some texts."""
    torch.manual_seed(seed)
    vocabulary = collect_words(texts, words, most=config.known_words)
    network = build_network(lambda: TaggerNetwork(config, vocabulary, bits=bits))
    initialise(network)
    network.embedding.initialise(words, spare=config.spare)
    return network.eval()


def rebuild_tagger_network(saved: Checkpoint, *, bits: int, folder: Path, device: str) -> TaggerNetwork:
    """Rebuild a trained network."""
    network = TaggerNetwork(EncoderConfig(**saved.config), saved.vocabulary, bits=bits)
    return restore_network(network, saved.weights, folder=folder, device=device)


class TaggingTask:
    """The task of making the labels from reverse linking likely (paper, Parameter Estimation)."""

    def __init__(self, tagger: BiGRUTagger, splits: Splits) -> None:
        assert isinstance(tagger.network, TaggerNetwork)
        self.tagger = tagger
        self.network = tagger.network
        self.save = tagger.save
        self.train = tagger.read_labelled(label_questions(splits.train, split="train"))
        self.valid = tagger.read_labelled(label_questions(splits.valid, split="valid"))
        self.lengths = self.train.lengths()

    def loss(self, rows: NDArray[np.int64]) -> Tensor:
        """Return -log p(y|q) of the gold tags: (batch,)."""
        emissions, transitions = self.network.of_texts(*self.train.of(rows)).float(), self.network.transitions
        gold = torch.from_numpy(self.train.tags(rows)).to(emissions.device)
        return log_partition(emissions, transitions) - sequence_score(emissions, transitions, gold)

    def measure(self) -> dict[str, float]:
        return {SENTENCES_RIGHT: self.tagger.accuracy(self.valid)}


def sequence_score(emissions: Tensor, transitions: Tensor, tags: Tensor) -> Tensor:
    """Return s(y, q) of one tagging of each text: tags (batch, length) -> (batch,)."""
    emitted = emissions.gather(2, tags[:, :, None]).sum(dim=(1, 2))
    return emitted + transitions[tags[:, :-1], tags[:, 1:]].sum(dim=1)


def log_partition(emissions: Tensor, transitions: Tensor) -> Tensor:
    """Return the logarithm of the sum of exp s(y, q) over every tagging, by the forward algorithm: (batch,)."""
    # forward[tag] is the log-sum of all taggings of the words so far that end in a tag.
    forward = emissions[:, 0]
    for place in range(1, emissions.shape[1]):
        forward = torch.logsumexp(forward[:, :, None] + transitions, dim=1) + emissions[:, place]
    return torch.logsumexp(forward, dim=1)
