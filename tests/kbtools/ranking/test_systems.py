"""Systems as values, the file that keeps them, and the path of questions through an opened one."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kbtools.answering.answerer import Answerer
from kbtools.errors import CheckpointMismatch
from kbtools.indexers.folder.memory import MemoryKB
from kbtools.ranking.confidence import Calibration
from kbtools.ranking.opened_system import rank_candidates
from kbtools.ranking.parts import Parts
from kbtools.ranking.pools import Pools
from kbtools.ranking.rankers import Rating, _Stage
from kbtools.ranking.system import Cascade, FittedRanker, System
from kbtools.ranking.trained import TrainedSystems, check_fitted, read_systems
from kbtools.ranking.weights import DEFAULT, EQUATION_4, PRESETS, WITH_SUBJECT, Weights
from kbtools.text.question import Question

HALF = Calibration((0.0, 1.0), (0.0, 0.5))
PLAIN = System("n-gram", ("lexical",), "popularity", None, DEFAULT)
RANKER = FittedRanker("lightgbm", "digest", (), 1, HALF)


def test_a_system_is_named_by_its_parts() -> None:
    guided = replace(PLAIN, pruner="focused", guide="crf", scorers=("lexical", "static"), subject="none", ranker=RANKER)

    assert (PLAIN.key, guided.key) == ("n-gram lexical popularity", "focused/crf lexical,static none")
    assert str(PLAIN) == "n-gram / lexical / popularity / weighted-sum"
    assert str(guided) == "focused by crf / lexical,static / none / lightgbm"
    assert (PLAIN.subject_scorer, guided.subject_scorer) == (None, None)
    assert replace(PLAIN, subject="type-count").subject_scorer == "type-count"
    assert (PLAIN.first, PLAIN.every_scorer, PLAIN.deferred) == (PLAIN, ("lexical",), ())


@pytest.mark.parametrize(
    ("first", "last", "scorer", "every", "deferred"),
    [
        (("a",), ("a", "b"), "a,b", ("a", "b"), ("b",)),
        (("a",), ("b",), "a/b", ("a", "b"), ("b",)),
        (("a", "b"), ("b", "c"), "a,b/b,c", ("a", "b", "c"), ("c",)),
        (("a", "b"), ("b", "a"), "b,a", ("b", "a"), ()),
    ],
)
def test_a_cascade_names_its_scorers(
    first: tuple[str, ...], last: tuple[str, ...], scorer: str, every: tuple[str, ...], deferred: tuple[str, ...]
) -> None:
    system = replace(PLAIN, scorers=last, cascade=Cascade(replace(PLAIN, scorers=first), 0.5))

    assert (system.scorer, system.every_scorer, system.deferred) == (scorer, every, deferred)
    assert system.first.scorers == first
    assert system.cascade
    assert system.cascade.margin == 2.0


def test_weights_count_by_what_is_scored() -> None:
    named = Weights(subject=3.0, popularity=0.4)
    without = {"relation", "mention", "rung", "similarity", "popularity"}

    assert PLAIN.counting().keys() == without
    assert replace(PLAIN, subject="type-count").counting().keys() == {*without, "subject", "sharpness", "alpha"}
    assert replace(PLAIN, ranker=RANKER).counting() == {}
    assert replace(PLAIN, ranker=RANKER).weighted(named) == replace(PLAIN, weights=named)
    assert replace(PLAIN, subject="none").weighted(named).weights == replace(named, popularity=0.0)
    assert replace(DEFAULT, popularity=0.0) == WITH_SUBJECT
    assert {EQUATION_4: Weights(1, 1, 1, 1, 0, 0, 0, 0)} == PRESETS


def test_systems_are_kept_by_their_parts_and_ranker(tmp_path: Path) -> None:
    kept = read_systems(tmp_path / "models")
    other, learned = replace(PLAIN, pruner="n-gram+"), replace(PLAIN, ranker=RANKER)
    better = replace(PLAIN, weights=replace(DEFAULT, rung=0.1))
    last = replace(PLAIN, ranker=replace(RANKER, name="least-squares"))

    for system in (PLAIN, other, learned, better, last):
        kept.keep(system)
    another = read_systems(tmp_path / "models")
    another.choose(learned)
    another.keep(replace(other, subject="type-count"))
    kept.keep(replace(other, subject="none"))

    again = read_systems(tmp_path / "models")
    others = [replace(other, subject=subject) for subject in ("type-count", "none")]
    assert again.systems == [other, learned, better, last, *others]
    assert again.default == kept.default == learned
    assert [*again.learned(PLAIN.key)] == ["lightgbm", "least-squares"]
    assert (again.weighted(PLAIN), again.weighted(replace(PLAIN, subject="none"))) == (better, better)
    assert again.weighted(replace(PLAIN, subject="type-count")) is None
    again.forget_learned(PLAIN.key)
    assert read_systems(tmp_path / "models").systems == [other, better, *others]
    assert read_systems(None).systems == TrainedSystems().systems == []


@pytest.fixture
def kb() -> MemoryKB:
    return MemoryKB([("a", "pilot", "b"), ("K-7", "pilot", "c")], [("a", "Kite")], types=[("a", "toy")])


def test_parts_have_the_weights_that_were_chosen_for_them(kb: MemoryKB) -> None:
    parts = Parts(kb)
    chosen = replace(DEFAULT, rung=0.7)
    names: dict[str, Any] = {"pruning": "n-gram", "scorer": "lexical", "subject": "popularity"}

    before = parts.system(**names)
    parts.keep(replace(PLAIN, weights=chosen))

    assert (before.weights, parts.system(**names).weights) == (DEFAULT, chosen)
    assert parts.system(**names | {"subject": "none"}).weights == replace(chosen, popularity=0.0)
    assert parts.system(**names | {"subject": "type-count"}).weights == WITH_SUBJECT
    assert parts.system(**names | {"pruning": "n-gram+"}).weights == DEFAULT
    assert parts.system(**names, ranker="weighted-sum") == parts.system(**names)


def test_parts_follow_a_preset_and_the_last_fitted_ranker(kb: MemoryKB, tmp_path: Path, trusted_plugins: None) -> None:
    trained = read_systems(tmp_path)
    trained.choose(replace(PLAIN, weights=PRESETS[EQUATION_4]))
    for name in ("least-squares", "lightgbm"):
        trained.keep(replace(PLAIN, ranker=replace(RANKER, name=name), cascade=Cascade(PLAIN, 0.3)))

    parts = Parts(kb, tmp_path, trust_plugins=True)

    assert parts.preset == EQUATION_4
    assert parts.system(pruning="n-gram+").weights == PRESETS[EQUATION_4]
    assert (parts.system().ranker_name, parts.system().cascade) == ("lightgbm", Cascade(PLAIN, 0.3))
    assert parts.system(ranker="least-squares").ranker_name == "least-squares"
    assert parts.system(ranker="weighted-sum").ranker is None
    parts.forget_learned(PLAIN)
    assert parts.system().ranker is None


def test_scorers_before_a_slash_make_a_cascade(kb: MemoryKB) -> None:
    system = Parts(kb).system(scorer="lexical/static", subject="none")

    assert system.cascade
    assert (system.cascade.threshold, system.cascade.margin) == (0.8, 2.0)
    assert (system.cascade.first.scorers, system.scorers, system.subject) == (("lexical",), ("static",), "none")


def test_made_scorers_are_limited(kb: MemoryKB) -> None:
    parts = Parts(kb)
    for number in range(80):
        parts.scorers[f"other {number}"] = parts.scorer("lexical")

    parts.scorer("static")

    assert "static" in parts.scorers
    assert "lexical" not in parts.scorers


def test_a_type_and_an_id_bound_the_pool(kb: MemoryKB) -> None:
    answerer = Answerer(kb)
    opened = answerer.opened(answerer.system(scorer="lexical"))

    pools = opened.gather([Question.read("kite"), Question.read("who flew K-7")]).pools
    typed = opened.gather([Question.read("kite"), Question.read("who flew K-7")], type_row=0).pools

    assert [kb.ids(pool.subject) for pool in pools] == [["a"], ["K-7"]]
    assert [kb.ids(pool.subject) for pool in typed] == [["a"], []]


def test_confidence_is_calibrated_by_the_ranker_and_then_by_the_system(kb: MemoryKB) -> None:
    answerer = Answerer(kb)
    opened = answerer.opened(answerer.system(scorer="lexical"))
    rating = Rating(np.zeros(1, dtype=np.int64), lambda pairs: {}, (_Stage(("lexical",), HALF),))
    (pool,) = opened.gather([Question.read("kite")]).pools

    plain = opened.confidence(pool, rating).tolist()
    opened.system = replace(opened.system, calibration=Calibration((0.0, 0.5), (0.0, 0.1)))

    assert plain == [0.5]
    assert opened.confidence(pool, rating).tolist() == pytest.approx([0.1])
    assert opened.confidence(pool, None).tolist() == [0.0]


def test_what_was_taught_changes_the_rating(kb: MemoryKB) -> None:
    answerer = Answerer(kb)
    opened = answerer.opened(answerer.system(scorer="lexical"))
    questions = [Question.read("kite")]
    (pool,) = opened.gather(questions).pools
    seen: list[Pools] = []

    def prefer(rating: Rating, pools: Pools, asked: Any) -> Rating:
        seen.append(pools)
        assert asked is questions
        return replace(rating, scores=rating.scores + 7)

    plain = opened.rate_taught(pool, questions)
    opened.prefer = prefer
    taught = opened.rate_taught(pool, questions)

    assert plain
    assert taught
    assert ((taught.scores - plain.scores).tolist(), seen) == ([7], [pool])


@pytest.mark.parametrize(("behind", "level", "tied"), [(0, 2, 2), (1, 2, 1), (10, 2, 1), (11, 1, 1)])
def test_candidates_ten_millionths_behind_are_level(behind: int, level: int, tied: int) -> None:
    kb = MemoryKB([("a", "pilot", "b"), ("a", "maker", "b")], [("a", "Kite")])
    answerer = Answerer(kb)
    linked = answerer.opened(answerer.system(scorer="lexical")).gather([Question.read("kite")])
    rating = Rating(np.array([500, 500 - behind]), lambda pairs: {"x": pairs / 2}, (_Stage(("lexical",)),))

    (ranking,) = rank_candidates(kb, linked, rating, top=1)

    assert (ranking.level, ranking.tied, len(ranking.all_level), ranking.best) == (level, tied, level, [0])
    assert (ranking.scores.tolist(), ranking.parts["x"].tolist()) == (
        pytest.approx([500e-6, (500 - behind) * 1e-6]),
        [0.0],
    )


@pytest.mark.parametrize(
    ("scorer", "learned", "beside"),
    [("static", True, ["lexical"]), ("static", False, []), ("lexical,static", True, []), ("static", None, [])],
)
def test_a_learned_ranker_reads_words_and_probabilities_over_all_relations(
    sample_memory: Answerer, scorer: str, learned: bool | None, beside: list[str]
) -> None:
    opened = sample_memory.opened(sample_memory.system(scorer=scorer))
    questions = [Question.read("who wrote it"), Question.read("where is springfield")]
    pools = opened.gather(questions).together()

    evidence = opened.evidence(pools, questions, learned=learned)

    assert [*evidence.beside] == beside
    assert [*evidence.v] == scorer.split(",")
    for name, v in {**evidence.v, **evidence.beside}.items():
        normalised = opened.relation_scores(name, pools, questions)
        assert (v.tolist() == pytest.approx(normalised.tolist(), abs=1e-6)) is bool(learned)


@pytest.mark.parametrize(
    ("present", "fits"),
    [({"a": "1"}, True), ({"a": "2"}, False), ({}, False), ({"a": "1", "b": "2"}, False)],
)
def test_a_ranker_fits_the_very_models_that_it_was_fitted_on(
    tmp_path: Path, present: dict[str, str], fits: bool
) -> None:
    ranker = replace(RANKER, fitted_on=(("a", "1"),))
    try:
        check_fitted(tmp_path, PLAIN, ranker, present=present)
        fitted = True
    except CheckpointMismatch:
        fitted = False

    assert fitted is fits


def test_a_kept_system_is_scored_anew(kb: MemoryKB) -> None:
    parts = Parts(kb)
    before = parts.scoring(PLAIN)

    assert parts.scoring(PLAIN) is before
    parts.keep(PLAIN)
    assert parts.scoring(PLAIN) is not before
