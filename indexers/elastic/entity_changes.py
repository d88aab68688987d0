"""From the draft of an update to documents: of every entity whose own have changed, and what the counts become."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import numpy as np

from kbtools.indexers.elastic.documents import Document, id_hash
from kbtools.indexers.elastic.entity_documents import EntityValue, entity_parts
from kbtools.indexers.elastic.name_languages import language_sets
from kbtools.indexers.elastic.stored_entities import StoredEntities
from kbtools.indexers.folder.language_sets import set_text, spoken
from kbtools.indexers.folder.name_ranks import rank_spoken
from kbtools.indexers.readers.batches import ALIAS
from kbtools.indexers.updates.draft import Draft
from kbtools.kb.language_tags import UND

Pair = tuple[int, int]

COUNTED = ("facts", "facts_in", "held", "held_in", "named")
"""Fields whose sums over all documents are compared with what they should be."""


@dataclass(slots=True)
class EntityChanges:
    """The documents that an update writes and deletes, and the differences that they make.

    `texts` are the names that the entities had and have, `labels` their relations and types, `kept_labels` those that
    they have now; `rows` are the entities that stay or come, and `held` counts what they hold now. `fingerprint` is the
    sum of the checksums of what they hold, less that of before.
    """

    documents: list[Document] = field(default_factory=list)
    deleted: list[int] = field(default_factory=list)
    texts: set[str] = field(default_factory=set)
    labels: dict[str, set[str]] = field(default_factory=lambda: {"relations": set(), "types": set()})
    kept_labels: dict[str, set[str]] = field(default_factory=lambda: {"relations": set(), "types": set()})
    sums: Counter[str] = field(default_factory=Counter)
    languages: Counter[str] = field(default_factory=Counter)
    rows: list[int] = field(default_factory=list)
    held: Counter[str] = field(default_factory=Counter)
    fingerprint: int = 0


def change_entities(draft: Draft, stored: StoredEntities) -> EntityChanges:
    """Compare the documents of all entities that a draft speaks of with what they should be."""
    changes = EntityChanges()
    writer = EntityWriter(draft, stored)
    gone = draft.deleted
    stored.fetch([row for row in writer.rows() if draft.is_known(row)])
    for row in sorted(writer.rows()):
        before = {key_of(part): part for part in stored.parts(row)} if draft.is_known(row) else {}
        documents = [] if row in gone else list(writer.documents(row))
        after = {document.key: json.loads(document.source) for document in documents}
        if before == after:
            continue
        if row in gone:
            changes.deleted.append(row)
        changes.documents += documents
        changes.documents += [Document(key, b"", row + 1) for key in before.keys() - after.keys()]
        changes.rows += [] if row in gone else [row]
        note(changes, before, -1, language=writer.language)
        changes.held.update(note(changes, after, 1, language=writer.language))
        for kind, labels in changes.kept_labels.items():
            labels.update(label for part in after.values() for label in part.get(kind, ()))
    return changes


def key_of(part: dict[str, Any]) -> str:
    return f"{part['row']}-{part['part']}" if part["part"] else str(part["row"])


def note(changes: EntityChanges, parts: dict[str, dict[str, Any]], sign: int, *, language: str) -> Counter[str]:
    """Count what documents hold, once more or once less; give what they hold."""
    pairs: set[str] = set()
    held: Counter[str] = Counter(documents=len(parts))
    for part in parts.values():
        changes.texts.update(part.get("names", ()), part.get("aliases", ()))
        pairs.update(part.get("relations", ()))
        changes.labels["relations"].update(part.get("relations", ()))
        changes.labels["types"].update(part.get("types", ()))
        for languages in language_sets(part, language):
            tags = spoken("", languages).languages
            changes.languages.update(dict.fromkeys(tags, sign))
        held["descriptions"] += "description" in part
        held["types"] += len(part.get("types", ()))
        held["entities"] += part["part"] == 0
        for name in COUNTED:
            held[name] += part.get(name, 0)
        text = json.dumps(part, sort_keys=True).encode()
        changes.fingerprint += sign * int.from_bytes(sha256(text).digest())
    held["pairs"] = len(pairs)
    for name, count in held.items():
        changes.sums[name] += sign * count
    return held


class EntityWriter:
    """A writer of entities as a draft leaves them."""

    def __init__(self, draft: Draft, stored: StoredEntities) -> None:
        self.draft, self.stored = draft, stored
        self.language = stored.catalog.language or UND
        # As in a folder: where no name has a language, or documents are not made for them, none is written.
        self.writes_languages = stored.catalog.language is not None and bool(
            stored.kb.manifest.languages or draft.languages() - {UND}
        )
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
                self.merged[self.survivor(row)].update(stored.texts(row, "hashed_id"))

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

    def documents(self, row: int) -> Iterator[Document]:
        """Yield the documents of an entity."""
        draft = self.draft
        entity_id, objects, subjects = draft.id_of(row), self.objects(row), self.subjects(row)
        head = {"row": row, "part": 0, "id": entity_id}
        head |= {"facts": len(objects), "facts_in": len(subjects)}
        if description := draft.description_of(row):
            head["description"] = description
        run = sorted((rank, text) for text, rank in self.names(row))
        flags = [rank == ALIAS or rank > run[0][0] for rank, _ in run]
        ranks = [rank for rank, _ in run]
        sets = self.language_sets(row, [text for _, text in run], flags)
        names = [spoken(text, languages) for (_, text), languages in zip(run, sets, strict=True)]
        if [rank for _, rank in rank_spoken(names, flags)] != ranks:
            head["ranks"] = ranks
        values: list[EntityValue] = [
            ("aliases" if is_alias else "names", languages, name.text)
            for name, is_alias, languages in zip(names, flags, sets, strict=True)
        ]
        values += [("types", None, kind) for kind in self.types(row)]
        values += [("objects", relation, target) for relation, target in objects]
        values += [("subjects", relation, subject) for relation, subject in subjects]
        merged = set(self.stored.texts(row, "hashed_id")) if draft.is_known(row) else set()
        merged_ids = sorted((merged | self.merged[row]) - {id_hash(entity_id)})
        return entity_parts(head, values, merged=merged_ids, language=self.language)

    def names(self, row: int) -> list[tuple[str, int]]:
        draft = self.draft
        if row in draft.texts:
            return list(draft.texts[row].items())
        return self.stored.ranked_names(row) if draft.is_known(row) else []

    def language_sets(self, row: int, texts: Sequence[str], flags: Sequence[bool]) -> list[str]:
        """Give the languages of the names of an entity, which are some aliases and some not."""
        if not self.writes_languages:
            return [set_text({self.language: is_alias}) for is_alias in flags]
        parts = self.draft.parts_of(row)
        return [set_text(parts[text]) for text in texts]

    def types(self, row: int) -> list[str]:
        draft = self.draft
        if row in draft.kinds:
            return sorted(draft.types[kind] for kind in draft.kinds[row])
        return self.stored.texts(row, "types") if draft.is_known(row) else []

    def objects(self, row: int) -> list[tuple[str, str]]:
        """List relations and ids of objects, in the order of relations and of the rows of objects."""
        draft = self.draft
        if row not in draft.facts:
            pairs = self.stored.related(row, "objects") if draft.is_known(row) else []
            return [(relation, target) for relation, targets in pairs for target in targets]
        facts = sorted((draft.relations[relation], target) for relation, target in draft.facts[row])
        return [(relation, draft.id_of(target)) for relation, target in facts]

    def subjects(self, row: int) -> list[tuple[str, int]]:
        """List relations and rows of subjects, in order."""
        draft, names = self.draft, self.draft.relations
        related = self.stored.related(row, "subjects") if draft.is_known(row) else []
        facts = {(relation, subject) for relation, subjects in related for subject in subjects}
        facts -= {(names[relation], subject) for relation, subject in self.lost[row]}
        return sorted(facts | {(names[relation], subject) for relation, subject in self.gained[row]})
