"""Settings of a training; the defaults are the paper's, with their place in it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from math import inf
from typing import Any, TypeVar

from kbtools.errors import BadSetting

_Changed = TypeVar("_Changed", bound=Any)

_OBJECTIVES = ("cross-entropy", "hinge")
_MOST_SEED = 2**32
"""Limit of seeds, so that the seeds derived for epochs and processes stay within torch's range."""

_OPTIMISERS = ("adam", "adagrad", "adagrad-averaged", "row-adagrad")


def _setting(default: Any, help: str) -> Any:
    """Declare a setting with the help of its option."""
    return field(default=default, metadata={"help": help})


@dataclass(frozen=True, slots=True)
class EncoderConfig:
    """The sizes of an encoder, and its dropout in training; an encoder uses those that apply to it."""

    dim: int = _setting(256, "Dimensions of f(q) and E(r).")
    words_dim: int = _setting(300, "Dimensions of a word's vector (paper, Experiment Setting: 300).")
    hidden: int = _setting(256, "Hidden units of each direction of a BiGRU (paper: 256), or filters of a CNN.")
    layers: int = _setting(2, "Layers of a BiGRU (paper, Model Parameterization: two).")
    direct: bool = _setting(False, "Use the states of a BiGRU as its vector, ignoring --dim.")
    dropout: float = _setting(0.3, "Dropout between layers, not across time (paper: vertical dropout).")
    word_dropout: float = _setting(0.05, "Share of words read as unknown in training.")
    spare: float = _setting(0.08, "Range around zero of the initial values of dimensions beyond a given vector.")
    known_words: int = _setting(
        50_000, "Number of words taken from the given vectors, in addition to those of the questions."
    )

    def __post_init__(self) -> None:
        if min(self.dim, self.words_dim, self.hidden, self.layers) < 1:
            raise BadSetting("dim, words-dim, hidden and layers must be at least 1")
        if not (0 <= self.dropout < 1 and 0 <= self.word_dropout < 1):
            raise BadSetting("dropout and word-dropout must be at least 0 and below 1")
        if self.known_words < 0 or not 0 <= self.spare < inf:
            raise BadSetting("known-words and spare must be at least 0")


@dataclass(frozen=True, slots=True)
class FitConfig:
    """The length and speed of a training; the learning rate falls to zero in equal steps."""

    epochs: int = _setting(15, "Passes over the questions.")
    batch: int = _setting(256, "Questions in a batch (paper, Experiment Setting: 256).")
    learning_rate: float = _setting(0.02, "Step size at the start; it falls to zero (paper: 0.001, 0.02 or 0.03).")
    optimiser: str = _setting(
        "adagrad-averaged",
        "adam, adagrad (with classic momentum; paper, Experiment Setting), adagrad-averaged (momentum averages steps: "
        "a tenth of the rate), or row-adagrad.",
    )
    momentum: float = _setting(0.9, "Momentum (paper, Experiment Setting: 0.9).")
    clip: float = _setting(5.0, "Largest norm of a gradient.")
    seed: int = _setting(1, "Seed of all random numbers.")
    amp: bool = _setting(False, "Mixed precision: bfloat16 where precise enough, faster on a GPU.")

    def __post_init__(self) -> None:
        if min(self.epochs, self.batch) < 1 or not (0 < self.learning_rate < inf and self.clip > 0):
            raise BadSetting("epochs and batch must be at least 1, learning-rate and clip above 0")
        if not 0 <= self.momentum < 1:
            raise BadSetting(f"momentum is {self.momentum:g}, expected at least 0 and below 1")
        if not 0 <= self.seed < _MOST_SEED:
            raise BadSetting(f"seed is {self.seed}, expected at least 0 and below {_MOST_SEED:,}")
        if self.optimiser not in _OPTIMISERS:
            raise BadSetting(f"no optimiser {self.optimiser!r}; known: {', '.join(_OPTIMISERS)}")


@dataclass(frozen=True, slots=True)
class ObjectiveConfig:
    """The loss, and the parameters of the hinge."""

    objective: str = _setting("hinge", "cross-entropy over all relations, or hinge (paper, Parameter Estimation).")
    margin: float = _setting(0.1, "The margin of the hinge (paper, Experiment Setting: 0.1).")
    negatives: int = _setting(1_024, "Sampled negatives of a question (paper, Experiment Setting: 1024).")

    def __post_init__(self) -> None:
        if self.objective not in _OBJECTIVES:
            raise BadSetting(f"no objective {self.objective!r}; known: {', '.join(_OBJECTIVES)}")
        if self.negatives < 1 or not 0 <= self.margin < inf:
            raise BadSetting("negatives must be at least 1, margin at least 0")


@dataclass(frozen=True, slots=True)
class _WordsConfig:
    """The origin of word vectors."""

    words: str = _setting("glove", "Word vectors: glove, random, or a GloVe text file (paper: GloVe).")


@dataclass(frozen=True, slots=True)
class TrainingSettings:
    """All that the training of a relation or subject scorer depends on, besides its questions."""

    encoder: EncoderConfig = EncoderConfig()
    fit: FitConfig = FitConfig()
    objective: ObjectiveConfig = ObjectiveConfig()
    source: _WordsConfig = _WordsConfig()


@dataclass(frozen=True, slots=True)
class TaggerSettings:
    """All that a training of a tagger depends on, besides its questions; its objective is the tags' likelihood."""

    encoder: EncoderConfig = EncoderConfig()
    fit: FitConfig = FitConfig()
    source: _WordsConfig = _WordsConfig()


@dataclass(frozen=True, slots=True)
class PretrainedConfig:
    """A pretrained encoder, how much of it is trained, and its dropout in training."""

    pretrained: str = _setting("", "A folder or a package with a pretrained encoder; else KBTOOLS_ENCODER, or minilm.")
    trained_layers: int = _setting(2, "Number of last layers of a pretrained encoder to train; the others are fixed.")
    dropout: float = _setting(0.1, "Dropout inside the trained layers.")
    learned_dropout: float = _setting(0.1, "Share of training steps without the learned part of a relation's vector.")

    def __post_init__(self) -> None:
        if self.trained_layers < 0:
            raise BadSetting("trained-layers must be at least 0")
        if not (0 <= self.dropout < 1 and 0 <= self.learned_dropout <= 1):
            raise BadSetting("dropout must be at least 0 and below 1, learned-dropout at least 0 and at most 1")


@dataclass(frozen=True, slots=True)
class PretrainedSettings:
    """All that the training of a pretrained encoder depends on, besides its questions; its loss is cross entropy."""

    encoder: PretrainedConfig = PretrainedConfig()
    fit: FitConfig = FitConfig(epochs=6, batch=64, learning_rate=0.0006, optimiser="adam")


@dataclass(frozen=True, slots=True)
class VectorsConfig:
    """The vectors of TransE, and its margin."""

    dim: int = _setting(128, "Dimensions of E(s).")
    margin: float = _setting(1.0, "How much nearer a fact must be than a corrupted one.")

    def __post_init__(self) -> None:
        if self.dim < 1 or not 0 <= self.margin < inf:
            raise BadSetting("dim must be at least 1, margin at least 0")


@dataclass(frozen=True, slots=True)
class TransESettings:
    """All that a training of TransE depends on, besides the facts."""

    vectors: VectorsConfig = VectorsConfig()
    fit: FitConfig = FitConfig(epochs=10, batch=4_096, learning_rate=0.01, optimiser="adam")


def setting_parts(settings: Any) -> dict[str, str]:
    """Return the part of the settings that holds each setting, by name."""
    return {setting.name: part.name for part in fields(settings) for setting in fields(getattr(settings, part.name))}


def change_settings(settings: _Changed, changes: Mapping[str, Any]) -> _Changed:
    """Change settings by name, in any part; raise BadSetting for one that does not exist."""
    known = setting_parts(settings)
    for spelt, value in changes.items():
        name = spelt.replace("-", "_")
        if name not in known:
            raise BadSetting(f"no setting {spelt!r}; known: {', '.join(known)}", name=spelt)
        part = getattr(settings, known[name])
        kind = type(getattr(part, name))
        # An integer is accepted for a float; True is an int to Python, but not a number of epochs.
        if not isinstance(value, int | float if kind is float else kind) or (kind is not bool and value is True):
            raise BadSetting(f"setting {spelt!r} is {value!r}, expected a value of type {kind.__name__}", name=spelt)
        settings = replace(settings, **{known[name]: replace(part, **{name: kind(value)})})
    return settings
