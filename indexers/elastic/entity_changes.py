"""From the draft of an update to the contents of entities: what every changed one held before and holds after it."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import numpy as np

from kbtools.indexers.elastic.documents import (
    Document,
    EntityContent,
    documents,
    drop_usual,
    id_hash,
)
from kbtools.indexers.elastic.stored_entities import StoredEntities
from kbtools.indexers.folder.language_sets import set_text, spoken
from kbtools.indexers.folder.name_ranks import rank_spoken
from kbtools.indexers.readers.batches import ALIAS
from kbtools.indexers.updates.draft import Draft
from kbtools.kb.language_tags import UND

Pair = tuple[int, int]

Group = list[Any]
"""A relation and the other ends of its facts: ids of objects, or rows of subjects."""


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
