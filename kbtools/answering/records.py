"""The records of look-ups, linked text, entities, facts and updates, alike everywhere: docs/json.md describes them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kbtools.answering.results import FrozenDict, Named, Record


@dataclass(frozen=True, slots=True)
class EntityMatch(Record):
    """An entity that bears a name, or one that resembles it.

    `similarity` is 0 to 100, below 100 only on the fuzzy rung. `prior` is p(entity given the matched name), 0 to 1.
    `score` is 0 to 100, higher is better: the rung decides, then the similarity, then the prior. `reasons` say so.
    """

    id: str
    name: str | None
    matched_name: str
    rung: str
    similarity: float
    prior: float
    score: float
    types: tuple[Named, ...]
    reasons: tuple[str, ...]
    description: str | None = None


@dataclass(frozen=True, slots=True)
class LookupResult(Record):
    """The entities that bear a name, best first; `type` is the one that they were asked to have.

    `languages` are those that the name was asked in, and `other_languages` says that no name in these is like it, so
    that those of others are given.
    """

    text: str
    type: str | None
    matches: tuple[EntityMatch, ...]
    languages: tuple[str, ...] = ()
    other_languages: bool = False


@dataclass(frozen=True, slots=True)
class LinkedMention(Record):
    """Words of a text and the entities that they may mean, best first.

    `start` and `end` are characters of the text; `score` is 0 to 1, how likely the words mean the first candidate.
    """

    text: str
    start: int
    end: int
    score: float
    candidates: tuple[EntityMatch, ...]


@dataclass(frozen=True, slots=True)
class LinkedText(Record):
    """A text and its mentions, in order and apart from each other."""

    text: str
    mentions: tuple[LinkedMention, ...]


@dataclass(frozen=True, slots=True)
class Entity(Record):
    """An entity: `name` is the first of `names`, `aliases` are the others; `languages` has those of each, by tag.

    `facts_in` is missing where the backend has no index from objects to facts. `prior` is p(entity given its name),
    0 to 1, missing where it has no name.
    """

    id: str
    name: str | None
    names: tuple[str, ...]
    aliases: tuple[str, ...]
    types: tuple[Named, ...]
    facts_out: int
    facts_in: int | None
    prior: float | None
    description: str | None = None
    languages: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "languages", FrozenDict(self.languages))


@dataclass(frozen=True, slots=True)
class Fact(Record):
    """A fact, each part with its name."""

    subject: Named
    relation: Named
    object: Named


@dataclass(frozen=True, slots=True)
class Facts(Record):
    """Some of the facts of an entity, from `offset` on; with `reverse` it is their object. `total` counts them all."""

    id: str
    reverse: bool
    total: int
    offset: int
    facts: tuple[Fact, ...]


@dataclass(frozen=True, slots=True)
class Missing(Record):
    """Things of a kind that were to be taken away and are not there: how many, and the first."""

    kind: str
    count: int
    first: str


@dataclass(frozen=True, slots=True)
class Skipped(Record):
    """Lines of a file that were left out for one reason: how many of how many, and the first."""

    path: str
    kind: str
    count: int
    lines: int
    first: str


@dataclass(frozen=True, slots=True)
class UpdateResult(Record):
    """The outcome of an update: the numbers of changes by kind, such as `facts added`, none where nothing changed.

    `digest` is that of the content afterwards; `notes` say what was understood otherwise than it may have been meant.
    """

    kb: str
    changes: dict[str, int]
    missing: tuple[Missing, ...]
    skipped: tuple[Skipped, ...]
    notes: tuple[str, ...]
    digest: str
