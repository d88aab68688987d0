"""Views of a knowledge base: in some languages, or with its facts read both ways.

A view is a knowledge base too. In some languages, entities are called and found by their names there; names for every
language count in each, and so do names without a known language. Read both ways, every relation has an inverse, from
its objects to its subjects: a relation of its own behind those that are stored.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbtools.errors import IncomingMissing
from kbtools.kb.contract import KnowledgeBase, NameMatch, SimilarName, relation_texts
from kbtools.kb.language_tags import (
    ALIAS,
    MUL,
    NAME,
    UND,
    SpokenName,
    SpokenText,
    accepted_tags,
    read_languages,
    tags_for,
    text_in,
)
from kbtools.kb.manifest import Manifest
from kbtools.kb.rows import EntityRows, Grouped
from kbtools.text.lexicons import ENGLISH, Label, base_language

_SURPLUS = 4
"""Names requested for each name wanted, since those of other languages are dropped."""

_NAMES_REMEMBERED = 10_000
"""Entities whose name is remembered, and forms whose entities are."""

MARK = "^"
"""Before the id of a relation, its inverse, as in a path of SPARQL."""


class View:
    """A view that answers as the knowledge base behind it, except for the members of its subclass."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb = kb

    def __getattr__(self, name: str) -> Any:
        # Unpickling asks before `kb` is set, and copying looks for special methods.
        if name == "kb" or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.kb, name)


class CalledIn(View):
    """A view whose entities are called by their names in some languages, if they have any there.

    Raises UnknownLanguage for a language that no name is in.
    """

    def __init__(self, kb: KnowledgeBase, languages: str) -> None:
        super().__init__(kb)
        self.languages = read_languages(languages, kb.manifest.languages)
        self.tags = accepted_tags(self.languages, kb.manifest.languages)
        self.accepted = frozenset(self.tags)
        self.called: dict[int, str | None] = {}

    def choose(self, names: Sequence[SpokenName]) -> str | None:
        """Return the name in the language that comes first, or an alias if there is no name in any."""
        for spoken in (
            [(tag, name.text) for name in names for tag in name.name_in],
            [(tag, name.text) for name in names for tag in name.alias_in],
        ):
            texts = dict(reversed(spoken))
            for tag in self.tags:
                if tag in texts:
                    return texts[tag]
        return names[0].text if names else None

    def names(self, entities: EntityRows) -> list[str | None]:
        rows = entities.tolist()
        called = self.called
        if unknown := [row for row in dict.fromkeys(rows) if row not in called]:
            if len(called) > _NAMES_REMEMBERED:
                called = self.called = {row: called[row] for row in rows if row in called}
            spoken = self.kb.names_of(np.array(unknown, dtype=np.uint32))
            called.update(zip(unknown, map(self.choose, spoken), strict=True))
        return [called[row] for row in rows]

    @cached_property
    def relation_names(self) -> Sequence[str | None]:
        return tuple(text_in(name, self.tags) for name in self.kb.relation_names)

    def descriptions(self, entities: EntityRows) -> list[str | None]:
        return [text_in(text, self.tags) for text in self.kb.descriptions(entities)]

    def names_of(self, entities: EntityRows) -> list[list[SpokenName]]:
        return [self.order(names) for names in self.kb.names_of(entities)]

    def order(self, names: Sequence[SpokenName]) -> list[SpokenName]:
        own = [name for name in names if name.part_in(self.accepted)] or names
        first = self.choose(names)
        return sorted(own, key=lambda name: (name.text != first, name.part_in(self.accepted) == ALIAS))


class InLanguages(CalledIn):
    """A view in which names of other languages lead to no entity."""

    def __init__(self, kb: KnowledgeBase, languages: str) -> None:
        super().__init__(kb, languages)
        self.remembered: dict[str, list[NameMatch]] = {}

    @cached_property
    def manifest(self) -> Manifest:
        """The manifest under its own digest, so that its results are not taken for those of all names."""
        digest = hashlib.sha256(f"asked in {' '.join(self.languages)} {self.kb.manifest.digest}".encode()).hexdigest()
        return replace(self.kb.manifest, digest=digest)

    def lookup(self, forms: Sequence[str]) -> Mapping[str, Sequence[NameMatch]]:
        if len(self.remembered) > _NAMES_REMEMBERED:
            self.remembered = {}
        remembered = self.remembered
        found = self.kb.lookup([form for form in forms if form not in remembered])
        parts = iter(self.kb.parts_of([match for matches in found.values() for match in matches], self.accepted))
        for form, matches in found.items():
            remembered[form] = self.spoken_matches(matches, parts)
        return {form: own for form in forms if (own := remembered.get(form))}

    def spoken_matches(self, matches: Iterable[NameMatch], parts: Iterator[NDArray[np.uint8]]) -> list[NameMatch]:
        """Keep the entities of matches that have the name in these languages, as a name or as an alias there."""
        spoken = []
        for match in matches:
            own = next(parts)
            for part in (NAME, ALIAS):
                entities = match.entities[own == part]
                if len(entities):
                    spoken.append(match._replace(entities=entities, is_alias=part == ALIAS))
        return sorted(_joined(spoken), key=lambda match: (match.form, match.is_alias))

    def similar(
        self, forms: Sequence[str], *, limit: int = 20, cutoff: float = 80.0, edits_only: bool = False
    ) -> list[list[SimilarName]]:
        similar = self.kb.similar(forms, limit=_SURPLUS * limit, cutoff=cutoff, edits_only=edits_only)
        return [names[:limit] for names in self.spoken_forms(similar)]

    def spoken_forms(self, groups: Sequence[Sequence[SimilarName]]) -> list[list[SimilarName]]:
        """Keep the forms of names in these languages."""
        known = self.lookup(list(dict.fromkeys(name.form for names in groups for name in names)))
        return [[name for name in names if name.form in known] for names in groups]

    def forms_with_prefix(self, prefix: str, *, limit: int) -> list[str]:
        forms = self.kb.forms_with_prefix(prefix, limit=_SURPLUS * limit)
        known = self.lookup(forms)
        return [form for form in forms if form in known][:limit]


class BothWays(View):
    """A view of a knowledge base with the inverse of relation r as relation r + n, where n are stored.

    Raises IncomingMissing if the knowledge base has no index from objects to facts.
    """

    def __init__(self, kb: KnowledgeBase) -> None:
        super().__init__(kb)
        self.stored = len(kb.relations)
        if not has_incoming(kb):
            raise IncomingMissing(
                "cannot read facts backwards: this backend has no index from objects to facts; kbtools index creates "
                "one in a folder"
            )

    @cached_property
    def manifest(self) -> Manifest:
        """The manifest under its own digest, so that its results are not taken for those of the stored facts."""
        digest = hashlib.sha256(f"both ways {self.kb.manifest.digest}".encode()).hexdigest()
        return replace(self.kb.manifest, digest=digest)

    @cached_property
    def relations(self) -> Sequence[str]:
        return (*self.kb.relations, *(MARK + relation for relation in self.kb.relations))

    @cached_property
    def relation_names(self) -> Sequence[str | None]:
        return tuple(self.kb.relation_names) * 2

    def relations_of(self, entities: EntityRows) -> Grouped:
        """Return the relations of each entity, then the inverses of those that it is an object of."""
        stored, incoming = self.kb.relations_of(entities), self.kb.incoming_relations_of(entities)
        places = np.arange(len(entities))
        owners = np.concatenate([np.repeat(places, np.diff(both.starts)) for both in (stored, incoming)])
        values = np.concatenate([stored.values, incoming.values + np.uint32(self.stored)]).astype(np.uint32)
        # Stable, so that the stored relations of an entity stay before the inverse ones.
        return Grouped(stored.starts + incoming.starts, values[owners.argsort(kind="stable")])

    def objects_of(self, pairs: Sequence[tuple[int, int]]) -> list[EntityRows]:
        """Return the objects of relations, and under an inverse the subjects that have the entity as an object."""
        stored = [pair for pair in pairs if pair[1] < self.stored]
        objects = dict(zip(stored, self.kb.objects_of(stored), strict=True)) if stored else {}
        inverse = [pair for pair in pairs if pair[1] >= self.stored]
        entities = np.unique(np.array([entity_row for entity_row, _ in inverse], dtype=np.uint32))
        incoming = dict(zip(entities.tolist(), self.kb.subjects_of(entities), strict=True)) if inverse else {}
        for entity_row, relation in inverse:
            facts = incoming[entity_row]
            # Of the type of the column, which would be copied whole otherwise.
            wanted = np.arange(2, dtype=np.uint32) + np.uint32(relation - self.stored)
            first, last = np.searchsorted(facts.relations, wanted)
            objects[entity_row, relation] = facts.subjects[first:last]
        return [objects[pair] for pair in pairs]

    def fact_counts(self, entities: EntityRows) -> NDArray[np.int64]:
        """Count the facts that each entity is the subject or the object of."""
        incoming = self.kb.incoming_counts(entities)
        assert incoming is not None  # as seen at the beginning
        return self.kb.fact_counts(entities) + incoming


def question_languages(kb: KnowledgeBase) -> tuple[str, ...]:
    """Return the languages that questions to a knowledge base are in, the preferred first, none for English alone.

    They are those of a view, else English where any name is in it or none has a language, else those of all names.
    """
    languages: Sequence[str] = [tag for tag in kb.manifest.languages if tag not in (MUL, UND)]
    if tags_for(ENGLISH, languages):
        languages = ()
    while isinstance(kb, View):
        if isinstance(kb, CalledIn):
            languages = kb.languages
        kb = kb.kb
    return () if all(base_language(tag) == ENGLISH for tag in languages) else tuple(languages)


def relation_labels(kb: KnowledgeBase) -> list[list[str]]:
    """Return what each relation is called in the languages of questions, by row: its id where it has no name.

    A text without a language stands in each of these, and in English, which ids are made of.
    """
    languages, texts = question_languages(kb), relation_texts(_stored(kb))
    return [_labels_in(text, languages) for text in texts]


def _labels_in(text: str, languages: Sequence[str]) -> list[str]:
    """Return a text in some languages as labels, in English as a plain one where there are none."""
    if not isinstance(text, SpokenText):
        return [Label.of(text, tag) for tag in dict.fromkeys([*languages, ENGLISH])] if languages else [text]
    if not languages:
        return [str(text_in(text, tags_for(ENGLISH, text.by_tag)))]
    tags = [tag for language in languages for tag in tags_for(language, text.by_tag)]
    return [Label.of(text.by_tag[tag], tag) for tag in dict.fromkeys(tags)] or _labels_in(str(text), languages)


def _stored(kb: KnowledgeBase) -> KnowledgeBase:
    """Return the knowledge base behind a view."""
    while isinstance(kb, View):
        kb = kb.kb
    return kb


def has_incoming(kb: KnowledgeBase) -> bool:
    """Return whether a knowledge base has an index from objects to facts."""
    return kb.incoming_counts(np.empty(0, dtype=np.uint32)) is not None


def read_direction(kb: KnowledgeBase, relation: int) -> tuple[int, bool]:
    """Return the stored relation that a row stands for, and whether it is read backwards."""
    if isinstance(kb, BothWays) and relation >= kb.stored:
        return relation - kb.stored, True
    return relation, False


def _joined(matches: Iterable[NameMatch]) -> list[NameMatch]:
    """Join the matches of one name and kind, which were apart as names and aliases of other languages."""
    groups: dict[tuple[str, int, bool], NameMatch] = {}
    for match in matches:
        key = (match.name, match.form, match.is_alias)
        entities = match.entities
        if key in groups:
            entities = np.union1d(groups[key].entities, entities)
        groups[key] = match._replace(entities=entities)
    return list(groups.values())
