"""The draft of an update: the new state of the changed entities, built one change after the other."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import chain
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from kbtools.indexers.readers.batches import ALIAS
from kbtools.kb.contract import KnowledgeBase
from kbtools.kb.ids import is_literal, name_of_id
from kbtools.kb.language_tags import UND, SpokenName, stored_text, usual_language, with_text
from kbtools.kb.rows import EntityRows
from kbtools.text.normaliser import normal_form

Pair = tuple[int, int]

_Parts = dict[str, bool]
"""The languages of a name, each with whether it is an alias in it."""

_Value = TypeVar("_Value")

_FIRST = 1_000
"""Entities of a knowledge base whose names are compared with their ids."""


class _DraftName(NamedTuple):
    """The rank of a name, 0 in the first language and ALIAS for an alias, and its languages."""

    rank: int
    parts: _Parts


_Names = dict[str, _DraftName]


class _Updatable(KnowledgeBase, Protocol):
    """A knowledge base that can be updated, in a folder or on a cluster."""

    @property
    def row_count(self) -> int:
        """The number of rows assigned to entities so far; a row is never reused."""
        ...

    def ranked_names(self, entities: EntityRows) -> list[list[tuple[SpokenName, int]]]:
        """Return the names of each entity in order, each with its rank."""
        ...


class _Drafted(dict[int, _Value], Generic[_Value]):
    """A changeable value for each drafted entity, by row, read on first access.

    Entities from row `known` on are new and start with `empty()`.
    """

    def __init__(self, known: int, empty: Callable[[], _Value], read: Callable[[EntityRows], Iterable[_Value]]) -> None:
        self.known, self.empty, self.read = known, empty, read

    def __missing__(self, row: int) -> _Value:
        self.fetch([row])
        return self[row]

    def fetch(self, rows: Iterable[int]) -> None:
        """Read the values of several entities at once."""
        unread = sorted(set(rows) - self.keys())
        self.update((row, self.empty()) for row in unread if row >= self.known)
        if stored := [row for row in unread if row < self.known]:
            self.update(zip(stored, self.read(as_rows(stored)), strict=True))


def _one_line(text: str) -> str:
    """Return a text without line breaks or separators of languages."""
    return " ".join(text.split())


class Draft:
    """The new state of the entities that an update changes, by row; all others stay as they are in `kb`.

    New entities, relations and types get rows after the last of their kind; rows are never reused. `counts` are the
    changes made; `missing` counts removals of what does not exist, with the first example of each kind.
    """

    def __init__(self, kb: _Updatable) -> None:
        self.kb = kb
        self.known_entities = kb.row_count
        self.new_ids: list[str] = []
        self.relations, self.types = list(kb.relations), list(kb.types)
        self.relation_rows = {relation: row for row, relation in enumerate(self.relations)}
        self.type_rows = {kind: row for row, kind in enumerate(self.types)}
        self.relation_names = list(kb.relation_names)
        self.usual = usual_language(kb.manifest.languages)
        self.rows: dict[str, int | None] = {}
        self.facts: _Drafted[set[Pair]] = _Drafted(self.known_entities, set, self.read_facts)
        self.names: _Drafted[_Names] = _Drafted(self.known_entities, dict, self.read_names)
        self.kinds: _Drafted[set[int]] = _Drafted(self.known_entities, set, self.read_types)
        self.descriptions: dict[int, str] = {}
        self.into: dict[int, set[Pair]] = defaultdict(set)
        self.incoming: Counter[int] = Counter()
        self.redirects: dict[str, int] = {}
        self.survivors: dict[int, int] = {}
        self.deleted: set[int] = set()
        self.counts: Counter[str] = Counter()
        self.missing: dict[str, tuple[int, str]] = {}

    # The knowledge base

    def read_facts(self, entities: EntityRows) -> Iterable[set[Pair]]:
        facts: dict[int, set[Pair]] = {row: set() for row in entities.tolist()}
        for subject, relation, target in self.kb.facts_of(entities).tolist():
            facts[subject].add((relation, target))
        return facts.values()

    def read_names(self, entities: EntityRows) -> Iterable[_Names]:
        return map(names_by_text, self.kb.ranked_names(entities))

    def read_types(self, entities: EntityRows) -> Iterable[set[int]]:
        grouped = self.kb.types_of(entities)
        return (set(run.tolist()) for run in np.split(grouped.values, grouped.starts[1:-1]))

    # Entities

    def expect(self, ids: Iterable[str]) -> None:
        """Look up ids together, which takes a cluster few requests, before changes refer to them."""
        if unknown := [entity_id for entity_id in dict.fromkeys(ids) if entity_id not in self.rows]:
            self.rows.update(zip(unknown, self.kb.rows(unknown), strict=True))

    def find(self, entity_id: str) -> int | None:
        """Return the row of an entity, or of the one it was merged into, in this draft; None if unknown."""
        self.expect([entity_id])
        row = self.rows[entity_id]
        if row is None or row in self.deleted:
            row = self.redirects.get(entity_id, row)
        row = None if row is None else self.survivor(row)
        return None if row in self.deleted else row

    def survivor(self, row: int) -> int:
        """Return the row of the entity into which one was finally merged."""
        while row in self.survivors:
            row = self.survivors[row]
        return row

    def require(self, entity_id: str) -> int:
        """Return the row of an entity, new if it is unknown."""
        row = self.find(entity_id)
        if row is None:
            row = self.rows[entity_id] = self.end
            self.new_ids.append(entity_id)
        return row

    @property
    def end(self) -> int:
        """The row after the last one."""
        return self.known_entities + len(self.new_ids)

    def id_of(self, row: int) -> str:
        return self.kb.ids(as_rows([row]))[0] if self.is_known(row) else self.new_ids[row - self.known_entities]

    def is_known(self, row: int) -> bool:
        return row < self.known_entities

    def delete(self, entity_id: str) -> None:
        """Remove an entity with its names, types, and all facts that contain it."""
        row = self.find(entity_id)
        if row is None or self.id_of(row) != entity_id:
            self.miss("entities", entity_id)
            return
        self.clear(row)
        self.deleted.add(row)

    def clear(self, row: int) -> None:
        """Remove all values of an entity, and every fact with it as object."""
        for relation, subject in self.facts_into(row):
            self.drop(subject, relation, row)
        for relation, target in list(self.facts[row]):
            self.drop(row, relation, target)
        self.counts["names removed"] += len(self.names[row])
        self.counts["types removed"] += len(self.kinds[row])
        self.names[row], self.kinds[row] = {}, set()
        if self.description_of(row):
            self.descriptions[row] = ""

    def merge(self, old: str, new: str) -> None:
        """Move everything of an entity to another; from then on, the old id refers to the other."""
        if old == new:
            return
        row, old_row = self.require(new), self.find(old)
        if old_row == row:
            return
        if old_row is not None:
            for relation, subject in self.facts_into(old_row):
                self.drop(subject, relation, old_row)
                self.put(row if subject == old_row else subject, relation, row)
            for relation, target in list(self.facts[old_row]):
                self.drop(old_row, relation, target)
                self.put(row, relation, row if target == old_row else target)
            for text, name in self.names[old_row].items():
                self.name(row, text, name)
            self.counts["types added"] += len(self.kinds[old_row] - self.kinds[row])
            self.kinds[row].update(self.kinds[old_row])
            if (description := self.description_of(old_row)) and not self.description_of(row):
                self.descriptions[row] = description
            self.clear(old_row)
            self.deleted.add(old_row)
            self.survivors[old_row] = row
            self.redirects[self.id_of(old_row)] = row
        self.redirects[old] = row
        self.counts["entities merged"] += 1

    # Facts

    def facts_into(self, row: int) -> list[Pair]:
        """Return relation and subject of the current facts with an entity as object; reads all their subjects."""
        pairs = set(self.into.get(row, ()))
        if self.is_known(row):
            (known,) = self.kb.subjects_of(as_rows([row]))
            pairs.update(zip(known.relations.tolist(), known.subjects.tolist(), strict=True))
        into = [
            (relation, subject)
            for relation, subject in sorted(pairs)
            if subject not in self.facts or (relation, row) in self.facts[subject]
        ]
        self.facts.fetch(subject for _, subject in into)
        return into

    def put(self, subject: int, relation: int, target: int) -> None:
        facts = self.facts[subject]
        if (relation, target) not in facts:
            facts.add((relation, target))
            self.into[target].add((relation, subject))
            self.incoming[target] += 1
            self.counts["facts added"] += 1

    def drop(self, subject: int, relation: int, target: int) -> None:
        self.facts[subject].discard((relation, target))
        self.incoming[target] -= 1
        self.counts["facts removed"] += 1

    def add_fact(self, subject: str, relation: str, target: str) -> None:
        if relation not in self.relation_rows:
            self.relation_rows[relation] = len(self.relations)
            self.relations.append(relation)
            self.relation_names.append(None)
        self.put(self.require(subject), self.relation_rows[relation], self.require(target))

    def remove_fact(self, subject: str, relation: str, target: str) -> None:
        row, target_row, relation_row = self.find(subject), self.find(target), self.relation_rows.get(relation)
        is_there = row is not None and (relation_row, target_row) in self.facts[row]
        if row is None or target_row is None or relation_row is None or not is_there:
            self.miss("facts", f"{subject} {relation} {target}")
        else:
            self.drop(row, relation_row, target_row)

    def remove_facts(self, subject: str, relation: str | None = None) -> None:
        """Remove the facts of a subject, all or those of a relation."""
        row = self.find(subject)
        wanted = None if relation is None else self.relation_rows.get(relation, -1)
        pairs = [] if row is None else [pair for pair in self.facts[row] if wanted in (None, pair[0])]
        if row is None or not pairs:
            self.miss("facts", f"{subject} {relation or ''}".rstrip())
            return
        for relation_row, target in pairs:
            self.drop(row, relation_row, target)

    def name_relation(self, relation: str, text: str, language: str = "") -> None:
        """Set the name of an existing relation, in a language if one is given."""
        row = self.relation_rows.get(relation)
        if row is None:
            self.miss("relations", relation)
            return
        before = self.relation_names[row]
        name = with_text(before, language, _one_line(text), usual=self.usual)
        if stored_text(before) != stored_text(name):
            self.relation_names[row] = name
            self.counts["relations named"] += 1

    # Names

    def name(self, row: int, text: str, name: _DraftName) -> None:
        """Add a name to an entity, with the languages in which it is a name or an alias."""
        names = self.names[row]
        rank, languages = names.get(text, _DraftName(name.rank, {}))
        self.counts["names added"] += text not in names or not languages.keys() >= name.parts.keys()
        merged = languages | {tag: is_alias and languages.get(tag, True) for tag, is_alias in name.parts.items()}
        names[text] = _DraftName(min(rank, name.rank), merged)

    def add_name(self, entity_id: str, text: str, rank: int, language: str = "") -> None:
        """Add a name to an entity; if the id is only that of a relation, the relation gets it."""
        if entity_id in self.relation_rows and self.find(entity_id) is None:
            self.name_relation(entity_id, text, language)
        else:
            self.name(self.require(entity_id), text, _DraftName(rank, {language or UND: rank == ALIAS}))

    def bearers(self, texts: Collection[str]) -> dict[str, set[int]]:
        """Return the entities with each name, ignoring case, including changes of this draft."""
        rows_by_name: dict[str, set[int]] = {text.lower(): set() for text in texts}
        matches = chain.from_iterable(self.kb.lookup([*{normal_form(text) for text in texts}]).values())
        stored = ((match.name.lower(), row) for match in matches for row in match.entities.tolist())
        drafted = ((text.lower(), row) for row, names in self.names.items() for text in names)
        for name, row in chain((pair for pair in stored if pair[1] not in self.names), drafted):
            if name in rows_by_name and row not in self.deleted:
                rows_by_name[name].add(row)
        return rows_by_name

    def remove_name(self, entity_id: str, text: str) -> None:
        row = self.find(entity_id)
        if row is None or self.names[row].pop(text, None) is None:
            self.miss("names", f"{entity_id} {text}")
        else:
            self.counts["names removed"] += 1

    def remove_names(self, entity_id: str, aliases: bool) -> None:
        """Remove the names of an entity, or its aliases."""
        row = self.find(entity_id)
        names = {} if row is None else self.names[row]
        first = min((name.rank for name in names.values()), default=ALIAS)
        chosen = [text for text, (rank, _) in names.items() if (rank == ALIAS or rank > first) is aliases]
        if not chosen:
            self.miss("names", entity_id)
        for text in chosen:
            self.remove_name(entity_id, text)

    def rename(self, entity_id: str, text: str, new: str) -> None:
        """Replace a name by another, which becomes a name or an alias like the old one."""
        row = self.find(entity_id)
        if row is None or text not in self.names[row]:
            self.miss("names", f"{entity_id} {text}")
        elif text != new:
            name = self.names[row][text]
            self.remove_name(entity_id, text)
            self.name(row, new, name)

    def languages(self) -> set[str]:
        """Return the languages of the names of the drafted entities."""
        return {tag for names in self.names.values() for name in names.values() for tag in name.parts}

    # Types

    def add_type(self, entity_id: str, kind: str) -> None:
        """Add a type to an entity; dropped if the entity has no fact and no name at the end of the update."""
        if kind not in self.type_rows:
            self.type_rows[kind] = len(self.types)
            self.types.append(kind)
        kinds, row = self.kinds[self.require(entity_id)], self.type_rows[kind]
        self.counts["types added"] += row not in kinds
        kinds.add(row)

    def remove_types(self, entity_id: str, kind: str | None = None) -> None:
        """Remove the types of an entity, all or one."""
        row = self.find(entity_id)
        wanted = None if kind is None else self.type_rows.get(kind, -1)
        kinds = (
            set() if row is None else {row_of_type for row_of_type in self.kinds[row] if wanted in (None, row_of_type)}
        )
        if row is None or not kinds:
            self.miss("types", f"{entity_id} {kind or ''}".rstrip())
            return
        self.kinds[row] -= kinds
        self.counts["types removed"] += len(kinds)

    # Descriptions

    def description_of(self, row: int) -> str:
        """Return the description of an entity, empty if it has none."""
        if row not in self.descriptions and self.is_known(row):
            return self.kb.descriptions(as_rows([row]))[0] or ""
        return self.descriptions.get(row, "")

    def describe(self, entity_id: str, text: str, language: str = "") -> None:
        """Set the description of an entity, in a language if one is given."""
        row = self.require(entity_id)
        before = self.description_of(row)
        line = with_text(before, language, _one_line(text), usual=self.usual)
        if stored_text(line) != stored_text(before):
            self.descriptions[row] = line
            self.counts["descriptions changed"] += 1

    def remove_description(self, entity_id: str) -> None:
        row = self.find(entity_id)
        if row is None or not self.description_of(row):
            self.miss("descriptions", entity_id)
        else:
            self.describe(entity_id, "")

    def miss(self, kind: str, example: str) -> None:
        count, first = self.missing.get(kind, (0, example))
        self.missing[kind] = (count + 1, first)

    # The end

    def settle(self) -> None:
        """Remove entities left without facts and names, and count the added and removed entities and values."""
        self.name_by_ids()
        touched = self.touched()
        self.names.fetch(touched)
        nameless = [row for row in touched if not self.names[row]]
        self.facts.fetch(nameless)
        for row in nameless:
            if not self.facts[row] and not self.is_object(row):
                self.deleted.add(row)
                self.kinds[row] = set()
                if self.description_of(row):
                    self.descriptions[row] = ""
        added = [self.new_ids[row - self.known_entities] for row in self.new_rows() if row not in self.deleted]
        gone = [row for row in self.deleted - self.survivors.keys() if self.is_known(row)]
        for change, ids in (("added", added), ("removed", self.kb.ids(as_rows(gone)) if gone else [])):
            values = sum(map(is_literal, ids))
            self.counts[f"entities {change}"] += len(ids) - values
            self.counts[f"values {change}"] += values

    def name_by_ids(self) -> None:
        """Name new entities by their ids if the build did, so that most named entities have their id as a name."""
        nameless = [
            (row, text)
            for row, entity_id in enumerate(self.new_ids, self.known_entities)
            if not self.names[row] and (self.facts[row] or self.incoming[row] > 0) and not is_literal(entity_id)
            if not entity_id.startswith("_:") and (text := name_of_id(entity_id))
        ]
        if not nameless:
            return
        first = self.kb.entity_rows()[:_FIRST]
        named = [
            any(name.text == name_of_id(entity_id) for name in names)
            for entity_id, names in zip(self.kb.ids(first), self.kb.names_of(first), strict=True)
            if names
        ]
        if 2 * sum(named) > len(named):
            for row, text in nameless:
                self.name(row, text, _DraftName(0, {UND: False}))

    def made(self) -> dict[str, int]:
        """The numbers of changes by kind, without zeros."""
        return {kind: count for kind, count in sorted(self.counts.items()) if count}

    def touched(self) -> list[int]:
        """Return the rows of all entities that may have changed."""
        changed = (self.facts, self.names, self.kinds, self.descriptions, self.incoming)
        return sorted({*(row for rows in changed for row in rows), *self.new_rows()})

    def new_rows(self) -> Sequence[int]:
        return range(self.known_entities, self.end)

    def is_object(self, row: int) -> bool:
        """Return whether an entity is currently the object of a fact."""
        gained = self.incoming[row]
        if gained > 0 or not self.is_known(row):
            return gained > 0
        counts = self.kb.incoming_counts(as_rows([row]))
        return counts is not None and int(counts[0]) > -gained


def names_by_text(names: Sequence[tuple[SpokenName, int]]) -> _Names:
    """Convert ranked names to the form kept by a draft."""
    return {name.text: _DraftName(rank, name.parts) for name, rank in names}


def as_rows(rows: Iterable[int]) -> EntityRows:
    return np.fromiter(rows, dtype=np.uint32)
