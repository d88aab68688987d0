"""The draft of an update: what becomes of the entities that its changes speak of, one change after the other."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kbtools.indexers.readers.batches import ALIAS
from kbtools.kb.language_tags import UND, SpokenName
from kbtools.kb.rows import EntityRows, Grouped, IncomingFacts

Pair = tuple[int, int]

Parts = dict[str, bool]
"""The languages of a name, each with whether it is an alias there."""


class Updatable(Protocol):
    """A knowledge base as a draft asks it, in whatever home; see `KnowledgeBase` for what the same methods promise.

    Rows below `base_entities` were given by its build, those of `added_ids` behind them by updates; none is free again.
    """

    @property
    def base_entities(self) -> int: ...

    @property
    def relations(self) -> Sequence[str]: ...

    @property
    def relation_names(self) -> Sequence[str | None]: ...

    @property
    def types(self) -> Sequence[str]: ...

    def added_ids(self) -> list[str]:
        """List the ids of the entities that updates brought, by row."""
        ...

    def expect_entities(self, ids: Sequence[str]) -> None:
        """Hint that these entities are read next, so that a remote backend can fetch them in few requests."""
        ...

    def row_of(self, entity_id: str) -> int | None: ...

    def ids(self, entities: EntityRows) -> list[str]: ...

    def ranked_names(self, entity: int) -> list[tuple[str, int]]:
        """List the names of an entity in their order, each with its rank: the first language 0, aliases ALIAS."""
        ...

    def descriptions(self, entities: EntityRows) -> list[str | None]: ...

    def names_of(self, entities: EntityRows) -> list[list[SpokenName]]: ...

    def types_of(self, entities: EntityRows) -> Grouped: ...

    def facts_of(self, entities: EntityRows) -> NDArray[np.int64]:
        """List the facts of subjects, by subject, relation and object: (facts, 3)."""
        ...

    def subjects_of(self, entities: EntityRows) -> list[IncomingFacts]: ...

    def is_object_of_more(self, entity: int, *, than: int) -> bool:
        """Check whether an entity is the object of more than so many facts."""
        ...


class Draft:
    """The new state of the entities that an update changes, by row; all others stay what they are in `kb`.

    New entities, relations and types get rows behind the last of their kind, and no row is ever used again. `counts`
    are the changes made; `missing` is what was to be taken away and is not there, with the first of each kind.
    """

    def __init__(self, kb: Updatable) -> None:
        self.kb = kb
        self.first_row = kb.base_entities
        self.new_ids = kb.added_ids()
        self.known_entities = self.first_row + len(self.new_ids)
        self.relations, self.types = list(kb.relations), list(kb.types)
        self.relation_rows = {relation: row for row, relation in enumerate(self.relations)}
        self.type_rows = {kind: row for row, kind in enumerate(self.types)}
        self.relation_names = list(kb.relation_names)
        self.rows: dict[str, int] = {}
        self.facts: dict[int, set[Pair]] = {}
        self.texts: dict[int, dict[str, int]] = {}
        self.parts: dict[int, dict[str, Parts]] = {}
        self.kinds: dict[int, set[int]] = {}
        self.descriptions: dict[int, str] = {}
        self.into: dict[int, set[Pair]] = {}
        self.incoming: Counter[int] = Counter()
        self.redirects: dict[str, int] = {}
        self.survivors: dict[int, int] = {}
        self.deleted: set[int] = set()
        self.counts: Counter[str] = Counter()
        self.missing: dict[str, tuple[int, str]] = {}

    # Entities

    def find(self, entity_id: str) -> int | None:
        """Find the row of an entity, or of the one that it was merged into, as far as this draft goes."""
        row = self.rows.get(entity_id)
        if row is None or row in self.deleted:
            row = self.redirects.get(entity_id, row)
        if row is None:
            row = self.kb.row_of(entity_id)
        while row in self.survivors:
            row = self.survivors[row]
        return None if row in self.deleted else row

    def require(self, entity_id: str) -> int:
        """Find the row of an entity, or give a new one to it."""
        row = self.find(entity_id)
        if row is None:
            row = self.rows[entity_id] = self.first_row + len(self.new_ids)
            self.new_ids.append(entity_id)
        return row

    def id_of(self, row: int) -> str:
        if row >= self.first_row:
            return self.new_ids[row - self.first_row]
        return self.kb.ids(np.array([row], dtype=np.uint32))[0]

    def is_known(self, row: int) -> bool:
        """Check whether the knowledge base has such a row already."""
        return row < self.known_entities

    def delete(self, entity_id: str) -> None:
        """Remove an entity, with its names, its types, and every fact that it is in."""
        row = self.find(entity_id)
        if row is None or self.id_of(row) != entity_id:
            self.miss("entities", entity_id)
            return
        self.clear(row)
        self.deleted.add(row)

    def clear(self, row: int) -> None:
        """Remove all that an entity has, and every fact that it is the object of."""
        for relation, subject in self.read_facts_into(row):
            self.drop(subject, relation, row)
        for relation, target in list(self.facts_from(row)):
            self.drop(row, relation, target)
        self.counts["names removed"] += len(self.texts_of(row))
        self.counts["types removed"] += len(self.kinds_of(row))
        self.texts[row], self.parts[row], self.kinds[row] = {}, {}, set()
        if self.description_of(row):
            self.descriptions[row] = ""

    def merge(self, old: str, new: str) -> None:
        """Move all that an entity has to another; from here on its id stands for that one."""
        row, gone = self.require(new), self.find(old)
        if gone == row:
            return
        if gone is not None:
            for relation, subject in self.read_facts_into(gone):
                self.drop(subject, relation, gone)
                self.put(row if subject == gone else subject, relation, row)
            for relation, target in list(self.facts_from(gone)):
                self.drop(gone, relation, target)
                self.put(row, relation, row if target == gone else target)
            for text, rank in self.texts_of(gone).items():
                self.name(row, text, rank, self.parts[gone][text])
            self.kinds_of(row).update(self.kinds_of(gone))
            if (description := self.description_of(gone)) and not self.description_of(row):
                self.descriptions[row] = description
            self.clear(gone)
            self.deleted.add(gone)
            self.survivors[gone] = row
            self.redirects[self.id_of(gone)] = row
        self.redirects[old] = row
        self.counts["entities merged"] += 1

    # Facts

    def facts_from(self, row: int) -> set[Pair]:
        """Return the facts of a subject, to be changed: relation and object of each."""
        if row not in self.facts:
            known = self.kb.facts_of(np.array([row], dtype=np.uint32))[:, 1:].tolist() if self.is_known(row) else []
            self.facts[row] = {(relation, target) for relation, target in known}
        return self.facts[row]

    def facts_into(self, row: int) -> list[Pair]:
        """List relation and subject of the facts that an entity is the object of by now."""
        pairs = set(self.into.get(row, ()))
        if self.is_known(row):
            (known,) = self.kb.subjects_of(np.array([row], dtype=np.uint32))
            pairs.update(zip(known.relations.tolist(), known.subjects.tolist(), strict=True))
        return [
            (relation, subject)
            for relation, subject in sorted(pairs)
            if subject not in self.facts or (relation, row) in self.facts[subject]
        ]

    def read_facts_into(self, row: int) -> list[Pair]:
        """List the facts into an entity, whose subjects' facts are read together."""
        pairs = self.facts_into(row)
        unread = {subject for _, subject in pairs if self.is_known(subject)} - self.facts.keys()
        self.facts |= {subject: set() for subject in unread}
        rows = np.array(sorted(unread), dtype=np.uint32)
        for subject, relation, target in self.kb.facts_of(rows).tolist() if unread else ():
            self.facts[subject].add((relation, target))
        return pairs

    def put(self, subject: int, relation: int, target: int) -> None:
        facts = self.facts_from(subject)
        if (relation, target) not in facts:
            facts.add((relation, target))
            self.into.setdefault(target, set()).add((relation, subject))
            self.incoming[target] += 1
            self.counts["facts added"] += 1

    def drop(self, subject: int, relation: int, target: int) -> None:
        self.facts_from(subject).discard((relation, target))
        self.incoming[target] -= 1
        self.counts["facts removed"] += 1

    def relation_row(self, relation: str) -> int:
        if relation not in self.relation_rows:
            self.relation_rows[relation] = len(self.relations)
            self.relations.append(relation)
            self.relation_names.append(None)
        return self.relation_rows[relation]

    def add_fact(self, subject: str, relation: str, target: str) -> None:
        self.put(self.require(subject), self.relation_row(relation), self.require(target))

    def remove_fact(self, subject: str, relation: str, target: str) -> None:
        row, target_row, relation_row = self.find(subject), self.find(target), self.relation_rows.get(relation)
        if (
            row is None
            or target_row is None
            or relation_row is None
            or (relation_row, target_row) not in self.facts_from(row)
        ):
            self.miss("facts", f"{subject} {relation} {target}")
        else:
            self.drop(row, relation_row, target_row)

    def remove_facts(self, subject: str, relation: str | None = None) -> None:
        """Remove the facts of a subject, all or those of a relation."""
        row = self.find(subject)
        wanted = None if relation is None else self.relation_rows.get(relation, -1)
        pairs = [] if row is None else [pair for pair in self.facts_from(row) if wanted in (None, pair[0])]
        if row is None or not pairs:
            self.miss("facts", f"{subject} {relation or ''}".rstrip())
            return
        for relation_row, target in pairs:
            self.drop(row, relation_row, target)

    def name_relation(self, relation: str, text: str) -> None:
        """Set the name of a relation that facts have."""
        row = self.relation_rows.get(relation)
        if row is None:
            self.miss("relations", relation)
        elif self.relation_names[row] != text:
            self.relation_names[row] = text
            self.counts["relations named"] += 1

    # Names

    def texts_of(self, row: int) -> dict[str, int]:
        """Return the names of an entity with the rank of each, to be changed."""
        if row not in self.texts:
            known = self.is_known(row)
            self.texts[row] = dict(self.kb.ranked_names(row)) if known else {}
            self.parts[row] = self.parts_of(row)
        return self.texts[row]

    def parts_of(self, row: int) -> dict[str, Parts]:
        """Return the languages of the names of an entity, which are changed with these."""
        if row in self.parts:
            return self.parts[row]
        if not self.is_known(row):
            return {}
        (names,) = self.kb.names_of(np.array([row], dtype=np.uint32))
        return {name.text: name.parts for name in names}

    def name(self, row: int, text: str, rank: int, parts: Parts) -> None:
        """Add a name of a rank to an entity, with the languages in which it is a name, or an alias."""
        texts = self.texts_of(row)
        own = self.parts[row].setdefault(text, {})
        self.counts["names added"] += text not in texts or not own.keys() >= parts.keys()
        texts[text] = min(rank, texts.get(text, rank))
        own |= {tag: is_alias and own.get(tag, True) for tag, is_alias in parts.items()}

    def add_name(self, entity_id: str, text: str, rank: int, language: str = "") -> None:
        """Add a name to an entity; if the id is only that of a relation, the relation gets it."""
        if entity_id in self.relation_rows and self.find(entity_id) is None:
            self.name_relation(entity_id, text)
        else:
            self.name(self.require(entity_id), text, rank, {language or UND: rank == ALIAS})

    def remove_name(self, entity_id: str, text: str) -> None:
        row = self.find(entity_id)
        if row is None or text not in self.texts_of(row):
            self.miss("names", f"{entity_id} {text}")
        else:
            del self.texts_of(row)[text], self.parts[row][text]
            self.counts["names removed"] += 1

    def remove_names(self, entity_id: str, *, aliases: bool) -> None:
        """Remove the names of an entity, or its aliases."""
        row = self.find(entity_id)
        texts = {} if row is None else self.texts_of(row)
        first = min(texts.values(), default=ALIAS)
        chosen = [text for text, rank in texts.items() if (rank == ALIAS or rank > first) is aliases]
        if not chosen:
            self.miss("names", entity_id)
        for text in chosen:
            self.remove_name(entity_id, text)

    def rename(self, entity_id: str, text: str, new: str) -> None:
        """Put a name in the place of another, as a name or an alias as that one was."""
        row = self.find(entity_id)
        rank = None if row is None else self.texts_of(row).get(text)
        if row is None or rank is None:
            self.miss("names", f"{entity_id} {text}")
        elif text != new:
            parts = self.parts[row][text]
            self.remove_name(entity_id, text)
            self.name(row, new, rank, parts)

    def languages(self) -> set[str]:
        """Return the languages of the names of the drafted entities."""
        return {tag for parts in self.parts.values() for own in parts.values() for tag in own}

    # Types

    def kinds_of(self, row: int) -> set[int]:
        """Return the types of an entity, to be changed."""
        if row not in self.kinds:
            known = self.kb.types_of(np.array([row], dtype=np.uint32)).values.tolist() if self.is_known(row) else []
            self.kinds[row] = set(known)
        return self.kinds[row]

    def add_type(self, entity_id: str, kind: str) -> None:
        """Add a type to an entity; one without fact and name at the end of the update gets none."""
        if kind not in self.type_rows:
            self.type_rows[kind] = len(self.types)
            self.types.append(kind)
        kinds, row = self.kinds_of(self.require(entity_id)), self.type_rows[kind]
        self.counts["types added"] += row not in kinds
        kinds.add(row)

    def remove_type(self, entity_id: str, kind: str) -> None:
        row, kind_row = self.find(entity_id), self.type_rows.get(kind)
        if row is None or kind_row is None or kind_row not in self.kinds_of(row):
            self.miss("types", f"{entity_id} {kind}")
        else:
            self.kinds_of(row).remove(kind_row)
            self.counts["types removed"] += 1

    def remove_types(self, entity_id: str) -> None:
        row = self.find(entity_id)
        if row is None or not self.kinds_of(row):
            self.miss("types", entity_id)
        else:
            self.counts["types removed"] += len(self.kinds_of(row))
            self.kinds[row] = set()

    # Descriptions

    def description_of(self, row: int) -> str:
        """Return the description of an entity, empty if it has none."""
        if row not in self.descriptions and self.is_known(row):
            return self.kb.descriptions(np.array([row], dtype=np.uint32))[0] or ""
        return self.descriptions.get(row, "")

    def describe(self, entity_id: str, text: str) -> None:
        """Put a description in the place of the one that an entity has."""
        row, line = self.require(entity_id), " ".join(text.split())
        if line != self.description_of(row):
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
        """Remove entities left without fact and name, and count the entities that came and went."""
        touched = self.touched()
        known = np.array([row for row in touched if self.is_known(row)], dtype=np.uint32)
        self.kb.expect_entities(self.kb.ids(known))
        for row in touched:
            if not (self.texts_of(row) or self.facts_from(row) or self.is_object(row)):
                self.deleted.add(row)
                self.kinds[row] = set()
                if self.description_of(row):
                    self.descriptions[row] = ""
        self.counts["entities added"] += sum(row not in self.deleted for row in self.new_rows())
        self.counts["entities removed"] += sum(self.is_known(row) for row in self.deleted - self.survivors.keys())

    def made(self) -> dict[str, int]:
        """Return the numbers of changes by kind, without zeros."""
        return {kind: count for kind, count in sorted(self.counts.items()) if count}

    def touched(self) -> list[int]:
        """List the rows of all entities that may be other than before."""
        changed = (self.facts, self.texts, self.kinds, self.descriptions, self.incoming)
        return sorted({*(row for rows in changed for row in rows), *self.new_rows()})

    def new_rows(self) -> Iterable[int]:
        return range(self.known_entities, self.first_row + len(self.new_ids))

    def is_object(self, row: int) -> bool:
        """Check whether an entity is the object of a fact by now."""
        gained = self.incoming[row]
        return gained > 0 or (self.is_known(row) and self.kb.is_object_of_more(row, than=-gained))
