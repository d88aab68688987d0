"""A learned ranker ranks, explains itself, is sure as often as it is right, and is refused once it is out of date."""

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest
from numpy.typing import NDArray

from kbtools.answering.answerer import Answerer
from kbtools.answering.questions import read_gold
from kbtools.comparison.system_training import train_ranker
from kbtools.errors import BrokenPlugin, CheckpointMismatch, ModelMissing, ModelUnusable, NothingToLearn, UnknownPlugin
from kbtools.kb.contract import KnowledgeBase
from kbtools.pruning.pruners import words_of
from kbtools.ranking.evidence import Evidence
from kbtools.ranking.features import Features, find_features
from kbtools.ranking.model_store import Stamp, read_model, write_model
from kbtools.ranking.models import model_folder
from kbtools.ranking.trained import FILE, read_systems
from kbtools.ranking.weights import DEFAULT
from kbtools.text.question import Question

pytestmark = pytest.mark.usefixtures("trusted_plugins")

QUERY: dict[str, Any] = {"pruning": "n-gram", "scorer": "lexical", "subject": "fact-count"}


class ByWords:
    """A ranker that takes the relation's probability for the score."""

    @classmethod
    def fit(cls, features: Features, gold: NDArray[np.bool_], *, seed: int) -> Self:
        return cls()

    @classmethod
    def load(cls, folder: Path) -> Self:
        read_model(folder)
        return cls()

    def save(self, folder: Path, stamp: Stamp | None = None) -> None:
        write_model(folder, stamp or Stamp(""), {}, file="nothing", write=lambda path: path.write_bytes(b""))

    def score(self, features: Features) -> NDArray[np.float64]:
        return self.explain(features).sum(axis=1)

    def explain(self, features: Features) -> NDArray[np.float64]:
        counting = np.array([name == "relation.lexical.pool" for name in features.names])
        return np.where(counting, features.values, 0.0)


class Endless(ByWords):
    """A ranker whose scores are no numbers."""

    def score(self, features: Features) -> NDArray[np.float64]:
        return np.full(len(features.values), np.nan)


class ByName(ByWords):
    """A ranker that takes the similarity of names for the score."""

    def explain(self, features: Features) -> NDArray[np.float64]:
        counting = np.array([name == "similarity" for name in features.names])
        return np.where(counting, features.values, 0.0)


BY_WORDS, BY_NAME = f"{__name__}:ByWords", f"{__name__}:ByName"


def train(answerer: Answerer, examples: Path, ranker: str = BY_WORDS, **query: str) -> None:
    """Fit a ranker on the validation questions of the sample."""
    questions = read_gold(examples / "sample.valid.txt", answerer.kb)
    train_ranker(answerer, questions, answerer.system(**QUERY | query), ranker=ranker)


def change_fitted(models: Path, **changes: Any) -> None:
    """Let the one ranker of a folder of models say otherwise what it was fitted on."""
    systems = read_systems(models)
    (system,) = systems.systems
    assert system.ranker
    systems.keep(replace(system, ranker=replace(system.ranker, **changes)))


@pytest.fixture
def trained(sample_memory: Answerer, examples: Path, tmp_path: Path) -> Answerer:
    """Give an answerer whose ranker was fitted, opened again from its folder of models."""
    train(Answerer(sample_memory.kb, models=tmp_path), examples)
    return Answerer(sample_memory.kb, models=tmp_path)


def test_a_ranker_answers_for_what_it_was_fitted_for_alone(trained: Answerer) -> None:
    fitted, other = trained.query("who wrote dune", **QUERY), trained.query("who wrote dune", scorer="lexical")

    assert (fitted.ranker, dict(fitted.weights)) == (BY_WORDS, {})
    assert other.ranker == "weighted-sum"
    assert other.weights


def test_the_parts_of_a_learned_score_add_up_to_it(trained: Answerer) -> None:
    result = trained.query("who wrote dune", **QUERY)

    assert result.candidates
    for candidate in result.candidates:
        assert sum(candidate.parts.values()) == pytest.approx(candidate.score, abs=1e-5)
    assert {"sum", "relation", "subject", "mention", "rung", "similarity"} <= set(result.candidates[0].parts)


def test_confidence_is_calibrated_by_the_ranker(trained: Answerer) -> None:
    ranker = trained.system(**QUERY).ranker
    assert ranker

    confidence = trained.query("who wrote dune", abstain=0.0, **QUERY).confidence

    assert confidence is not None
    assert min(ranker.calibration.correct) <= confidence <= max(ranker.calibration.correct)


def test_a_ranker_is_chosen_by_its_name_and_the_last_fitted_ranks_without(
    trained: Answerer, sample_memory: Answerer, examples: Path, tmp_path: Path
) -> None:
    train(trained, examples, BY_NAME)

    for answerer in (trained, Answerer(sample_memory.kb, models=tmp_path)):
        names = (None, BY_NAME, BY_WORDS, "weighted-sum")
        rankers = [answerer.query("who wrote dune", ranker=name, **QUERY).ranker for name in names]
        assert rankers == [BY_NAME, BY_NAME, BY_WORDS, "weighted-sum"]


def test_a_ranker_that_was_not_fitted_for_the_scorers_is_named(trained: Answerer) -> None:
    with pytest.raises(ModelMissing, match=r"no ranker .*ByName' was fitted .* 'n-gram lexical fact-count' .*; fit it"):
        trained.query("who wrote dune", ranker=BY_NAME, **QUERY)

    with pytest.raises(ModelMissing, match=r"no ranker .*ByWords' was fitted .* 'n-gram lexical popularity'"):
        trained.query("who wrote dune", ranker=BY_WORDS, **QUERY | {"subject": None})

    with pytest.raises(UnknownPlugin, match="no ranker 'by-wrods'"):
        trained.query("who wrote dune", ranker="by-wrods", **QUERY)


def test_training_the_weighted_sum_puts_it_back(trained: Answerer, sample_memory: Answerer, tmp_path: Path) -> None:
    trained.parts.forget_learned(trained.system(**QUERY))

    assert trained.query("who wrote dune", **QUERY).ranker == "weighted-sum"
    assert Answerer(sample_memory.kb, models=tmp_path).query("who wrote dune", **QUERY).ranker == "weighted-sum"


def test_a_ranker_of_another_training_is_refused(trained: Answerer, tmp_path: Path) -> None:
    change_fitted(tmp_path, fitted_on=(("subject/fact-count", "another"),))
    stale = Answerer(trained.kb, models=tmp_path)

    with pytest.raises(CheckpointMismatch, match="fitted on another training of subject/fact-count; run kbtools train"):
        stale.query("who wrote dune", **QUERY)


class AnyWords:
    """A trained tagger to which every n-gram is as probable as any other."""

    @classmethod
    def load(cls, folder: Path, kb: KnowledgeBase, *, device: str = "cpu") -> Self:
        read_model(folder)
        return cls()

    def spans(self, questions: Sequence[Question]) -> list[NDArray[np.float64]]:
        words = [len(words_of(question)) for question in questions]
        return [np.where(np.triu(np.ones((count, count))) > 0, 0.0, -np.inf) for count in words]


ANY_WORDS = f"{__name__}:AnyWords"


def train_tagger(models: Path, made_of: str) -> None:
    write_model(
        model_folder(models, "tagger", ANY_WORDS),
        Stamp(ANY_WORDS, made_of),
        {},
        file="nothing",
        write=lambda path: path.write_bytes(b""),
    )


GUIDED = QUERY | {"pruning": "focused-idf"}


@pytest.fixture
def guided_kb(sample_memory: Answerer, examples: Path, tmp_path: Path) -> KnowledgeBase:
    """Give the sample, over which a tagger and a ranker for the pruner that it guides were trained."""
    train_tagger(tmp_path, "some questions")
    train(Answerer(sample_memory.kb, models=tmp_path, tagger=ANY_WORDS), examples, pruning="focused-idf")
    return sample_memory.kb


def test_a_ranker_is_refused_where_the_tagger_of_its_pruner_was_trained_again(
    guided_kb: KnowledgeBase, tmp_path: Path
) -> None:
    unchanged = Answerer(guided_kb, models=tmp_path, tagger=ANY_WORDS)
    assert unchanged.query("who wrote dune", **GUIDED).ranker == BY_WORDS

    train_tagger(tmp_path, "other questions")

    with pytest.raises(CheckpointMismatch, match=f"fitted on another training of tagger/{ANY_WORDS}; run kbtools"):
        Answerer(guided_kb, models=tmp_path, tagger=ANY_WORDS).query("who wrote dune", **GUIDED)


def test_a_ranker_of_other_features_is_refused(trained: Answerer, tmp_path: Path) -> None:
    change_fitted(tmp_path, features=0)

    with pytest.raises(CheckpointMismatch, match="features of another version of kbtools; run kbtools train ranking"):
        Answerer(trained.kb, models=tmp_path).query("who wrote dune", **QUERY)


@pytest.mark.parametrize("damage", [lambda path: path.write_bytes(b"#"), lambda path: path.unlink()])
def test_a_ranker_that_was_tampered_with_is_refused(
    trained: Answerer, tmp_path: Path, damage: Callable[[Path], object]
) -> None:
    (weights,) = tmp_path.rglob("nothing")
    damage(weights)

    with pytest.raises(ModelUnusable, match="train the model again"):
        Answerer(trained.kb, models=tmp_path).query("who wrote dune", **QUERY)


def test_a_damaged_list_of_rankers_is_named(sample_memory: Answerer, tmp_path: Path) -> None:
    read_systems(tmp_path).write()
    (tmp_path / FILE).write_bytes(b"?")

    with pytest.raises(ModelUnusable, match=r"systems\.msgpack: damaged, or of another version; delete it, then run"):
        Answerer(sample_memory.kb, models=tmp_path)


def test_a_ranker_whose_scores_are_no_numbers_is_named(sample_memory: Answerer, examples: Path, tmp_path: Path) -> None:
    answerer = Answerer(sample_memory.kb, models=tmp_path)
    name = f"{__name__}:Endless"

    with pytest.raises(BrokenPlugin, match=r"Endless gave a score that is not finite"):
        train(answerer, examples, name)


# features


def evidence_of(answerer: Answerer, *texts: str) -> Evidence:
    opened = answerer.opened(answerer.system(pruning="n-gram", scorer="lexical,type-words", subject="type-count"))
    linked = opened.gather([Question.read(text) for text in texts])
    return opened.evidence(linked.together(), linked.questions, learned=True)


@pytest.fixture
def two(sample_memory: Answerer) -> Answerer:
    """Give an answerer with two relation scorers."""
    answerer = Answerer(sample_memory.kb)
    answerer.parts.scorers["type-words"] = answerer.scorer("lexical")
    return answerer


def test_features_of_many_questions_are_those_of_each_alone(two: Answerer) -> None:
    texts = ("who wrote dune", "zzz", "where is springfield", "what is the genre of harder..... faster?")

    together = find_features(evidence_of(two, *texts), DEFAULT)

    alone = [find_features(evidence_of(two, text), DEFAULT) for text in texts if text != "zzz"]
    assert together.names == alone[0].names
    assert together.values == pytest.approx(np.concatenate([features.values for features in alone]))


def test_features_are_finite_and_named_by_their_part(two: Answerer) -> None:
    features = find_features(evidence_of(two, "who wrote dune", "where is springfield"), DEFAULT)

    assert np.isfinite(features.values).all()
    assert len(set(features.names)) == len(features.names) == features.values.shape[1]
    assert {name.partition(".")[0] for name in features.names} == {
        *("sum", "relation", "subject", "mention", "rung", "similarity", "unexplained", "namesakes", "pool")
    }


def test_margins_are_to_the_best_of_the_pool(two: Answerer) -> None:
    features = find_features(evidence_of(two, "where is springfield"), DEFAULT)
    by_name = dict(zip(features.names, features.values.T, strict=True))

    assert by_name["sum.margin"].tolist() == pytest.approx((by_name["sum"] - by_name["sum"].max()).tolist())
    assert by_name["relation.lexical.margin"].max() == 0
    assert (by_name["subject.namesakes"] <= by_name["subject.rivals"]).all()


# the plugin lightgbm


def test_boosted_trees_learn_nothing_from_few_questions() -> None:
    pytest.importorskip("lightgbm", reason="the ranker lightgbm needs it: pip install 'kbtools[ranker]'")
    from kbtools.scorers.rankers.boosted_ranker import BoostedRanker

    with pytest.raises(NothingToLearn, match="0 questions have their gold answer among their candidates"):
        BoostedRanker.fit(Features(("sum",), np.zeros((2, 1)), np.array([2])), np.zeros(2, dtype=np.bool_), seed=1)


def test_boosted_trees_refuse_other_features() -> None:
    pytest.importorskip("lightgbm", reason="the ranker lightgbm needs it: pip install 'kbtools[ranker]'")
    from kbtools.scorers.rankers.boosted_ranker import BoostedRanker

    values, counts, gold = np.arange(600.0).reshape(600, 1), np.full(300, 2), np.tile([False, True], 300)
    ranker = BoostedRanker.fit(Features(("sum",), values, counts), gold, seed=1)

    with pytest.raises(CheckpointMismatch, match="learned from the features sum, found subject"):
        ranker.score(Features(("subject",), values, counts))


def test_trees_learn_by_the_slopes_of_the_cross_entropy_over_each_pool() -> None:
    from kbtools.scorers.rankers.boosted_ranker import places, softmax_objective

    sizes, gold, scores = np.array([2, 3]), np.array([0.0, 1, 0, 0, 1]), np.array([0.5, -1, 2, 0, 1])

    def loss(scores: NDArray[np.float64]) -> float:
        pools = np.split(scores, [2])
        return sum(float(np.log(np.exp(own).sum())) for own in pools) - float(scores @ gold)

    slopes, curvature = softmax_objective(gold, sizes)(scores, None)

    steps = 1e-5 * np.eye(5)
    assert slopes == pytest.approx([(loss(scores + step) - loss(scores - step)) / 2e-5 for step in steps], abs=1e-6)
    assert curvature == pytest.approx(2 * (slopes + gold) * (1 - slopes - gold))
    columns = Features(("sum", "other"), np.stack([scores, -scores], axis=1), sizes)
    assert places(columns, np.array([0, 0, 1, 1, 1])).tolist() == [0, 1, 0, 2, 1]


def test_trees_score_as_the_library_that_grew_them_and_contributions_add_up(tmp_path: Path) -> None:
    lightgbm = pytest.importorskip("lightgbm", reason="the ranker lightgbm needs it: pip install 'kbtools[ranker]'")
    from kbtools.scorers.rankers.boosted_ranker import BoostedRanker

    random = np.random.default_rng(3)
    values = random.standard_normal((1200, 3)).round(1)  # rounded, so that values meet thresholds
    gold = (values[:, 0] + values[:, 1] * values[:, 2]).reshape(300, 4).argmax(axis=1)[:, None] == np.arange(4)
    features = Features(("a", "b", "c"), values, np.full(300, 4))
    ranker = BoostedRanker.fit(features, gold.reshape(-1), seed=1)
    trees = lightgbm.Booster(model_str=ranker.text)

    constant = trees.predict(values[:1], pred_contrib=True)[0, -1]
    assert ranker.score(features) == pytest.approx(trees.predict(values) - constant, abs=1e-9)
    assert ranker.explain(features).sum(axis=1) == pytest.approx(ranker.score(features), abs=1e-9)
    assert ranker.score(features.of(np.zeros(300, dtype=np.bool_))).shape == (0,)


def test_trees_that_were_grown_are_opened_without_the_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("lightgbm", reason="the ranker lightgbm needs it: pip install 'kbtools[ranker]'")
    from kbtools.scorers.rankers.boosted_ranker import BoostedRanker

    values, counts, gold = np.arange(600.0).reshape(600, 1), np.full(300, 2), np.tile([False, True], 300)
    features = Features(("sum",), values, counts)
    ranker = BoostedRanker.fit(features, gold, seed=1)
    ranker.save(tmp_path / "ranker")
    monkeypatch.setitem(sys.modules, "lightgbm", None)

    assert BoostedRanker.load(tmp_path / "ranker").score(features).tolist() == ranker.score(features).tolist()


def test_features_are_those_of_a_plain_loop(two: Answerer) -> None:
    evidence = evidence_of(two, "who wrote harry potter", "where is springfield", "zzz", "who wrote it")
    pools, u = evidence.pools, evidence.u
    assert u is not None
    question, subject, link = pools.question_of_pair, pools.pair_subject, pools.link_of_pair
    # v of each mention and relation, by their places.
    v: dict[tuple[int, int], float] = {}
    values = iter(evidence.v["lexical"].tolist())
    for asked in range(len(pools)):
        relations = np.flatnonzero(pools.question_of("relation") == asked).tolist()
        for mention in np.flatnonzero(pools.question_of("mention") == asked).tolist():
            v |= {(mention, relation): next(values) for relation in relations}
    mention_of = pools.subject_mention[subject]
    own = np.array([v[key] for key in zip(mention_of.tolist(), pools.pair_relation.tolist(), strict=True)])
    rows = []
    for at in range(pools.pairs):
        pool, mates, twins = question == question[at], subject == subject[at], link == link[at]
        rivals = twins & (pools.pair_relation == pools.pair_relation[at])
        spoken = [value for (asked, _), value in v.items() if asked == mention_of[at]]
        able = set(subject[pool & (pools.pair_relation == pools.pair_relation[at])].tolist())
        total = sum(math.exp(u[one] + (one in able)) for one in set(subject[pool].tolist()))
        rows.append(
            {
                "relation.lexical": own[at],
                "relation.lexical.pool": own[at] - math.log(sum(map(math.exp, spoken))),
                "relation.lexical.margin": own[at] - own[pool].max(),
                "relation.lexical.subject": own[at] - math.log(np.exp(own[mates]).sum()),
                "subject": u[subject[at]],
                "subject.pool": u[subject[at]] + 1 - math.log(total),
                "subject.namesakes": u[subject[at]] - u[subject[twins]].max(),
                "subject.rivals": u[subject[at]] - u[subject[rivals]].max(),
                "mention": pools.link_weight[link[at]],
                "rung": pools.link_rung[link[at]],
                "similarity": pools.link_similarity[link[at]],
                "unexplained": math.log(max(pools.link_confidence[link[at]], 1e-6)),
                "namesakes": math.log(len(set(subject[twins].tolist()))),
                "namesakes.rivals": math.log(rivals.sum()),
                "pool": math.log(pool.sum()),
            }
        )

    features = find_features(evidence, DEFAULT)

    by_name = dict(zip(features.names, features.values.T, strict=True))
    assert len({row["namesakes"] for row in rows}) > 1
    for name in rows[0]:
        assert by_name[name].tolist() == pytest.approx([row[name] for row in rows]), name
