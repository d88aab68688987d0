"""Mentions are linked back from the gold subject as the paper does it."""

import pytest

from kbtools.kb.contract import KnowledgeBase, find_rows
from kbtools.pruning.pruners import label_mentions, longest_match
from kbtools.text.question import Question


@pytest.mark.parametrize(
    ("text", "mention"),
    [
        pytest.param("what country is paris in", "paris", id="name"),
        pytest.param("is the city of light in france", "city of light", id="alias"),
        pytest.param("paris texas is in paris", "paris", id="only its own names"),
        pytest.param("what country is london in", None, id="none"),
    ],
)
def test_a_mention_is_a_name_of_the_subject(tiny_memory: KnowledgeBase, text: str, mention: str | None) -> None:
    subjects = find_rows(tiny_memory, ["m.01paris"])

    (found,) = label_mentions(tiny_memory, [Question.read(text)], subjects=subjects)

    assert (text[found.start : found.end] if found else None) == mention


def test_the_longest_match_wins_then_the_first() -> None:
    question = Question.read("paris or paris texas or paris texas")

    found = longest_match(question, ["paris", "paris texas"])

    assert found is not None
    assert (found.start, found.end) == (9, 20)
