"""The records that a query gives, the same for every pruner, scorer and backend: docs/json.md describes them."""

from dataclasses import asdict, dataclass
from typing import Any

JSON_VERSION = 1


@dataclass(frozen=True, slots=True)
class Mention:
    """The words that name the subject; `start` and `end` are characters of the question as given."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Candidate:
    """A subject-relation pair; `score` is the sum of its `parts`, higher is better."""

    subject: str
    subject_name: str | None
    relation: str
    score: float
    mention: Mention
    matched_name: str
    rung: str
    parts: dict[str, float]


@dataclass(frozen=True, slots=True)
class Answer:
    """An object of the winning pair; the name is missing where the knowledge base has none."""

    id: str
    name: str | None


@dataclass(frozen=True, slots=True)
class Result:
    """The answer to a question: candidates best first, of which `tied` share the first place."""

    question: str
    pruning: str
    scorer: str
    candidates: tuple[Candidate, ...]
    tied: int
    answers: tuple[Answer, ...]
    milliseconds: float | None

    def to_json(self) -> dict[str, Any]:
        """Give the record as JSON types."""
        return asdict(self)
