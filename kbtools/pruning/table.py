"""The pruners by name, H(K, q) of the paper (Eq. 3), and what they have in common."""

from typing import Protocol

from kbtools.candidates import Link
from kbtools.errors import UnknownPlugin
from kbtools.knowledge import KnowledgeBase
from kbtools.ngrams import Question
from kbtools.pruning.n_gram import NGram
from kbtools.pruning.n_gram_idf import NGramIdf
from kbtools.pruning.n_gram_plus import NGramPlus


class Pruner(Protocol):
    """Choose the mentions of a question; made once for a knowledge base."""

    def __init__(self, kb: KnowledgeBase) -> None: ...

    def links(self, question: Question) -> list[Link]:
        """Give the links that are kept; a weight of 0 throughout means no opinion between them."""
        ...


PRUNERS: dict[str, type[Pruner]] = {"n-gram": NGram, "n-gram+": NGramPlus, "n-gram-idf": NGramIdf}
DEFAULT = "n-gram-idf"


def make_pruner(name: str, kb: KnowledgeBase) -> Pruner:
    """Make a pruner by its name; raise UnknownPlugin for another."""
    if name not in PRUNERS:
        raise UnknownPlugin(f"no pruner {name!r}; known: {', '.join(PRUNERS)}", name=name)
    return PRUNERS[name](kb)
