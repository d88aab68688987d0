"""The pruners by name, H(K, q) of the paper (Eq. 3), and what they have in common."""

from collections.abc import Callable
from typing import Protocol

from kbtools.errors import UnknownPlugin
from kbtools.kb.contract import KnowledgeBase
from kbtools.linking.candidates import Link
from kbtools.pruning.dense import Dense, DenseLast, EmbedQuestions
from kbtools.pruning.focused import Focused, FocusedK, FocusedKB
from kbtools.pruning.n_gram import NGram
from kbtools.pruning.n_gram_idf import NGramIdf
from kbtools.pruning.n_gram_plus import NGramPlus
from kbtools.pruning.tagging import Tagger
from kbtools.text.question import Question


class Pruner(Protocol):
    """Choose the mentions of a question; made once for a knowledge base, some with what guides them as well."""

    def links(self, question: Question) -> list[Link]:
        """Give the links that are kept; a weight of 0 throughout means no opinion between them."""
        ...


PRUNERS: dict[str, Callable[[KnowledgeBase], Pruner]] = {"n-gram": NGram, "n-gram+": NGramPlus, "n-gram-idf": NGramIdf}
FOCUSED: dict[str, type[Focused]] = {"focused": Focused, "focused-kb": FocusedKB, "focused-k": FocusedK}
"""The pruners that a tagger guides."""

DENSE: dict[str, type[Dense]] = {"dense": Dense, "dense-last": DenseLast}
"""The pruners that vectors of entities guide."""

NAMES = (*PRUNERS, *FOCUSED, *DENSE)
DEFAULT = "n-gram-idf"


def make_pruner(
    name: str,
    kb: KnowledgeBase,
    *,
    tagger: Callable[[], Tagger] | None = None,
    embedder: Callable[[], EmbedQuestions] | None = None,
) -> Pruner:
    """Make a pruner by its name, with a tagger or with g(q) if it needs one; raise UnknownPlugin for another."""
    if name in FOCUSED and tagger is not None:
        return FOCUSED[name](kb, tagger())
    if name in DENSE and embedder is not None:
        return DENSE[name](kb, embedder())
    if name not in PRUNERS:
        raise UnknownPlugin(f"no pruner {name!r}; known: {', '.join(NAMES)}", name=name)
    return PRUNERS[name](kb)
