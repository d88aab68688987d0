"""The choice of weights, the fit of rankers and of cascades are those of plain loops over folds and questions."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pytest
from numpy.typing import NDArray

from kbtools.answering.answerer import Answerer
from kbtools.answering.gold import GoldScores, find_gold, score_gold
from kbtools.answering.questions import AnnotatedQuestion, read_gold
from kbtools.comparison.system_training import (  # fmt: skip
    FOLDS,
    MOST_LOST,
    THRESHOLDS,
    choose_threshold,
    deal_folds,
    train_cascade,
    train_ranker,
    train_system,
)
from kbtools.comparison.weight_search import choose_system
from kbtools.errors import BadArgument, ModelMissing, NothingToLearn, OutputUnusable, SourceEmpty
from kbtools.ranking.cascade import complete, unruled_mentions, winner_shares
from kbtools.ranking.confidence import Calibration, fit_calibration, winner_confidence
from kbtools.ranking.features import VERSION, Features, find_features
from kbtools.ranking.model_store import Stamp, read_model, write_model
from kbtools.ranking.models import model_digest
from kbtools.ranking.rankers import WeightedSum
from kbtools.ranking.score import as_micro
from kbtools.ranking.system import MARGIN, System
from kbtools.ranking.trained import ranker_folder

pytestmark = pytest.mark.usefixtures("trusted_plugins")


class Taught:
    """A ranker that prefers the relations and sums that its own questions preferred, and remembers its fits."""

    fits: ClassVar[list[tuple[int, int]]] = []
    least: ClassVar[int] = 0

    def __init__(self, slopes: Sequence[float]) -> None:
        self.slopes = np.array(slopes)

    @classmethod
    def fit(cls, features: Features, gold: NDArray[np.bool_], *, seed: int) -> Self:
        if gold.sum() < cls.least:
            raise NothingToLearn("too few")
        cls.fits.append((len(features.counts), seed))
        return cls((features.values[gold].mean(axis=0) - features.values.mean(axis=0)).tolist())

    @classmethod
    def load(cls, folder: Path) -> Self:
        return cls(read_model(folder).contents["slopes"])

    def save(self, folder: Path, stamp: Stamp | None = None) -> None:
        contents = {"slopes": self.slopes.tolist()}
        write_model(folder, stamp or Stamp(""), contents, file="nothing", write=lambda path: path.write_bytes(b""))

    def score(self, features: Features) -> NDArray[np.float64]:
        return self.explain(features).sum(axis=1)

    def explain(self, features: Features) -> NDArray[np.float64]:
        return 3 * np.tanh(features.values * self.slopes)


class Knowing:
    """A relation scorer that knows the relations of some questions, and prefers the first rows for the others."""

    known: ClassVar[dict[str, str]] = {}

    def __init__(self, relations: Sequence[str]) -> None:
        self.relations = list(relations)

    def score(self, questions: Sequence[Any]) -> NDArray[np.float64]:
        scores = np.tile(-np.arange(len(self.relations)) / 40, (len(questions), 1))
        for own, one in zip(scores, questions, strict=True):
            own[self.relations.index(self.known.get(one.question.text, self.relations[0]))] = 1.0
        return scores


TAUGHT, KNOWING = f"{__name__}:Taught", f"{__name__}:Knowing"
QUERY: dict[str, Any] = {"pruning": "n-gram", "scorer": f"lexical,{KNOWING}", "subject": "fact-count"}


@pytest.fixture
def answerer(sample_memory: Answerer, tmp_path: Path) -> Answerer:
    Taught.fits = []
    return Answerer(sample_memory.kb, models=tmp_path)


@pytest.fixture
def valid(examples: Path, answerer: Answerer) -> list[AnnotatedQuestion]:
    """Return questions, half of them without words of their relation, one without candidates, one without answer."""
    read = read_gold(examples / "sample.valid.txt", answerer.kb)
    names = [answerer.entity(one.subject).name for one in read]
    vague = [replace(one, text=f"tell of {name}") for one, name in zip(read, names, strict=True)]
    Knowing.known = {one.text: one.relation for one in vague}
    questions = [*vague[::2], *read[1::2]]
    return [*questions, replace(read[0], text="zzz"), replace(read[1], relation="no.such.relation")]


def system_of(answerer: Answerer, **names: str) -> System:
    return answerer.system(**QUERY | names, ranker="weighted-sum")


def plain_scores(
    scored: GoldScores, folds: NDArray[np.int64], fitted: Features, *read: Features
) -> list[NDArray[np.int64]]:
    """Score the candidates of every question by a ranker fitted on the questions of the other folds."""
    pools = scored.evidence.pools
    scores = [np.zeros(pools.pairs, dtype=np.int64) for _ in read]
    for question in range(len(pools)):
        others = folds != folds[question]
        ranker = Taught.fit(fitted.of(others), scored.gold[others[pools.question_of_pair]], seed=0)
        own = pools.question_of_pair == question
        for some, features in zip(scores, read, strict=True):
            some[own] = as_micro(ranker.score(features.of(np.arange(len(pools)) == question)))
    return scores


def plain_calibration(
    scored: GoldScores, scores: NDArray[np.int64], answerable: NDArray[np.bool_], among: NDArray[np.bool_] | None = None
) -> Calibration:
    kept = answerable if among is None else answerable & among
    confidence = winner_confidence(scored.evidence.pools, scores)
    return fit_calibration(confidence[kept], scored.expected_by(scores)[kept])


def choose_weights(answerer: Answerer, *, relation: float = 1e-6, **names: str) -> System:
    """Return a system with other weights than the defaults, as if training had chosen them."""
    system = system_of(answerer, **names)
    system = system.weighted(replace(system.weights, relation=relation, subject=0.0))
    answerer.parts.keep(system)
    return system


def test_a_ranker_is_measured_and_calibrated_by_rankers_of_the_other_folds(
    answerer: Answerer, valid: list[AnnotatedQuestion], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual, system = system_of(answerer), choose_weights(answerer)
    monkeypatch.setattr(answerer.parts, "digests", lambda system: {"subject/two": "2", "relation/one": "1"})
    gold = find_gold(answerer.kb, valid)
    scored = score_gold(answerer.opened(system), gold)
    features = find_features(scored.evidence, system.weights)
    (scores,) = plain_scores(scored, deal_folds(valid, seed=3), features, features)
    right = scored.expected_by(scores)
    assert (gold.fault > 0).sum() == 1
    Taught.fits = []

    trained = train_ranker(answerer, valid, usual, ranker=TAUGHT, seed=3)

    assert trained.right.tolist() == right.tolist()
    assert (trained.after, trained.questions, trained.in_doubt) == (right.mean(), len(valid), 1.0)
    assert trained.before == scored.accuracy(WeightedSum(system.weights)) != trained.after
    ranker = trained.system.ranker
    assert ranker
    assert ranker.calibration == plain_calibration(scored, scores, gold.fault == 0)
    assert ranker.digest == model_digest(trained.folder)
    assert (ranker.features, ranker.fitted_on) == (VERSION, (("relation/one", "1"), ("subject/two", "2")))
    assert read_model(trained.folder).stamp.figures == {"pairs right": right.mean()}
    # Each fold is left out once, then all questions teach the ranker that is kept.
    assert sum(count for count, _ in Taught.fits[:-1]) == (FOLDS - 1) * len(valid)
    assert len(Taught.fits) == FOLDS + 1
    assert Taught.fits[-1] == (len(valid), 3)
    assert {seed for _, seed in Taught.fits} == {3}
    whole = Taught.fit(features, scored.gold, seed=3)
    assert Taught.load(trained.folder).slopes.tolist() == whole.slopes.tolist()
    assert Answerer(answerer.kb, models=tmp_path).system(**QUERY) == trained.system


@pytest.mark.parametrize("lost", [MOST_LOST, 0.12])
def test_a_cascade_is_that_of_plain_loops(
    answerer: Answerer, valid: list[AnnotatedQuestion], monkeypatch: pytest.MonkeyPatch, lost: float
) -> None:
    monkeypatch.setattr("kbtools.comparison.system_training.MOST_LOST", lost)
    choose_weights(answerer, scorer="lexical", relation=3.0)
    system = choose_weights(answerer)
    gold, folds = find_gold(answerer.kb, valid), deal_folds(valid, seed=1)
    scored = score_gold(answerer.opened(system), gold)
    pools, order = scored.evidence.pools, system.scorers
    some = GoldScores(scored.evidence.deferring([KNOWING]), scored.gold)
    first = choose_system(replace(system, scorers=("lexical",)), some)
    features = find_features(some.evidence, first.weights)
    (early,) = plain_scores(some, folds, features, features)
    read = unruled_mentions(pools, early, MARGIN)
    deferred = {KNOWING: some.evidence.later[KNOWING](read)}
    features = find_features(scored.evidence, system.weights)
    spared = find_features(complete(some.evidence, deferred, read, order=order), system.weights)
    everywhere, late = plain_scores(scored, folds, features, features, spared)
    right_early, right_late = scored.expected_by(early), scored.expected_by(late)
    least = scored.expected_by(everywhere).mean() - lost
    shares = winner_shares(pools, early)
    threshold = choose_threshold(shares, right_early, right_late, least=least)
    doubtful = shares < threshold
    assert 0 < doubtful.mean() < 1
    assert not read.all()
    right = np.where(doubtful, right_late, right_early)

    trained = train_cascade(answerer, valid, system, in_doubt=[KNOWING], ranker=TAUGHT)

    cascade, ranker = trained.system.cascade, trained.system.ranker
    assert cascade
    assert ranker
    assert cascade.threshold == threshold
    assert trained.right.tolist() == right.tolist()
    assert (trained.after, trained.questions, trained.in_doubt) == (right.mean(), len(valid), doubtful.mean())
    assert trained.before == scored.accuracy(WeightedSum(system.weights))
    answerable = gold.fault == 0
    assert ranker.calibration == plain_calibration(scored, late, answerable, doubtful)
    assert cascade.first.ranker
    assert cascade.first.ranker.calibration == plain_calibration(scored, early, answerable, ~doubtful)
    assert cascade.first.weights == first.weights
    assert (cascade.first.scorers, trained.system.scorers) == (("lexical",), order)
    assert system_of(answerer, scorer="lexical").weights == first.weights
    # The first system alone is trained too, and calibrated on all questions.
    alone = Answerer(answerer.kb, models=answerer.models).system(**QUERY | {"scorer": "lexical"}).ranker
    assert alone == replace(cascade.first.ranker, calibration=plain_calibration(scored, early, answerable))
    assert answerer.models
    folders = {path.parent.name: path.parent for path in answerer.models.rglob("nothing")}
    assert read_model(folders["n-gram~lexical~fact-count"]).stamp.figures == {"pairs right": right_early.mean()}
    assert read_model(trained.folder).stamp.figures == {"pairs right": right.mean()}


def test_a_ranker_that_is_never_in_doubt_is_calibrated_on_all_questions(
    answerer: Answerer, valid: list[AnnotatedQuestion], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kbtools.comparison.system_training.THRESHOLDS", (0.0,))

    trained = train_cascade(answerer, valid, system_of(answerer), in_doubt=[KNOWING], ranker=TAUGHT).system

    assert trained.ranker
    assert max(trained.ranker.calibration.correct) > 0


def test_a_ranker_is_fitted_without_the_cascade_before_it(
    answerer: Answerer, valid: list[AnnotatedQuestion], tmp_path: Path
) -> None:
    alone = train_ranker(Answerer(answerer.kb, models=tmp_path / "alone"), valid, system_of(answerer), ranker=TAUGHT)
    train_cascade(answerer, valid, system_of(answerer), in_doubt=[KNOWING], ranker=TAUGHT)

    trained = train_ranker(answerer, valid, answerer.system(**QUERY), ranker=TAUGHT)

    assert trained.system.cascade is None
    assert trained.right.tolist() == alone.right.tolist()


def test_the_lowest_threshold_with_enough_right_is_chosen() -> None:
    share, early, late = np.array([0.3, 0.6, 0.9]), np.array([0.0, 0.0, 1.0]), np.array([1.0, 1.0, 1.0])

    assert choose_threshold(share, early, late, least=1.0) == pytest.approx(0.65)
    assert choose_threshold(share, early, late, least=2 / 3) == pytest.approx(0.35)
    assert choose_threshold(share, early, late, least=0.0) == 0.0
    assert choose_threshold(share, late, early, least=2.0) == THRESHOLDS[0]
    assert choose_threshold(share, early, late, least=2.0) == pytest.approx(0.65)
    assert (THRESHOLDS[0], THRESHOLDS[1], THRESHOLDS[-3:]) == (0.0, 0.05, (0.95, 0.98, 1.0))


def test_questions_about_one_subject_lie_in_one_fold(valid: list[AnnotatedQuestion]) -> None:
    again = [replace(one, text=f"again: {one.text}") for one in valid]
    folds, other = deal_folds([*valid, *again], seed=1), deal_folds(valid, seed=2)

    assert folds[: len(valid)].tolist() == folds[len(valid) :].tolist()
    assert set(folds.tolist()) == set(range(FOLDS))
    assert other.tolist() != folds[: len(valid)].tolist()


@pytest.mark.parametrize(
    ("in_doubt", "scorer", "reason"),
    [
        (["encoder"], QUERY["scorer"], "'encoder' is not one of the scorers"),
        ([KNOWING, "encoder"], QUERY["scorer"], "'encoder' is not one of the scorers"),
        ([KNOWING], KNOWING, "no scorer is left to run first"),
        (["lexical"], QUERY["scorer"], "lexical is read by every learned ranker"),
    ],
)
def test_scorers_in_doubt_that_make_no_cascade_are_refused(
    answerer: Answerer, valid: list[AnnotatedQuestion], in_doubt: list[str], scorer: str, reason: str
) -> None:
    with pytest.raises(BadArgument, match=reason):
        train_cascade(answerer, valid, system_of(answerer, scorer=scorer), ranker=TAUGHT, in_doubt=in_doubt)


def test_a_ranker_needs_questions_and_a_folder(sample_memory: Answerer, valid: list[AnnotatedQuestion]) -> None:
    system = system_of(sample_memory)

    with pytest.raises(ModelMissing, match="name their folder"):
        train_ranker(sample_memory, valid, system, ranker=TAUGHT)
    with pytest.raises(SourceEmpty, match="no question to fit a ranker on"):
        train_ranker(sample_memory, [], system, ranker=TAUGHT)


@pytest.mark.parametrize("scorer", ["lexical", QUERY["scorer"]])
def test_a_folder_of_something_else_is_left_alone_before_anything_is_fitted(
    answerer: Answerer, valid: list[AnnotatedQuestion], tmp_path: Path, scorer: str
) -> None:
    folder = ranker_folder(tmp_path, TAUGHT, system_of(answerer, scorer=scorer).key)
    folder.mkdir(parents=True)
    (folder / "letter").write_text("mine", encoding="utf-8")

    with pytest.raises(OutputUnusable):
        train_cascade(answerer, valid, system_of(answerer), in_doubt=[KNOWING], ranker=TAUGHT)

    assert Taught.fits == []


def test_training_keeps_weights_and_the_named_ranker(answerer: Answerer, valid: list[AnnotatedQuestion]) -> None:
    system = system_of(answerer)

    trained = train_system(answerer, valid, system, ranker=TAUGHT, seed=5)

    assert trained.ranker
    assert trained.system == trained.ranker.system
    assert trained.system.ranker_name == TAUGHT
    assert trained.system.weights == trained.weights.weights
    assert {seed for _, seed in Taught.fits} == {5}
    assert trained.note == ""
    assert answerer.system(**QUERY).ranker_name == TAUGHT


def test_training_with_scorers_in_doubt_makes_a_cascade(answerer: Answerer, valid: list[AnnotatedQuestion]) -> None:
    trained = train_system(answerer, valid, system_of(answerer), ranker=TAUGHT, in_doubt=[KNOWING], seed=6)

    assert trained.system.cascade
    assert trained.system.deferred == (KNOWING,)
    assert {seed for _, seed in Taught.fits} == {6}


@pytest.mark.parametrize("named", [True, False])
def test_training_the_weighted_sum_puts_it_back(
    answerer: Answerer, valid: list[AnnotatedQuestion], monkeypatch: pytest.MonkeyPatch, named: bool
) -> None:
    train_system(answerer, valid, system_of(answerer), ranker=TAUGHT)
    monkeypatch.setitem(sys.modules, "lightgbm", None)

    trained = train_system(answerer, valid, system_of(answerer), ranker="weighted-sum" if named else None)

    assert (trained.ranker, trained.note) == (None, "")
    assert trained.system == trained.weights.system == answerer.system(**QUERY)
    assert answerer.system(**QUERY).ranker_name == "weighted-sum"


def test_without_anything_to_learn_the_weighted_sum_ranks_unless_a_ranker_is_named(
    answerer: Answerer, valid: list[AnnotatedQuestion], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("lightgbm", reason="the default ranker needs it: pip install 'kbtools[ranker]'")
    train_system(answerer, valid, system_of(answerer), ranker=TAUGHT)

    trained = train_system(answerer, valid, system_of(answerer))

    assert (trained.ranker, trained.system.ranker) == (None, None)
    assert trained.note.startswith("the weighted sum ranks: ")
    assert answerer.system(**QUERY).ranker_name == "weighted-sum"
    monkeypatch.setattr(Taught, "least", 10_000)
    with pytest.raises(NothingToLearn):
        train_system(answerer, valid, system_of(answerer), ranker=TAUGHT)
