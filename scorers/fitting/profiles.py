"""Settings and models of each profile: `paper` as published, `best` and `fast` chosen on FBSQ's validation split."""

from dataclasses import dataclass, replace
from typing import Any

from kbtools.errors import BadSetting
from kbtools.pruning.pruners import UNGUIDED
from kbtools.ranking.models import ENCODER, RELATION, SUBJECT, TAGGER, has_encoder
from kbtools.ranking.system import POPULARITY, System
from kbtools.ranking.weights import EQUATION_4, PRESETS, default_weights
from kbtools.scorers.networks.training_settings import (
    EncoderConfig,
    FitConfig,
    ObjectiveConfig,
    PretrainedSettings,
    TaggerSettings,
    TrainingSettings,
    TransESettings,
)

PROFILES = ("best", "fast", "paper")

_PAPER = TrainingSettings()
_PAPER_LTG = replace(_PAPER, encoder=replace(_PAPER.encoder, dropout=0.0), fit=replace(_PAPER.fit, learning_rate=0.03))
"""Dropout regularises only the BiGRUs (paper, section Experiment Setting)."""
_PAPER_EMBED = replace(_PAPER, encoder=replace(_PAPER.encoder, dim=300), fit=replace(_PAPER.fit, optimiser="adagrad"))
"""The vectors of Embed-AVG are those of the words (paper, section Experiment Setting: 300). It learns with classic
momentum at the paper's rate, with which the deeper networks do not (benchmarks/momentum.py).
"""

_ADAM = FitConfig(epochs=9, batch=64, learning_rate=0.003, optimiser="adam")
_BEST = TrainingSettings(
    EncoderConfig(dim=128, words_dim=100, hidden=128, dropout=0.4, word_dropout=0.1),
    _ADAM,
    ObjectiveConfig(objective="cross-entropy"),
)
_BEST_LTG = replace(
    _BEST, encoder=EncoderConfig(dim=128, hidden=256, dropout=0.2), fit=replace(_ADAM, epochs=8, batch=256)
)
_BEST_EMBED = replace(_BEST, encoder=EncoderConfig(dim=200), fit=replace(_ADAM, epochs=7))

_PRETRAINED = PretrainedSettings()
"""The paper has no pretrained encoder: both profiles train it in the same way."""

_BEST_BY_NAME = {"embed-avg": _BEST_EMBED, "ltg-cnn": _BEST_LTG, ENCODER: _PRETRAINED}
_BY_NAME: dict[str, dict[str, Any]] = {
    "paper": {"embed-avg": _PAPER_EMBED, "ltg-cnn": _PAPER_LTG, ENCODER: _PRETRAINED},
    "best": _BEST_BY_NAME,
    "fast": _BEST_BY_NAME,
}

_PAPER_TAGGER = TaggerSettings(
    EncoderConfig(dropout=0.5, word_dropout=0.2, spare=0.0, known_words=200_000), FitConfig(epochs=16)
)
"""The paper gives neither dropout rates nor numbers of epochs; these were chosen on FBSQ's validation split."""

_BEST_TAGGER = TaggerSettings(
    EncoderConfig(words_dim=100, hidden=100, dropout=0.3, word_dropout=0.1), replace(_ADAM, epochs=8)
)
_BEST_TAGGERS = {
    "bigru-crf": TaggerSettings(
        EncoderConfig(words_dim=50, hidden=128, dropout=0.3, word_dropout=0.1, known_words=400_000),
        replace(_ADAM, epochs=10),
    ),
    "bigru-crf+": replace(_BEST_TAGGER, fit=replace(_ADAM, epochs=5)),
}
"""Without the names of the knowledge base, all words of GloVe are useful; with them, few epochs suffice."""

_PAPER_TYPES = replace(
    _PAPER,
    encoder=replace(_PAPER.encoder, direct=True),
    fit=replace(_PAPER.fit, learning_rate=0.001, optimiser="adagrad"),
)
"""The learning rate of question embeddings with type vectors is low enough for classic momentum
(benchmarks/momentum.py); only one linear map is below their sigmoid.
"""

_PAPER_SUBJECTS = {"type-vector": _PAPER_TYPES, "type-vector-avg": replace(_PAPER_TYPES, encoder=_PAPER_EMBED.encoder)}

_BEST_SUBJECT = replace(_BEST, fit=replace(_ADAM, epochs=6), objective=ObjectiveConfig())


@dataclass(frozen=True, slots=True)
class Plan:
    """The models of a profile, and the query they are for."""

    tagger: str
    relations: tuple[str, ...]
    subject: str | None
    pruning: str
    ranked_by: str | None
    """The subject scorer of the query; `type-cosine` uses the model of `type-vector`."""

    weights: str | None = None
    """The preset of the weights; without one they are chosen on the validation questions."""

    in_doubt: tuple[str, ...] = ()
    """The relation scorers that a learned ranker uses only if a first ranking without them is uncertain."""

    def missing(self) -> tuple[str, ...]:
        """Return the relation scorers that this installation cannot train: `encoder` without a pretrained one."""
        return tuple(name for name in self.relations if name == ENCODER and not has_encoder())

    def scorers(self) -> list[str]:
        """Return the relation scorers that this installation can train."""
        return [name for name in self.relations if name not in self.missing()]

    def scorers_in_doubt(self) -> list[str]:
        """Return the relation scorers for uncertain questions that this installation can train."""
        return [name for name in self.scorers() if name in self.in_doubt]

    def models(self) -> list[tuple[str, str]]:
        """Return the models to train, by part and name, in training order.

        A pruner without a tagger needs none.
        """
        taggers = [] if self.pruning in UNGUIDED else [(TAGGER, self.tagger)]
        relations = [(RELATION, name) for name in self.scorers()]
        return [*taggers, *relations, *([(SUBJECT, self.subject)] if self.subject else [])]

    def system(self, *, typed: bool) -> System:
        """Return the system; without types in the knowledge base it has no subject scorer."""
        subject = self.ranked_by if typed else None
        return System(
            self.pruning,
            tuple(self.scorers()),
            subject or POPULARITY,
            None if self.pruning in UNGUIDED else self.tagger,
            PRESETS[self.weights] if self.weights else default_weights(subject),
        )


PLANS = {
    "paper": Plan("bigru-crf", ("bigru",), "type-vector", "focused", "type-vector", EQUATION_4),
    "best": Plan(
        "bigru-crf+",
        ("embed-avg", "ltg-cnn+", "bigru", ENCODER),
        "type-vector",
        "focused-idf",
        "type-cosine",
        in_doubt=("ltg-cnn+", "bigru", ENCODER),
    ),
    "fast": Plan("bigru-crf+", ("embed-avg", "ltg-cnn+"), None, "n-gram-idf", None),
}


def profile_settings(profile: str, part: str, name: str) -> Any:
    """Return the settings of a model; other plugins get the first settings of the part.

    TransE has the same settings in every profile.
    """
    if profile not in PROFILES:
        raise BadSetting(f"no profile {profile!r}; known: {', '.join(PROFILES)}", name=profile)
    paper = profile == "paper"
    if part == RELATION:  # With or without `+`.
        return _BY_NAME[profile].get(name.removesuffix("+"), _PAPER if paper else _BEST)
    if part == TAGGER:
        return _PAPER_TAGGER if paper else _BEST_TAGGERS.get(name, _BEST_TAGGER)
    if part == SUBJECT:
        return _PAPER_SUBJECTS.get(name, _PAPER) if paper else _BEST_SUBJECT
    return TransESettings()
