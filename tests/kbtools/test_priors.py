"""Priors: shares of a name that add up to one, from facts or from counts that came with the knowledge base."""

from collections.abc import Callable

import numpy as np
import pytest

from kbtools.answering import limits, name_candidates, running_text
from kbtools.answering.answerer import Answerer
from kbtools.answering.name_candidates import SHARPNESS, rank_by_name, share_names
from kbtools.indexers.folder.memory import MemoryKB
from kbtools.linking.links import Link
from kbtools.text.ngrams import Ngram
from kbtools.text.rungs import Rung

FACTS = [("a", "r", "x"), ("a", "r", "y"), ("a", "s", "x"), ("p", "r", "b")]
NAMES = [("a", "Elm"), ("b", "Elm"), ("c", "Elm"), ("b", "Elm Street")]

Open = Callable[..., Answerer]


@pytest.fixture
def with_counts() -> Open:
    return lambda *counts: Answerer(MemoryKB(FACTS, NAMES, counts=counts))


def priors(answerer: Answerer, name: str = "Elm") -> dict[str, float]:
    return {match.id: match.prior for match in answerer.lookup(name).matches}


def test_shares_follow_the_facts_in_both_directions(with_counts: Open) -> None:
    weights = {"a": 4**SHARPNESS, "b": 2**SHARPNESS, "c": 1.0}
    total = sum(weights.values())
    assert priors(with_counts()) == {name: pytest.approx(weight / total, abs=1e-6) for name, weight in weights.items()}


def test_counts_of_a_name_decide_over_facts_and_say_so(with_counts: Open) -> None:
    answerer = with_counts(("Elm", "c", 60), ("elm", "b", 39))
    (first, second, third) = answerer.lookup("Elm").matches
    assert (first.id, second.id, third.id) == ("c", "b", "a")
    assert first.prior == pytest.approx(0.6, abs=0.01)
    assert first.reasons[-1] == f"prior {first.prior:.3f}, from 60 of 99 counts of the name"
    assert third.prior > 0


def test_counts_of_another_name_do_not_count(with_counts: Open) -> None:
    assert priors(with_counts(("Elm Street", "b", 1_000))) == priors(with_counts())


def test_counts_of_entities_stand_in_for_names_without_counts(with_counts: Open) -> None:
    answerer = with_counts(("", "c", 9), ("Elm Street", "b", 5))
    assert next(iter(priors(answerer))) == "c"
    assert answerer.lookup("Elm").matches[0].reasons[-1].endswith("9 of 9 counts of its bearers")


def test_every_group_shares_one_whatever_it_is_from(with_counts: Open) -> None:
    kb = with_counts(("Elm", "c", 3)).kb
    entities = np.array([row for row in kb.rows(["a", "b", "c", "b", "x"]) if row is not None], dtype=np.uint32)
    group = np.array([0, 0, 0, 1, 1])
    shares = share_names(kb, entities, ["elm", "elm street"], group).values
    assert np.bincount(group, shares) == pytest.approx([1, 1])


def test_a_backend_without_incoming_facts_shares_by_outgoing_ones(with_counts: Open) -> None:
    answerer = with_counts()
    answerer.kb.incoming_counts = lambda entities: None  # type: ignore[method-assign]
    assert priors(answerer)["b"] == priors(answerer)["c"]
    assert answerer.lookup("Elm").matches[0].reasons[-1].endswith("from 3 facts out")


def test_an_entity_tells_the_prior_of_its_name(with_counts: Open) -> None:
    answerer = with_counts(("Elm", "c", 60))
    assert answerer.entity("c").prior == priors(answerer)["c"]


def test_a_more_similar_name_stands_before_a_higher_prior(with_counts: Open) -> None:
    kb = with_counts().kb
    a, c = (np.array([row], dtype=np.uint32) for row in kb.rows(["a", "c"]))
    ngram = Ngram("elmm", 0, 0, 0, 4)
    links = [Link(ngram, 0, 4, "Elm", Rung.FUZZY, rows, similarity=alike) for rows, alike in ((a, 85.0), (c, 90.0))]

    ranked = rank_by_name(kb, links)

    assert kb.ids(ranked.entities) == ["c", "a"]
    assert ranked.prior.values[0] < ranked.prior.values[1]


def test_scores_of_names_are_cut_where_that_was_measured() -> None:
    assert (name_candidates.SHARPNESS, name_candidates.STEP) == (0.6, 5.0)
    assert (running_text.THRESHOLD, running_text.LOOSER, running_text.FUZZY) == (0.3, -0.1, -1.0)
    assert (limits.TOP, limits.ANSWERS, limits.DOUBTFUL) == (10, 20, 0.15)
