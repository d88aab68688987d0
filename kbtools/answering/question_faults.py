"""Faults of questions: the reasons why a knowledge base cannot answer them, whatever the system."""

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from kbtools.kb.contract import ABSENT, KnowledgeBase


class Fault(IntEnum):
    """The reason why no system can be right about a question, which counts as wrong all the same."""

    NONE = 0
    UNKNOWN_SUBJECT = 1
    UNKNOWN_RELATION = 2
    NO_SUCH_FACT = 3
    UNNAMED_SUBJECT = 4

    @property
    def label(self) -> str:
        return self.name.lower().replace("_", " ")


def find_faults(kb: KnowledgeBase, subject: NDArray[np.int64], relation: NDArray[np.int64]) -> NDArray[np.int8]:
    """Find the fault of each gold pair: (questions,)."""
    # An absent subject stands for row 0 here; its fault is found first, whatever row 0 has.
    subjects, place = np.unique(np.maximum(subject, 0).astype(np.uint32), return_inverse=True)
    pairs = kb.relations_of(subjects)
    stated = set(zip(np.repeat(subjects, np.diff(pairs.starts)).tolist(), pairs.values.tolist(), strict=True))
    has_name = np.array([name is not None for name in kb.names(subjects)])[place]
    has_fact = np.array([pair in stated for pair in zip(subject.tolist(), relation.tolist(), strict=True)])
    tests = [
        (subject == ABSENT, Fault.UNKNOWN_SUBJECT),
        (relation == ABSENT, Fault.UNKNOWN_RELATION),
        (~has_fact, Fault.NO_SUCH_FACT),
        (~has_name, Fault.UNNAMED_SUBJECT),
    ]
    return np.select([test for test, _ in tests], [fault for _, fault in tests], Fault.NONE).astype(np.int8)
