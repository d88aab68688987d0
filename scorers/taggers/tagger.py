"""The focused tagger, a BiGRU whose outputs are the emissions of a CRF (paper, section Focused Pruning).

A CRF's score is s(y, q) = sum_t H_(t, y_t) + sum_t A_(y_(t-1), y_t). Emissions H are (batch, length, tags), transitions
A are (tags, tags); texts of a batch have one length. A gazetteer adds features of words from the names of a knowledge
base.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from kbtools.entry_points import import_object
from kbtools.kb.contract import KnowledgeBase
from kbtools.pruning.n_gram import NGramIdf
from kbtools.pruning.pruners import opening, word_places, words_of
from kbtools.scorers.fitting.splits import Labelled, Splits
from kbtools.scorers.networks.checkpoint import Checkpoint, SavedNetwork, StoredNetwork, other_network, read_checkpoint
from kbtools.scorers.networks.forward import SESSION, UNKNOWN_ROW, rows_by_part
from kbtools.scorers.networks.network import without_torch
from kbtools.scorers.networks.training_settings import EncoderConfig, TaggerSettings
from kbtools.scorers.networks.words import TEXTS_AT_ONCE, WordVectors, group_by_length, load_words
from kbtools.text.function_words import has_content
from kbtools.text.ngrams import ngrams
from kbtools.text.question import Question

if TYPE_CHECKING:
    from kbtools.scorers.fitting.training_loop import Task
    from kbtools.scorers.networks.sessions import Session

_Bits = NDArray[np.float32]

_OUTSIDE, _SUBJECT = 0, 1
"""The paper's two tags, O and SUB."""

_Numbers = NDArray[np.floating]

BITS = 6
"""Bits of a word: begins, is in, ends a name not contained in a longer one; the same three for the rarest name."""


@dataclass(frozen=True, slots=True, eq=False)
class _Readings:
    """Labelled questions as input of a tagger: words, bits of the gazetteer, and the words of the mention."""

    texts: Sequence[list[str]]
    bits: Sequence[_Bits]
    spans: Sequence[tuple[int, int]]

    def lengths(self) -> NDArray[np.int64]:
        return np.array([len(text) for text in self.texts], dtype=np.int64)

    def tags(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the gold tags of questions of one length: (batch, length)."""
        tags = np.zeros((len(rows), len(self.texts[rows[0]])), dtype=np.int64)
        for place, row in enumerate(rows):
            first, last = self.spans[row]
            tags[place, first : last + 1] = _SUBJECT
        return tags

    def of(self, rows: NDArray[np.int64]) -> tuple[list[list[str]], list[_Bits]]:
        """Return the words and the bits of some questions."""
        return [self.texts[row] for row in rows], [self.bits[row] for row in rows]


class _EmissionNetwork(StoredNetwork, Protocol):
    """A network that emits H(q)."""

    def emit(self, texts: Sequence[Sequence[str]], bits: Sequence[_Bits]) -> NDArray[np.float32]:
        """Return H(q) of texts of one length: (batch, length, tags)."""
        ...

    def tag_pairs(self) -> NDArray[np.float32]:
        """Return A: (tags, tags)."""
        ...


class _TaggerForward:
    """The exported emissions of the focused tagger."""

    def __init__(self, saved: Checkpoint) -> None:
        self.saved = saved
        self.rows = rows_by_part(saved.vocabulary)
        self.session: Session = import_object(SESSION)(saved.graph, saved.weights)

    def emit(self, texts: Sequence[Sequence[str]], bits: Sequence[_Bits]) -> NDArray[np.float32]:
        tokens = np.array([[self.rows.get(word, UNKNOWN_ROW) for word in text] for text in texts])
        lengths = np.full(len(texts), tokens.shape[1], dtype=np.int32)
        return self.session(tokens=tokens, bits=np.stack(bits), lengths=lengths)

    def tag_pairs(self) -> NDArray[np.float32]:
        return self.saved.weights["transitions"]

    def checkpoint(self) -> Checkpoint:
        return self.saved


class BiGRUTagger(SavedNetwork):
    """The tagger `bigru-crf`: reads only words, as in the paper."""

    network: _EmissionNetwork
    gazetteer: ClassVar[bool] = False

    def __init__(self, network: _EmissionNetwork, kb: KnowledgeBase) -> None:
        self.network = network
        self.names = Gazetteer(kb) if self.gazetteer else None

    @classmethod
    def bits(cls) -> int:
        """Return the number of bits of each word."""
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
                return cls(_TaggerForward(saved), kb)
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

    def read(self, question: Question) -> tuple[list[str], _Bits]:
        """Return the words of a question and their bits."""
        words = words_of(question)
        return words, self.names.bits(question) if self.names else np.zeros((len(words), 0), dtype=np.float32)

    def read_labelled(self, labelled: Labelled) -> _Readings:
        """Read labelled questions once, for repeated measurement."""
        texts, bits = zip(*map(self.read, labelled.questions), strict=True)
        return _Readings(texts, bits, labelled.spans)

    def spans(self, questions: Sequence[Question]) -> list[NDArray[np.float64]]:
        texts, bits = zip(*map(self.read, questions), strict=True) if questions else ((), ())
        spans: list[NDArray[np.float64]] = [np.empty((0, 0)) for _ in questions]
        for rows in group_by_length(texts, most=TEXTS_AT_ONCE):
            if not texts[rows[0]]:  # Questions of punctuation only have no span.
                continue
            emissions = self.network.emit([texts[row] for row in rows], [bits[row] for row in rows]).astype(np.float64)
            probabilities = span_log_probabilities(emissions, self.network.tag_pairs())
            for row, of_question in zip(rows, probabilities, strict=True):
                spans[row] = of_question
        return spans

    def sentence_accuracy(self, labelled: Labelled) -> float:
        """Return the share of labelled questions whose every word is tagged right."""
        return self.accuracy(self.read_labelled(labelled))

    def accuracy(self, readings: _Readings) -> float:
        """Return the share of questions whose every word is tagged right."""
        right = 0
        lengths = readings.lengths()
        for length in np.unique(lengths):
            rows = np.flatnonzero(lengths == length)
            tags = best_sequence(self.network.emit(*readings.of(rows)), self.network.tag_pairs())
            right += int((tags == readings.tags(rows)).all(axis=1).sum())
        return right / len(lengths)


class GazetteerTagger(BiGRUTagger):
    """The tagger `bigru-crf+`: reads words and their bits from the names of the knowledge base."""

    gazetteer = True


def best_sequence(emissions: _Numbers, transitions: _Numbers) -> NDArray[np.int64]:
    """Return the tagging with the greatest s(y, q), by the Viterbi algorithm: (batch, length)."""
    # best[tag] is the greatest score of the words so far that ends in a tag; came_from is its previous tag.
    best, came_from = emissions[:, 0], []
    for place in range(1, emissions.shape[1]):
        reached = best[:, :, None] + transitions
        came_from.append(reached.argmax(axis=1))
        best = reached.max(axis=1) + emissions[:, place]
    tags = [best.argmax(axis=1)]
    for before in reversed(came_from):
        tags.append(np.take_along_axis(before, tags[-1][:, None], axis=1)[:, 0])
    return np.stack(tags[::-1], axis=1)


def span_log_probabilities(emissions: _Numbers, transitions: _Numbers) -> NDArray[np.float64]:
    """Return log p(w|q) of every n-gram exactly: of the tagging that is SUB from word i to word j and O elsewhere.

    (batch, length, length) for [i, j], minus infinity where j < i.
    """
    batch, length, _ = emissions.shape
    # A tagging with one mention scores all words as O, plus the gain of each word of the mention as SUB: a difference
    # of cumulative sums for every span at once, instead of a loop over its words.
    gained = emissions[:, :, _SUBJECT] - emissions[:, :, _OUTSIDE]
    until = np.concatenate([np.zeros((batch, 1)), gained.cumsum(axis=1)], axis=1)
    emitted = emissions[:, :, _OUTSIDE].sum(axis=1)[:, None, None] + until[:, None, 1:] - until[:, :-1, None]
    place = np.arange(length)
    first, last = place[:, None], place[None, :]
    # The transitions of O..O SUB..SUB O..O: one in unless it begins the text, one out unless it ends it.
    enters, leaves, stays = first > 0, last < length - 1, last - first
    apart = length - 1 - enters - leaves - stays
    moved = (
        enters * transitions[_OUTSIDE, _SUBJECT]
        + leaves * transitions[_SUBJECT, _OUTSIDE]
        + stays * transitions[_SUBJECT, _SUBJECT]
        + apart * transitions[_OUTSIDE, _OUTSIDE]
    )
    spans: NDArray[np.float64] = emitted + moved - _log_sum(emissions, transitions)[:, None, None]
    spans[:, last < first] = -np.inf
    return spans


def _log_sum(emissions: _Numbers, transitions: _Numbers) -> NDArray[np.float64]:
    """Return the logarithm of the sum of exp s(y, q) over every tagging, by the forward algorithm: (batch,)."""
    # forward[tag] is the log-sum of all taggings of the words so far that end in a tag.
    forward = emissions[:, 0]
    for place in range(1, emissions.shape[1]):
        forward = np.logaddexp.reduce(forward[:, :, None] + transitions, axis=1) + emissions[:, place]
    total: NDArray[np.float64] = np.logaddexp.reduce(forward, axis=1)
    return total


class Gazetteer:
    """A marker of the words of questions that are in names of a knowledge base."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb = kb
        self.rarity = NGramIdf(kb)

    def bits(self, question: Question) -> NDArray[np.float32]:
        """Return the bits of each word: (words, BITS) of zeros and ones."""
        word_at = {place: word for word, place in enumerate(word_places(question))}
        every = ngrams(opening(question), lengths=self.kb.manifest.lengths, likely=self.kb.likely_runs)
        candidates = [ngram for ngram in every if ngram.first in word_at]
        names = self.kb.lookup([ngram.form for ngram in candidates])
        linked = [ngram for ngram in candidates if ngram.form in names and has_content(ngram.form)]
        marks = np.zeros((len(word_at), BITS), dtype=np.float32)
        spans = {(word_at[ngram.first], word_at[ngram.last]) for ngram in linked}
        for first, last in spans:
            if not any(a <= first and last <= b and (a, b) != (first, last) for a, b in spans):
                _mark(marks, first, last, bit=0)
        if linked:
            self.rarity.learn({word for ngram in linked for word in ngram.form.split(" ")})
            rarest = max(linked, key=lambda ngram: (self.rarity.weigh(ngram.form), ngram.last - ngram.first))
            _mark(marks, word_at[rarest.first], word_at[rarest.last], bit=3)
        return marks


def _mark(marks: NDArray[np.float32], first: int, last: int, *, bit: int) -> None:
    """Set the bits of the words `first` to `last`: begins, is in, ends."""
    marks[first, bit] = marks[last, bit + 2] = 1.0
    marks[first : last + 1, bit + 1] = 1.0
