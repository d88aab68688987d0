"""Taught questions: the file beside a knowledge base, and what a system learns from it."""

import fcntl
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kbtools.errors import BadLine, KBToolsError
from kbtools.kb.contract import ABSENT, KnowledgeBase, find_rows
from kbtools.kb.views import MARK
from kbtools.pruning.pruners import label_mentions
from kbtools.ranking.contracts import Teachable
from kbtools.ranking.direction import DirectedScorer
from kbtools.ranking.head import Head, fit_head
from kbtools.ranking.pools import Pools
from kbtools.ranking.rankers import Rating
from kbtools.ranking.score import as_micro
from kbtools.storage import new_file
from kbtools.text.question import MarkedQuestion, Question
from kbtools.user_cache import identity, keep

logger = logging.getLogger(__name__)

VARIABLE = "KBTOOLS_TAUGHT"
"""The environment variable that names another file of taught questions; if it is empty, none is read."""

_HEADER = "question\tsubject\trelation"

MOST_TAUGHT, _MOST_CHARACTERS = 20_000, 10_000
"""The most questions of a file, and characters of a line; kbtools train takes more questions."""

SUBJECT_GAIN = 0.3
"""The factor of log(1 + n) in the log-probability of a subject that n taught questions mean. After 3,000 taught
questions of FBSQ, 0.3 points more of 3,000 others are right; 0.2 with 0.1, 0.5 with 1. WordNet's other questions lose
nothing up to 0.3, and 0.4 points with 0.5."""

SAME_GAIN = 20.0
"""Log-probability added to the taught pair of an identical question, more than scores differ by."""

_HEAD_VERSION = 1
"""Rises when heads are learned differently; cached heads of other versions are learned again."""


class TaughtQuestion(NamedTuple):
    """A question with the ids of the subject and the relation that it means."""

    question: str
    subject: str
    relation: str


class TaughtFile:
    """The file of taught questions: UTF-8 with a header, one question per line, columns separated by tabs."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def state(self) -> tuple[int, ...] | None:
        """Return the identity of the file's content, None if there is no file."""
        try:
            return identity(self.path.stat())
        except OSError:
            return None

    def read(self) -> list[TaughtQuestion]:
        """Return the questions of the file, empty if there is none; raise BadLine for a damaged line."""
        if self.state() is None:
            return []
        questions: list[TaughtQuestion] = []
        with self.path.open("rb") as lines:
            for number, raw in enumerate(iter(lambda: lines.readline(_MOST_CHARACTERS), b""), 1):
                line = raw.decode(errors="replace").removeprefix("\ufeff").rstrip("\r\n")
                columns = line.split("\t")
                if line.strip() and not (number == 1 and line == _HEADER):
                    if len(columns) != 3 or "\ufffd" in line or not all(map(str.strip, columns)):
                        self.refuse(number, "expected a question, a subject and a relation separated by tabs")
                    questions.append(TaughtQuestion(*columns))
                if len(questions) > MOST_TAUGHT:
                    self.refuse(number, f"more than {MOST_TAUGHT:,} questions; use them with kbtools train")
        return questions

    def refuse(self, number: int, problem: str) -> None:
        raise BadLine.at(self.path, f"{problem}; fix or remove the line", line=number)

    def change(self, change: Callable[[list[TaughtQuestion]], list[TaughtQuestion]]) -> list[TaughtQuestion]:
        """Replace the questions of the file by a function of them; concurrent changes wait for each other."""
        with self.locked():
            questions = change(self.read())
            if len(questions) > MOST_TAUGHT:
                self.refuse(len(questions), f"more than {MOST_TAUGHT:,} questions; use them with kbtools train")
            with new_file(self.path) as file:
                file.write(file_bytes(questions))
        return questions

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the folder of the file, which leaves no lock file behind."""
        descriptor = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def file_bytes(questions: Sequence[TaughtQuestion]) -> bytes:
    """Return the content of a file of taught questions."""
    return "".join(f"{line}\n" for line in (_HEADER, *map("\t".join, questions))).encode()


def taught_file(kb: KnowledgeBase) -> TaughtFile | None:
    """Return the file of a knowledge base, None if it has no folder and VARIABLE is not set, or is empty."""
    variable, folder = os.environ.get(VARIABLE), getattr(kb, "path", None)
    if variable is not None:
        return TaughtFile(Path(variable)) if variable else None
    return TaughtFile(Path(f"{os.path.abspath(folder)}.taught.tsv")) if folder else None


def same_text(text: str) -> str:
    """Return a question in a spelling that ignores case, spaces and punctuation at the ends."""
    return " ".join(text.casefold().strip(" ?!.").split())


@dataclass(frozen=True, eq=False)
class Taught:
    """Taught questions whose subject and relation are in the knowledge base, and what is learned from them.

    Vectors, by scorer, and heads, by scorer and whether facts are read both ways, are computed when first needed.
    """

    questions: tuple[TaughtQuestion, ...]
    marked: tuple[MarkedQuestion, ...]
    subjects: NDArray[np.int64]
    vectors: dict[str, NDArray[np.float32]] = field(default_factory=dict)
    heads: dict[tuple[str, bool], Head | None] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.questions)

    @cached_property
    def places(self) -> dict[str, int]:
        """The place of each question, by its text."""
        return {same_text(question.question): at for at, question in enumerate(self.questions)}

    def embedded(self, name: str, scorer: Teachable) -> NDArray[np.float32]:
        """Return the vectors of the questions by a scorer: (questions, dim)."""
        if name not in self.vectors:
            self.vectors[name] = scorer.embed(self.marked)
        return self.vectors[name]

    def subset(self, kept: NDArray[np.bool_]) -> "Taught":
        """Return the marked questions: (questions,)."""
        places = np.flatnonzero(kept).tolist()
        questions, marked = tuple(self.questions[at] for at in places), tuple(self.marked[at] for at in places)
        vectors = {name: vectors[kept] for name, vectors in self.vectors.items()}
        return Taught(questions, marked, self.subjects[kept], vectors)

    def rows(self, relations: Sequence[str]) -> NDArray[np.int64]:
        """Return the row of each question's relation, ABSENT if a view lacks it."""
        rows = {relation: row for row, relation in enumerate(relations)}
        return np.array([rows.get(question.relation, ABSENT) for question in self.questions], dtype=np.int64)


def read_taught(kb: KnowledgeBase, questions: Sequence[TaughtQuestion]) -> Taught:
    """Return taught questions with their mentions, without those about an unknown subject or relation."""
    known = set(kb.relations)
    subjects = find_rows(kb, [question.subject for question in questions])
    kept = [
        at
        for at, question in enumerate(questions)
        if subjects[at] != ABSENT and question.relation.removeprefix(MARK) in known
    ]
    texts = [Question.read(questions[at].question) for at in kept]
    mentions = label_mentions(kb, texts, subjects=subjects[kept])
    marked = [
        MarkedQuestion(text, mention.start, mention.end) if mention else MarkedQuestion(text, 0, 0)
        for text, mention in zip(texts, mentions, strict=True)
    ]
    return Taught(tuple(questions[at] for at in kept), tuple(marked), subjects[kept])


class Teaching:
    """The taught questions of a knowledge base, read again when their file has changed."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb, self.file = kb, taught_file(kb)
        self.state: tuple[int, ...] | None = None
        self.taught = read_taught(kb, ())

    def newest(self) -> Taught:
        """Return the current questions of the file; if it is damaged later, the questions read before.

        Raises BadLine if the file is damaged at the first read.
        """
        state = self.file.state() if self.file else None
        if self.file and state != self.state:
            try:
                self.taught = read_taught(self.kb, self.file.read())
            except KBToolsError as error:
                if self.state is None:
                    raise
                logger.error("using the taught questions read before: %s", ascii(error))
            self.state = state
        return self.taught

    def head(
        self, taught: Taught, name: str, scorer: Teachable, directed: DirectedScorer | None, *, made_of: str
    ) -> Head | None:
        """Return the head that a scorer learns, None if no question is about its relations.

        `made_of` identifies the scorer; unless it is empty, the head is stored in the user's cache.
        """
        key = (name, directed is not None)
        if key not in taught.heads:
            relations = [*self.kb.relations, *(MARK + relation for relation in self.kb.relations if directed)]
            rows = taught.rows(relations)

            def make() -> bytes:
                return _learn(taught, name, scorer, directed, rows).to_bytes()

            if not (rows != ABSENT).any():
                taught.heads[key] = None
            elif made_of:
                made_from = repr((_HEAD_VERSION, made_of, relations, taught.questions))
                place = repr((self.file and str(self.file.path), key))
                taught.heads[key] = Head.from_bytes(keep("taught", made_from, make, place=place))
            else:
                taught.heads[key] = Head.from_bytes(make())
        return taught.heads[key]


def _learn(
    taught: Taught, name: str, scorer: Teachable, directed: DirectedScorer | None, rows: NDArray[np.int64]
) -> Head:
    """Return the head fitted on the questions whose relation has a row."""
    kept = np.flatnonzero(rows != ABSENT)
    vectors, marked = taught.embedded(name, scorer)[kept], [taught.marked[at] for at in kept.tolist()]

    def score(at: slice) -> NDArray[np.float64]:
        v = scorer.score_embedded(vectors[at], marked[at])
        return directed.directed(v, marked[at]) if directed else v

    return fit_head(vectors, rows[kept], score)


class TaughtScorer:
    """A relation scorer with a taught head, which also scores directions if facts are read both ways."""

    def __init__(self, scorer: Teachable, head: Head, directed: DirectedScorer | None) -> None:
        self.scorer, self.head, self.directed = scorer, head, directed

    def score(self, questions: Sequence[MarkedQuestion]) -> NDArray[np.float64]:
        vectors = self.scorer.embed(questions)
        v = self.scorer.score_embedded(vectors, questions)
        return self.head.add(self.directed.directed(v, questions) if self.directed else v, vectors)


def prefer_taught(
    taught: Taught, relations: Sequence[str], rating: Rating, pools: Pools, questions: Sequence[Question]
) -> Rating:
    """Return a rating with higher scores for subjects of taught questions, and for the pair of an identical
    question."""
    subjects, counts = np.unique(taught.subjects, return_counts=True)
    place = np.minimum(subjects.searchsorted(pools.subject), len(subjects) - 1)
    means = subjects[place] == pools.subject
    gains = np.where(means, SUBJECT_GAIN * np.log1p(counts[place]), 0.0)[pools.pair_subject]
    rows = taught.rows(relations)
    for at, question in enumerate(questions):
        same = taught.places.get(same_text(question.text))
        if same is not None:
            pairs = slice(*pools.first("pair")[at : at + 2].tolist())
            meant = (pools.subject_of_pair[pairs] == taught.subjects[same]) & (
                pools.relation_of_pair[pairs] == rows[same]
            )
            gains[pairs] += SAME_GAIN * meant
    if not gains.any():
        return rating

    def parts(pairs: NDArray[np.int64]) -> dict[str, NDArray[np.float64]]:
        return {**rating.parts(pairs), "taught": gains[pairs]}

    return replace(rating, scores=rating.scores + as_micro(gains), parts=parts)
