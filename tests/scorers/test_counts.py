"""Controls count what they are named for."""

import numpy as np
import pytest

from kbtools.kb.contract import KnowledgeBase
from kbtools.scorers.subjects.subject import FactCount, TypeCount


def test_controls_count_the_types_and_the_facts_of_each_subject(tiny_memory: KnowledgeBase) -> None:
    subjects = np.array(tiny_memory.rows(["m.01paris", "m.02paris", "m.08acdc", "m.03france"]), dtype=np.uint32)
    which = np.zeros(4, dtype=np.int64)

    types, facts = (
        control(tiny_memory).score([], which=which, subjects=subjects) for control in (TypeCount, FactCount)
    )

    assert np.expm1(types) == pytest.approx([2, 1, 0, 0])
    assert np.expm1(facts) == pytest.approx([2, 1, 3, 0])
