"""Why questions were lost: one cause each, so that a person sees what to mend."""

from collections.abc import Mapping
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbtools.comparison.gold import Fault


class Cause(IntEnum):
    """What kept a question from being answered in full; the first that holds, in this order."""

    NONE = 0
    UNKNOWN_SUBJECT = 1
    UNKNOWN_RELATION = 2
    NO_SUCH_FACT = 3
    UNNAMED_SUBJECT = 4
    MENTION_NOT_LINKED = 5
    PRUNED_AWAY = 6
    NAMESAKE_TIE = 7
    RELATION_TIE = 8
    OBJECT_RIGHT = 9
    WRONG_RELATION = 10
    WRONG_SUBJECT = 11

    @property
    def label(self) -> str:
        return self.name.lower().replace("_", " ")

    @property
    def meaning(self) -> str:
        return MEANINGS[self]


MEANINGS = {
    Cause.NONE: "answered",
    Cause.UNKNOWN_SUBJECT: "the knowledge base does not hold the gold subject",
    Cause.UNKNOWN_RELATION: "the knowledge base does not hold the gold relation",
    Cause.NO_SUCH_FACT: "the gold subject has no fact of the gold relation",
    Cause.UNNAMED_SUBJECT: "the gold subject has neither name nor alias",
    Cause.MENTION_NOT_LINKED: "no words of the question are a name of the gold subject",
    Cause.PRUNED_AWAY: "a name of the gold subject is in the question, but the pruner did not keep it",
    Cause.NAMESAKE_TIE: "right, but tied with namesakes that have the relation too",
    Cause.RELATION_TIE: "right, but tied with pairs of other relations",
    Cause.OBJECT_RIGHT: "another pair, which leads to the gold object all the same",
    Cause.WRONG_RELATION: "another relation won",
    Cause.WRONG_SUBJECT: "the relation is right, another subject won",
}


def find_causes(
    outcomes: Mapping[str, NDArray[Any]], *, fault: NDArray[np.int8], linkable: NDArray[np.bool_]
) -> NDArray[np.int8]:
    """Find the cause of each question that is not answered in full."""
    strict = outcomes["strict"]
    recalled = outcomes["recalled"].astype(bool)
    tests = [
        (strict == 1, Cause.NONE),
        *((fault == kind, Cause[kind.name]) for kind in Fault if kind is not Fault.NONE),
        (~recalled & ~linkable, Cause.MENTION_NOT_LINKED),
        (~recalled, Cause.PRUNED_AWAY),
        ((strict > 0) & (outcomes["right_relations"] == outcomes["tied"]), Cause.NAMESAKE_TIE),
        (strict > 0, Cause.RELATION_TIE),
        (outcomes["object"] > 0, Cause.OBJECT_RIGHT),
        (outcomes["right_relations"] == 0, Cause.WRONG_RELATION),
    ]
    return np.select([test for test, _ in tests], [cause for _, cause in tests], Cause.WRONG_SUBJECT).astype(np.int8)
