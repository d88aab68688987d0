"""Trust in links: less for loose rungs and for what a mention leaves over."""

import numpy as np
import pytest

from kbtools.kb.contract import KnowledgeBase
from kbtools.linking.link_confidence import BESIDE, ELSEWHERE, LOOSE, LinkConfidence
from kbtools.linking.links import Link
from kbtools.text.ngrams import Ngram
from kbtools.text.question import Question
from kbtools.text.rungs import Rung

NOBODY = np.empty(0, dtype=np.uint32)


@pytest.mark.parametrize(
    ("text", "mention", "rung", "confidence"),
    [
        ("how tall is orla venn", "orla venn", Rung.CASE, 1.0),
        ("how tall is orla vennick", "orla", Rung.CASE, BESIDE),
        ("how tall is big orla venn barksdale", "orla venn", Rung.CASE, BESIDE**2),
        ("who has a zebra as orla venn", "orla venn", Rung.CASE, ELSEWHERE),
        ("zebra as orla venn", "orla venn", Rung.CASE, ELSEWHERE),
        ("orla venn as zebra", "orla venn", Rung.CASE, ELSEWHERE),
        ("how tall is orla ven", "orla ven", Rung.FUZZY, LOOSE[Rung.FUZZY]),
        ("how tall is saint orla", "saint orla", Rung.VARIANT, LOOSE[Rung.VARIANT]),
        ("what country is orla in", "orla", Rung.EXACT, 1.0),
    ],
)
def test_confidence_is_less_for_what_is_left_over_and_for_loose_rungs(
    tiny_memory: KnowledgeBase, text: str, mention: str, rung: Rung, confidence: float
) -> None:
    start = text.index(mention)
    link = Link(Ngram(mention, 0, 0, 0, 0), start, start + len(mention), mention, rung, NOBODY)

    assert LinkConfidence(tiny_memory).of(Question.read(text), [link]) == pytest.approx([confidence])


def test_confidence_is_what_was_measured() -> None:
    assert (BESIDE, ELSEWHERE) == (0.67, 0.84)
    assert LOOSE == {Rung.VARIANT: 0.9, Rung.FUZZY: 0.84}


def test_no_links_have_no_confidence(tiny_memory: KnowledgeBase) -> None:
    assert LinkConfidence(tiny_memory).of(Question.read("who"), []).tolist() == []
