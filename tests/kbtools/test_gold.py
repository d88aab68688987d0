"""Gold is found row by row, its faults are named, and the value of first candidates is that of a plain loop."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbtools.answering.gold import Fault, GoldScores, find_gold, score_gold
from kbtools.answering.questions import AnnotatedQuestion
from kbtools.answering.teaching import expect
from kbtools.kb.contract import ABSENT
from kbtools.ranking.rankers import WeightedSum
from kbtools.ranking.weights import DEFAULT
from tests.kbtools.comparison.test_plain_loops import (
    ANSWERER,
    FACTS,
    GOLD,
    KB,
    NAMES,
    OPENED,
    draw,
    few,
    gathered,
    plain_outcomes,
)

FAINT = "tests.kbtools.comparison.test_weights:FaintScorer"


def test_faults_are_those_of_a_plain_loop() -> None:
    def fault(gold: AnnotatedQuestion) -> Fault:
        if not any(gold.subject in (fact[0], fact[2]) for fact in FACTS):
            return Fault.UNKNOWN_SUBJECT
        if not any(gold.relation == fact[1] for fact in FACTS):
            return Fault.UNKNOWN_RELATION
        if not any((gold.subject, gold.relation) == fact[:2] for fact in FACTS):
            return Fault.NO_SUCH_FACT
        return Fault.NONE if any(gold.subject == entity for entity, _ in NAMES) else Fault.UNNAMED_SUBJECT

    assert GOLD.fault.tolist() == [fault(gold) for gold in GOLD.questions]
    assert set(GOLD.fault.tolist()) == set(Fault)


def test_gold_is_found_by_its_ids() -> None:
    def row(entity: str) -> int:
        (found,) = KB.rows([entity])
        return ABSENT if found is None else found

    relations = [*KB.relations, ""]
    assert GOLD.subject.tolist() == [row(gold.subject) for gold in GOLD.questions]
    assert GOLD.object.tolist() == [row(gold.object) for gold in GOLD.questions]
    assert [relations[at] for at in GOLD.relation.tolist()] == [
        gold.relation if gold.relation in relations else "" for gold in GOLD.questions
    ]
    assert [text.text for text in GOLD.texts] == [gold.text for gold in GOLD.questions]


def test_candidates_are_gold_if_subject_and_relation_are() -> None:
    scored = score_gold(OPENED, GOLD)
    pools = scored.evidence.pools

    marked = {
        (int(question), KB.ids(pools.subject_of_pair[[at]])[0], KB.relations[pools.relation_of_pair[at]])
        for at, question in enumerate(pools.question_of_pair)
        if scored.gold[at]
    }

    every = zip(
        pools.question_of_pair.tolist(), KB.ids(pools.subject_of_pair), pools.relation_of_pair.tolist(), strict=True
    )
    assert marked == {
        (question, subject, KB.relations[relation])
        for question, subject, relation in every
        if (subject, KB.relations[relation]) == (GOLD.questions[question].subject, GOLD.questions[question].relation)
    }
    faint = ANSWERER.opened(ANSWERER.system(pruning="n-gram", scorer=FAINT))
    assert score_gold(faint, GOLD).evidence.beside.keys() == {"lexical"}
    right = scored.expected(WeightedSum(DEFAULT))
    assert scored.accuracy(WeightedSum(DEFAULT)) == right.mean()
    assert expect(OPENED, GOLD.questions).tolist() == right.tolist()


@given(seed=st.integers(0, 10_000))
@few
def test_the_expected_value_of_the_first_candidate_is_that_of_a_plain_loop(seed: int) -> None:
    scores: Sequence[int] = draw(seed)
    rated = GoldScores(OPENED.evidence(gathered().pools, GOLD.texts), GOLD.pairs(gathered().pools))
    values = np.arange(gathered().pools.pairs) / 7
    own = [np.flatnonzero(gathered().pools.question_of_pair == question).tolist() for question in range(len(GOLD))]
    best = [[at for at in some if scores[at] == max(scores[other] for other in some)] for some in own]

    expected = [plain_outcomes(scores, scores, question)["strict"] for question in range(len(GOLD))]
    assert rated.expected_by(np.array(scores)).tolist() == pytest.approx(expected)
    assert rated.expected_by(np.array(scores), values).tolist() == pytest.approx(
        [float(np.mean(values[some])) if some else 0.0 for some in best]
    )


def test_questions_without_candidates_are_not_right() -> None:
    gold = find_gold(KB, [AnnotatedQuestion("z", "author", "o1", "nothing here")])
    nothing = score_gold(OPENED, gold)

    assert nothing.expected(WeightedSum(DEFAULT)).tolist() == [0.0]
    assert nothing.accuracy(WeightedSum(DEFAULT)) == 0.0
    assert expect(OPENED, [*gold.questions, *gold.questions]).tolist() == [0.0, 0.0]
    assert expect(OPENED, []).tolist() == []
    assert score_gold(OPENED, find_gold(KB, [])).accuracy(WeightedSum(DEFAULT)) == 0.0
