"""Doubt: several equally likely readings are no answer, an unlikely one is marked, and facts are read backwards."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import kbtools
from kbtools.answering.answerer import Answerer
from kbtools.answering.explaining import table_lines
from kbtools.answering.missing_facts import ONLY_OBJECT
from kbtools.indexers.folder.memory import MemoryKB
from kbtools.text.question import MarkedQuestion

FILMS = (
    ("f.1", "directed by", "p.1"),
    ("f.1", "year", "1980"),
    ("f.2", "directed by", "p.1"),
    ("m.1", "heart disease", "h.1"),
)
NAMES = (
    ("f.1", "The Shining"),
    ("f.2", "Lolita"),
    ("p.1", "Stanley Kubrick"),
    ("m.1", "Films"),
    ("h.1", "Heart attack"),
)


class Level:
    """A scorer to which relations are alike, but for what rounding may do."""

    def __init__(self, noise: float) -> None:
        self.noise = noise

    def score(self, questions: Sequence[MarkedQuestion]) -> np.ndarray:
        return np.array([[0.0, self.noise]] * len(questions))


def namesakes(*objects: str) -> Answerer:
    """Make a knowledge base of entities that all bear one name, each with its object."""
    facts = [(f"e.{number}", "born in", target) for number, target in enumerate(objects)]
    return Answerer(MemoryKB(facts, [(f"e.{number}", "Ada Sol") for number in range(len(objects))]))


def test_namesakes_with_different_answers_are_readings_and_no_answer() -> None:
    result = namesakes("Oslo", "Rome").query("where was ada sol born")
    assert (result.answered, result.doubtful, result.answers, result.answers_total) == (False, True, (), 0)
    assert (result.tied, result.readings_total) == (2, 2)
    assert [[answer.id for answer in reading.answers] for reading in result.readings] == [["Oslo"], ["Rome"]]


def test_candidates_have_the_types_of_their_own_subject() -> None:
    facts = [("a", "area", "c"), ("a", "owner", "d"), ("b", "area", "e")]
    kb = MemoryKB(facts, [("a", "Oak"), ("b", "Oak")], [("a", "tree"), ("b", "town")])
    result = Answerer(kb).query("oak", scorer="lexical", inverse=False)
    assert [(one.subject, one.types) for one in result.candidates] == [("a", ("tree",))] * 2 + [("b", ("town",))]


def test_namesakes_with_the_same_answer_are_an_answer() -> None:
    result = namesakes("Oslo", "Oslo", "Oslo").query("where was ada sol born")
    assert (result.answered, result.tied, result.readings, result.readings_total) == (True, 3, (), 0)
    assert [answer.id for answer in result.answers] == ["Oslo"]


@pytest.mark.parametrize("top", [1, 2, 3])
def test_readings_beyond_the_shown_candidates_count(top: int) -> None:
    result = namesakes("Oslo", "Oslo", "Oslo", "Rome").query("where was ada sol born", top=top)
    assert (result.answered, len(result.readings), result.readings_total) == (False, top, 4)
    assert f"    and {4 - top} more" in table_lines(result)


@pytest.mark.parametrize(("noise", "answered"), [(0.0, False), (3e-6, False), (-3e-6, False), (1e-4, True)])
def test_what_rounding_sets_apart_is_equally_likely(noise: float, answered: bool) -> None:
    kb = Answerer(MemoryKB([("e.1", "born in", "Oslo"), ("e.1", "died in", "Rome")], [("e.1", "Ada Sol")]))
    kb.parts.scorers["level"] = Level(noise)
    assert kb.query("ada sol", scorer="level").answered is answered


def test_batches_are_as_unsure_as_single_questions() -> None:
    kb = Answerer(MemoryKB(FILMS, NAMES))
    texts = ["which films did stanley kubrick direct", "who directed lolita", "the shining", "zzzz"]
    together = [result.to_json() | {"milliseconds": None} for result in kb.query_many(texts)]
    assert together == [kb.query(text).to_json() | {"milliseconds": None} for text in texts]


def test_what_is_only_an_object_is_read_backwards_without_an_option() -> None:
    result = Answerer(MemoryKB(FILMS, NAMES)).query("which films did stanley kubrick direct")
    assert [answer.name for answer in result.answers] == ["The Shining", "Lolita"]
    assert (result.inverse, result.candidates[0].inverse) == (True, True)


def test_facts_are_read_forwards_where_that_is_likely() -> None:
    result = Answerer(MemoryKB(FILMS, NAMES)).query("who directed the shining")
    assert (result.inverse, [answer.name for answer in result.answers]) == (False, ["Stanley Kubrick"])


def test_without_inverse_the_words_say_what_it_would_find() -> None:
    result = Answerer(MemoryKB(FILMS, NAMES)).query("stanley kubrick", inverse=False)
    assert (result.candidates, result.answered) == ((), False)
    assert "no fact as a subject; --inverse reads facts backwards" in table_lines(result)[-1]


def test_an_answer_that_leaves_most_of_the_question_unexplained_is_doubtful() -> None:
    kb = Answerer(MemoryKB([("e.1", f"r{number}", f"o.{number}") for number in range(9)], [("e.1", "Ada Sol")]))
    kb.parts.scorers["first"] = First()
    result = kb.query("whom blorp grint ada sol mamble", scorer="first")
    assert (result.answered, result.doubtful) == (True, True)
    assert f"  doubtful: confidence {result.confidence:.2f}" in table_lines(result)


class First:
    """A scorer that prefers the first relation a little."""

    def score(self, questions: Sequence[MarkedQuestion]) -> np.ndarray:
        return np.array([[0.1] + [0.0] * 8] * len(questions))


SEVERAL = [("w.1", "children", "c.1"), ("w.1", "children", "c.2"), ("w.1", "spouse", "c.3")]
SEVERAL += [("w.2", "number of pages", '"310"'), ("w.3", "lowest grade", "g.1"), ("w.3", "lowest grade", "g.2")]
WRITERS = Answerer(
    MemoryKB(SEVERAL, [("w.1", "Ida Holt"), ("w.2", "Red Hill"), ("w.3", "Oldest School"), ("c.3", "Rex Amin")])
)


@pytest.mark.parametrize(
    ("question", "doubt"),
    [
        ("who are the children of ida holt", None),
        ("who is the oldest of the children of Ida Holt?", "the oldest"),
        ("Who is the oldest spouse of ida holt", None),  # one answer is not compared
        ("what is the lowest grade at oldest school", None),  # the relation itself, and a name
        ("How many children has ida holt", "a number"),
        ("how many spouse has ida holt", "a number"),
        ("how many number of pages has red hill", None),  # the answer is a number
        ("is rex amin the spouse of ida holt", "yes or no"),
        ("was rex amin the spouse of ida holt", "yes or no"),
        ("was the spouse of ida holt", "yes or no"),
        ("was spouse ida holt", None),  # `was` is German for what
        ("is the spouse of ida holt rex amin or another", None),
        ("the spouse of ida holt is who", None),
    ],
)
def test_what_facts_do_not_answer_is_doubtful_and_says_why(question: str, doubt: str | None) -> None:
    result, plain = WRITERS.query(question, scorer="lexical"), WRITERS.query(question, scorer="lexical", abstain=0.12)
    if doubt is None:
        assert (result.doubtful, result.doubt, plain.answered) == (False, None, True)
        assert "doubt" not in result.to_json()
    else:
        assert doubt in str(result.doubt)
        assert str(result.doubt) in "\n".join(table_lines(result))
        assert (result.answered, result.doubtful, result.confidence <= 0.1) == (True, True, True)
        assert (plain.answered, plain.answers, plain.answers_total, plain.doubt) == (False, (), 0, result.doubt)


def test_was_before_a_name_without_letters_is_answered() -> None:
    result = Answerer(MemoryKB([("b.1", "genre", "dance")], [("b.1", "!!!")])).query("was !!!")
    assert [answer.id for answer in result.answers] == ["dance"]


ROWS = [("ida", "born", '"before 1884"'), ("ida", "phone", '"0113 496 0000"'), ("ida", "weight", '"light"')]
ROWS += [("ida", "boss", '"Rex Amin"'), ("ida", "room", '"12-14"'), ("ida", "age", '"ten"'), ("ida", "open", '"May"')]
ROWS += [("ida", "smoker", '"No"'), ("rex", "smoker", '"often"')]
ROWS += [("ida", "2000", '"5"'), ("ida", "score 2 2001", '"7"'), ("ida", "spouse", "rex")]
TABLE = Answerer(MemoryKB(ROWS, [("ida", "Ida Holt"), ("rex", "1850")]))


@pytest.mark.parametrize(
    ("question", "doubt"),
    [
        ("where was ida holt born", "where"),
        ("where is the phone of ida holt", "where"),
        ("where is the room of ida holt", None),
        ("when was ida holt born", None),
        ("when is the boss of ida holt", "when"),
        ("when is ida holt open", None),
        ("who is the boss of ida holt", None),
        ("who is the phone of ida holt", "who"),
        ("who is the spouse of ida holt", None),  # entities are not judged by their names
        ("how heavy is the weight of ida holt", "number"),
        ("how old is the age of ida holt", None),
        ("does ida holt smoke", None),
        ("does 1850 smoke", "yes or no"),
        ("what was ida holt in 2000", None),
        ("what was the score of ida holt in 2001", None),
        ("what was the score of ida holt in 1999", "1999"),
        ("score 3 of ida holt in 2001", "says 3"),
        ("score 2 of ida holt in 2001", None),
    ],
)
def test_values_of_another_kind_than_asked_for_are_doubtful(question: str, doubt: str | None) -> None:
    result = TABLE.query(question, scorer="lexical")
    assert result.answered
    assert doubt is None if result.doubt is None else str(doubt) in result.doubt


FIRMS = [("a", "founded", '"1999"'), ("a", "founder", '"Jo Roe"'), ("a", "founder", '"Al Day"'), ("a", "city", '"Ulm"')]
FIRMS += [("b", "published", '"1965"'), ("b", "author", '"Jo Roe"'), ("b", "seller", '"12"')]
FIRMS += [("c", "born", '"1901"'), ("c", "birthplace", '"Bonn"'), ("d", "sold", '"1987"'), ("d", "seller(s)", '"12"')]
FIRMS += [("e", "founded", '"1987"'), ("e", "founder(s)", '"Jo Roe"')]
FIRM = Answerer(
    MemoryKB(FIRMS, [("a", "Acme"), ("b", "Dune"), ("c", "Ida Holt"), ("d", "Red Hill"), ("e", "Low Barn")])
)


class Participles:
    """A scorer that prefers relations called by a participle: `founded` to `founder`."""

    def score(self, questions: Sequence[MarkedQuestion]) -> np.ndarray:
        preferred = [relation in ("born", "founded", "published", "sold") for relation in FIRM.kb.relations]
        return np.array([preferred] * len(questions), dtype=float)


FIRM.parts.scorers["participles"] = Participles()


@pytest.mark.parametrize("top", [1, 9])
@pytest.mark.parametrize(
    ("question", "answers", "relation"),
    [
        ("who founded acme", ["Al Day", "Jo Roe"], "founder"),
        ("when was acme founded", ["1999"], "founded"),
        ("where was ida holt born", ["Bonn"], "birthplace"),
        ("where was acme founded", ["Ulm"], "city"),
        ("who published dune", ["1965"], "published"),  # an author is no publisher
        ("who sold red hill", ["1987"], "sold"),  # the seller is no name either
        ("who founded low barn", ["Jo Roe"], "founder(s)"),
    ],
)
def test_a_relation_of_the_kind_asked_for_is_preferred(
    question: str, answers: list[str], relation: str, top: int
) -> None:
    result = FIRM.query(question, scorer="participles", top=top)
    assert [str(answer) for answer in result.answers] == answers
    assert (result.candidates[0].relation, result.tied) == (relation, 1)
    assert (result.doubt is not None) is (relation in ("published", "sold"))
    assert len(result.candidates) <= top


def test_a_truth_value_answers_only_for_the_relation_that_the_question_names() -> None:
    kb = Answerer(MemoryKB([("pie", "vegan", '"yes"')], [("pie", "Leek Pie")]))
    doubts = [kb.query(text, scorer="lexical").doubt for text in ("is leek pie vegan", "is leek pie japanese")]
    assert doubts == [None, "the question asks for yes or no, and answers are facts"]


@pytest.mark.parametrize("relation", ["partner", "partners"])
def test_a_relation_that_another_entity_has_is_missing_in_either_number(relation: str) -> None:
    kb = Answerer(MemoryKB([("a", "partners", '"Acme"'), ("b", "toll", '"Yes"')], [("b", "Tor Bridge")]))
    result = kb.query(f"give the {relation} of tor bridge", scorer="lexical")
    assert "does not have" in str(result.doubt)


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("give the partners of tor bridge", True),
        ("tor bridge has which partners", True),
        ("the date of last repair of tor bridge", True),
        ("the name of the old owner of tor bridge", False),  # five words
    ],
)
def test_a_missing_relation_is_read_anywhere_and_has_at_most_four_words(text: str, missing: bool) -> None:
    facts = [("a", "partners", '"Acme"'), ("a", "date of last repair", '"1980"'), ("a", "name of the old owner", '"X"')]
    kb = Answerer(MemoryKB([*facts, ("b", "toll", '"Yes"')], [("b", "Tor Bridge")]))
    assert ("does not have" in str(kb.query(text, scorer="lexical").doubt)) is missing


@pytest.mark.parametrize(
    ("text", "doubtful"),
    [
        ("who is the manager of rex amin", True),
        ("who manages rex amin", True),
        ("who does rex amin manage", False),
        ("who is managed by rex amin", False),
        ("who manages ida holt", False),
    ],
)
def test_a_relation_is_not_surely_read_backwards_where_it_is_asked_for_forwards(text: str, doubtful: bool) -> None:
    facts = [
        ("a", "manager", "b"),
        ("a", "dept", '"Sales"'),
        ("b", "dept", '"Sales"'),
        ("b", "mail", '"rex@x.example"'),
    ]
    result = Answerer(MemoryKB(facts, [("a", "Ida Holt"), ("b", "Rex Amin")])).query(text, scorer="static")
    assert [str(answer) for answer in result.answers] == ["Rex Amin" if "ida" in text else "Ida Holt"]
    assert result.doubt == (ONLY_OBJECT if doubtful else None)


def test_a_missing_relation_is_not_that_of_one_of_its_words() -> None:
    facts = [("a", "office hours", '"Mon 9"'), ("a", "office", '"7"'), ("b", "office", '"8"')]
    kb = Answerer(MemoryKB(facts, [("a", "Ida Holt"), ("b", "Rex Amin")]))
    asked = ["when are the office hours of rex amin", "what is the office of rex amin", "office hours of ida holt"]
    assert [kb.query(text, scorer="lexical").doubt is None for text in asked] == [False, True, True]


@pytest.mark.parametrize("top", [1, 9])
@pytest.mark.parametrize(
    ("question", "doubted"),
    [
        ("what is ida holt", True),
        ("tell me about Ida Holt?", True),
        ("ida holt", True),
        ("the room of ida holt", False),
        ("what is leek pie", False),  # the only relation
        ("what is a moraine", False),
    ],
)
def test_a_question_that_names_no_relation_is_doubtful(question: str, doubted: bool, top: int) -> None:
    facts = [("a", "room", '"7"'), ("a", "phone", '"1"'), ("a", "phone", '"2"'), ("b", "price", '"8"')]
    facts += [("c", "meaning", '"rubble"'), ("c", "meaning", '"stones"'), ("c", "use", '"none"')]
    kb = Answerer(MemoryKB(facts, [("a", "Ida Holt"), ("b", "Leek Pie"), ("c", "Moraine")]))
    kb.parts.scorers["order"] = Order()
    assert ("names no relation" in str(kb.query(question, scorer="order", top=top).doubt)) is doubted


class Order:
    """A scorer that prefers relations in the order of their names."""

    def score(self, questions: Sequence[MarkedQuestion]) -> np.ndarray:
        return np.array([[0.4, 0.3, 0.2, 0.1, 0.0]] * len(questions))


def test_a_taught_question_is_answered_without_doubt(tmp_path: Path) -> None:
    rows = [{"id": "a", "name": "Ida Holt", "phone": "555 12 34", "room": "7"}]
    with kbtools.index(table=rows, out=tmp_path / "x.kb") as kb:
        assert kb.query("where is ida holt", scorer="lexical").answered is False
        kb.teach("where is ida holt", "Ida Holt", "phone")
        assert kb.query("Where is Ida Holt?", scorer="lexical").doubtful is False
        assert "where" in str(kb.query("where is the phone of ida holt", scorer="lexical").doubt)
