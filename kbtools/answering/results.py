"""The records of a query, the same for every pruner, scorer and backend: docs/json.md describes them."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, NoReturn, TypeVar

from kbtools.kb.ids import literal_text
from kbtools.quick_records import quick_record
from kbtools.text.printable import html_table, html_text

_V = TypeVar("_V")

JSON_VERSION = 1
"""Rises when a field of docs/json.md goes, or means something else; new fields leave it."""

UNLESS_ASKED = frozenset({"languages", "other_languages", "scored_by", "taught"})
"""Fields of a result that JSON leaves out where they tell nothing: the question was asked without a language, all of
its scorers were asked, and nothing was taught."""


SUMMARISED = 3
"""Answers and matches that a line names."""


class FrozenDict(dict[str, _V]):
    """Values by name that cannot be changed, so that a record which holds them has a hash; JSON writes an object."""

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
        """Return the record as JSON types, with the version of the contract."""
        return {"json_version": JSON_VERSION, **self.to_dict()}


@dataclass(frozen=True, slots=True)
class Named(Record):
    """An entity, a relation or a type: its id, and its name if it has one; a literal is its own name."""

    id: str
    name: str | None

    def __str__(self) -> str:
        return self.name or literal_text(self.id)


@quick_record
@dataclass(frozen=True, slots=True)
class Mention:
    """The words that name the subject; `start` and `end` are characters of the question as given."""

    text: str
    start: int
    end: int


@quick_record
@dataclass(frozen=True, slots=True)
class Candidate:
    """A subject-relation pair; `score` is the sum of its `parts`, higher is better.

    With `inverse` the relation is read backwards: what the question names is the object of its facts.
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
            # A frozen dataclass sets no attribute otherwise.
            object.__setattr__(self, "parts", FrozenDict(self.parts))


@quick_record
@dataclass(frozen=True, slots=True)
class Answer:
    """An object of the winning pair, a subject if it is inverse; the name is missing where there is none."""

    id: str
    name: str | None

    def __str__(self) -> str:
        return self.name or literal_text(self.id)


@quick_record
@dataclass(frozen=True, slots=True)
class Reading:
    """One of several equally likely readings of a question: the candidate of its place in words, and its answers."""

    text: str
    answers: tuple[Answer, ...]
    answers_total: int


@quick_record
@dataclass(frozen=True, slots=True)
class Result:
    """The answer to a question, with the system that gave it.

    Candidates stand best first, `tied` of them share the first place. Where candidates with different answers are
    equally likely, there is no answer: `readings` gives those among the candidates, and `readings_total` counts all.
    `answered` says whether there is one: answers are withheld where a threshold was asked for and `confidence` is below
    it. `doubtful` marks a question without a single likely answer. `type` is the one that subjects were asked to have,
    `inverse` says that facts were read backwards too. `without_facts` lists the entities that a question without
    candidates names, and of which there are no facts to read, `bearers_left_out` counts those of a name that thousands
    bear which are no candidates. `languages` are those that the question was asked in, and `other_languages` says that
    names of others were taken, since none in these led anywhere. `scored_by` names the relation scorers whose scores
    ranked this question, where some of the system's are asked in doubt alone. `taught` counts the taught questions that
    the system learned from, if there are any.
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

    def __post_init__(self) -> None:
        if not isinstance(self.weights, FrozenDict):
            object.__setattr__(self, "weights", FrozenDict(self.weights))

    def __repr__(self) -> str:
        return f"<Result {self.question!r}: {self.summary()}>"

    def summary(self) -> str:
        """Return the answers on one line, or why there is none."""
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
        """Return the answers and the candidates as a notebook shows them."""
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
        """Return the record as JSON types; languages are left out where they were not asked for."""
        record = {"json_version": JSON_VERSION, **asdict(self)}
        return {name: value for name, value in record.items() if value is not None or name not in UNLESS_ASKED}
