"""Ranking: every column against a plain loop, ties and cuts by hand."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbtools.answering.answerer import Answerer
from kbtools.errors import BrokenPlugin
from kbtools.indexers.folder.memory import MemoryKB
from kbtools.kb.contract import KnowledgeBase
from kbtools.linking.links import Link
from kbtools.ranking.evidence import Evidence
from kbtools.ranking.opened_system import LinkedQuestions, Ranking, order, rank_candidates
from kbtools.ranking.pools import Pools, concatenate_pools, gather_pool, order_links
from kbtools.ranking.rankers import WeightedSum
from kbtools.ranking.score import DECIMALS, score_relations
from kbtools.ranking.weights import DEFAULT, POPULARITY, RUNG
from kbtools.text.ngrams import Ngram
from kbtools.text.question import MarkedQuestion, Question
from kbtools.text.rungs import Rung

QUESTION = Question.read("one two three four five six")
RELATIONS = ["p", "q", "r", "s"]


class Spoken:
    """Score relations by the place of the mention, coarsely, so that scores tie."""

    def __init__(self, relations: Sequence[str]) -> None:
        self.count = len(relations)

    def score(self, questions: Sequence[MarkedQuestion]) -> np.ndarray:
        return np.array([[(one.start * 7 + at * 3) % 4 / 2 for at in range(self.count)] for one in questions])


def rank_by(kb: KnowledgeBase, question: Question, pool: Pools, *, scorer: Any, top: int | None) -> Ranking:
    """Rank a pool by a relation scorer and the default weights."""
    evidence = Evidence(pool, {"any": score_relations(kb, pool, [question], scorer)})
    rating = WeightedSum(DEFAULT).rate(evidence) if pool.pairs else None
    (ranking,) = rank_candidates(kb, LinkedQuestions([question], [[]], [pool]), rating, top=top)
    return ranking


def pruned(answerer: Answerer, question: Question) -> LinkedQuestions:
    """Prune a question by its n-grams."""
    return answerer.opened(answerer.system(pruning="n-gram")).gather([question])


def pools() -> st.SearchStrategy[Any]:
    """Draw a small knowledge base and links into it."""
    entity = st.integers(0, 6).map("m.{}".format)
    facts = st.lists(st.tuples(entity, st.sampled_from(RELATIONS), entity), min_size=1, max_size=25)
    link = st.tuples(
        st.integers(0, 3),
        st.integers(1, 3),
        st.sampled_from([Rung.EXACT, Rung.CASE, Rung.VARIANT, Rung.FUZZY]),
        st.lists(st.integers(0, 6).map("m.{}".format), min_size=1, max_size=4, unique=True),
        st.sampled_from([0.0, -1.0, -2.5]),
        st.sampled_from([80.0, 90.0]),
    )
    return st.tuples(facts, st.lists(link, max_size=5))


def make(drawn: Any) -> tuple[MemoryKB, list[Link]]:
    facts, drawn_links = drawn
    kb = MemoryKB(facts, [(f"m.{at}", f"name {at}") for at in range(7)])
    tokens, links = QUESTION.tokens, []
    for first, length, rung, ids, weight, similarity in drawn_links:
        last = first + length - 1
        start, end = tokens[first].start, tokens[last].end
        entities = np.array(sorted(kb.rows(ids)), dtype=np.uint32)
        known = similarity if rung is Rung.FUZZY else 100.0
        links.append(Link(Ngram("form", first, last, start, end), start, end, "name", rung, entities, weight, known))
    return kb, links


@given(pools())
def test_gathered_candidates_equal_a_plain_loop(drawn: Any) -> None:
    kb, links = make(drawn)
    expected = {}
    for link in sorted(links, key=lambda link: link.order):
        for entity in link.entities.tolist():
            expected.setdefault(entity, link)
    pairs = []
    for entity in sorted(expected):
        names = sorted(kb.facts_from(entity))
        pairs += [(entity, relation, expected[entity].order) for relation in names]
    ordered = order_links(links)
    pool = gather_pool(kb, ordered)
    assert pool.pairs == len(pairs)
    columns = pool.subject_of_pair.tolist(), pool.relation_of_pair.tolist(), pool.link_of_pair.tolist()
    assert [
        (subject, kb.relations[relation], ordered[link].order) for subject, relation, link in zip(*columns, strict=True)
    ] == pairs


@given(pools(), pools())
@settings(deadline=None)
def test_each_mention_is_normalised_over_all_relations_by_itself(one: Any, other: Any) -> None:
    kb, links = make((one[0], one[1]))
    _, others = make((one[0], other[1]))

    class Louder(Spoken):
        def score(self, questions: Sequence[MarkedQuestion]) -> np.ndarray:
            return super().score(questions) + [[asked.start + asked.end] for asked in questions]

    scorer = Louder(kb.relations)
    together = concatenate_pools([gather_pool(kb, order_links(own)) for own in (links, others)])
    expected = []
    for question in range(2):
        relations = together.relation[together.question_of("relation") == question].tolist()
        for mention in np.flatnonzero(together.question_of("mention") == question):
            marked = MarkedQuestion(QUESTION, int(together.mention_start[mention]), int(together.mention_end[mention]))
            scores = scorer.score([marked])[0]
            expected += [scores[row] - math.log(sum(math.exp(score) for score in scores)) for row in relations]

    v = score_relations(kb, together, [QUESTION, QUESTION], scorer)

    assert v.tolist() == pytest.approx(expected)


@given(pools(), st.none() | st.integers(1, 6))
@settings(deadline=None)
def test_ranking_equals_a_plain_loop(drawn: Any, top: int | None) -> None:
    kb, links = make(drawn)
    ordered_links = order_links(links)
    pool = gather_pool(kb, ordered_links)
    scorer = Spoken(kb.relations)
    spoken = sorted({int(relation) for relation in pool.relation_of_pair})
    rows = []
    columns = pool.subject_of_pair.tolist(), pool.relation_of_pair.tolist(), pool.link_of_pair.tolist()
    for entity, relation, at in zip(*columns, strict=True):
        link = ordered_links[at]
        scores = scorer.score([MarkedQuestion(QUESTION, link.start, link.end)])[0]
        facts = sum(len(objects) for objects in kb.facts_from(entity).values())
        rows.append(
            {
                "relation": scores[relation] - math.log(sum(math.exp(scores[other]) for other in spoken)),
                "mention": link.weight,
                "rung": RUNG * (1 - link.rung),
                "similarity": math.log(link.similarity / 100),
                "popularity": POPULARITY * math.log(1 + facts) / (1 + math.log(1 + facts)),
            }
        )
    ranking = rank_by(kb, QUESTION, pool, scorer=scorer, top=top)
    for part, values in ranking.parts.items():
        assert values.tolist() == pytest.approx([rows[at][part] for at in ranking.best])
    assert ranking.scores.tolist() == pytest.approx([sum(row.values()) for row in rows], abs=10**-DECIMALS)
    ids = kb.ids(pool.subject_of_pair)
    ordered = sorted(
        range(pool.pairs), key=lambda at: (-ranking.scores[at], ids[at], kb.relations[int(pool.relation_of_pair[at])])
    )
    assert ranking.best == ordered[:top]
    assert ranking.tied == sum(score == max(ranking.scores) for score in ranking.scores)


@given(st.lists(pools(), min_size=2, max_size=3), st.none() | st.integers(1, 6))
@settings(deadline=None, max_examples=15)
def test_questions_together_are_ranked_as_alone(drawn: Any, top: int | None) -> None:
    kb, _ = make((drawn[0][0], []))
    own = [gather_pool(kb, order_links(make((drawn[0][0], links))[1])) for _, links in drawn]
    together = concatenate_pools(own)
    questions = [QUESTION] * len(own)
    v = score_relations(kb, together, questions, Spoken(kb.relations))
    rating = WeightedSum(DEFAULT).rate(Evidence(together, {"any": v}))

    rankings = rank_candidates(kb, LinkedQuestions(questions, [[]] * len(own), own), rating, top=top)

    alone = [rank_by(kb, QUESTION, pool, scorer=Spoken(kb.relations), top=top) for pool in own]
    assert [(one.best, one.scores.tolist(), one.tied, one.level) for one in rankings] == [
        (one.best, one.scores.tolist(), one.tied, one.level) for one in alone
    ]
    assert [{name: values.tolist() for name, values in one.parts.items()} for one in rankings if one.best] == [
        {name: pytest.approx(values.tolist()) for name, values in one.parts.items()} for one in alone if one.best
    ]


@given(st.lists(st.sampled_from([0, -500_000, -1_000_000]), min_size=12, max_size=12), st.integers(0, 14))
def test_a_cut_inside_a_tie_keeps_the_first_ids(scores: list[int], top: int | None) -> None:
    kb = MemoryKB([(f"m.{at:02}", "r", "o") for at in range(12)], [(f"m.{at:02}", "name") for at in range(12)])
    entities = np.array(kb.rows([f"m.{at:02}" for at in range(12)]), dtype=np.uint32)
    pool = gather_pool(kb, [Link(Ngram("name", 0, 0, 0, 4), 0, 4, "name", Rung.EXACT, entities)])
    by_score_then_id = sorted(range(12), key=lambda at: (-scores[at], at))
    assert order(kb, pool, np.array(scores), top) == by_score_then_id[:top]
    assert order(kb, pool, np.array(scores), None) == by_score_then_id


def test_of_a_tie_inside_one_subject_the_relation_decides() -> None:
    kb = MemoryKB([("m.1", relation, "o") for relation in RELATIONS], [("m.1", "name")])
    entities = np.array(kb.rows(["m.1"]), dtype=np.uint32)
    pool = gather_pool(kb, [Link(Ngram("name", 0, 0, 0, 4), 0, 4, "name", Rung.EXACT, entities)])
    best = order(kb, pool, np.zeros(4, dtype=np.int64), 3)
    assert [kb.relations[int(pool.relation_of_pair[at])] for at in best] == ["p", "q", "r"]

    kb.relations = RELATIONS[::-1]  # a backend may list them in any order
    best = order(kb, pool, np.zeros(4, dtype=np.int64), 3)
    assert [kb.relations[int(pool.relation_of_pair[at])] for at in best] == ["p", "q", "r"]


def test_probabilities_of_the_relations_of_a_pool_sum_to_one(sample: Answerer) -> None:
    result = sample.query("harry potter", pruning="n-gram+", top=None)
    spoken = {one.relation: one.parts["relation"] for one in result.candidates}
    assert sum(math.exp(value) for value in spoken.values()) == pytest.approx(1, abs=1e-5)


def test_large_scores_do_not_overflow() -> None:
    kb = MemoryKB([("m.1", "p", "o"), ("m.1", "q", "o")], [("m.1", "name")])

    class Loud(Spoken):
        def score(self, questions: Sequence[MarkedQuestion]) -> np.ndarray:
            return np.array([[1e6, -1e6]])

    entities = np.array(kb.rows(["m.1"]), dtype=np.uint32)
    pool = gather_pool(kb, [Link(Ngram("name", 0, 0, 0, 4), 0, 4, "name", Rung.EXACT, entities)])
    ranking = rank_by(kb, QUESTION, pool, scorer=Loud(kb.relations), top=None)
    assert ranking.parts["relation"].tolist() == [0, -2e6]


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ([[0.0]], r"Given gave scores \(1, 1\), expected \(1, 2\)"),
        ([[0.0, 1.0], [0.0, 1.0]], r"Given gave scores \(2, 2\), expected \(1, 2\)"),
        ([[0.0, math.nan]], "not finite"),
        ([[-math.inf, 0.0]], "not finite"),
    ],
)
def test_a_scorer_that_breaks_its_contract_is_named(scores: list[Any], message: str) -> None:
    kb = MemoryKB([("m.1", "p", "o"), ("m.1", "q", "o")], [("m.1", "name")])

    class Given(Spoken):
        def score(self, questions: Sequence[MarkedQuestion]) -> np.ndarray:
            return np.array(scores)

    entities = np.array(kb.rows(["m.1"]), dtype=np.uint32)
    pool = gather_pool(kb, [Link(Ngram("name", 0, 0, 0, 4), 0, 4, "name", Rung.EXACT, entities)])
    with pytest.raises(BrokenPlugin, match=message):
        rank_by(kb, QUESTION, pool, scorer=Given(kb.relations), top=None)


def test_an_empty_pool_ranks_nothing(tiny_memory: KnowledgeBase) -> None:
    scorer = Spoken(tiny_memory.relations)
    ranking = rank_by(tiny_memory, QUESTION, gather_pool(tiny_memory, []), scorer=scorer, top=None)
    assert (ranking.parts, ranking.scores.tolist(), ranking.best, ranking.tied) == ({}, [], [], 0)


def test_links_to_subjects_without_facts_rank_nothing(sample: Answerer) -> None:
    question = Question.read("atlantis")
    pool = pruned(sample, question).pools[0]
    assert (len(pool.subject), pool.pairs) == (1, 0)
    assert rank_by(sample.kb, question, pool, scorer=sample.scorer("lexical"), top=10).tied == 0


def test_the_whole_gain_of_popularity_is_less_than_a_rung() -> None:
    assert 0 < POPULARITY < RUNG


def test_a_subject_stands_once_with_the_best_of_its_links(sample: Answerer) -> None:
    text = "machine learning and Machine Learning"
    linked = pruned(sample, Question.read(text))
    subjects, links = linked.pools[0].subject, linked.pools[0].subject_link
    assert len(np.unique(subjects)) == len(subjects)
    by_subject = dict(zip(sample.kb.ids(subjects), (linked.links[0][at] for at in links), strict=True))
    assert {by_subject[one].rung for one in ("m.0kba095", "m.0kba145")} == {Rung.EXACT}
