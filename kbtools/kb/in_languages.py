"""A knowledge base in some languages: its entities are called, and found, by their names in these.

Names that are for every language count in each, and so do names of which no language is known.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kbtools.kb.contract import KnowledgeBase, NameMatch, SimilarName
from kbtools.kb.language_tags import accepted_tags, read_languages
from kbtools.kb.manifest import Manifest
from kbtools.kb.rows import EntityRows
from kbtools.kb.spoken_names import ALIAS, NAME, SpokenName
from kbtools.kb.view import View

MORE = 4
"""Names that are asked for, for one that is wanted: those of other languages fall away."""

REMEMBERED = 10_000
"""Entities whose name is remembered, and forms whose bearers are."""


class CalledIn(View):
    """A view whose entities are called by their names in some languages, else as they are without it.

    Raises UnknownLanguage for a language that no name is in.
    """

    def __init__(self, kb: KnowledgeBase, languages: str) -> None:
        super().__init__(kb)
        self.languages = read_languages(languages, kb.manifest.languages)
        self.tags = accepted_tags(self.languages, kb.manifest.languages)
        self.accepted = frozenset(self.tags)
        self.called: dict[int, str | None] = {}

    def choose(self, names: Sequence[SpokenName]) -> str | None:
        """Choose the name in the language that comes first, an alias where there is no name in any."""
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
            if len(called) > REMEMBERED:
                called = self.called = {row: called[row] for row in rows if row in called}
            spoken = self.kb.spoken_names(np.array(unknown, dtype=np.uint32))
            called.update(zip(unknown, map(self.choose, spoken), strict=True))
        return [called[row] for row in rows]

    def aliases(self, entity: int) -> list[str]:
        """List the name, then the other names and aliases in these languages; all where there are none."""
        return [name.text for name in self.spoken_names(np.array([entity], dtype=np.uint32))[0]]

    def spoken_names(self, entities: EntityRows) -> list[list[SpokenName]]:
        return [self.order(names) for names in self.kb.spoken_names(entities)]

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
        """Give the manifest under a digest of its own, so that no result is taken for one of all names."""
        digest = hashlib.sha256(f"in {' '.join(self.languages)} {self.kb.manifest.digest}".encode()).hexdigest()
        return replace(self.kb.manifest, digest=digest)

    def lookup(self, forms: Sequence[str]) -> Mapping[str, Sequence[NameMatch]]:
        if len(self.remembered) > REMEMBERED:
            self.remembered = {}
        remembered = self.remembered
        found = self.kb.lookup([form for form in forms if form not in remembered])
        parts = iter(self.kb.parts_of([match for matches in found.values() for match in matches], self.accepted))
        for form, matches in found.items():
            remembered[form] = self.spoken_matches(matches, parts)
        return {form: own for form in forms if (own := remembered.get(form))}

    def spoken_matches(self, matches: Iterable[NameMatch], parts: Iterator[NDArray[np.uint8]]) -> list[NameMatch]:
        """Keep of matches the entities that bear the name in these languages, as a name or as an alias there."""
        spoken = []
        for match in matches:
            own = next(parts)
            for part in (NAME, ALIAS):
                entities = match.entities[own == part]
                if len(entities):
                    spoken.append(match._replace(entities=entities, is_alias=part == ALIAS))
        return sorted(joined(spoken), key=lambda match: (match.form, match.is_alias))

    def similar(self, form: str, *, limit: int = 20, cutoff: float = 80.0) -> list[SimilarName]:
        (similar,) = self.spoken_forms([self.kb.similar(form, limit=MORE * limit, cutoff=cutoff)])
        return similar[:limit]

    def within_edits(self, forms: Sequence[str], *, limit: int = 20, cutoff: float = 80.0) -> list[list[SimilarName]]:
        near = self.kb.within_edits(forms, limit=MORE * limit, cutoff=cutoff)
        return [names[:limit] for names in self.spoken_forms(near)]

    def expect_similar(self, forms: Sequence[str], *, limit: int = 20, cutoff: float = 80.0) -> None:
        self.kb.expect_similar(forms, limit=MORE * limit, cutoff=cutoff)

    def spoken_forms(self, groups: Sequence[Sequence[SimilarName]]) -> list[list[SimilarName]]:
        """Keep the forms of names in these languages."""
        known = self.lookup(list(dict.fromkeys(name.form for names in groups for name in names)))
        return [[name for name in names if name.form in known] for names in groups]

    def forms_with_prefix(self, prefix: str, *, limit: int) -> list[str]:
        forms = self.kb.forms_with_prefix(prefix, limit=MORE * limit)
        known = self.lookup(forms)
        return [form for form in forms if form in known][:limit]


def joined(matches: Iterable[NameMatch]) -> list[NameMatch]:
    """Join the matches of one name and kind, which were apart as names and aliases of other languages."""
    groups: dict[tuple[str, int, bool], NameMatch] = {}
    for match in matches:
        key = (match.name, match.form, match.is_alias)
        entities = match.entities
        if key in groups:
            entities = np.union1d(groups[key].entities, entities)
        groups[key] = match._replace(entities=entities)
    return list(groups.values())
