"""The settings of a training by name: `paper` as published, `best` as chosen on FBSQ's validation split."""

from dataclasses import replace

from kbtools.errors import BadSetting
from kbtools.scorers.settings import EncoderConfig, FitConfig, ObjectiveConfig, PlainSettings, Settings

PROFILES = ("best", "paper")

PAPER = Settings()
PAPER_LTG = replace(PAPER, fit=replace(PAPER.fit, learning_rate=0.03))
PAPER_EMBED = replace(PAPER, encoder=replace(PAPER.encoder, dim=300))
"""The vectors of Embed-AVG are the words' own (paper, section Experiment Setting: 300)."""

ADAM = FitConfig(epochs=9, batch=64, learning_rate=0.003, optimiser="adam")
BEST = Settings(
    EncoderConfig(dim=128, words_dim=100, hidden=128, dropout=0.4, word_dropout=0.1),
    ADAM,
    ObjectiveConfig(objective="cross-entropy"),
)
BEST_LTG = replace(
    BEST, encoder=EncoderConfig(dim=128, hidden=256, dropout=0.2), fit=replace(ADAM, epochs=8, batch=256)
)
BEST_EMBED = replace(BEST, encoder=EncoderConfig(dim=200), fit=replace(ADAM, epochs=7))

BY_NAME = {
    "paper": {"embed-avg": PAPER_EMBED, "ltg-cnn": PAPER_LTG},
    "best": {"embed-avg": BEST_EMBED, "ltg-cnn": BEST_LTG},
}


PAPER_TAGGER = PlainSettings(
    EncoderConfig(dropout=0.5, word_dropout=0.2, spare=0.0, known_words=200_000), FitConfig(epochs=16)
)
"""The paper names neither rates of dropout nor epochs; these were chosen on FBSQ's validation split."""

BEST_TAGGER = PlainSettings(
    EncoderConfig(words_dim=100, hidden=100, dropout=0.3, word_dropout=0.1), replace(ADAM, epochs=8)
)
BEST_TAGGERS = {
    "bigru-crf": PlainSettings(
        EncoderConfig(words_dim=50, hidden=128, dropout=0.3, word_dropout=0.1, known_words=400_000),
        replace(ADAM, epochs=10),
    ),
    "bigru-crf+": replace(BEST_TAGGER, fit=replace(ADAM, epochs=5)),
}
"""Without names of the knowledge base, all words of GloVe are worth knowing; with them, few epochs do."""

PAPER_TYPES = replace(PAPER, fit=replace(PAPER.fit, learning_rate=0.001))
"""Learning rate for the question embedding with type vectors (paper, section Experiment Setting)."""

BEST_SUBJECT = replace(BEST, fit=replace(ADAM, epochs=6), objective=ObjectiveConfig())


def check_profile(profile: str) -> None:
    if profile not in PROFILES:
        raise BadSetting(f"no profile {profile!r}; known: {', '.join(PROFILES)}", name=profile)


def relation_settings(profile: str, scorer: str) -> Settings:
    """Give the settings of a relation scorer, with or without `+`; a scorer of someone else's gets those of `bigru`."""
    check_profile(profile)
    return BY_NAME[profile].get(scorer.removesuffix("+"), PAPER if profile == "paper" else BEST)


def tagger_settings(profile: str, tagger: str) -> PlainSettings:
    """Give the settings of a tagger."""
    check_profile(profile)
    return PAPER_TAGGER if profile == "paper" else BEST_TAGGERS.get(tagger, BEST_TAGGER)


def subject_settings(profile: str, subject: str) -> Settings:
    """Give the settings of a subject scorer; the objective concerns those with a vector for each entity."""
    check_profile(profile)
    if profile == "best":
        return BEST_SUBJECT
    return PAPER_TYPES if subject.startswith("type-") else PAPER
