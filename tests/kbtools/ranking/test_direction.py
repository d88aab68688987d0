"""Facts read backwards: questions over the sample and small worlds whose answers are subjects, beside ordinary ones."""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from kbtools.answering.answerer import Answerer
from kbtools.answering.questions import read_annotated
from kbtools.errors import BrokenPlugin
from kbtools.indexers.folder.memory import MemoryKB
from kbtools.kb.views import BothWays
from kbtools.ranking.direction import (
    AGENT,
    KIND,
    KIND_OF_OBJECT,
    KIND_OF_SUBJECT,
    NAMED_KIND,
    PATIENT,
    PLACE,
    PRIOR,
    VALUE,
    DirectedScorer,
    Directions,
    subject_types,
)
from kbtools.text.question import MarkedQuestion, Question
from kbtools.text.relation_words import SYMBOL, answer_kinds

BACKWARDS = {
    "what films did steven spielberg direct": {"Jaws"},
    "which film did stanley kubrick direct": {"2001: A Space Odyssey", "A Clockwork Orange", "The Shining"},
    "what was directed by alfred hitchcock": {"Psycho"},
    "what is a film directed by gore verbinski": {"Pirates of the Caribbean: The Curse of the Black Pearl"},
    "which books did stephen king write": {"It", "The Shining", "Carrie"},
    "name a book by joyce carol oates": {"them"},
    "which characters did j. k. rowling create": {"Harry Potter", "Albus Dumbledore", "Hermione Granger"},
    "who was created by george lucas": {"Yoda", "Darth Vader"},
    "what orbits the sun": {"Earth", "Venus", "Mars", "Mercury"},
    "what orbits the earth": {"Moon"},
    "what did william herschel discover": {"Uranus"},
    "what language was designed by guido van rossum": {"Python"},
    "what countries use the euro": {"Germany", "Slovakia", "France"},
    "what countries speak french": {"Canada", "France"},
    "what is the structure that antoni gaudí designed": {"Sagrada Família"},
    "who was born in london": {"Mary Shelley"},
    "what is paris the capital of": {"France"},
    "which country has tokyo as its capital": {"Japan"},
    "whose capital is berlin": {"Germany"},
    "what city is in maine": {"Portland"},
    "which films are from france": {"Amélie"},
}

FORWARDS = {
    "who directed jaws": {"Steven Spielberg"},
    "who is the author of carrie": {"Stephen King"},
    "what does the moon orbit": {"Earth"},
    "what does the earth orbit": {"Sun"},
    "what is the capital of france": {"Paris"},
    "who created yoda": {"George Lucas"},
    "who discovered uranus": {"William Herschel"},
    "what language is spoken in canada": {"English Language", "French Language"},
}


def names(answerer: Answerer, text: str) -> set[str | None]:
    return {answer.name for answer in answerer.query(text, inverse=True).answers}


@pytest.mark.parametrize("text", BACKWARDS)
def test_subjects_answer_questions_that_read_facts_backwards(sample_memory: Answerer, text: str) -> None:
    assert names(sample_memory, text) == BACKWARDS[text]
    assert sample_memory.query(text, inverse=True).candidates[0].inverse


@pytest.mark.parametrize("text", FORWARDS)
def test_ordinary_questions_keep_their_answers(sample_memory: Answerer, text: str) -> None:
    assert names(sample_memory, text) == FORWARDS[text]


WORLD = [
    *(("plato", "influenced_by", "socrates"), ("aristotle", "influenced_by", "plato")),
    *(("plato", "influenced", "aristotle"), ("socrates", "influenced", "plato")),
]
"""Two relations that say the same the other way round."""

PHILOSOPHERS = [(name, name.title()) for name in ("plato", "socrates", "aristotle")]


@pytest.mark.parametrize("relation", ["influenced_by", "influenced"])
@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("who influenced plato", "Socrates"),
        ("who was plato influenced by", "Socrates"),
        ("who did plato influence", "Aristotle"),
        ("who was influenced by plato", "Aristotle"),
    ],
)
def test_wording_decides_where_an_entity_stands_on_both_sides(relation: str, text: str, answer: str) -> None:
    facts = [fact for fact in WORLD if fact[1] == relation]
    assert names(Answerer(MemoryKB(facts, PHILOSOPHERS)), text) == {answer}


def test_the_kind_of_answer_decides_by_types_where_labels_say_nothing_of_them() -> None:
    kb = MemoryKB(
        [("f1", "country", "c1"), ("c1", "country", "e1")],
        [("f1", "Alpha"), ("c1", "Freedonia"), ("e1", "Europe")],
        [("f1", "film"), ("c1", "land")],
    )
    assert names(Answerer(kb), "what films are there of freedonia") == {"Alpha"}


@pytest.mark.parametrize(
    ("words", "kinds"),
    [
        (f"what films did {SYMBOL} direct", {"films"}),
        (f"what is a film directed by {SYMBOL}", {"film"}),
        (f"what is the name of a {SYMBOL} album", {"album"}),
        (f"what is {SYMBOL} s ethnicity", {"ethnicity"}),
        (f"what kind of music does {SYMBOL} play", {"music"}),
        (f"what was directed by {SYMBOL}", set()),
        (f"who is managed by {SYMBOL}", {"who"}),
        (f"what did {SYMBOL} write", set()),
        (f"where was {SYMBOL} born", {"where"}),
        (f"who is an actor born in {SYMBOL}", {"who", "actor"}),
        (f"name a city in {SYMBOL}", {"city"}),
        (f"{SYMBOL}", set()),
        ("", set()),
    ],
)
def test_the_kind_of_answer_is_read_from_the_question(words: str, kinds: set[str]) -> None:
    assert answer_kinds(words.split(" ")) == kinds


def test_wording_shares_the_probability_of_a_relation_between_its_directions(sample_memory: Answerer) -> None:
    both = BothWays(sample_memory.kb)
    questions = [MarkedQuestion(Question.read("born in london"), 8, 14)]
    scorer = sample_memory.scorer("lexical")
    scores = DirectedScorer(scorer, Directions(both)).score(questions)
    forwards, backwards = scores[:, : both.stored], scores[:, both.stored :]
    assert np.allclose(np.logaddexp(forwards, backwards), scorer.score(questions))


def test_no_questions_have_no_scores(sample_memory: Answerer) -> None:
    both = BothWays(sample_memory.kb)
    scorer = DirectedScorer(sample_memory.scorer("lexical"), Directions(both))
    assert scorer.score([]).shape == (0, len(both.relations))


def test_a_scorer_of_another_shape_is_named_itself(sample_memory: Answerer) -> None:
    class Narrow:
        def score(self, questions: Sequence[MarkedQuestion]) -> np.ndarray:
            return np.zeros((len(questions), 1))

    scorer = DirectedScorer(Narrow(), Directions(BothWays(sample_memory.kb)))
    with pytest.raises(BrokenPlugin, match="scorer Narrow"):
        scorer.score([MarkedQuestion(Question.read("who"), 0, 3)])


def test_ordinary_questions_of_the_sample_hardly_lose_by_it(sample_memory: Answerer, examples: Path) -> None:
    files = [examples / f"sample.{kind}.txt" for kind in ("train", "valid", "test")]
    gold = [question for file in files for question in read_annotated(file)]

    def right(inverse: bool) -> int:
        results = sample_memory.query_many([question.text for question in gold], top=1, inverse=inverse)
        pairs = zip(results, gold, strict=True)
        return sum(
            any(one.subject == own.subject and one.relation == own.relation for one in result.candidates)
            for result, own in pairs
        )

    assert right(inverse=True) >= right(inverse=False) - 2


@pytest.mark.parametrize(
    ("relation", "text", "odds", "forwards", "backwards"),
    [
        ("directed_by", "what films did {} direct", PRIOR + KIND_OF_SUBJECT + AGENT, 0, KIND),
        ("directed_by", "what is a film directed by {}", PRIOR + KIND_OF_SUBJECT + AGENT, 0, KIND),
        ("directed_by", "directed by {}", PRIOR + AGENT, 0, 0),
        ("directed_by", "who directed {}", PRIOR + KIND_OF_OBJECT, KIND, 0),
        ("containedby", "what is in {}", PRIOR + PLACE, 0, 0),
        ("capital", "whose capital is {}", PRIOR + VALUE, 0, 0),
        ("capital", "which has {} as its capital", PRIOR + VALUE, 0, 0),
        ("capital", "what is {} the capital of", PRIOR + NAMED_KIND + VALUE, KIND, 0),
        ("orbits", "what orbits {}", PRIOR + PATIENT, 0, 0),
        ("orbits", "tell me about {}", PRIOR, 0, 0),
    ],
)
def test_the_odds_of_a_direction_add_up_what_the_wording_says(
    relation: str, text: str, odds: float, forwards: float, backwards: float
) -> None:
    kb = BothWays(MemoryKB([("f1", relation, "p1")], [("p1", "Dorn")], [("f1", "film"), ("p1", "person")]))
    start = text.index("{}")
    question = MarkedQuestion(Question.read(text.format("dorn")), start, start + 4)

    both = Directions(kb).log_probabilities(question)

    expected = [forwards - math.log(1 + math.exp(odds)), backwards - math.log(1 + math.exp(-odds))]
    assert both[:, 0].tolist() == pytest.approx(expected)


def test_the_weights_of_directions_are_those_that_were_chosen() -> None:
    assert (KIND, PRIOR, KIND_OF_SUBJECT, KIND_OF_OBJECT, NAMED_KIND) == (1.0, -1.5, 1.5, -1.0, -3.0)
    assert (AGENT, PLACE, PATIENT, VALUE) == (4.2, 0.4, 3.0, 3.0)


def test_the_last_entity_counts_once_among_the_subjects_of_a_relation() -> None:
    facts = [("a", "r", "o"), ("z", "r", "o")]

    found = subject_types(BothWays(MemoryKB(facts, [], [("a", "film")])))

    assert found == {0: {"film"}}


def test_a_relation_has_the_types_of_half_of_its_subjects() -> None:
    facts = [(entity, "r", "o") for entity in "abcd"] + [("o", "s", "a")]
    types = [("a", "film"), ("b", "film"), ("c", "book"), ("o", "place")]

    found = subject_types(BothWays(MemoryKB(facts, [], types)))

    assert found == {0: {"film"}, 1: {"place"}, 2: {"place"}, 3: {"film"}}
