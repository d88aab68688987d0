"""The focused tagger, a BiGRU whose outputs are the emissions of a CRF (paper, section Focused Pruning)."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from kbtools.kb.contract import KnowledgeBase
from kbtools.pruning.tagging import words_of
from kbtools.scorers.base import group_by_length
from kbtools.scorers.checkpoint import Checkpoint, SavedNetwork, read_checkpoint, restore_network
from kbtools.scorers.crf import SUBJECT, best_sequence, log_partition, sequence_score, span_log_probabilities
from kbtools.scorers.devices import AT_ONCE, build_network, scoring
from kbtools.scorers.gazetteer import BITS, Gazetteer
from kbtools.scorers.measures import SENTENCES_RIGHT
from kbtools.scorers.splits import Labelled, Splits, label_questions
from kbtools.scorers.training_settings import EncoderConfig, TaggerSettings
from kbtools.scorers.words import WordEmbedding, WordVectors, collect_words, initialise, load_words
from kbtools.text.question import Question

TAGS = 2
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
        self.emissions = nn.Linear(2 * config.hidden, TAGS)
        self.transitions = nn.Parameter(torch.zeros(TAGS, TAGS))

    def forward(self, tokens: Tensor, bits: Tensor) -> Tensor:
        """Tokens (batch, length), bits (batch, length, bits) -> emissions (batch, length, tags)."""
        inputs = torch.cat([self.dropout(self.embedding(tokens)), bits], dim=2)
        states, _ = self.gru(inputs.transpose(0, 1))
        emissions: Tensor = self.emissions(self.dropout(states)).transpose(0, 1)
        return emissions


class BiGRUTagger(SavedNetwork):
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
        bits = BITS if cls.gazetteer else 0
        network = build_network(lambda: TaggerNetwork(config, vocabulary, bits=bits))
        initialise(network)
        network.embedding.initialise(words, spare=config.spare)
        return cls(network.eval(), kb)

    @classmethod
    def load(cls, folder: Path, kb: KnowledgeBase, *, device: str = "cpu") -> Self:
        """Rebuild a trained tagger; it serves any knowledge base."""
        saved = read_checkpoint(folder)
        bits = BITS if cls.gazetteer else 0
        network = TaggerNetwork(EncoderConfig(**saved.config), saved.vocabulary, bits=bits)
        return cls(restore_network(network, saved.weights, folder=folder, device=device), kb)

    @classmethod
    def task(cls, kb: KnowledgeBase, splits: Splits, settings: TaggerSettings, *, models: Path) -> "TaggingTask":
        """Make an untrained tagger, and what it learns."""
        texts = [words_of(question.question) for question in splits.train.questions]
        words = load_words(settings.source.words)
        tagger = cls.new(settings.encoder, kb=kb, texts=texts, words=words, seed=settings.fit.seed)
        return TaggingTask(tagger, splits)

    def checkpoint(self) -> Checkpoint:
        network = self.network
        return Checkpoint(asdict(network.config), network.vocabulary, (), network.state_dict())

    def read(self, question: Question) -> tuple[list[str], NDArray[np.float32]]:
        """Read what the network sees of a question: its words, and their bits."""
        words = words_of(question)
        bits = self.names.bits(question) if self.names else np.zeros((len(words), 0), dtype=np.float32)
        return words, bits

    def read_labelled(self, labelled: Labelled) -> "Readings":
        """Read labelled questions once, for many looks at them."""
        texts, bits = zip(*map(self.read, labelled.questions), strict=True)
        return Readings(texts, bits, labelled.spans)

    def emissions(self, texts: Sequence[Sequence[str]], bits: Sequence[NDArray[np.float32]]) -> Tensor:
        """Give H(q) of texts of one length: (batch, length, tags)."""
        device = self.network.transitions.device
        tokens = self.network.embedding.look_up(texts).to(device)
        emissions: Tensor = self.network(tokens, torch.from_numpy(np.stack(bits)).to(device))
        return emissions

    def spans(self, questions: Sequence[Question]) -> list[NDArray[np.float64]]:
        texts, bits = zip(*map(self.read, questions), strict=True) if questions else ((), ())
        spans: list[NDArray[np.float64]] = [np.empty((0, 0)) for _ in questions]
        self.network.eval()
        with scoring(len(questions)):
            for rows in group_by_length(texts, most=AT_ONCE):
                if not texts[rows[0]]:  # questions of punctuation alone have no span
                    continue
                emissions = self.emissions([texts[row] for row in rows], [bits[row] for row in rows])
                probabilities = span_log_probabilities(emissions, self.network.transitions).double().cpu().numpy()
                for row, of_question in zip(rows, probabilities, strict=True):
                    spans[row] = of_question
        return spans

    def sentence_accuracy(self, labelled: Labelled) -> float:
        """Give the share of labelled questions whose every word is tagged right."""
        return self.accuracy(self.read_labelled(labelled))

    def accuracy(self, readings: "Readings") -> float:
        """Give the share of questions, read before, whose every word is tagged right."""
        right = 0
        lengths = readings.lengths()
        self.network.eval()
        with torch.inference_mode():
            for length in np.unique(lengths):
                rows = np.flatnonzero(lengths == length)
                tags = best_sequence(self.emissions_of(readings, rows), self.network.transitions).cpu()
                right += int((tags == readings.tags(rows)).all(dim=1).sum())
        return right / len(lengths)

    def emissions_of(self, readings: "Readings", rows: NDArray[np.int64]) -> Tensor:
        """Give H(q) of questions of one length: (batch, length, tags)."""
        return self.emissions([readings.texts[row] for row in rows], [readings.bits[row] for row in rows])


class GazetteerTagger(BiGRUTagger):
    """The tagger `bigru-crf+`: words, and what the names of the knowledge base say of them."""

    gazetteer = True


@dataclass(frozen=True, slots=True, eq=False)
class Readings:
    """Labelled questions as a tagger reads them: words, bits of the gazetteer, and which words are the mention."""

    texts: Sequence[list[str]]
    bits: Sequence[NDArray[np.float32]]
    spans: Sequence[tuple[int, int]]

    def lengths(self) -> NDArray[np.int64]:
        return np.array([len(text) for text in self.texts], dtype=np.int64)

    def tags(self, rows: NDArray[np.int64]) -> Tensor:
        """Give the gold tags of questions of one length: (batch, length)."""
        tags = torch.zeros(len(rows), len(self.texts[rows[0]]), dtype=torch.int64)
        for place, row in enumerate(rows):
            first, last = self.spans[row]
            tags[place, first : last + 1] = SUBJECT
        return tags


class TaggingTask:
    """The task of making the labels that reverse linking gives likely (paper, Parameter Estimation)."""

    def __init__(self, tagger: BiGRUTagger, splits: Splits) -> None:
        self.tagger = tagger
        self.network = tagger.network
        self.save = tagger.save
        self.train = tagger.read_labelled(label_questions(splits.train, split="train"))
        self.valid = tagger.read_labelled(label_questions(splits.valid, split="valid"))
        self.lengths = self.train.lengths()

    def loss(self, rows: NDArray[np.int64]) -> Tensor:
        """Give -log p(y|q) of the gold tags: (batch,)."""
        emissions, transitions = self.tagger.emissions_of(self.train, rows).float(), self.network.transitions
        gold = self.train.tags(rows).to(emissions.device)
        return log_partition(emissions, transitions) - sequence_score(emissions, transitions, gold)

    def measure(self) -> dict[str, float]:
        return {SENTENCES_RIGHT: self.tagger.accuracy(self.valid)}
