"""Labels of relations in other languages than English: shared words, hints, and parts of compounds."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kbtools.ranking.models import WEIGHTS
from kbtools.scorers.relations.label_words import LabelWords, stem
from kbtools.scorers.relations.lexical import LexicalScorer
from kbtools.scorers.relations.static import StaticScorer, language_shares
from kbtools.text.lexicons import Label, Lexicon, lexicon
from kbtools.text.question import MarkedQuestion, Question

WORDS = ["ort", "geburtsort", "geboren", "der", "stadt", "hauptstadt", "staedte", "ab", "abc", "bc", "grund", "land"]
LEXICON = Lexicon("xx", frozenset({"der", "land"}), {"ab": ["stadt", "ort"], "land": ["abc"], "bc": ["bc"]})


def plain_weight(word: str, of_label: str) -> float:
    """Return the weight of a label's word for a word of a question, in a language without a stemmer."""

    def alike(one: str, least: int) -> float:
        if one == of_label:
            return 1.0
        part = len(one) >= least and (of_label.startswith(one) or of_label.endswith(one))
        return 0.6 + 0.3 * len(one) / len(of_label) if part else 0.0

    own = 0.0 if word in LEXICON.function_words else alike(word, 4)
    return max([own, *(0.6 * alike(hint, 3) for hint in LEXICON.hints.get(word, ()))])


@given(
    st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=3), min_size=1, max_size=4),
    st.lists(st.sampled_from(WORDS), max_size=4),
)
@example([["der"], ["land", "ort"]], ["der", "land"])
@example([["geburtsort", "ort"], ["hauptstadt"]], ["ab", "geburtsort", "stadt"])
def test_scores_are_those_of_a_plain_loop(labels: list[list[str]], context: list[str]) -> None:
    stems = [{word for word in label if word not in LEXICON.function_words} or set(label) for label in labels]
    rarity = {
        word: math.log(1 + len(labels) / sum(word in label for label in stems)) for label in stems for word in label
    }

    scores = LabelWords([" ".join(label) for label in labels], LEXICON).score(context)

    expected = [
        sum(
            8.0 * rarity[own] * min(1.0, sum(plain_weight(word, own) for word in set(context)))
            for own in label
        ) / math.sqrt(sum(rarity[own] for own in label))
        for label in stems
    ]  # fmt: skip
    assert scores.tolist() == pytest.approx(expected)


def test_words_are_compared_by_their_stems_and_umlauts_in_any_spelling() -> None:
    assert stem("de", "staedten") == stem("de", "stadten") != "stadten"
    assert stem("xx", "staedten") == "staedten"
    labels = LabelWords(["Einwohner der Städte", "Gründung"], lexicon("de"))
    assert np.flatnonzero(labels.score(["stadten"])).tolist() == [0]
    assert np.flatnonzero(labels.score(["der", "die"])).tolist() == []


RELATIONS = [
    "place.of.birth", Label.of("Geburtsort", "de"), "film.director", Label.of("lieu de naissance", "fr-CA"),
    Label.of("place", "en-GB"),
]  # fmt: skip


def test_each_relation_is_scored_in_its_language_at_its_place() -> None:
    text = "geburtsort place director naissance of dorn"
    question = MarkedQuestion(Question.read(text), text.index("dorn"), len(text))
    english, german, french = ([RELATIONS[row] for row in rows] for rows in ([0, 2, 4], [1], [3]))

    scores = LexicalScorer(RELATIONS).score([question, question])

    alone = {0: LexicalScorer(english).score([question])[0]}
    context = question.context()
    expected = np.zeros(len(RELATIONS))
    expected[[0, 2, 4]] = alone[0]
    expected[1] = LabelWords(german, lexicon("de")).score(context)[0]
    expected[3] = LabelWords(french, lexicon("fr")).score(context)[0]
    assert (expected > 0).all()
    assert scores.tolist() == [expected.tolist()] * 2


def test_vectors_of_labels_in_other_languages_count_a_fifth() -> None:
    shares = [1.0, 0.2, 1.0, 0.2, 1.0]
    assert language_shares(RELATIONS)[:, 0].tolist() == pytest.approx(shares)
    lengths = [np.linalg.norm(StaticScorer(names).names, axis=1) for names in (RELATIONS, list(map(str, RELATIONS)))]
    assert (lengths[0] / lengths[1]).tolist() == pytest.approx(shares)


def test_vectors_of_an_encoder_are_the_mean_of_a_name_and_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tokenizers", reason="pretrained encoders need tokenizers: pip install 'kbtools[minilm]'")
    from kbtools.scorers.encoders import encoder

    known: dict[str, Any] = {}

    def encode(texts: Any) -> np.ndarray:
        known.update({text: np.random.default_rng(len(text)).normal(size=3).astype(np.float32) for text in texts})
        return np.stack([known[text] for text in texts])

    monkeypatch.setattr(encoder, "keep", lambda kind, key, make: make())
    monkeypatch.delenv(WEIGHTS, raising=False)
    names = ["people.person.birth_place", Label.of("Geburtsort", "de")]

    vectors = encoder.name_vectors(encode, names, digest="x", dim=3)
    monkeypatch.setenv(WEIGHTS, "mine")
    own = encoder.name_vectors(encode, names, digest="x", dim=3)

    expected = [(known["people person birth place"] + known["person birth place"]) / 2, known["geburtsort"]]
    np.testing.assert_allclose(own, expected, rtol=1e-6)
    np.testing.assert_allclose(vectors, [expected[0], 0.2 * expected[1]], rtol=1e-6)
