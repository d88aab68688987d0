"""The paper's comparison: a CRF over hand-made features, with python-crfsuite (section Additional Analysis)."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import pycrfsuite
from numpy.typing import NDArray

from kbtools.kb.contract import KnowledgeBase
from kbtools.pruning.pruners import words_of
from kbtools.ranking.model_store import FILES, Stamp, class_path, read_model, write_model
from kbtools.scorers.fitting.measures import SENTENCES_RIGHT, Epoch, EpochCallback
from kbtools.scorers.fitting.splits import Labelled, Splits, label_questions
from kbtools.storage import temporary_folder
from kbtools.text.question import Question

_MODEL = FILES[1]
_OUTSIDE, _SUBJECT = "O", "SUB"
_FITTING = {"c1": 0.05, "c2": 0.02, "max_iterations": 120, "feature.possible_transitions": True}
"""L-BFGS with both penalties, in python-crfsuite's parameter names."""

_SHOWN = 20
"""Iterations between two reports."""


def _shape(word: str) -> str:
    """Return the kind of characters in a word: digits, letters, or a mixture."""
    return "digits" if word.isdigit() else "letters" if word.isalpha() else "mixed"


def word_features(words: Sequence[str], place: int) -> list[str]:
    """Return the features of a word: itself, its affixes, its shape, its place, and its neighbours."""
    word = words[place]
    features = [
        "bias",
        f"w={word}",
        f"pre={word[:3]}",
        f"suf={word[-3:]}",
        f"suf2={word[-2:]}",
        f"shape={_shape(word)}",
    ]
    features += [f"place={min(place, 5)}", f"left={min(len(words) - 1 - place, 5)}"]
    padded = ["<s>", "<s>", *words, "</s>", "</s>"]
    at = place + 2
    before, after = padded[at - 1], padded[at + 1]
    features += [f"w-1={before}", f"w+1={after}", f"w-2={padded[at - 2]}", f"w+2={padded[at + 2]}"]
    features += [f"w-1w={before}|{word}", f"ww+1={word}|{after}", f"w-2w-1={padded[at - 2]}|{before}"]
    return [*features, f"w+1w+2={after}|{padded[at + 2]}", f"w-1w+1={before}|{after}"]


def _sentence_features(words: Sequence[str]) -> list[list[str]]:
    return [word_features(words, place) for place in range(len(words))]


def _tags_of(length: int, first: int, last: int) -> list[str]:
    """Return the tags of a mention from word `first` to word `last`."""
    return [_SUBJECT if first <= place <= last else _OUTSIDE for place in range(length)]


class FeatureCRF:
    """The tagger `crf`: reads only words."""

    def __init__(self, model: bytes) -> None:
        self.model = model
        self.tagger = pycrfsuite.Tagger()
        self.tagger.open_inmemory(model)

    @classmethod
    def load(cls, folder: Path, kb: KnowledgeBase, *, device: str = "cpu") -> Self:
        """Rebuild a trained tagger; it serves any knowledge base, and computes on the CPU."""
        return cls(read_model(folder).weights.read_bytes())

    def save(self, folder: Path, stamp: Stamp | None = None) -> None:
        """Write the tagger to a folder; without a stamp its plugin is recorded as `module:Class`."""
        stamp = stamp or Stamp(class_path(type(self)))
        write_model(folder, stamp, {}, file=_MODEL, write=lambda path: path.write_bytes(self.model))

    def spans(self, questions: Sequence[Question]) -> list[NDArray[np.float64]]:
        return [self.spans_of(words_of(question)) for question in questions]

    def spans_of(self, words: Sequence[str]) -> NDArray[np.float64]:
        """Return log p(w|q) of every n-gram, each as the probability of its tagging."""
        spans = np.full((len(words), len(words)), -np.inf)
        if words:
            self.tagger.set(_sentence_features(words))
        for first in range(len(words)):
            for last in range(first, len(words)):
                probability = self.tagger.probability(_tags_of(len(words), first, last))
                spans[first, last] = np.log(max(probability, np.finfo(float).tiny))
        return spans

    def sentence_accuracy(self, labelled: Labelled) -> float:
        """Return the share of labelled questions whose every word is tagged right."""
        right = 0
        for question, (first, last) in zip(labelled.questions, labelled.spans, strict=True):
            words = words_of(question)
            right += self.tagger.tag(_sentence_features(words)) == _tags_of(len(words), first, last)
        return right / len(labelled)

    @classmethod
    def task(cls, kb: KnowledgeBase, splits: Splits, settings: object, *, models: Path) -> "_FeatureTask":
        """Build the task of the tagger; it has no settings."""
        return _FeatureTask(label_questions(splits.train, split="train"), label_questions(splits.valid, split="valid"))


class _FeatureTask:
    """The task of making the labels of the training questions likely, by the trainer of python-crfsuite."""

    def __init__(self, train: Labelled, valid: Labelled) -> None:
        self.train, self.valid = train, valid
        self.tagger: FeatureCRF | None = None

    def fit(self, callback: EpochCallback) -> None:
        """Learn in one run, reporting every twentieth of the 120 iterations."""
        begun = time.process_time()

        def show(iteration: int, loss: float) -> None:
            if iteration % _SHOWN == 0:
                callback(Epoch(iteration, loss / len(self.train), time.process_time() - begun, {}))

        trainer = _WatchedTrainer(algorithm="lbfgs", verbose=True, params=_FITTING)
        trainer.watch = show
        for question, (first, last) in zip(self.train.questions, self.train.spans, strict=True):
            words = words_of(question)
            trainer.append(_sentence_features(words), _tags_of(len(words), first, last))
        with temporary_folder() as folder:
            path = folder / _MODEL
            trainer.train(str(path))
            self.tagger = FeatureCRF(path.read_bytes())

    @property
    def fitted(self) -> FeatureCRF:
        """The tagger made by `fit`."""
        assert self.tagger is not None
        return self.tagger

    def measure(self) -> dict[str, float]:
        return {SENTENCES_RIGHT: self.fitted.sentence_accuracy(self.valid)}

    def save(self, folder: Path, stamp: Stamp) -> None:
        self.fitted.save(folder, stamp)


class _WatchedTrainer(pycrfsuite.Trainer):  # type: ignore[misc]
    """A trainer that reports each iteration and its loss."""

    watch: Callable[[int, float], None]

    def on_iteration(self, log: Any, info: dict[str, Any]) -> None:
        self.watch(int(info["num"]), float(info["loss"]))

    def message(self, message: str) -> None:
        self.logparser.feed(message)
