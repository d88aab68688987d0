"""Relation scorers can be trained into a folder, and rebuilt from it alone."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kbtools.errors import (
    BadQuestions,
    BrokenPlugin,
    CheckpointMismatch,
    ModelMissing,
    ModelUnusable,
    SourceEmpty,
    UnknownDevice,
)
from kbtools.kb.contract import KnowledgeBase
from kbtools.ranking.models import RELATION, make_relation_scorer
from kbtools.text.question import MarkedQuestion, Question

pytest.importorskip("torch", reason="networks need torch: pip install 'kbtools[train]'")

from torch import Tensor

from kbtools.ranking.model_store import RECORD
from kbtools.scorers.fitting.measures import SILENT, Callbacks, relation_marks
from kbtools.scorers.fitting.profiles import profile_settings
from kbtools.scorers.fitting.splits import Splits
from kbtools.scorers.fitting.training import train
from kbtools.scorers.networks.checkpoint import WEIGHTS
from kbtools.scorers.networks.training_settings import TrainingSettings, change_settings
from kbtools.scorers.relations.relation import EmbedAverageScorer
from kbtools.scorers.relations.relation_training import sample_negatives

SMALL = {"words": "random", "dim": 24, "words_dim": 16, "hidden": 16, "epochs": 12, "batch": 16, "learning_rate": 0.02}
AUTHOR = [MarkedQuestion(Question.read("who is the author of dune"), 21, 25)]


def small(scorer: str, **changes: object) -> TrainingSettings:
    return change_settings(profile_settings("best", RELATION, scorer), SMALL | changes)


@pytest.fixture(scope="session")
def models(sample_kb: KnowledgeBase, splits: Splits, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Train two small scorers on the sample."""
    folder = tmp_path_factory.mktemp("models")
    for scorer in ("embed-avg", "ltg-cnn+"):
        train(sample_kb, splits, part=RELATION, name=scorer, settings=small(scorer), models=folder)
    return folder


@pytest.mark.parametrize("scorer", ["embed-avg", "ltg-cnn+"])
def test_a_trained_scorer_knows_its_relations(sample_kb: KnowledgeBase, models: Path, scorer: str) -> None:
    scores = make_relation_scorer(scorer, sample_kb, models=models).score(AUTHOR)

    assert sample_kb.relations[int(scores[0].argmax())] == "book.written_work.author"


@pytest.mark.parametrize("objective", ["hinge", "cross-entropy"])
@pytest.mark.parametrize(("optimiser", "rate"), [("adam", 0.02), ("adagrad", 0.3), ("row-adagrad", 0.3)])
def test_every_objective_and_optimiser_learns(
    sample_kb: KnowledgeBase, splits: Splits, tmp_path: Path, objective: str, optimiser: str, rate: float
) -> None:
    settings = small("embed-avg", objective=objective, optimiser=optimiser, learning_rate=rate, negatives=16, epochs=6)
    losses = []

    train(
        sample_kb,
        splits,
        part=RELATION,
        name="embed-avg",
        settings=settings,
        models=tmp_path,
        callbacks=Callbacks(lambda epoch: losses.append(epoch.loss)),
    )

    assert losses[-1] < 0.9 * losses[0]


def test_same_seed_same_weights(sample_kb: KnowledgeBase, splits: Splits, tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "other"]
    settings = small("bigru", epochs=2)

    scores = []
    for folder in folders:
        train(sample_kb, splits, part=RELATION, name="bigru", settings=settings, models=folder)
        scores.append(make_relation_scorer("bigru", sample_kb, models=folder).score(AUTHOR))

    assert np.array_equal(scores[0], scores[1])


def test_a_training_that_is_done_is_not_done_again(sample_kb: KnowledgeBase, splits: Splits, models: Path) -> None:
    again = train(sample_kb, splits, part=RELATION, name="embed-avg", settings=small("embed-avg"), models=models)

    assert not again.fresh
    assert again.figures["of all relations"] > 0.2


def test_a_killed_training_leaves_the_old_model_and_goes_on(
    sample_kb: KnowledgeBase, splits: Splits, tmp_path: Path
) -> None:
    def run(epochs: int, callbacks: Callbacks = SILENT) -> None:
        settings = small("embed-avg", epochs=epochs)
        where: dict[str, Any] = {"part": RELATION, "name": "embed-avg", "models": tmp_path}
        train(sample_kb, splits, settings=settings, callbacks=callbacks, **where)

    def die(epoch: object) -> None:
        raise KeyboardInterrupt

    run(1)
    before = make_relation_scorer("embed-avg", sample_kb, models=tmp_path).score(AUTHOR)
    with pytest.raises(KeyboardInterrupt):
        run(3, Callbacks(die))
    after = make_relation_scorer("embed-avg", sample_kb, models=tmp_path).score(AUTHOR)
    numbers: list[int] = []
    run(3, Callbacks(lambda epoch: numbers.append(epoch.number)))

    assert np.array_equal(before, after)
    assert numbers == [2, 3]


@pytest.mark.parametrize("scorer", ["embed-avg", "ltg-cnn+"])
def test_relations_in_another_order_have_the_same_scores(
    sample_kb: KnowledgeBase, reordered_kb: KnowledgeBase, models: Path, scorer: str
) -> None:
    before = make_relation_scorer(scorer, sample_kb, models=models).score(AUTHOR)
    after = make_relation_scorer(scorer, reordered_kb, models=models).score(AUTHOR)

    assert len(set(before[0])) > 10
    assert after[:, ::-1] == pytest.approx(before, abs=1e-5)


def test_a_model_that_was_reordered_is_written_in_its_new_order(
    sample_kb: KnowledgeBase, reordered_kb: KnowledgeBase, models: Path, tmp_path: Path
) -> None:
    before = make_relation_scorer("embed-avg", sample_kb, models=models).score(AUTHOR)
    EmbedAverageScorer.load(models / "relation" / "embed-avg", reordered_kb).save(tmp_path / "relation" / "embed-avg")

    after = make_relation_scorer("embed-avg", sample_kb, models=tmp_path).score(AUTHOR)

    assert np.array_equal(before, after)


def test_a_model_of_other_relations_is_refused(tiny_memory: KnowledgeBase, models: Path) -> None:
    with pytest.raises(CheckpointMismatch, match=r"on 45 relations .* base has 7 .* and 41 more, .* and 3 more;"):
        make_relation_scorer("embed-avg", tiny_memory, models=models)


def test_a_trained_scorer_needs_models(sample_kb: KnowledgeBase) -> None:
    with pytest.raises(ModelMissing, match=r"'bigru' must be trained: name the folder .* --models"):
        make_relation_scorer("bigru", sample_kb)


def test_a_folder_without_the_model_says_so(sample_kb: KnowledgeBase, tmp_path: Path) -> None:
    with pytest.raises(ModelMissing, match="no trained model here"):
        make_relation_scorer("bigru", sample_kb, models=tmp_path)


def test_a_model_of_another_scorer_is_refused(sample_kb: KnowledgeBase, models: Path, tmp_path: Path) -> None:
    (tmp_path / "relation").mkdir()
    (tmp_path / "relation" / "bigru").symlink_to(models / "relation" / "embed-avg")

    with pytest.raises(ModelUnusable, match="trained as 'embed-avg', requested as 'bigru'; train 'bigru' again"):
        make_relation_scorer("bigru", sample_kb, models=tmp_path)


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        pytest.param(RECORD, lambda old: old.replace(b"version\x01", b"version\x02"), "found format", id="newer"),
        pytest.param(RECORD, lambda old: old[:40], "damaged", id="cut"),
        pytest.param(WEIGHTS, lambda old: old[:-1] + b"?", "not as written by training", id="weights"),
    ],
)
def test_a_newer_or_damaged_model_is_refused(
    sample_kb: KnowledgeBase, models: Path, tmp_path: Path, file: str, change: Callable[[bytes], bytes], message: str
) -> None:
    folder = tmp_path / "relation" / "embed-avg"
    folder.mkdir(parents=True)
    for name in (RECORD, WEIGHTS):
        folder.joinpath(name).write_bytes((models / "relation" / "embed-avg" / name).read_bytes())
    folder.joinpath(file).write_bytes(change(folder.joinpath(file).read_bytes()))

    with pytest.raises(ModelUnusable, match=message):
        make_relation_scorer("embed-avg", sample_kb, models=tmp_path)


def test_questions_of_another_knowledge_base_are_refused(
    sample_kb: KnowledgeBase, annotated: Callable[..., Path]
) -> None:
    path = annotated(("m.078ffw", "no.such.relation", "who"), ("m.078ffw", "book.written_work.author", "who"))

    with pytest.raises(BadQuestions, match="1 of 2 questions have a relation that the knowledge base lacks"):
        Splits.read(sample_kb, train=path, valid=path)


@pytest.mark.parametrize(("unknown", "refused"), [(1, False), (2, True)])
def test_one_question_in_twenty_may_have_an_unknown_relation(
    sample_kb: KnowledgeBase, annotated: Callable[..., Path], unknown: int, refused: bool
) -> None:
    known = [("m.078ffw", "book.written_work.author", "who"), ("m.0g_tb", "film.film.genre", "what")] * 10
    path = annotated(*known[unknown:], *[("m.078ffw", "no.such.relation", "who")] * unknown)

    with pytest.raises(BadQuestions, match="2 of 20") if refused else nullcontext():
        splits = Splits.read(sample_kb, train=path, valid=path)
        assert (splits.train.unknown, len(splits.train)) == (1, 19)


def test_one_label_is_refused(sample_kb: KnowledgeBase, annotated: Callable[..., Path]) -> None:
    path = annotated(("m.078ffw", "book.written_work.author", "who"), ("m.0g_tb", "book.written_work.author", "what"))

    with pytest.raises(BadQuestions, match="every question has the same relation"):
        Splits.read(sample_kb, train=path, valid=path)


def test_an_empty_split_is_refused(sample_kb: KnowledgeBase, annotated: Callable[..., Path]) -> None:
    with pytest.raises(SourceEmpty):
        Splits.read(sample_kb, train=annotated(), valid=annotated())


def test_an_unknown_device_is_named(sample_kb: KnowledgeBase, splits: Splits, tmp_path: Path) -> None:
    with pytest.raises(UnknownDevice, match="no device 'tpu9'"):
        train(sample_kb, splits, part=RELATION, name="bigru", settings=small("bigru"), models=tmp_path, device="tpu9")


def test_a_scorer_without_a_network_cannot_be_trained(sample_kb: KnowledgeBase, splits: Splits, tmp_path: Path) -> None:
    with pytest.raises(BrokenPlugin, match="'lexical' cannot be trained"):
        train(sample_kb, splits, part=RELATION, name="lexical", settings=small("lexical"), models=tmp_path)


@pytest.mark.parametrize("known", [True, False], ids=["subjects of the kb", "subjects that it lacks"])
def test_no_negative_is_gold_or_a_relation_of_the_subject(
    sample_kb: KnowledgeBase, splits: Splits, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known: bool
) -> None:
    drawn = []

    def keep(forbidden: Tensor, *, count: int) -> Tensor:
        drawn.append(sample_negatives(forbidden, count=count))
        return drawn[-1]

    monkeypatch.setattr("kbtools.scorers.relations.relation_training.sample_negatives", keep)
    if not known:  # the gold relation is no negative either where no fact says that the subject has it
        splits = Splits(replace(splits.train, subjects=np.full_like(splits.train.subjects, -1)), splits.valid)
    task = EmbedAverageScorer.task(
        sample_kb, splits, small("embed-avg", objective="hinge", negatives=500), models=tmp_path
    )
    rows = np.flatnonzero(task.lengths == task.lengths[0])

    task.loss(rows)

    has = relation_marks(sample_kb, splits.train.subjects[rows], len(sample_kb.relations))
    for place, negatives in enumerate(drawn[0].tolist()):
        assert not set(negatives) & {*np.flatnonzero(has[place]).tolist(), splits.train.relations[rows[place]]}
        assert len(set(negatives)) > 20
