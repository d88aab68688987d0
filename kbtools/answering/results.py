"""The records of a query, the same for every pruner, scorer and backend; docs/json.md describes them."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, NoReturn, TypeVar

from kbtools.kb.ids import literal_text
from kbtools.quick_records import quick_record
from kbtools.text.printable import html_table, html_text

_V = TypeVar("_V")

JSON_VERSION = 1
"""Rises when a field in docs/json.md is removed or changes its meaning, not when one is added."""

UNLESS_ASKED = frozenset({"languages", "other_languages", "scored_by", "taught", "suggestions", "doubt"})
"""Fields that JSON omits if None: no language was requested, every scorer was used, nothing was taught, nothing is
suggested, or nothing in the question speaks against its answer."""

SUMMARISED = 3
"""The number of answers or matches on a summary line."""


class FrozenDict(dict[str, _V]):
    """A read-only dict, so that records with one are hashable; JSON writes an object."""

    def refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("a result cannot be changed; make another with dataclasses.replace")

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> tuple[type["FrozenDict[_V]"], tuple[dict[str, _V]]]:
        return FrozenDict, (dict(self),)


@dataclass(frozen=True, slots=True)
class Record:
    """The methods of the records of look-ups, linked text, entities, facts and updates."""

    def to_dict(self) -> dict[str, Any]:
        """Return the record as JSON types."""
        return asdict(self)

    def to_json(self) -> dict[str, Any]:
        """Return the record as JSON types, with the version of the format."""
        return {"json_version": JSON_VERSION, **self.to_dict()}


@dataclass(frozen=True, slots=True)
class Named(Record):
    """An entity, a relation or a type: its id and its name; the text of a literal is its name."""

    id: str
    name: str | None

    def __str__(self) -> str:
        return self.name or literal_text(self.id)


@quick_record
@dataclass(frozen=True, slots=True)
class Mention:
    """The words that name the subject; `start` and `end` are character offsets in the question."""

    text: str
    start: int
    end: int


@quick_record
@dataclass(frozen=True, slots=True)
class Candidate:
    """A subject-relation pair; `score` is the sum of its `parts`, higher is better.

    With `inverse` the relation is read backwards: the question names the object of the fact.
    """

    subject: str
    subject_name: str | None
    types: tuple[str, ...]
    relation: str
    relation_name: str | None
    score: float
    mention: Mention
    matched_name: str
    rung: str
    parts: Mapping[str, float]
    inverse: bool = False
    subject_description: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.parts, FrozenDict):
            # The only way to set an attribute of a frozen dataclass.
            object.__setattr__(self, "parts", FrozenDict(self.parts))


@quick_record
@dataclass(frozen=True, slots=True)
class Answer:
    """An object of the winning pair, or a subject if the pair is inverse; `name` is None if it has none."""

    id: str
    name: str | None

    def __str__(self) -> str:
        return self.name or literal_text(self.id)


@quick_record
@dataclass(frozen=True, slots=True)
class Reading:
    """One of several equally likely readings of a question: its candidate in words, and its answers."""

    text: str
    answers: tuple[Answer, ...]
    answers_total: int


@quick_record
@dataclass(frozen=True, slots=True)
class Result:
    """The answer to a question, with the system that gave it.

    Candidates are sorted best first; the first `tied` of them have equal scores. If equally likely candidates have
    different answers, the result has no answer: `readings` lists the readings among the candidates, `readings_total`
    counts all. `answered` is False in this case, without candidates, and if `confidence` is below the threshold of the
    question. `doubtful` marks a question without one likely answer; `doubt` says what in the question speaks against
    its answer. `type` is the type that subjects had to have; `inverse` is True if facts were also read backwards.
    `without_facts` lists the entities named by a question without candidates that have no facts to read.
    `bearers_left_out` counts the entities left out because their name has thousands of bearers. `languages` are the
    requested languages, and `other_languages` is True if names in others were used because these gave no candidate.
    `scored_by` names the relation scorers that ranked this question, if the system has some that run only in doubt.
    `taught` counts the taught questions that the system learned from, None if
    there are none. `suggestions` lists entities that have a word of the question in their name, if it names none.
    """

    question: str
    unread: int
    pruning: str
    tagger: str | None
    scorer: str
    subject_scorer: str | None
    weights: Mapping[str, float]
    type: str | None
    candidates: tuple[Candidate, ...]
    tied: int
    without_facts: tuple[Named, ...]
    answers: tuple[Answer, ...]
    answers_total: int
    milliseconds: float | None
    inverse: bool = False
    confidence: float = 0.0
    answered: bool = False
    doubtful: bool = True
    readings: tuple[Reading, ...] = ()
    readings_total: int = 0
    ranker: str = "weighted-sum"
    bearers_left_out: int = 0
    languages: tuple[str, ...] | None = None
    other_languages: bool | None = None
    scored_by: str | None = None
    taught: int | None = None
    suggestions: tuple[Named, ...] | None = None
    doubt: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.weights, FrozenDict):
            object.__setattr__(self, "weights", FrozenDict(self.weights))

    def __repr__(self) -> str:
        return f"<Result {self.question!r}: {self.summary()}>"

    def summary(self) -> str:
        """Return the answers on one line, or why there are none."""
        if not self.candidates:
            return "no candidates"
        if self.readings_total:
            return f"not sure, {self.readings_total:,} readings are equally likely"
        if not self.answered:
            return f"no answer, confidence {self.confidence:.2f}"
        more = f" and {self.answers_total - SUMMARISED:,} more" if self.answers_total > SUMMARISED else ""
        doubt = "doubtful, " if self.doubtful else ""
        return f"{', '.join(map(str, self.answers[:SUMMARISED]))}{more} ({doubt}confidence {self.confidence:.2f})"

    def _repr_html_(self) -> str:
        """Return the answers and candidates as HTML for a notebook."""
        rows = [
            (
                *(f"{candidate.score:.3f}", candidate.subject_name, candidate.subject, candidate.relation_name),
                *("^" * candidate.inverse + candidate.relation, candidate.mention.text, candidate.rung),
            )
            for candidate in self.candidates
        ]
        readings = "".join(
            f"<li>{html_text(reading.text)}: {html_text(', '.join(map(str, reading.answers)))}</li>"
            for reading in self.readings
        )
        head = ["score", "subject", "id", "relation", "id", "mention", "match"]
        lead = f"<p>{html_text(self.question)}<br><b>{html_text(self.summary())}</b></p><ul>{readings}</ul>"
        return lead.replace("<ul></ul>", "") + html_table(head, rows)

    def to_json(self) -> dict[str, Any]:
        """Return the record as JSON types, without the fields in UNLESS_ASKED that are None."""
        record = {"json_version": JSON_VERSION, **asdict(self)}
        return {name: value for name, value in record.items() if value is not None or name not in UNLESS_ASKED}
