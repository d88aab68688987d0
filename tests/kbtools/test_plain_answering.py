"""What answers are chosen by is what plain rules say: priors of a name, facts read backwards, batches, languages."""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbtools.answering import answerer as answerers
from kbtools.answering.answerer import Answerer
from kbtools.answering.backwards import or_backwards
from kbtools.answering.context import ContextRanker
from kbtools.answering.name_candidates import share_names
from kbtools.answering.resampling import Resamples, interval, mean_interval
from kbtools.answering.results import Reading, Result
from kbtools.indexers.folder.memory import MemoryKB

few = settings(max_examples=50, deadline=None)

FACTS = [("a", "writer", "b"), ("a", "writer", "c"), ("d", "writer", "b"), ("b", "area", "e"), ("f", "area", "e")]
NAMES = [
    ("a", "Elm"),
    ("b", "Oak"),
    ("c", "Elm"),
    ("d", "Elm Oak"),
    ("e", "Ash"),
    ("f", "Oak"),
    ("g", "Fir"),
    ("i", "It"),
]
COUNTS = st.lists(
    st.tuples(st.sampled_from(["elm", "oak", ""]), st.sampled_from("abcdef"), st.integers(1, 9)), max_size=5
)
ASKED = ["area of oak", "who is the writer of elm", "zebra", "writer of elm oak", "what has the area ash", "fir", "oak"]


@given(counts=COUNTS, group=st.lists(st.integers(0, 1), min_size=7, max_size=7))
@few
def test_the_shares_of_names_are_those_of_a_plain_loop(counts: list[tuple[str, str, int]], group: list[int]) -> None:
    counted = {(form, entity): number for form, entity, number in counts}
    kb = MemoryKB(FACTS, NAMES, counts=[(*key, number) for key, number in counted.items()])
    ids = "abcdefg"
    entities = np.array(kb.rows(list(ids)), dtype=np.uint32)
    facts = {entity: sum((s == entity) + (o == entity) for s, _, o in FACTS) for entity in ids}
    expected = {}
    for number, form in enumerate(["elm", "oak"]):
        own = [entity for entity, at in zip(ids, group, strict=True) if at == number]
        shares = {entity: (1 + facts[entity]) ** 0.6 for entity in own}
        shares = {entity: share / math.fsum(shares.values()) for entity, share in shares.items()}
        of_name = {entity: counted.get((form, entity), 0) for entity in own}
        of_bearers = {entity: counted.get(("", entity), 0) for entity in own}
        number_of = next((some for some in (of_name, of_bearers) if sum(some.values())), of_name)
        total = sum(number_of.values())
        expected |= {
            entity: (number_of[entity] + shares[entity]) / (total + 1) if total else shares[entity] for entity in own
        }

    prior = share_names(kb, entities, ["elm", "oak"], np.array(group))

    assert prior.values.tolist() == pytest.approx([expected[entity] for entity in ids])
    turned = prior.at(np.arange(7)[::-1])
    assert [turned.source(at) for at in range(7)] == [prior.source(6 - at) for at in range(7)]


@given(
    st.lists(st.tuples(st.floats(0.01, 1), st.integers(-100, 100).map(lambda part: part / 100)), min_size=1, max_size=6)
)
def test_the_text_around_shifts_priors_by_eight_times_the_cosine_and_keeps_their_sum(
    bearers: list[tuple[float, float]],
) -> None:
    prior, cosines = (np.array(column) for column in zip(*bearers, strict=True))

    shares = ContextRanker.prior_weights(cast(Any, None), prior, cosines)

    assert shares.sum() == pytest.approx(prior.sum())
    odds = shares / shares[0]
    assert odds.tolist() == pytest.approx((prior / prior[0] * np.exp(8 * (cosines - cosines[0]))).tolist(), rel=1e-6)


def test_the_interval_of_a_mean_is_that_of_the_means_of_resamples() -> None:
    values = np.array([0.0, 0.0, 1.0, 0.5, 1.0, 1.0, 0.0])

    assert mean_interval(values) == interval(Resamples(7).sums(values[:, None])[:, 0] / 7)
    assert mean_interval(values[:0]) == (0.0, 0.0)


# Facts read backwards


@pytest.fixture(scope="module")
def forwards() -> Result:
    """A likely answer whose question names nothing else."""
    return Answerer(MemoryKB(FACTS, NAMES)).query("area of oak", inverse=False)


READING = Reading("one of several", (), 0)


@pytest.mark.parametrize(
    ("changes", "backwards", "taken"),
    [
        pytest.param({"candidates": ()}, 0.0, True, id="no candidate"),
        pytest.param({"confidence": 0.34}, 0.67, False, id="less than twice as likely"),
        pytest.param({"confidence": 0.34}, 0.68, True, id="twice as likely"),
        pytest.param({"confidence": 0.1}, 0.49, False, id="unlikely both ways"),
        pytest.param({"confidence": 0.1}, 0.5, True, id="likely backwards alone"),
        pytest.param({"confidence": 0.35}, 0.99, False, id="likely"),
        pytest.param({"confidence": 0.45, "readings": (READING,)}, 0.9, True, id="several readings"),
        pytest.param({"confidence": 0.45, "readings": (READING,)}, 0.89, False, id="several likely readings"),
        pytest.param({"question": "area of oak fir", "confidence": 0.6}, 0.6, True, id="a mere object beside"),
        pytest.param({"question": "area of oak fir", "confidence": 0.6}, 0.59, False, id="less likely with an object"),
        pytest.param({"question": "area of oak fir", "confidence": 0.4}, 0.49, False, id="unlikely with an object"),
        pytest.param({"question": "area of oak is", "confidence": 0.6}, 0.99, False, id="no content word beside"),
        pytest.param(
            {"question": "area of oak it", "confidence": 0.6}, 0.99, False, id="a title of function words beside"
        ),
        pytest.param({"question": "area of oak elm", "confidence": 0.6}, 0.99, False, id="a subject beside"),
    ],
)
def test_facts_are_read_backwards_where_that_is_likelier(
    forwards: Result, changes: dict[str, Any], backwards: float, taken: bool
) -> None:
    kb = MemoryKB([fact for fact in FACTS if "c" not in fact], [name for name in NAMES if name[0] != "c"])
    answerer = Answerer(kb)
    result = replace(forwards, **({"confidence": 0.9} | changes))
    other = replace(
        forwards,
        question=result.question,
        confidence=backwards,
        candidates=tuple(replace(candidate, inverse=True) for candidate in forwards.candidates),
    )
    sure = replace(forwards, question="another", confidence=0.9)
    asked: list[str] = []

    def ask(texts: Iterator[str]) -> list[list[Result]]:
        asked.extend(texts)
        return [[other] for text in asked if text == result.question]

    chosen = list(or_backwards(kb, answerer.link_confidence, [result, sure, result], ask))

    assert chosen == [other if taken else result, sure, other if taken else result]
    assert set(asked) <= {result.question}


def test_a_likelier_answer_that_is_read_forwards_takes_no_place(forwards: Result) -> None:
    answerer = Answerer(MemoryKB(FACTS, NAMES))
    unlikely, likely = replace(forwards, confidence=0.1), replace(forwards, confidence=0.9)

    chosen = list(or_backwards(answerer.kb, answerer.link_confidence, [unlikely], lambda texts: [[likely]]))

    assert chosen == [unlikely]


def test_a_mere_object_named_inside_the_mention_is_none_beside_it() -> None:
    names = [*NAMES, ("h", "Fir Oak")]
    answerer = Answerer(MemoryKB([*FACTS, ("h", "area", "g")], names))
    result = replace(answerer.query("area of fir oak", inverse=False), confidence=0.6)
    other = replace(result, confidence=0.99, candidates=tuple(replace(one, inverse=True) for one in result.candidates))

    chosen = list(or_backwards(answerer.kb, answerer.link_confidence, [result], lambda texts: [[other] for _ in texts]))

    assert result.candidates[0].subject_name == "Fir Oak"
    assert chosen == [result]


@pytest.mark.parametrize("together", [1, 2, 3])
@pytest.mark.parametrize("inverse", [None, True, False])
def test_batches_of_any_size_have_the_results_of_each_alone(
    monkeypatch: pytest.MonkeyPatch, together: int, inverse: bool | None
) -> None:
    answerer = Answerer(MemoryKB(FACTS, NAMES))
    alone = [replace(answerer.query(text, inverse=inverse), milliseconds=None) for text in ASKED]
    monkeypatch.setattr(answerers, "TOGETHER", together)

    results = [replace(result, milliseconds=None) for result in answerer.query_many(iter(ASKED), inverse=inverse)]

    assert results == alone
    assert len({result.inverse for result in results}) == (2 if inverse is None else 1)


def test_more_choices_of_languages_than_are_kept_answer_as_the_first_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answerers, "_MOST_LANGUAGES", 2)
    names = {"de": "Fichte", "fr": "Bouleau", "es": "Castaño", "en": "Maple"}
    spoken = [("a", name, tag) for tag, name in names.items()]
    kb = MemoryKB([("a", "writer", "b")], [*spoken, ("b", "Oak", "en")], language="en,de,fr,es")
    answerer = Answerer(kb)

    for asked in (*names, *reversed(names)):
        found = {tag: answerer.lookup(name, lang=asked) for tag, name in names.items()}
        assert {tag: result.other_languages for tag, result in found.items()} == {tag: tag != asked for tag in names}
        assert [match.id for result in found.values() for match in result.matches] == ["a"] * 4
        assert {result.languages for result in found.values()} == {(asked,)}
    assert len(answerer.views) <= 3


def test_what_is_read_backwards_in_a_language_falls_back_to_the_others() -> None:
    kb = MemoryKB([("a", "writer", "b")], [("a", "Ulme", "de"), ("b", "Oak", "en")], language="en,de")

    result = Answerer(kb).in_languages("de").both_ways().query("writer of oak", scorer="lexical")

    assert (result.other_languages, result.candidates[0].subject, result.candidates[0].inverse) == (True, "b", True)


def test_an_entity_without_facts_is_that_of_the_language_if_no_language_has_a_candidate() -> None:
    names = [("c", "Ulme", "de"), ("d", "Ulme", "en"), ("e", "Ahorn", "en")]
    answerer = Answerer(MemoryKB([("a", "writer", "b")], names, language="en,de"))

    own, other = answerer.query("ulme", lang="de"), answerer.query("ahorn", lang="de")

    assert ([entity.id for entity in own.without_facts], own.other_languages) == (["c"], False)
    assert ([entity.id for entity in other.without_facts], other.other_languages) == (["e"], True)


def test_options_count_in_languages_as_without() -> None:
    facts = [("a", "writer", "b"), ("a", "area", "b"), ("c", "writer", "b"), ("d", "writer", "a")]
    names = [("a", "Ulme", "de"), ("c", "Ulme", "de"), ("b", "Eiche", "de"), ("d", "Fichte", "de"), ("a", "Elm", "en")]
    kb = MemoryKB(facts, names, [("c", "tree")], language="en,de")
    answerer = Answerer(kb)
    view = answerer.in_languages("de")
    asked: dict[str, list[tuple[str, dict[str, Any]]]] = {
        "query": [
            ("writer of ulme", {"top": 1, "answers": 1}),
            ("writer of ulme", {"type": "tree", "pruning": "n-gram"}),
        ],
        "lookup": [("ulme", {"limit": 1}), ("ulme", {"type": "tree"})],
        "link": [("Die Ulme und die Fichte", {"threshold": 0.3, "limit": 1}), ("Die Fichte", {"threshold": 1.0})],
        "entity": [("a", {})],
        "facts": [("a", {"limit": 1, "offset": 1}), ("b", {"reverse": True, "limit": 2}), ("a", {"reverse": True})],
    }

    for name, calls in asked.items():
        for argument, options in calls:
            result = untimed(getattr(answerer, name)(argument, lang="de", **options))
            assert result == untimed(getattr(view, name)(argument, **options))
            assert result != untimed(getattr(view, name)(argument)) or not options or name == "query"


def untimed(result: Any) -> Any:
    return replace(result, milliseconds=None) if isinstance(result, Result) else result
