"""The profile `paper` holds the values of the paper; whoever changes one changes this page."""

from dataclasses import asdict
from typing import Any

import pytest

from kbtools.errors import BadSetting
from kbtools.pruning.focused import ENTITIES_KEPT
from kbtools.ranking.models import ENTITIES, RELATION, SUBJECT, TAGGER
from kbtools.ranking.system import System
from kbtools.ranking.weights import DEFAULT, EQUATION_4, PRESETS, WITH_SUBJECT, Weights
from kbtools.scorers.fitting.profiles import PLANS, Plan, profile_settings
from kbtools.scorers.networks.training_settings import FitConfig, TransESettings, VectorsConfig

PUBLISHED: dict[str, dict[str, Any]] = {
    "encoder": {"words_dim": 300, "hidden": 256, "layers": 2},
    "fit": {"batch": 256, "optimiser": "adagrad-averaged", "momentum": 0.9},
    "objective": {"objective": "hinge", "margin": 0.1, "negatives": 1_024},
    "source": {"words": "glove"},
}
"""Sections Experiment Setting and Model Parameterization."""

CHOSEN: dict[str, dict[str, Any]] = {
    "encoder": {
        "dim": 256,
        "direct": False,
        "dropout": 0.3,
        "word_dropout": 0.05,
        "spare": 0.08,
        "known_words": 50_000,
    },
    "fit": {"epochs": 15, "clip": 5.0, "seed": 1, "amp": False},
}
"""Values that the paper does not name."""


def settings(*, rate: float, without: str = "", **changes: dict[str, Any]) -> dict[str, Any]:
    """Write out the settings of the paper with a learning rate and what a model changes."""
    parts = {
        name: PUBLISHED[name] | CHOSEN.get(name, {}) | changes.get(name, {}) for name in PUBLISHED if name != without
    }
    parts["fit"] = {**parts["fit"], "learning_rate": rate}
    return parts


SUMMED = {"optimiser": "adagrad"}
"""Momentum as the authors have it; at the rates of the other networks it diverges."""

TAGGER_CHANGES: dict[str, dict[str, Any]] = {
    "encoder": {"dropout": 0.5, "word_dropout": 0.2, "spare": 0.0, "known_words": 200_000},
    "fit": {"epochs": 16},
}


@pytest.mark.parametrize(
    ("part", "name", "expected"),
    [
        pytest.param(RELATION, "bigru", settings(rate=0.02), id="bigru"),
        pytest.param(RELATION, "ltg-cnn", settings(rate=0.03, encoder={"dropout": 0.0}), id="ltg-cnn"),
        pytest.param(RELATION, "ltg-cnn+", settings(rate=0.03, encoder={"dropout": 0.0}), id="ltg-cnn+"),
        pytest.param(RELATION, "embed-avg", settings(rate=0.02, fit=SUMMED, encoder={"dim": 300}), id="embed-avg"),
        pytest.param(
            SUBJECT, "type-vector", settings(rate=0.001, fit=SUMMED, encoder={"direct": True}), id="type-vector"
        ),
        pytest.param(
            SUBJECT, "type-vector-avg", settings(rate=0.001, fit=SUMMED, encoder={"dim": 300}), id="type-vector-avg"
        ),
        pytest.param(SUBJECT, "random", settings(rate=0.02), id="random"),
        pytest.param(SUBJECT, "transe", settings(rate=0.02), id="transe"),
        pytest.param(TAGGER, "bigru-crf", settings(rate=0.02, without="objective", **TAGGER_CHANGES), id="bigru-crf"),
    ],
)
def test_every_value_of_the_paper_is_pinned(part: str, name: str, expected: dict[str, Any]) -> None:
    assert asdict(profile_settings("paper", part, name)) == expected


def test_vectors_of_entities_have_one_setting_whatever_the_profile() -> None:
    vectors = TransESettings(VectorsConfig(dim=128, margin=1.0), FitConfig(epochs=10, batch=4_096, learning_rate=0.01,
                             optimiser="adam", momentum=0.9, clip=5.0, seed=1, amp=False))  # fmt: skip

    assert profile_settings("paper", ENTITIES, "transe") == profile_settings("best", ENTITIES, "transe") == vectors


def test_the_fuzzy_fallback_keeps_twenty_entities() -> None:
    assert ENTITIES_KEPT == 20


def test_the_models_of_the_paper_are_pinned() -> None:
    assert PLANS["paper"] == Plan("bigru-crf", ("bigru",), "type-vector", "focused", "type-vector", "equation-4")
    assert PLANS["paper"].models() == [(TAGGER, "bigru-crf"), (RELATION, "bigru"), (SUBJECT, "type-vector")]


def test_the_paper_ranks_by_equation_4_alone() -> None:
    system = PLANS["paper"].system(typed=True)

    assert system == System("focused", ("bigru",), "type-vector", "bigru-crf", PRESETS[EQUATION_4])
    assert PRESETS[EQUATION_4] == Weights(1.0, 1.0, 1.0, 1.0, mention=0.0, rung=0.0, similarity=0.0, popularity=0.0)


def test_without_types_nothing_tells_subjects_apart() -> None:
    assert PLANS["best"].system(typed=False).subject == "popularity"


def test_best_leaves_the_encoder_out_where_none_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = PLANS["best"]
    monkeypatch.setattr("kbtools.scorers.fitting.profiles.has_encoder", lambda: False)

    assert plan.missing() == ("encoder",)
    assert (RELATION, "encoder") not in plan.models()
    assert plan.scorers_in_doubt() == ["ltg-cnn+", "bigru"]
    assert plan.system(typed=True) == System(
        "focused-idf", ("embed-avg", "ltg-cnn+", "bigru"), "type-cosine", "bigru-crf+", WITH_SUBJECT
    )

    monkeypatch.setattr("kbtools.scorers.fitting.profiles.has_encoder", lambda: True)
    assert plan.missing() == ()
    assert plan.scorers_in_doubt() == ["ltg-cnn+", "bigru", "encoder"]
    assert plan.system(typed=True).scorer == "embed-avg,ltg-cnn+,bigru,encoder"


def test_an_unknown_profile_is_refused() -> None:
    with pytest.raises(BadSetting, match="no profile 'fastest'; known: best, fast, paper"):
        profile_settings("fastest", RELATION, "bigru")


def test_the_profile_fast_trains_neither_a_tagger_nor_a_subject_scorer() -> None:
    plan = PLANS["fast"]

    assert plan.models() == [(RELATION, "embed-avg"), (RELATION, "ltg-cnn+")]
    assert plan.system(typed=True) == System("n-gram-idf", ("embed-avg", "ltg-cnn+"), "popularity", None, DEFAULT)
    assert profile_settings("fast", RELATION, "embed-avg") == profile_settings("best", RELATION, "embed-avg")
