"""The records of look-ups, linked text, entities, facts and updates; docs/json.md describes them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kbtools.answering.results import SUMMARISED, FrozenDict, Named, Record
from kbtools.text.printable import html_table, html_text, plural


@dataclass(frozen=True, slots=True)
class EntityMatch(Record):
    """An entity whose name is equal or similar to a given one.

    `similarity` is 0 to 100, below 100 only on the fuzzy rung. `prior` is p(entity given the matched name), 0 to 1.
    `score` is 0 to 100, higher is better, by rung, then similarity, then prior; `reasons` explain it.
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

    def __repr__(self) -> str:
        return f"<EntityMatch {self.name} ({self.id}), score {self.score:.1f}>"


@dataclass(frozen=True, slots=True)
class LookupResult(Record):
    """The entities with a name, best first, restricted to `type` if one was given.

    `languages` are the requested languages; `other_languages` is True if no name in these matched, so that names in
    others were used.
    """

    text: str
    type: str | None
    matches: tuple[EntityMatch, ...]
    languages: tuple[str, ...] = ()
    other_languages: bool = False

    def __repr__(self) -> str:
        shown = ", ".join(f"{match.name} ({match.id})" for match in self.matches[:SUMMARISED])
        more = f" and {len(self.matches) - SUMMARISED:,} more" if len(self.matches) > SUMMARISED else ""
        return f"<LookupResult {self.text!r}: {shown + more or 'no matches'}>"

    def _repr_html_(self) -> str:
        head = ["score", "name", "id", "matched name", "match", "types", "description"]
        return f"<p>{html_text(self.text)}</p>" + html_table(
            head,
            (
                (
                    *(f"{match.score:.1f}", match.name, match.id, match.matched_name, match.rung),
                    *(", ".join(map(str, match.types)), match.description),
                )
                for match in self.matches
            ),
        )


@dataclass(frozen=True, slots=True)
class LinkedMention(Record):
    """Words of a text and the entities that they may mean, best first.

    `start` and `end` are character offsets in the text; `score`, 0 to 1, is the probability that the words mean the
    first candidate.
    """

    text: str
    start: int
    end: int
    score: float
    candidates: tuple[EntityMatch, ...]


@dataclass(frozen=True, slots=True)
class LinkedText(Record):
    """A text and its non-overlapping mentions, in order."""

    text: str
    mentions: tuple[LinkedMention, ...]

    def __repr__(self) -> str:
        return f"<LinkedText of {len(self.text):,} characters, {len(self.mentions):,} mentions>"

    def _repr_html_(self) -> str:
        """Return the text with its mentions highlighted; a tooltip shows the first candidate of each."""
        parts, last = [], 0
        for mention in self.mentions:
            first = mention.candidates[0]
            title = html_text(f"{first.name} ({first.id}), {mention.score:.2f}")
            parts += [html_text(self.text[last : mention.start]), f'<mark title="{title}">{html_text(mention.text)}']
            parts.append(f" <small>{html_text(first.id)}</small></mark>")
            last = mention.end
        return f'<p style="white-space: pre-wrap">{"".join(parts)}{html_text(self.text[last:])}</p>'


@dataclass(frozen=True, slots=True)
class Entity(Record):
    """An entity: `name` is the first of `names`, `aliases` are the others; `languages` maps each name to its tags.

    `facts_in` is None if the backend has no index from objects to facts. `prior` is p(entity given its name), 0 to 1,
    None for an entity without a name.
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

    def __repr__(self) -> str:
        return f"<Entity {self.name} ({self.id}), {plural(self.facts_out, 'fact')}>"

    def _repr_html_(self) -> str:
        rows = [
            ("id", self.id),
            ("aliases", ", ".join(self.aliases)),
            ("types", ", ".join(map(str, self.types))),
            ("description", self.description),
            ("facts as subject", self.facts_out),
            ("facts as object", self.facts_in),
        ]
        return html_table(["", self.name or self.id], [row for row in rows if row[1] not in ("", None)])


@dataclass(frozen=True, slots=True)
class Fact(Record):
    """A fact, with the name of each part."""

    subject: Named
    relation: Named
    object: Named


@dataclass(frozen=True, slots=True)
class Facts(Record):
    """Facts of an entity from `offset` on, with `reverse` those in which it is the object; `total` counts all."""

    id: str
    reverse: bool
    total: int
    offset: int
    facts: tuple[Fact, ...]

    def __repr__(self) -> str:
        return f"<Facts of {self.id}: {len(self.facts):,} of {self.total:,}>"

    def _repr_html_(self) -> str:
        return f"<p>{len(self.facts):,} of {self.total:,} facts</p>" + html_table(
            ["subject", "relation", "object"], ([fact.subject, fact.relation, fact.object] for fact in self.facts)
        )


@dataclass(frozen=True, slots=True)
class Missing(Record):
    """The number of deletions of a kind whose target does not exist, and the first one."""

    kind: str
    count: int
    first: str


@dataclass(frozen=True, slots=True)
class Skipped(Record):
    """Lines of a file that were skipped for one reason: how many of how many, and the first one."""

    path: str
    kind: str
    count: int
    lines: int
    first: str


@dataclass(frozen=True, slots=True)
class UpdateResult(Record):
    """The outcome of an update: the number of changes by kind, such as `facts added`, empty if nothing changed.

    `digest` is the digest of the content afterwards; `notes` name input that may have been meant differently.
    """

    kb: str
    changes: dict[str, int]
    missing: tuple[Missing, ...]
    skipped: tuple[Skipped, ...]
    notes: tuple[str, ...]
    digest: str
