"""A link: some words of a question, the name that they match, and the entities that bear the name."""

from typing import NamedTuple

from kbtools.kb.rows import EntityRows
from kbtools.text.ngrams import Ngram
from kbtools.text.rungs import Rung


class Link(NamedTuple):
    """A mention, the name it matched, and the entities that bear the name.

    `start` and `end` are characters of the question. `weight` is what the pruner thinks of the mention, a
    log-probability up to a constant, 0 if it has no opinion; `similarity` is 0 to 100 and below 100 only on the fuzzy
    rung, where it is of names, and on the rung `near`, where it is of vectors.
    """

    ngram: Ngram
    start: int
    end: int
    name: str
    rung: Rung
    entities: EntityRows
    weight: float = 0.0
    similarity: float = 100.0

    @property
    def order(self) -> tuple[float, int, float, int, int]:
        """Sort the better link first: weight, rung, similarity, length, place."""
        return (-self.weight, self.rung, -self.similarity, self.start - self.end, self.start)
