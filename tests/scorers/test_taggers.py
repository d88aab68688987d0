"""Taggers learn, are rebuilt from their folders, and keep one contract."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from kbtools.answering.answerer import Answerer
from kbtools.errors import BadQuestions, ModelUnusable
from kbtools.kb.contract import KnowledgeBase
from kbtools.pruning.pruners import MOST_WORDS, Tagger
from kbtools.ranking.model_store import read_model
from kbtools.ranking.models import TAGGER, make_tagger
from kbtools.text.question import Question

pytest.importorskip("torch", reason="networks need torch: pip install 'kbtools[train]'")
pytest.importorskip("pycrfsuite", reason="the feature CRF needs python-crfsuite: pip install 'kbtools[crf]'")

from kbtools.scorers.fitting.measures import SENTENCES_RIGHT
from kbtools.scorers.fitting.profiles import profile_settings
from kbtools.scorers.fitting.splits import Labelled, Splits
from kbtools.scorers.fitting.training import train
from kbtools.scorers.networks.training_settings import change_settings
from kbtools.scorers.taggers.feature_crf import word_features
from kbtools.scorers.taggers.tagger import BiGRUTagger

TAGGERS = ("bigru-crf", "bigru-crf+", "crf")
SMALL = {"words": "random", "words_dim": 16, "hidden": 16, "epochs": 10, "batch": 16, "learning_rate": 0.02}
TEXTS = ("who wrote dune", "", "?!", "what is the capital of france ?", "dune", " ".join(["so it goes"] * 60))


@pytest.fixture(scope="session")
def models(sample_kb: KnowledgeBase, splits: Splits, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Train each tagger on the sample."""
    folder = tmp_path_factory.mktemp("models")
    for name in TAGGERS:
        settings = change_settings(profile_settings("best", TAGGER, name), SMALL)
        train(sample_kb, splits, part=TAGGER, name=name, settings=settings, models=folder)
    return folder


@pytest.fixture(params=TAGGERS)
def tagger(request: pytest.FixtureRequest, sample_kb: KnowledgeBase, models: Path) -> Tagger:
    return make_tagger(request.param, sample_kb, models=models)


def test_spans_are_probabilities_of_the_words_that_a_tagger_reads(tagger: Tagger) -> None:
    spans = tagger.spans([Question.read(text) for text in TEXTS])

    assert [span.shape[0] for span in spans] == [3, 0, 0, 6, 1, MOST_WORDS]
    for span in spans:
        assert np.exp(span).sum() <= 1 + 1e-6
        assert np.isneginf(span[np.tril_indices(len(span), -1)]).all()


def test_the_batch_changes_no_span(tagger: Tagger) -> None:
    questions = [Question.read(text) for text in TEXTS[:5]]

    together = tagger.spans(questions)

    alone = [tagger.spans([question])[0] for question in questions]
    assert all(np.allclose(one, other, atol=1e-5) for one, other in zip(together, alone, strict=True))


def test_a_tagger_finds_mentions(tagger: Tagger) -> None:
    (spans,) = tagger.spans([Question.read("who is the author of dune")])

    first, last = np.unravel_index(spans.argmax(), spans.shape)
    assert (first, last) == (5, 5)


def test_training_again_has_nothing_to_do(sample_kb: KnowledgeBase, splits: Splits, models: Path) -> None:
    settings = change_settings(profile_settings("best", TAGGER, "bigru-crf+"), SMALL)

    again = train(sample_kb, splits, part=TAGGER, name="bigru-crf+", settings=settings, models=models)

    assert not again.fresh
    assert again.figures[SENTENCES_RIGHT] > 0.5


@pytest.mark.parametrize("pruning", ["focused", "focused-kb", "focused-k", "focused-idf"])
def test_a_focused_pruner_answers(sample_memory: Answerer, models: Path, pruning: str) -> None:
    answerer = Answerer(sample_memory.kb, models=models)

    result = answerer.query("who were the creators of batman", pruning=pruning)

    assert result.candidates[0].subject_name == "Batman"
    assert result.candidates[0].relation.endswith("character_created_by")


def test_a_tagger_saved_without_training_is_known_by_its_class(tagger: Tagger, tmp_path: Path) -> None:
    tagger.save(tmp_path / "again")  # type: ignore[attr-defined]

    assert read_model(tmp_path / "again").stamp.plugin == f"{type(tagger).__module__}:{type(tagger).__name__}"


def test_a_tagger_of_another_kind_is_refused(sample_kb: KnowledgeBase, models: Path, tmp_path: Path) -> None:
    (tmp_path / "tagger").mkdir()
    (tmp_path / "tagger" / "crf").symlink_to(models / "tagger" / "bigru-crf")

    with pytest.raises(ModelUnusable, match="trained as 'bigru-crf', requested as 'crf'"):
        make_tagger("crf", sample_kb, models=tmp_path)


def test_questions_that_name_no_subject_are_refused(
    sample_kb: KnowledgeBase, annotated: Callable[..., Path], tmp_path: Path
) -> None:
    path = annotated(("m.078ffw", "book.written_work.author", "who"), ("m.0g_tb", "film.film.directed_by", "what"))
    splits = Splits.read(sample_kb, train=path, valid=path)
    settings = change_settings(profile_settings("best", TAGGER, "bigru-crf"), SMALL)

    with pytest.raises(BadQuestions, match="no train question names its subject"):
        train(sample_kb, splits, part=TAGGER, name="bigru-crf", settings=settings, models=tmp_path)


class Emitting:
    """A network whose emissions say the tags that the words spell."""

    def emit(self, texts: Sequence[Sequence[str]], bits: Sequence[np.ndarray]) -> np.ndarray:
        return np.array([[[0.0, 1.0] if word == "sub" else [1.0, 0.0] for word in text] for text in texts])

    def tag_pairs(self) -> np.ndarray:
        return np.zeros((2, 2))


@pytest.mark.parametrize(
    ("text", "right"), [("o sub sub o", 1.0), ("sub sub sub o", 0.0), ("o o sub o", 0.0), ("o sub sub sub", 0.0)]
)
def test_a_sentence_is_right_if_every_word_is(tiny_memory: KnowledgeBase, text: str, right: float) -> None:
    tagger = BiGRUTagger(Emitting(), tiny_memory)  # type: ignore[arg-type]
    question, other = Question.read(text), Question.read("sub")

    assert tagger.sentence_accuracy(Labelled([question], [(1, 2)])) == right
    assert tagger.sentence_accuracy(Labelled([question, other], [(1, 2), (0, 0)])) == (right + 1) / 2


def test_features_of_a_word_say_what_it_is_and_what_stands_around_it() -> None:
    words = ["who", "wrote", "d3ne", "in", "1984"]

    assert word_features(words, 2) == [
        *("bias", "w=d3ne", "pre=d3n", "suf=3ne", "suf2=ne", "shape=mixed", "place=2", "left=2"),
        *("w-1=wrote", "w+1=in", "w-2=who", "w+2=1984", "w-1w=wrote|d3ne", "ww+1=d3ne|in", "w-2w-1=who|wrote"),
        *("w+1w+2=in|1984", "w-1w+1=wrote|in"),
    ]
    assert {"shape=letters", "place=0", "left=4", "w-1=<s>", "w-2=<s>"} <= set(word_features(words, 0))
    assert {"shape=digits", "place=4", "left=0", "w+1=</s>", "w+2=</s>"} <= set(word_features(words, 4))
