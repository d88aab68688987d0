"""Questions for a relation that the knowledge base has, but that the entity in question lacks."""

from collections.abc import Iterator, Sequence
from functools import cached_property

from kbtools.answering.results import Result
from kbtools.kb.contract import KnowledgeBase
from kbtools.kb.views import relation_labels
from kbtools.linking.link_confidence import ContentWords
from kbtools.ranking.direction import Directions
from kbtools.ranking.opened_system import Ranking
from kbtools.text.question import MarkedQuestion, Question
from kbtools.text.relation_words import relation_words, stems_of

UNLIKELY = 0.1
"""The factor for the confidence in another fact of such an entity: it makes any answer doubtful."""

LACKING = "the question names a relation that the entity does not have"
"""Why such an answer is doubtful."""

ONLY_OBJECT = "the question asks for a relation that the entity has only as an object"
"""Why an answer is doubtful that reads such a relation backwards."""

_LONGEST = 4
"""The most words in a relation's name that a question may contain."""


class MissingFacts:
    """The relations of a knowledge base by all words of their names, to detect questions for a missing one."""

    def __init__(self, kb: KnowledgeBase, content: ContentWords) -> None:
        self.kb, self.content = kb, content

    @cached_property
    def labels(self) -> list[list[str]]:
        return relation_labels(self.kb)

    @cached_property
    def rows_by_words(self) -> dict[tuple[str, ...], list[int]]:
        rows: dict[tuple[str, ...], list[int]] = {}
        for row, own in enumerate(self.labels):
            for words in {_stemmed(relation_words(label)) for label in own}:
                rows.setdefault(words, []).append(row)
        return rows

    def asked_for(self, ranking: Ranking) -> bool:
        """Return whether a question names a relation that no candidate has, but not the first candidate's relation."""
        if not ranking.best:
            return False
        pool, first = ranking.pool, ranking.best[0]
        link = ranking.links[int(pool.link_of_pair[first])]
        tokens = [token for token in ranking.question.tokens if token.is_word]
        words = [token.text for token in tokens if not link.start <= token.start < link.end]
        named, runs = self.named_in(words)
        if not named:
            return False
        # Relations read backwards follow the others, in the same order.
        relations = [row % len(self.labels) for row in pool.relation.tolist()]
        if not named.isdisjoint(relations):
            return False
        own = [relation_words(label) for label in self.labels[relations[int(pool.pair_relation[first])]]]
        said = {at for run in runs if any(len(label) < len(run) for label in own) for at in run}
        stems = {stem for label in own for word in label for stem in stems_of(word)}
        return stems.isdisjoint(stem for at, word in enumerate(words) if at not in said for stem in stems_of(word))

    def read_forwards(self, result: Result, directions: Directions) -> bool:
        """Return whether a question names the relation that is read backwards to answer it, but asks for it forwards.

        `Who is the manager of Ada` does not ask for the entities whose manager is Ada.
        """
        first, question = result.candidates[0], Question.read(result.question)
        marked = MarkedQuestion(question, first.mention.start, first.mention.end)
        named, _ = self.named_in(marked.words())
        relation = next((row for row in named if self.kb.relations[row] == first.relation), None)
        if relation is None:
            return False
        forwards, backwards = directions.log_probabilities(marked)[:, relation]
        return bool(forwards > backwards)

    def named_in(self, words: Sequence[str]) -> tuple[set[int], list[range]]:
        """Return the relations that words name, and the places of their names."""
        named: set[int] = set()
        runs: list[range] = []
        for run in _runs(len(words)):
            # `office` of `office hours` names no relation of its own.
            if not any(run[0] in longer and run[-1] in longer for longer in runs) and (
                rows := self.rows_of(tuple(words[run[0] : run[-1] + 1]))
            ):
                named.update(rows)
                runs.append(run)
        return named, runs

    def rows_of(self, words: tuple[str, ...]) -> list[int]:
        """Return the relations that have these words as their name, none for function words."""
        return [] if self.content.weak.issuperset(words) else self.rows_by_words.get(_stemmed(words), [])


def _stemmed(words: Sequence[str]) -> tuple[str, ...]:
    """Return words without their endings, so that `partner` names `partners` and `manages` names `manager`."""
    return tuple(min(stems_of(word), key=len) for word in words)


def _runs(words: int) -> Iterator[range]:
    """Yield the runs of a number of words that may be names of relations, the longest first."""
    return (range(at, at + size) for size in range(_LONGEST, 0, -1) for at in range(words - size + 1))
