"""The lexical scorer: shared words decide, and nothing but the question and the relations matters."""

import math
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbtools.scorers.relations.lexical import CUE, LAST, REST, LexicalScorer, hinted, name_weights
from kbtools.text.question import MarkedQuestion, Question

RELATIONS = [
    "book.written_work.author",
    "film.film.directed_by",
    "location.location.containedby",
    "music.album.genre",
    "people.person.place_of_birth",
    "http://example.org/schema#brand_name",
]

TEXT = st.lists(
    st.sampled_from(["who", "wrote", "genre", "place", "directed", "film", "born", "x", "?", "of"]), max_size=8
).map(" ".join)


def ask(text: str, mention: str = "") -> MarkedQuestion:
    start = text.index(mention)
    return MarkedQuestion(Question.read(text), start, start + len(mention))


def best(text: str, mention: str = "") -> str:
    return RELATIONS[int(np.argmax(LexicalScorer(RELATIONS).score([ask(text, mention)])[0]))]


@pytest.mark.parametrize(
    ("text", "mention", "relation"),
    [
        ("who is the author of jaws", "jaws", "book.written_work.author"),
        ("who wrote jaws", "jaws", "book.written_work.author"),
        ("who was the director of jaws", "jaws", "film.film.directed_by"),
        ("what genres is jaws", "jaws", "music.album.genre"),
        ("where was he born", "he", "people.person.place_of_birth"),
        ("what brand is jaws", "jaws", "http://example.org/schema#brand_name"),
    ],
)
def test_shared_words_and_their_hints_choose_the_relation(text: str, mention: str, relation: str) -> None:
    assert best(text, mention) == relation


def test_words_inside_the_mention_do_not_count() -> None:
    outside = LexicalScorer(RELATIONS).score([ask("genre author", "author")])[0]
    assert outside[RELATIONS.index("book.written_work.author")] == 0
    assert outside[RELATIONS.index("music.album.genre")] > 0


@pytest.mark.parametrize(
    ("relation", "weights"),
    [
        ("book.written_work.author", {"book": REST, "writt": REST, "work": REST, "autho": LAST}),
        ("a_b/book_end.x#last_part", {"b": REST, "book": REST, "end": REST, "x": REST, "last": LAST, "part": LAST}),
        ("location/location/containedby", {"locat": REST, "conta": LAST}),
        ("a.b..mediator.of_x", {"b": REST, "media": REST, "x": LAST}),
        ("work.work", {"work": LAST}),
        ("Ünïcode/Größe", {"unico": REST, "gross": LAST}),
        ("P31", {"p31": LAST}),
        ("http://dbpedia.org/ontology/birthPlace", {"birth": LAST, "place": LAST}),
        ("", {}),
        ("...", {}),
    ],
)
def test_relation_names_split_at_slash_underscore_dot_hash_and_camel_case(
    relation: str, weights: dict[str, float]
) -> None:
    assert name_weights(relation) == weights


def test_a_word_outweighs_the_hint_at_it() -> None:
    assert hinted(["wrote"]) == {"wrote": 1.0, "writt": CUE, "autho": CUE}
    assert hinted(["who", "author"])["autho"] == 1.0
    assert hinted(["author", "who"])["autho"] == 1.0
    assert hinted(["of", "the"]) == {}


@given(st.lists(TEXT, min_size=1, max_size=6), st.randoms())
def test_batch_size_and_order_of_questions_change_no_score(texts: list[str], random: Random) -> None:
    scorer = LexicalScorer(RELATIONS)
    together = scorer.score([ask(text) for text in texts])
    order = random.sample(range(len(texts)), len(texts))
    assert together.shape == (len(texts), len(RELATIONS))
    assert np.array_equal(together, np.concatenate([scorer.score([ask(text)]) for text in texts]))
    assert np.array_equal(together[order], scorer.score([ask(texts[at]) for at in order]))


@given(TEXT, st.permutations(range(len(RELATIONS))))
def test_the_order_of_relations_changes_no_score(text: str, order: list[int]) -> None:
    scores = LexicalScorer(RELATIONS).score([ask(text)])[0]
    permuted = LexicalScorer([RELATIONS[at] for at in order]).score([ask(text)])[0]
    assert np.allclose(permuted, scores[list(order)])


@given(TEXT)
def test_scores_are_those_of_a_plain_loop(text: str) -> None:
    names = [name_weights(relation) for relation in RELATIONS]
    spoken = hinted(Question.read(text).text.replace("?", "").split())
    expected = []
    for weights in names:
        rarity = {word: math.log(1 + len(names) / sum(word in other for other in names)) for word in weights}
        total = sum(weights[word] * rarity[word] for word in weights)
        shared = sum(spoken.get(word, 0.0) * weights[word] * rarity[word] for word in weights)
        expected.append(4.0 * shared / math.sqrt(total))

    (scores,) = LexicalScorer(RELATIONS).score([MarkedQuestion(Question.read(text), 0, 0)])

    assert scores.tolist() == pytest.approx(expected)
    assert (LAST, REST, CUE) == (1.0, 0.4, 0.6)


def test_a_rare_word_counts_more_than_a_common_one() -> None:
    scorer = LexicalScorer(["book.common", "film.common", "song.common", "play.scarce"])
    common, _, _, scarce = scorer.score([ask("common scarce")])[0]
    assert scarce > common > 0


def test_no_questions_no_relations_and_names_without_words_score_nothing() -> None:
    assert LexicalScorer(RELATIONS).score([]).shape == (0, len(RELATIONS))
    assert LexicalScorer([]).score([ask("who wrote it")]).shape == (1, 0)
    assert LexicalScorer(["...", ""]).score([ask("who wrote it")]).tolist() == [[0, 0]]
    assert not LexicalScorer(RELATIONS).score([ask("")]).any()
