"""Dense pruning: the entities whose vectors are nearest to the question's, under any name."""

from collections.abc import Sequence
from typing import ClassVar

from kbtools.kb.contract import KnowledgeBase
from kbtools.linking.links import Link
from kbtools.pruning.n_gram import NGramIdf
from kbtools.pruning.pruners import EmbedQuestions, Guide
from kbtools.text.ngrams import Ngram
from kbtools.text.question import MarkedQuestion, Question
from kbtools.text.rungs import Rung

NEAREST = 20
"""Entities kept, as many as fuzzy linking keeps (paper, Focused Pruning)."""

_LEAST_SIMILARITY = 0.01
"""Similarity, of 100, of an entity with a cosine of 0 or less, since the joint score takes its logarithm."""


class Dense:
    """The pruner `dense`: the entities nearest to g(q) (paper, Eq. 12) by cosine; the mention is the whole question.

    This goes beyond the paper, in which the subject network only ranks linked entities.
    """

    guide: ClassVar[Guide] = "vectors"
    version: ClassVar[int] = 1

    def __init__(self, kb: KnowledgeBase, embed: EmbedQuestions) -> None:
        self.kb = kb
        self.vectors = kb.vectors()
        self.embed = embed

    def links(self, questions: Sequence[Question]) -> list[list[Link]]:
        return [self.near(question) for question in questions]

    def near(self, question: Question) -> list[Link]:
        if not question.tokens:
            return []
        # One question at a time: its vector must not depend on a batch.
        whole = Ngram("", 0, len(question.tokens) - 1, question.tokens[0].start, question.tokens[-1].end)
        neighbours = self.vectors.nearest(self.embed([MarkedQuestion(question, 0, 0)]), limit=NEAREST)
        rows = neighbours.rows[0]
        titles = [name or entity_id for name, entity_id in zip(self.kb.names(rows), self.kb.ids(rows), strict=True)]
        return [
            Link(
                whole, whole.start, whole.end, title, Rung.NEAR, rows[place : place + 1],
                similarity=max(100 * float(cosine), _LEAST_SIMILARITY),
            )
            for place, (title, cosine) in enumerate(zip(titles, neighbours.cosines[0], strict=True))
        ]  # fmt: skip


class DenseLast(Dense):
    """The pruner `dense-last`: `n-gram-idf`, or `dense` for a question in which no name links."""

    def __init__(self, kb: KnowledgeBase, embed: EmbedQuestions) -> None:
        super().__init__(kb, embed)
        self.named = NGramIdf(kb)

    def links(self, questions: Sequence[Question]) -> list[list[Link]]:
        named = self.named.links(questions)
        return [links or self.near(question) for question, links in zip(questions, named, strict=True)]
