"""Settings and models by the name of a profile: `paper` as published, `best` and `fast` as chosen on FBSQ's validation
split."""

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

PAPER = TrainingSettings()
PAPER_LTG = replace(PAPER, encoder=replace(PAPER.encoder, dropout=0.0), fit=replace(PAPER.fit, learning_rate=0.03))
"""Dropout regularises the BiGRUs alone (paper, section Experiment Setting)."""
PAPER_EMBED = replace(PAPER, encoder=replace(PAPER.encoder, dim=300), fit=replace(PAPER.fit, optimiser="adagrad"))
"""The vectors of Embed-AVG are the words' own (paper, section Experiment Setting: 300), and it learns from steps that
add up at the paper's rate, where the networks with more layers do not (benchmarks/momentum.py)."""

ADAM = FitConfig(epochs=9, batch=64, learning_rate=0.003, optimiser="adam")
BEST = TrainingSettings(
    EncoderConfig(dim=128, words_dim=100, hidden=128, dropout=0.4, word_dropout=0.1),
    ADAM,
    ObjectiveConfig(objective="cross-entropy"),
)
BEST_LTG = replace(
    BEST, encoder=EncoderConfig(dim=128, hidden=256, dropout=0.2), fit=replace(ADAM, epochs=8, batch=256)
)
BEST_EMBED = replace(BEST, encoder=EncoderConfig(dim=200), fit=replace(ADAM, epochs=7))

PRETRAINED = PretrainedSettings()
"""The paper has no pretrained encoder: both profiles train it alike."""

BEST_BY_NAME = {"embed-avg": BEST_EMBED, "ltg-cnn": BEST_LTG, ENCODER: PRETRAINED}
BY_NAME: dict[str, dict[str, Any]] = {
    "paper": {"embed-avg": PAPER_EMBED, "ltg-cnn": PAPER_LTG, ENCODER: PRETRAINED},
    "best": BEST_BY_NAME,
    "fast": BEST_BY_NAME,
}


PAPER_TAGGER = TaggerSettings(
    EncoderConfig(dropout=0.5, word_dropout=0.2, spare=0.0, known_words=200_000), FitConfig(epochs=16)
)
"""The paper names neither rates of dropout nor epochs; these were chosen on FBSQ's validation split."""

BEST_TAGGER = TaggerSettings(
    EncoderConfig(words_dim=100, hidden=100, dropout=0.3, word_dropout=0.1), replace(ADAM, epochs=8)
)
BEST_TAGGERS = {
    "bigru-crf": TaggerSettings(
        EncoderConfig(words_dim=50, hidden=128, dropout=0.3, word_dropout=0.1, known_words=400_000),
        replace(ADAM, epochs=10),
    ),
    "bigru-crf+": replace(BEST_TAGGER, fit=replace(ADAM, epochs=5)),
}
"""Without names of the knowledge base, all words of GloVe are worth knowing; with them, few epochs do."""

PAPER_TYPES = replace(
    PAPER,
    encoder=replace(PAPER.encoder, direct=True),
    fit=replace(PAPER.fit, learning_rate=0.001, optimiser="adagrad"),
)
"""The learning rate of question embeddings with type vectors is slow enough for steps that add up, as
benchmarks/momentum.py shows; under their sigmoid stands one linear map."""

PAPER_SUBJECTS = {"type-vector": PAPER_TYPES, "type-vector-avg": replace(PAPER_TYPES, encoder=PAPER_EMBED.encoder)}

BEST_SUBJECT = replace(BEST, fit=replace(ADAM, epochs=6), objective=ObjectiveConfig())


@dataclass(frozen=True, slots=True)
class Plan:
    """The models of a profile, and the query that they are for."""

    tagger: str
    relations: tuple[str, ...]
    subject: str | None
    pruning: str
    ranked_by: str | None
    """The subject scorer of the query; `type-cosine` reads the model of `type-vector`."""

    weights: str | None = None
    """The preset of the weights; without one they are chosen on the validation questions."""

    in_doubt: tuple[str, ...] = ()
    """The relation scorers that a learned ranker asks only where one without them is in doubt."""

    def missing(self) -> tuple[str, ...]:
        """List the relation scorers that this installation cannot train: `encoder` without a pretrained one."""
        return tuple(name for name in self.relations if name == ENCODER and not has_encoder())

    def scorers(self) -> list[str]:
        """List the relation scorers that this installation can train."""
        return [name for name in self.relations if name not in self.missing()]

    def scorers_in_doubt(self) -> list[str]:
        """List the relation scorers that are asked in doubt, of those that this installation can train."""
        return [name for name in self.scorers() if name in self.in_doubt]

    def models(self) -> list[tuple[str, str]]:
        """List the models to train, by part and name, in the order in which they are trained.

        A pruner that no tagger guides needs none.
        """
        taggers = [] if self.pruning in UNGUIDED else [(TAGGER, self.tagger)]
        relations = [(RELATION, name) for name in self.scorers()]
        return [*taggers, *relations, *([(SUBJECT, self.subject)] if self.subject else [])]

    def system(self, *, typed: bool) -> System:
        """Return the system; over a knowledge base without types no scorer tells subjects apart."""
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

    TransE has one set of settings, whatever the profile.
    """
    if profile not in PROFILES:
        raise BadSetting(f"no profile {profile!r}; known: {', '.join(PROFILES)}", name=profile)
    paper = profile == "paper"
    if part == RELATION:  # with or without `+`
        return BY_NAME[profile].get(name.removesuffix("+"), PAPER if paper else BEST)
    if part == TAGGER:
        return PAPER_TAGGER if paper else BEST_TAGGERS.get(name, BEST_TAGGER)
    if part == SUBJECT:
        return PAPER_SUBJECTS.get(name, PAPER) if paper else BEST_SUBJECT
    return TransESettings()
