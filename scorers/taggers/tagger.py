"""The focused tagger, a BiGRU whose outputs are the emissions of a CRF (paper, section Focused Pruning)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from kbtools.entry_points import import_object
from kbtools.kb.contract import KnowledgeBase
from kbtools.pruning.tagging import words_of
from kbtools.scorers.fitting.splits import Labelled, Splits
from kbtools.scorers.networks.checkpoint import Checkpoint, SavedNetwork, other_network, read_checkpoint
from kbtools.scorers.networks.forward import SESSION, UNKNOWN_ROW, rows_by_part
from kbtools.scorers.networks.network import without_torch
from kbtools.scorers.networks.training_settings import EncoderConfig, TaggerSettings
from kbtools.scorers.networks.words import TEXTS_AT_ONCE, WordVectors, group_by_length, load_words
from kbtools.scorers.taggers.crf import best_sequence, span_log_probabilities
from kbtools.scorers.taggers.gazetteer import BITS, Gazetteer
from kbtools.text.question import Question

if TYPE_CHECKING:
    from kbtools.scorers.fitting.training_loop import Task
    from kbtools.scorers.networks.sessions import Session


from kbtools.scorers.taggers.crf import SUBJECT

Bits = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Readings:
    """Labelled questions as a tagger reads them: words, bits of the gazetteer, and which words are the mention."""

    texts: Sequence[list[str]]
    bits: Sequence[Bits]
    spans: Sequence[tuple[int, int]]

    def lengths(self) -> NDArray[np.int64]:
        return np.array([len(text) for text in self.texts], dtype=np.int64)

    def tags(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the gold tags of questions of one length: (batch, length)."""
        tags = np.zeros((len(rows), len(self.texts[rows[0]])), dtype=np.int64)
        for place, row in enumerate(rows):
            first, last = self.spans[row]
            tags[place, first : last + 1] = SUBJECT
        return tags

    def of(self, rows: NDArray[np.int64]) -> tuple[list[list[str]], list[Bits]]:
        """Return the words and the bits of some questions."""
        return [self.texts[row] for row in rows], [self.bits[row] for row in rows]


class EmissionNetwork(Protocol):
    """A network that emits H(q), as torch computes it or ONNX Runtime."""

    def emit(self, texts: Sequence[Sequence[str]], bits: Sequence[Bits]) -> NDArray[np.float32]:
        """Return H(q) of texts of one length: (batch, length, tags)."""
        ...

    def tag_pairs(self) -> NDArray[np.float32]:
        """Return A: (tags, tags)."""
        ...

    def checkpoint(self) -> Checkpoint:
        """Return all that the network is rebuilt from."""
        ...


class TaggerForward:
    """The emissions of the focused tagger as training exported them."""

    def __init__(self, saved: Checkpoint) -> None:
        self.saved = saved
        self.rows = rows_by_part(saved.vocabulary)
        self.session: Session = import_object(SESSION)(saved.graph, saved.weights)

    def emit(self, texts: Sequence[Sequence[str]], bits: Sequence[Bits]) -> NDArray[np.float32]:
        tokens = np.array([[self.rows.get(word, UNKNOWN_ROW) for word in text] for text in texts])
        lengths = np.full(len(texts), tokens.shape[1], dtype=np.int32)
        return self.session(tokens=tokens, bits=np.stack(bits), lengths=lengths)

    def tag_pairs(self) -> NDArray[np.float32]:
        return self.saved.weights["transitions"]

    def checkpoint(self) -> Checkpoint:
        return self.saved


class BiGRUTagger(SavedNetwork):
    """The tagger `bigru-crf`: words alone, as in the paper."""

    gazetteer: ClassVar[bool] = False

    def __init__(self, network: EmissionNetwork, kb: KnowledgeBase) -> None:
        self.network = network
        self.names = Gazetteer(kb) if self.gazetteer else None

    @classmethod
    def bits(cls) -> int:
        """Count the bits of each word."""
        return BITS if cls.gazetteer else 0

    @classmethod
    def new(
        cls, config: EncoderConfig, *, kb: KnowledgeBase, texts: Sequence[Sequence[str]], words: WordVectors, seed: int
    ) -> Self:
        """Build an untrained tagger that knows the words of some texts."""
        make = import_object("kbtools.scorers.taggers.tagger_training:make_tagger_network")
        return cls(make(config, bits=cls.bits(), texts=texts, words=words, seed=seed), kb)

    @classmethod
    def load(cls, folder: Path, kb: KnowledgeBase, *, device: str = "cpu") -> Self:
        """Rebuild a trained tagger; it serves any knowledge base."""
        saved = read_checkpoint(folder)
        if without_torch(device):
            with other_network(folder):
                return cls(TaggerForward(saved), kb)
        rebuild = import_object("kbtools.scorers.taggers.tagger_training:rebuild_tagger_network")
        return cls(rebuild(saved, bits=cls.bits(), folder=folder, device=device), kb)

    @classmethod
    def task(cls, kb: KnowledgeBase, splits: Splits, settings: TaggerSettings, *, models: Path) -> "Task":
        """Build the task of an untrained tagger."""
        texts = [words_of(question.question) for question in splits.train.questions]
        words = load_words(settings.source.words)
        tagger = cls.new(settings.encoder, kb=kb, texts=texts, words=words, seed=settings.fit.seed)
        make: Callable[..., Task] = import_object("kbtools.scorers.taggers.tagger_training:TaggingTask")
        return make(tagger, splits)

    def checkpoint(self) -> Checkpoint:
        return self.network.checkpoint()

    def read(self, question: Question) -> tuple[list[str], Bits]:
        """Read what the network sees of a question: its words, and their bits."""
        words = words_of(question)
        return words, self.names.bits(question) if self.names else np.zeros((len(words), 0), dtype=np.float32)

    def read_labelled(self, labelled: Labelled) -> Readings:
        """Read labelled questions once, for many looks at them."""
        texts, bits = zip(*map(self.read, labelled.questions), strict=True)
        return Readings(texts, bits, labelled.spans)

    def spans(self, questions: Sequence[Question]) -> list[NDArray[np.float64]]:
        texts, bits = zip(*map(self.read, questions), strict=True) if questions else ((), ())
        spans: list[NDArray[np.float64]] = [np.empty((0, 0)) for _ in questions]
        for rows in group_by_length(texts, most=TEXTS_AT_ONCE):
            if not texts[rows[0]]:  # questions of punctuation alone have no span
                continue
            emissions = self.network.emit([texts[row] for row in rows], [bits[row] for row in rows]).astype(np.float64)
            probabilities = span_log_probabilities(emissions, self.network.tag_pairs())
            for row, of_question in zip(rows, probabilities, strict=True):
                spans[row] = of_question
        return spans

    def sentence_accuracy(self, labelled: Labelled) -> float:
        """Return the share of labelled questions whose every word is tagged right."""
        return self.accuracy(self.read_labelled(labelled))

    def accuracy(self, readings: Readings) -> float:
        """Return the share of questions, read before, whose every word is tagged right."""
        right = 0
        lengths = readings.lengths()
        for length in np.unique(lengths):
            rows = np.flatnonzero(lengths == length)
            tags = best_sequence(self.network.emit(*readings.of(rows)), self.network.tag_pairs())
            right += int((tags == readings.tags(rows)).all(axis=1).sum())
        return right / len(lengths)


class GazetteerTagger(BiGRUTagger):
    """The tagger `bigru-crf+`: words, and what the names of the knowledge base say of them."""

    gazetteer = True
