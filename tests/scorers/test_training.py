"""Training is one function for every plugin with a task, is safe to run again, and deletes nothing of others."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kbtools.errors import BuildLocked, ModelUnusable, OutputUnusable
from kbtools.kb.contract import KnowledgeBase
from kbtools.ranking.model_store import Stamp, read_model, write_model
from kbtools.ranking.models import RELATION, SUBJECT, make_relation_scorer, make_subject_scorer, model_folder
from kbtools.text.question import MarkedQuestion, Question

pytest.importorskip("torch", reason="networks need torch: pip install 'kbtools[train]'")

from kbtools.scorers.fitting.measures import Callbacks, Epoch
from kbtools.scorers.fitting.profiles import profile_settings
from kbtools.scorers.fitting.splits import Splits
from kbtools.scorers.fitting.training import TrainedModel, small_task, train, training_lock
from kbtools.scorers.networks.training_settings import TrainingSettings, change_settings

SMALL = {"words": "random", "dim": 2, "words_dim": 2, "hidden": 2, "epochs": 1}
ASKED = [MarkedQuestion(Question.read("who is the author of dune"), 21, 25)]


@pytest.fixture
def train_small(sample_kb: KnowledgeBase, splits: Splits, tmp_path: Path) -> Callable[..., TrainedModel]:
    """Train a small model into a folder."""

    def run(name: str, part: str = RELATION, **how: Any) -> TrainedModel:
        settings = change_settings(TrainingSettings(), SMALL)
        return train(sample_kb, splits, part=part, name=name, settings=settings, models=tmp_path, **how)

    return run


class Prior:
    """A relation scorer of someone else: how often training asks for each relation, whatever the question is."""

    def __init__(self, counts: NDArray[np.float64]) -> None:
        self.counts = counts

    @classmethod
    def task(cls, kb: KnowledgeBase, splits: Splits, settings: TrainingSettings, *, models: Path) -> "PriorTask":
        return PriorTask(np.bincount(splits.train.relations, minlength=len(kb.relations)))

    @classmethod
    def load(cls, folder: Path, kb: KnowledgeBase, *, device: str = "cpu") -> "Prior":
        return cls(np.frombuffer(read_model(folder).weights.read_bytes()))

    def score(self, questions: Sequence[MarkedQuestion]) -> NDArray[np.float64]:
        return np.tile(np.log1p(self.counts), (len(questions), 1))


class PriorTask:
    """A task without a network."""

    def __init__(self, counts: NDArray[np.int64]) -> None:
        self.counts = counts.astype(np.float64)

    def fit(self, callback: Callable[[Epoch], None]) -> None:
        callback(Epoch(1, 0.0, 0.0, {}))

    def measure(self) -> dict[str, float]:
        return {"of all relations": 0.25}

    def save(self, folder: Path, stamp: Stamp) -> None:
        write_model(folder, stamp, {}, file="counts", write=lambda path: path.write_bytes(self.counts.tobytes()))


def test_any_plugin_with_a_task_is_trained(
    train_small: Callable[..., TrainedModel], sample_kb: KnowledgeBase, splits: Splits, tmp_path: Path
) -> None:
    name, epochs = f"{__name__}:Prior", list[Epoch]()

    trained = train_small(name, callbacks=Callbacks(epochs.append))
    again = train_small(name)

    assert (trained.fresh, again.fresh, len(epochs)) == (True, False, 1)
    assert trained.figures["of all relations"] == 0.25
    scores = make_relation_scorer(name, sample_kb, models=tmp_path).score(ASKED)
    assert scores[0].argmax() == np.bincount(splits.train.relations).argmax()


def test_a_model_that_two_plugins_read_is_trained_by_either(
    train_small: Callable[..., TrainedModel], sample_kb: KnowledgeBase, tmp_path: Path
) -> None:
    trained = train_small("type-cosine", part=SUBJECT)

    assert trained.folder == model_folder(tmp_path, SUBJECT, "type-vector")
    assert not train_small("type-vector", part=SUBJECT).fresh
    assert make_subject_scorer("type-cosine", sample_kb, models=tmp_path)


@pytest.mark.parametrize("damage", [lambda old: old[:-1] + b"?", lambda old: b""], ids=["changed", "emptied"])
def test_a_damaged_model_is_trained_again(
    train_small: Callable[..., TrainedModel],
    sample_kb: KnowledgeBase,
    tmp_path: Path,
    damage: Callable[[bytes], bytes],
) -> None:
    weights = read_model(train_small("embed-avg").folder).weights
    weights.write_bytes(damage(weights.read_bytes()))

    with pytest.raises(ModelUnusable, match="train the model again"):
        make_relation_scorer("embed-avg", sample_kb, models=tmp_path)
    assert train_small("embed-avg").fresh
    assert make_relation_scorer("embed-avg", sample_kb, models=tmp_path)


def test_a_folder_that_holds_files_of_others_is_not_replaced(
    train_small: Callable[..., TrainedModel], tmp_path: Path
) -> None:
    folder = model_folder(tmp_path, RELATION, "embed-avg")
    folder.mkdir(parents=True)
    (folder / "notes.txt").write_text("mine")

    with pytest.raises(OutputUnusable, match=r"contains 'notes\.txt', which would be overwritten"):
        train_small("embed-avg")

    assert (folder / "notes.txt").read_text() == "mine"


def test_a_file_that_comes_while_training_is_kept(train_small: Callable[..., TrainedModel], tmp_path: Path) -> None:
    folder = model_folder(tmp_path, RELATION, "embed-avg")

    def put(epoch: Epoch) -> None:
        folder.mkdir(parents=True)
        (folder / "notes.txt").write_text("mine")

    with pytest.raises(OutputUnusable, match=r"contains 'notes\.txt'"):
        train_small("embed-avg", callbacks=Callbacks(put))

    assert (folder / "notes.txt").read_text() == "mine"


def test_of_two_trainings_of_a_model_the_second_is_refused(
    train_small: Callable[..., TrainedModel], tmp_path: Path
) -> None:
    folder = model_folder(tmp_path, RELATION, "embed-avg")

    with training_lock(folder), pytest.raises(BuildLocked, match="another process is training this model"):
        train_small("embed-avg")

    assert train_small("embed-avg").fresh


def test_profiles_have_settings_for_plugins_of_others() -> None:
    assert profile_settings("best", RELATION, "my_package:Mine") == profile_settings("best", RELATION, "bigru")


class Reading:
    """A plugin whose task is the questions that it is given."""

    @classmethod
    def task(cls, kb: KnowledgeBase, splits: Splits, settings: TrainingSettings, *, models: Path) -> Splits:
        return splits


def test_a_small_task_knows_the_subject_that_a_question_marks(sample_kb: KnowledgeBase, tmp_path: Path) -> None:
    questions = [MarkedQuestion(Question.read("who created batman"), 12, 18)]

    examples = small_task(Reading, sample_kb, questions, models=tmp_path).train

    assert sample_kb.ids(examples.subjects.astype(np.uint32)) == ["m.01d5g"]
