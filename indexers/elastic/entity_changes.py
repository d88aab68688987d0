"""Changes of entities on a cluster: the content of every changed entity before and after the draft of an update,
fetched in few requests and cached.
"""

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
from kbtools.indexers.elastic.knowledge import WITH_FACTS, ElasticKB, incoming_facts
from kbtools.indexers.folder.language_sets import set_text, spoken
from kbtools.indexers.folder.name_counts import rank_names
from kbtools.indexers.readers.batches import ALIAS
from kbtools.indexers.updates.draft import Draft, Pair, names_by_text
from kbtools.kb.language_tags import UND, SpokenName, read_text, stored_text
from kbtools.kb.rows import EntityRows, Grouped, IncomingFacts

_FEW_FACTS = 100
"""Most facts of an entity whose objects are looked up in advance; with more they wait until its facts change."""

_Group = list[Any]
"""A relation and the other ends of its facts: ids of objects, or rows of subjects."""


class StoredKB(ElasticKB):
    """A version that an update changes: entities are read in full and kept for their new documents.

    See `Updatable` for the contract of each method.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.known_rows: dict[str, int | None] = {}
        self.contents: dict[int, EntityContent] = {}
        self.part_counts: dict[int, int] = {}

    def rows(self, ids: Sequence[str]) -> list[int | None]:
        rows = self.rows_of(ids)
        # Most of them gain or lose facts: the objects are looked up for all of them together.
        contents = self.contents_of([row for row in rows if row is not None])
        few = [content for content in contents if content["facts"] <= _FEW_FACTS]
        self.rows_of([target for content in few for _, targets in content.get("objects", ()) for target in targets])
        return rows

    def rows_of(self, ids: Sequence[str]) -> list[int | None]:
        """Return the rows of ids, None for an unknown one, without reading the entities."""
        unknown = [entity_id for entity_id in dict.fromkeys(ids) if entity_id not in self.known_rows]
        if unknown:
            self.known_rows |= zip(unknown, super().rows(unknown), strict=True)
        return [self.known_rows[entity_id] for entity_id in ids]

    def contents_of(self, rows: Sequence[int]) -> list[EntityContent]:
        """Return the contents of entities, fetching documents that are not cached."""
        unknown = [row for row in dict.fromkeys(rows) if row not in self.contents]
        for row, parts in self.parts(unknown, ["*"], at_once=WITH_FACTS).items():
            self.contents[row] = read_content(parts, self.language)
            self.part_counts[row] = len(parts)
        return [self.contents[row] for row in rows]

    def keys(self, row: int) -> list[str]:
        """Return the ids of the documents of an entity that was read."""
        return [str(row), *(f"{row}-{part}" for part in range(1, self.part_counts[row]))]

    def ranked_names(self, entities: EntityRows) -> list[list[tuple[SpokenName, int]]]:
        return [_ranked_names(content, self.language) for content in self.contents_of(entities.tolist())]

    def descriptions(self, entities: EntityRows) -> list[str | None]:
        return [read_text(content.get("description")) for content in self.contents_of(entities.tolist())]

    def types_of(self, entities: EntityRows) -> Grouped:
        rows, contents = self.type_rows, self.contents_of(entities.tolist())
        return Grouped.of([[rows[kind] for kind in content.get("types", ())] for content in contents])

    def facts_of(self, entities: EntityRows) -> NDArray[np.int64]:
        contents, relations = self.contents_of(entities.tolist()), self.relation_rows
        facts = [
            (content["row"], relations[relation], target)
            for content in contents
            for relation, targets in content.get("objects", ())
            for target in targets
        ]
        objects = self.rows_of([target for _, _, target in facts])
        rows = [(row, relation, target) for (row, relation, _), target in zip(facts, objects, strict=True)]
        return np.array(rows, dtype=np.int64).reshape(-1, 3)

    def subjects_of(self, entities: EntityRows) -> list[IncomingFacts]:
        relations, contents = self.relation_rows, self.contents_of(entities.tolist())
        return [
            incoming_facts([(relations[name], rows) for name, rows in content.get("subjects", ())])
            for content in contents
        ]

    def incoming_counts(self, entities: EntityRows) -> NDArray[np.int64]:
        return np.array([content["facts_in"] for content in self.contents_of(entities.tolist())], dtype=np.int64)


def _ranked_names(content: EntityContent, language: str) -> list[tuple[SpokenName, int]]:
    """Return the names of an entity in order, each with its rank."""
    names = names_in([content], language)
    if "ranks" in content:
        return list(zip(names, content["ranks"], strict=True))
    first = len(content.get("names", ()))
    return rank_names(names, [place >= first for place in range(len(names))])


@dataclass(slots=True)
class EntityChanges:
    """The documents that an update writes and deletes, and the resulting changes of counts.

    `texts` are the names that the entities had or have; `rows` are the remaining and new entities, `held` the counts of
    their current content, and `more` the change in the number of documents. `fingerprint` is the change in the sum of
    the checksums of their contents.
    """

    documents: list[Document] = field(default_factory=list)
    deleted: list[int] = field(default_factory=list)
    texts: set[str] = field(default_factory=set)
    rows: list[int] = field(default_factory=list)
    held: Counter[str] = field(default_factory=Counter)
    more: int = 0
    fingerprint: int = 0

    def add(self, content: EntityContent, *, sign: int) -> None:
        """Add the names and the checksum of an entity's content: current, or previous with sign -1."""
        self.texts.update(content.get("names", ()), content.get("aliases", ()))
        self.fingerprint += sign * int.from_bytes(sha256(json.dumps(content, sort_keys=True).encode()).digest())


def change_entities(draft: Draft, kb: StoredKB) -> EntityChanges:
    """Compare the contents of all entities of a draft before and after it."""
    changes, changed = EntityChanges(), _ChangedEntities(draft, kb)
    rows = sorted(changed.rows())
    known = [row for row in rows if draft.is_known(row)]
    stored = dict(zip(known, kb.contents_of(known), strict=True))
    for row in rows:
        before = stored.get(row)
        after = None if row in draft.deleted else changed.content(row, before or {})
        if before == after:
            continue
        keys = kb.keys(row) if before else []
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


class _ChangedEntities:
    """The entities of a draft, as contents for documents."""

    def __init__(self, draft: Draft, kb: StoredKB) -> None:
        self.draft, self.kb, self.language = draft, kb, kb.language
        # As in a folder, no language is written if no name has one.
        self.writes_languages = bool(kb.manifest.languages or draft.languages() - {UND})
        self.gained: dict[int, set[Pair]] = defaultdict(set)
        self.lost: dict[int, set[Pair]] = defaultdict(set)
        known = np.array([row for row in draft.facts if draft.is_known(row)], dtype=np.uint32)
        former = dict(zip(known.tolist(), draft.read_facts(known), strict=True))
        for subject, pairs in draft.facts.items():
            for relation, target in pairs - former.get(subject, set()):
                self.gained[target].add((relation, subject))
            for relation, target in former.get(subject, set()) - pairs:
                self.lost[target].add((relation, subject))
        self.merged: dict[int, set[str]] = defaultdict(set)
        for old, row in draft.redirects.items():
            self.merged[draft.survivor(row)].add(id_hash(old))
        merged = [row for row in draft.survivors if draft.is_known(row)]
        for row, content in zip(merged, kb.contents_of(merged), strict=True):
            self.merged[draft.survivor(row)].update(content.get("merged", ()))

    def rows(self) -> set[int]:
        """Return the entities whose documents may change."""
        draft = self.draft
        drafted = (draft.facts, draft.names, draft.kinds, draft.descriptions, self.gained, self.lost, self.merged)
        changed = {*(row for rows in drafted for row in rows), *draft.new_rows()}
        return {row for row in changed if draft.is_known(row) or row not in draft.deleted}

    def content(self, row: int, former: EntityContent) -> EntityContent:
        """Return the content of an entity after the update; `former` is that before."""
        draft, entity_id = self.draft, self.draft.id_of(row)
        objects, subjects, types = former.get("objects", []), self.subjects(row, former), former.get("types", [])
        if row in draft.facts:
            # In the order of relations and of the rows of objects.
            facts = sorted((draft.relations[relation], target) for relation, target in draft.facts[row])
            objects = _grouped((relation, draft.id_of(target)) for relation, target in facts)
        if row in draft.kinds:
            types = sorted(draft.types[kind] for kind in draft.kinds[row])
        content: EntityContent = {
            "row": row,
            "id": entity_id,
            "facts": sum(len(targets) for _, targets in objects),
            "facts_in": sum(len(sources) for _, sources in subjects),
            **self.named(row, former),
            "description": stored_text(draft.description_of(row)),
            "types": types,
            "objects": objects,
            "subjects": subjects,
            "merged": sorted({*former.get("merged", ()), *self.merged[row]} - {id_hash(entity_id)}),
        }
        return {name: value for name, value in content.items() if value or isinstance(value, int)}

    def named(self, row: int, former: EntityContent) -> EntityContent:
        """Return the names, aliases, languages and ranks of an entity."""
        draft, language = self.draft, self.language
        names = draft.names[row] if row in draft.names else names_by_text(_ranked_names(former, language))
        run = sorted((name.rank, text, name.parts) for text, name in names.items())
        flags = [rank == ALIAS or rank > run[0][0] for rank, _, _ in run]
        sets = [
            set_text(parts if self.writes_languages else {UND: is_alias})
            for (_, _, parts), is_alias in zip(run, flags, strict=True)
        ]
        content: EntityContent = {
            "names": [text for (_, text, _), is_alias in zip(run, flags, strict=True) if not is_alias],
            "aliases": [text for (_, text, _), is_alias in zip(run, flags, strict=True) if is_alias],
            "languages": sets,
        }
        usual = rank_names(
            [spoken(text, set_of_name) for (_, text, _), set_of_name in zip(run, sets, strict=True)], flags
        )
        if [rank for _, rank in usual] != (ranks := [rank for rank, _, _ in run]):
            content["ranks"] = ranks
        return drop_usual(content, language)

    def subjects(self, row: int, former: EntityContent) -> list[_Group]:
        """Return the rows of subjects by relation, in order."""
        names = self.draft.relations
        facts = {(relation, subject) for relation, subjects in former.get("subjects", ()) for subject in subjects}
        facts -= {(names[relation], subject) for relation, subject in self.lost[row]}
        return _grouped(sorted(facts | {(names[relation], subject) for relation, subject in self.gained[row]}))


def _grouped(facts: Iterable[tuple[str, str | int]]) -> list[_Group]:
    """Group the other ends of facts by relation."""
    groups: dict[str, list[str | int]] = {}
    for relation, end in facts:
        groups.setdefault(relation, []).append(end)
    return [list(group) for group in groups.items()]
