"""From the draft of an update to the contents of entities: what every changed one held before and holds after it,
read from the cluster together and kept."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbtools.indexers.elastic.documents import (
    Document,
    EntityContent,
    documents,
    drop_usual,
    id_hash,
    names_in,
    read_content,
)
from kbtools.indexers.elastic.entities import WITH_FACTS, incoming_facts
from kbtools.indexers.elastic.knowledge import ElasticKB
from kbtools.indexers.folder.language_sets import set_text, spoken
from kbtools.indexers.folder.name_counts import rank_spoken
from kbtools.indexers.readers.batches import ALIAS
from kbtools.indexers.updates.draft import Draft
from kbtools.kb.contract import ABSENT
from kbtools.kb.language_tags import UND, SpokenName
from kbtools.kb.rows import EntityRows, Grouped, IncomingFacts

EVERY_FIELD = ["*"]

FEW_FACTS = 100
"""Facts of an entity whose objects are looked up beforehand; of one with more they are when its facts are changed."""

Pair = tuple[int, int]

Group = list[Any]
"""A relation and the other ends of its facts: ids of objects, or rows of subjects."""


class StoredEntities:
    """The entities of a version that an update changes; see `Updatable` for what each method promises."""

    def __init__(self, kb: ElasticKB) -> None:
        self.kb, self.catalog = kb, kb.catalog
        self.relations, self.relation_names, self.types = kb.relations, kb.relation_names, kb.types
        self.rows: dict[str, int | None] = {}
        self.contents: dict[int, EntityContent] = {}
        self.parts: dict[int, int] = {}

    @property
    def base_entities(self) -> int:
        return self.catalog.rows

    def added_ids(self) -> list[str]:
        return []

    def expect_entities(self, ids: Sequence[str]) -> None:
        rows = [row for row in dict.fromkeys(self.rows_of(ids)) if row != ABSENT]
        self.fetch(rows)
        # Most of them are given facts, or lose some: what those lead to is looked up for all of them together.
        few = [self.contents[row] for row in rows if self.contents[row]["facts"] <= FEW_FACTS]
        self.rows_of([target for entity in few for _, targets in entity.get("objects", ()) for target in targets])

    def row_of(self, entity_id: str) -> int | None:
        if entity_id not in self.rows:
            self.expect_entities([entity_id])
        return self.rows[entity_id]

    def rows_of(self, ids: Sequence[str]) -> list[int]:
        """Return the rows of ids, ABSENT for an unknown one."""
        unknown = [entity_id for entity_id in dict.fromkeys(ids) if entity_id not in self.rows]
        if unknown:
            self.rows |= zip(unknown, self.kb.rows(unknown), strict=True)
        return [ABSENT if row is None else row for row in map(self.rows.__getitem__, ids)]

    def fetch(self, rows: Sequence[int]) -> None:
        """Fetch the documents of entities that are not at hand."""
        unknown = [row for row in dict.fromkeys(rows) if row not in self.contents]
        for row, parts in self.kb.entities.parts(unknown, EVERY_FIELD, at_once=WITH_FACTS).items():
            self.contents[row] = read_content(parts, self.catalog.language)
            self.parts[row] = len(parts)

    def content(self, row: int) -> EntityContent:
        """Return what an entity holds."""
        self.fetch([row])
        return self.contents[row]

    def keys(self, row: int) -> list[str]:
        """List the ids of the documents of an entity."""
        self.fetch([row])
        return [str(row), *(f"{row}-{part}" for part in range(1, self.parts[row]))]

    def ids(self, entities: EntityRows) -> list[str]:
        return self.kb.ids(entities)

    def ranked_names(self, entity_row: int) -> list[tuple[str, int]]:
        content = self.content(entity_row)
        names = names_in([content], self.catalog.language)
        if "ranks" in content:
            return list(zip([name.text for name in names], content["ranks"], strict=True))
        first = len(content.get("names", ()))
        return rank_spoken(names, [place >= first for place in range(len(names))])

    def names_of(self, entities: EntityRows) -> list[list[SpokenName]]:
        return [names_in([self.content(row)], self.catalog.language) for row in entities.tolist()]

    def descriptions(self, entities: EntityRows) -> list[str | None]:
        self.fetch(entities.tolist())
        return [self.contents[row].get("description") for row in entities.tolist()]

    def types_of(self, entities: EntityRows) -> Grouped:
        self.fetch(entities.tolist())
        rows = self.catalog.type_rows
        return Grouped.of([[rows[kind] for kind in self.contents[row].get("types", ())] for row in entities.tolist()])

    def facts_of(self, entities: EntityRows) -> NDArray[np.int64]:
        subjects, relations = entities.tolist(), self.catalog.relation_rows
        self.fetch(subjects)
        objects = {row: self.contents[row].get("objects", ()) for row in subjects}
        self.rows_of([target for row in subjects for _, targets in objects[row] for target in targets])
        facts = [
            (row, relations[relation], target)
            for row in subjects
            for relation, targets in objects[row]
            for target in self.rows_of(targets)
        ]
        return np.array(facts, dtype=np.int64).reshape(-1, 3)

    def subjects_of(self, entities: EntityRows) -> list[IncomingFacts]:
        relations = self.catalog.relation_rows
        return [
            incoming_facts([(relations[name], rows) for name, rows in self.content(row).get("subjects", ())])
            for row in entities.tolist()
        ]

    def is_object_of_more(self, entity_row: int, *, than: int) -> bool:
        return int(self.content(entity_row)["facts_in"]) > than


@dataclass(slots=True)
class EntityChanges:
    """The documents that an update writes and deletes, and the differences that they make.

    `texts` are the names that the entities had and have; `rows` are the entities that stay or come, `held` is what they
    hold now, and `more` the number of documents less that of before. `fingerprint` is the sum of the checksums of what
    they hold, less that of before.
    """

    documents: list[Document] = field(default_factory=list)
    deleted: list[int] = field(default_factory=list)
    texts: set[str] = field(default_factory=set)
    rows: list[int] = field(default_factory=list)
    held: Counter[str] = field(default_factory=Counter)
    more: int = 0
    fingerprint: int = 0

    def add(self, content: EntityContent, *, sign: int) -> None:
        """Note the names and the checksum of what an entity holds now, or with the sign -1 held before."""
        self.texts.update(content.get("names", ()), content.get("aliases", ()))
        self.fingerprint += sign * int.from_bytes(sha256(json.dumps(content, sort_keys=True).encode()).digest())


def change_entities(draft: Draft, stored: StoredEntities) -> EntityChanges:
    """Compare what all entities that a draft speaks of held with what they hold after it."""
    changes, changed = EntityChanges(), ChangedEntities(draft, stored)
    rows = sorted(changed.rows())
    stored.fetch([row for row in rows if draft.is_known(row)])
    for row in rows:
        before = stored.content(row) if draft.is_known(row) else None
        after = None if row in draft.deleted else changed.content(row)
        if before == after:
            continue
        keys = stored.keys(row) if before else []
        written = list(documents([after], changed.language)) if after else []
        kept = {document.key for document in written}
        changes.documents += [*written, *(Document(key, b"", row + 1) for key in keys if key not in kept)]
        changes.more += len(written) - len(keys)
        if before:
            changes.add(before, sign=-1)
        if after is None:
            changes.deleted.append(row)
            continue
        changes.add(after, sign=1)
        changes.rows.append(row)
        names = len(after.get("names", ())) + len(after.get("aliases", ()))
        facts = {name: after[name] for name in ("facts", "facts_in")}
        changes.held.update(documents=len(written), entities=1, names=names, types=len(after.get("types", ())), **facts)
    return changes


class ChangedEntities:
    """The entities of a draft, as documents are made of them."""

    def __init__(self, draft: Draft, stored: StoredEntities) -> None:
        self.draft, self.stored = draft, stored
        self.language = stored.catalog.language
        # As in a folder: if no name has a language, none is written.
        self.writes_languages = bool(stored.kb.manifest.languages or draft.languages() - {UND})
        self.gained: dict[int, set[Pair]] = defaultdict(set)
        self.lost: dict[int, set[Pair]] = defaultdict(set)
        known = np.array([row for row in draft.facts if draft.is_known(row)], dtype=np.uint32)
        former: dict[int, set[Pair]] = defaultdict(set)
        for subject, relation, target in stored.facts_of(known).tolist():
            former[subject].add((relation, target))
        for subject, pairs in draft.facts.items():
            for relation, target in pairs - former[subject]:
                self.gained[target].add((relation, subject))
            for relation, target in former[subject] - pairs:
                self.lost[target].add((relation, subject))
        self.merged: dict[int, set[str]] = defaultdict(set)
        for old, row in draft.redirects.items():
            self.merged[self.survivor(row)].add(id_hash(old))
        for row in draft.survivors:
            if draft.is_known(row):
                self.merged[self.survivor(row)].update(stored.content(row).get("merged", ()))

    def survivor(self, row: int) -> int:
        while row in self.draft.survivors:
            row = self.draft.survivors[row]
        return row

    def rows(self) -> set[int]:
        """List the entities whose documents may be others than before."""
        draft = self.draft
        changed = {
            *(row for rows in (draft.facts, draft.texts, draft.kinds, draft.descriptions) for row in rows),
            *(row for rows in (self.gained, self.lost, self.merged) for row in rows),
            *draft.new_rows(),
        }
        return {row for row in changed if draft.is_known(row) or row not in draft.deleted}

    def content(self, row: int) -> EntityContent:
        """Return what an entity holds after the update."""
        former = self.stored.content(row) if self.draft.is_known(row) else {}
        entity_id, objects, subjects = self.draft.id_of(row), self.objects(row, former), self.subjects(row, former)
        content: EntityContent = {
            "row": row,
            "id": entity_id,
            "facts": sum(len(targets) for _, targets in objects),
            "facts_in": sum(len(sources) for _, sources in subjects),
            **self.named(row),
            "description": self.draft.description_of(row),
            "types": self.types(row, former),
            "objects": objects,
            "subjects": subjects,
            "merged": sorted({*former.get("merged", ()), *self.merged[row]} - {id_hash(entity_id)}),
        }
        return {name: value for name, value in content.items() if value or isinstance(value, int)}

    def named(self, row: int) -> EntityContent:
        """Return the names, aliases, languages and ranks of an entity."""
        draft, texts = self.draft, self.draft.texts.get(row)
        if texts is None:
            texts = dict(self.stored.ranked_names(row)) if draft.is_known(row) else {}
        run = sorted((rank, text) for text, rank in texts.items())
        flags = [rank == ALIAS or rank > run[0][0] for rank, _ in run]
        if self.writes_languages:
            spoken_in = draft.parts_of(row)
            sets = [set_text(spoken_in[text]) for _, text in run]
        else:
            sets = [set_text({self.language: is_alias}) for is_alias in flags]
        content: EntityContent = {
            "names": [text for (_, text), is_alias in zip(run, flags, strict=True) if not is_alias],
            "aliases": [text for (_, text), is_alias in zip(run, flags, strict=True) if is_alias],
            "languages": sets,
        }
        usual = rank_spoken([spoken(text, languages) for (_, text), languages in zip(run, sets, strict=True)], flags)
        if [rank for _, rank in usual] != (ranks := [rank for rank, _ in run]):
            content["ranks"] = ranks
        return drop_usual(content, self.language)

    def types(self, row: int, former: EntityContent) -> list[str]:
        if row in self.draft.kinds:
            return sorted(self.draft.types[kind] for kind in self.draft.kinds[row])
        return list(former.get("types", ()))

    def objects(self, row: int, former: EntityContent) -> list[Group]:
        """List the ids of objects by relation, in the order of relations and of the rows of objects."""
        draft = self.draft
        if row not in draft.facts:
            return list(former.get("objects", ()))
        facts = sorted((draft.relations[relation], target) for relation, target in draft.facts[row])
        return grouped((relation, draft.id_of(target)) for relation, target in facts)

    def subjects(self, row: int, former: EntityContent) -> list[Group]:
        """List the rows of subjects by relation, in order."""
        names = self.draft.relations
        facts = {(relation, subject) for relation, subjects in former.get("subjects", ()) for subject in subjects}
        facts -= {(names[relation], subject) for relation, subject in self.lost[row]}
        return grouped(sorted(facts | {(names[relation], subject) for relation, subject in self.gained[row]}))


def grouped(facts: Iterable[tuple[str, str | int]]) -> list[Group]:
    """Group the other ends of facts by relation."""
    groups: dict[str, list[str | int]] = {}
    for relation, end in facts:
        groups.setdefault(relation, []).append(end)
    return [list(group) for group in groups.items()]
