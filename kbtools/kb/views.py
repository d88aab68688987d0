"""Views of a knowledge base: in some languages, or with facts read in both directions.

A view is a knowledge base itself. In some languages, entities have their names there; names for every language, and
without a known one, are included. In both directions, every relation also has an inverse, from its objects to its
subjects, numbered after the stored relations.
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
"""Names requested per name needed, since names in other languages are dropped."""

_NAMES_REMEMBERED = 10_000
"""Entities whose name is cached, and forms whose matches are."""

MARK = "^"
"""The prefix of the id of an inverse relation, as in SPARQL paths."""


class View:
    """A view that passes every member on to its knowledge base, except those that a subclass defines."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb = kb

    def __getattr__(self, name: str) -> Any:
        # `kb` is not set yet during unpickling, and copying looks up special methods.
        if name == "kb" or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.kb, name)


class CalledIn(View):
    """A view in which entities have their names in some languages, if they have any there.

    Raises UnknownLanguage for a language without names.
    """

    def __init__(self, kb: KnowledgeBase, languages: str) -> None:
        super().__init__(kb)
        self.languages = read_languages(languages, kb.manifest.languages)
        self.tags = accepted_tags(self.languages, kb.manifest.languages)
        self.accepted = frozenset(self.tags)
        self.called: dict[int, str | None] = {}

    def choose(self, names: Sequence[SpokenName]) -> str | None:
        """Return the name in the first language that has one, or else an alias."""
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
        kept = [name for name in names if name.part_in(self.accepted)] or names
        first = self.choose(names)
        return sorted(kept, key=lambda name: (name.text != first, name.part_in(self.accepted) == ALIAS))


class InLanguages(CalledIn):
    """A view in which names in other languages do not match."""

    def __init__(self, kb: KnowledgeBase, languages: str) -> None:
        super().__init__(kb, languages)
        self.remembered: dict[str, list[NameMatch]] = {}

    @cached_property
    def manifest(self) -> Manifest:
        """The manifest with its own digest, so that results are not mixed with those of all names."""
        digest = hashlib.sha256(f"asked in {' '.join(self.languages)} {self.kb.manifest.digest}".encode()).hexdigest()
        return replace(self.kb.manifest, digest=digest)

    def lookup(self, forms: Sequence[str]) -> Mapping[str, Sequence[NameMatch]]:
        if len(self.remembered) > _NAMES_REMEMBERED:
            self.remembered = {}
        remembered = self.remembered
        stored = self.kb.lookup([form for form in forms if form not in remembered])
        parts = iter(self.kb.parts_of([match for matches in stored.values() for match in matches], self.accepted))
        for form, matches in stored.items():
            remembered[form] = self.spoken_matches(matches, parts)
        return {form: names for form in forms if (names := remembered.get(form))}

    def spoken_matches(self, matches: Iterable[NameMatch], parts: Iterator[NDArray[np.uint8]]) -> list[NameMatch]:
        """Return matches with the entities that have the name in these languages, as name or alias there."""
        spoken = []
        for match in matches:
            roles = next(parts)
            for part in (NAME, ALIAS):
                entities = match.entities[roles == part]
                if len(entities):
                    spoken.append(match._replace(entities=entities, is_alias=part == ALIAS))
        return sorted(_joined(spoken), key=lambda match: (match.form, match.is_alias))

    def similar(
        self, forms: Sequence[str], *, limit: int = 20, cutoff: float = 80.0, edits_only: bool = False
    ) -> list[list[SimilarName]]:
        similar = self.kb.similar(forms, limit=_SURPLUS * limit, cutoff=cutoff, edits_only=edits_only)
        known = self.lookup(list(dict.fromkeys(name.form for names in similar for name in names)))
        return [[name for name in names if name.form in known][:limit] for names in similar]

    def forms_with_prefix(self, prefix: str, *, limit: int) -> list[str]:
        forms = self.kb.forms_with_prefix(prefix, limit=_SURPLUS * limit)
        known = self.lookup(forms)
        return [form for form in forms if form in known][:limit]


class BothWays(View):
    """A view in which the inverse of relation r is relation r + n, with n stored relations.

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
        """The manifest with its own digest, so that results are not mixed with those of stored relations."""
        digest = hashlib.sha256(f"both ways {self.kb.manifest.digest}".encode()).hexdigest()
        return replace(self.kb.manifest, digest=digest)

    @cached_property
    def relations(self) -> Sequence[str]:
        return (*self.kb.relations, *(MARK + relation for relation in self.kb.relations))

    @cached_property
    def relation_names(self) -> Sequence[str | None]:
        return tuple(self.kb.relation_names) * 2

    def relations_of(self, entities: EntityRows) -> Grouped:
        """Return the relations with each entity as subject, then the inverses of those with it as object."""
        stored, incoming = self.kb.relations_of(entities), self.kb.incoming_relations_of(entities)
        places = np.arange(len(entities))
        owners = np.concatenate([np.repeat(places, np.diff(both.starts)) for both in (stored, incoming)])
        values = np.concatenate([stored.values, incoming.values + np.uint32(self.stored)]).astype(np.uint32)
        # Stable, so that stored relations come before inverse ones.
        return Grouped(stored.starts + incoming.starts, values[owners.argsort(kind="stable")])

    def objects_of(self, pairs: Sequence[tuple[int, int]]) -> list[EntityRows]:
        """Return the objects of relations, and for an inverse the subjects of facts with that object."""
        stored = [pair for pair in pairs if pair[1] < self.stored]
        objects = dict(zip(stored, self.kb.objects_of(stored), strict=True)) if stored else {}
        inverse = [pair for pair in pairs if pair[1] >= self.stored]
        entities = np.unique(np.array([entity_row for entity_row, _ in inverse], dtype=np.uint32))
        incoming = dict(zip(entities.tolist(), self.kb.subjects_of(entities), strict=True)) if inverse else {}
        for entity_row, relation in inverse:
            facts = incoming[entity_row]
            # Of the column's type, since NumPy would convert the whole column otherwise.
            wanted = np.arange(2, dtype=np.uint32) + np.uint32(relation - self.stored)
            first, last = np.searchsorted(facts.relations, wanted)
            objects[entity_row, relation] = facts.subjects[first:last]
        return [objects[pair] for pair in pairs]

    def fact_counts(self, entities: EntityRows) -> NDArray[np.int64]:
        """Return the number of facts with each entity as subject or object."""
        incoming = self.kb.incoming_counts(entities)
        assert incoming is not None  # checked in __init__
        return self.kb.fact_counts(entities) + incoming


def question_languages(kb: KnowledgeBase) -> tuple[str, ...]:
    """Return the languages of questions, preferred first, empty for English only.

    They are those of a view; or else English if names are in English or have no language; or else those of all names.
    """
    languages: Sequence[str] = [tag for tag in kb.manifest.languages if tag not in (MUL, UND)]
    if tags_for(ENGLISH, languages):
        languages = ()
    for view in _layers(kb):
        languages = view.languages if isinstance(view, CalledIn) else languages
    return () if all(base_language(tag) == ENGLISH for tag in languages) else tuple(languages)


def _layers(kb: KnowledgeBase) -> list[KnowledgeBase]:
    """Return a view, the views behind it, and the stored knowledge base behind all."""
    return [kb, *(_layers(kb.kb) if isinstance(kb, View) else ())]


def relation_labels(kb: KnowledgeBase) -> list[list[str]]:
    """Return the labels of each relation in the languages of questions, by row, or its id without a name.

    A text without a language counts for all of these, and as English, since ids are English.
    """
    languages, texts = question_languages(kb), relation_texts(_layers(kb)[-1])
    return [_labels_in(text, languages) for text in texts]


def _labels_in(text: str, languages: Sequence[str]) -> list[str]:
    """Return labels of a text in some languages, in English without any."""
    if not isinstance(text, SpokenText):
        return [Label.of(text, tag) for tag in dict.fromkeys([*languages, ENGLISH])] if languages else [text]
    if not languages:
        return [str(text_in(text, tags_for(ENGLISH, text.by_tag)))]
    tags = [tag for language in languages for tag in tags_for(language, text.by_tag)]
    return [Label.of(text.by_tag[tag], tag) for tag in dict.fromkeys(tags)] or _labels_in(str(text), languages)


def has_incoming(kb: KnowledgeBase) -> bool:
    """Return whether a knowledge base has an index from objects to facts."""
    return kb.incoming_counts(np.empty(0, dtype=np.uint32)) is not None


def read_direction(kb: KnowledgeBase, relation: int) -> tuple[int, bool]:
    """Return the stored relation of a row, and whether it is read backwards."""
    if isinstance(kb, BothWays) and relation >= kb.stored:
        return relation - kb.stored, True
    return relation, False


def _joined(matches: Iterable[NameMatch]) -> list[NameMatch]:
    """Return matches joined by name and kind, which differed only by language."""
    groups: dict[tuple[str, int, bool], NameMatch] = {}
    for match in matches:
        key = (match.name, match.form, match.is_alias)
        entities = match.entities
        if key in groups:
            entities = np.union1d(groups[key].entities, entities)
        groups[key] = match._replace(entities=entities)
    return list(groups.values())
