"""The scorer `static`: relations by meaning, without a network."""

import numpy as np
import pytest

from kbtools.scorers.relations.lexical import LexicalScorer
from kbtools.scorers.relations.static import StaticScorer, encode_words, token_vectors, word_pieces
from kbtools.text.question import MarkedQuestion, Question


def mark(text: str, mention: str) -> MarkedQuestion:
    start = text.index(mention)
    return MarkedQuestion(Question.read(text), start, start + len(mention))


@pytest.mark.parametrize(
    ("text", "mention", "relation"),
    [
        ("which company made dune", "dune", "film.film.production_companies"),
        ("what illness killed dorn", "dorn", "people.deceased_person.cause_of_death"),
        ("what town was dorn raised in", "dorn", "people.person.places_lived"),
    ],
)
def test_a_relation_that_shares_no_word_is_found_by_meaning(text: str, mention: str, relation: str) -> None:
    relations = [
        "film.film.production_companies",
        "people.deceased_person.cause_of_death",
        "people.person.places_lived",
        "music.album.genre",
        "book.written_work.date_of_first_publication",
    ]

    (scores,) = StaticScorer(relations).score([mark(text, mention)])

    assert relations[int(scores.argmax())] == relation


@pytest.mark.parametrize(
    ("text", "relation"),
    [
        ("who is the manager of dorn", "MGR_ID"),
        ("what is the elevation of dorn", "elev"),
        ("what is the population of dorn", "pop"),
        ("when was dorn born", "DOB"),
        ("what is the dob of dorn", "DOB"),
        ("what department is dorn in", "dept name"),
        ("is dorn open on a thursday", "Thu"),
        ("how much rain falls in dorn in june", "Jun"),
    ],
)
def test_abbreviated_heads_of_tables_are_spelt_out(text: str, relation: str) -> None:
    relations = ["country", "hire date", "MGR_ID", "elev", "pop", "DOB", "dept name", "state"]
    relations += ["Tue", "Wed", "Thu", "Fri", "Apr", "May", "Jun", "Jul"]

    (scores,) = StaticScorer(relations).score([mark(text, "dorn")])

    assert relations[int(scores.argmax())] == relation


def test_the_mention_does_not_change_the_score() -> None:
    scorer = StaticScorer(["people.person.profession", "music.album.genre"])

    first, second = scorer.score(
        [mark("what does dorn do", "dorn"), mark("what does the long dale band do", "the long dale band")]
    )

    assert first.tolist() == second.tolist()


def test_words_are_split_into_the_longest_tokens() -> None:
    tokens = list(token_vectors().rows)

    assert [tokens[row] for row in word_pieces("embeddings")] == ["em", "##bed", "##ding", "##s"]
    assert [tokens[row] for row in word_pieces("Café")] == ["cafe"]
    assert [tokens[row] for row in word_pieces("o'clock")] == ["o", "'", "clock"]


def test_a_word_that_no_tokens_spell_is_unknown() -> None:
    tokens = list(token_vectors().rows)

    assert [tokens[row] for row in word_pieces("\U00013000")] == ["[UNK]"]
    assert [tokens[row] for row in word_pieces("a" * 101)] == ["[UNK]"]


def test_vectors_have_length_1_and_no_words_have_none() -> None:
    lengths = np.linalg.norm(encode_words([["who", "wrote", "it"], []]), axis=1)

    np.testing.assert_allclose(lengths, [1, 0], atol=1e-6)


def test_a_vector_is_the_scaled_sum_of_its_tokens() -> None:
    table = token_vectors()
    rows = [row for word in ("written", "works") for row in word_pieces(word)]
    total = sum(float(table.scales[row]) * table.vectors[row].astype(np.float64) for row in rows)

    (vector,) = encode_words([["written", "works"]])

    np.testing.assert_allclose(vector, total / np.linalg.norm(total), atol=1e-6)


def test_a_score_is_the_cosine_with_the_name_and_its_end_and_half_of_the_shared_words() -> None:
    relations = ["people.deceased_person.place_of_death", "music.album.genre"]
    question = mark("what place did dorn die in", "dorn")
    wholes = encode_words([["people", "deceased", "person", "place", "of", "death"], ["music", "album", "genre"]])
    ends = encode_words([["deceased", "person", "place", "of", "death"], ["album", "genre"]])
    (asked,) = encode_words([["what", "place", "did", "it", "die", "in"]])

    scores = StaticScorer(relations).score([question])

    np.testing.assert_allclose(
        scores, 5.0 * (wholes + ends) @ asked + 0.5 * LexicalScorer(relations).score([question])[0][None, :], rtol=1e-5
    )
