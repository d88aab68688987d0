"""Look-ups shared by built and updated knowledge bases in a folder: names, strict and fuzzy, over indexes."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

import lmdb
import numpy as np
from numpy.typing import NDArray

from kbtools.entry_points import BACKENDS, load_class
from kbtools.errors import KBUnusable
from kbtools.indexers.folder.checksums import INDEX_AGAIN
from kbtools.indexers.folder.edit_index import Probes, probes_of
from kbtools.indexers.folder.form_store import FormFilter
from kbtools.indexers.folder.kb_folder import find_damage
from kbtools.kb.contract import BackendDefaults, NameMatch, SimilarName
from kbtools.kb.manifest import Manifest
from kbtools.kb.rows import EntityRows
from kbtools.kb.vector_index import VectorIndex
from kbtools.linking.near_ranking import Bearer, bearers_with_most_names
from kbtools.linking.similarity import LONGEST_NAME, USUAL_CUTOFF, edits_suffice, rescore, within_edits

_P = ParamSpec("_P")
_R = TypeVar("_R")
_KB = TypeVar("_KB", bound="FolderKB")

_PREFIXED = 50
"""Names compared with a form that they begin with."""

CACHED_FORMS, MOST_CACHED = 10_000, 1_000
"""Forms whose matches are cached, and the most entities of such a form: 10 MB for 10,000 forms of FB5M's questions."""


def explained(method: Callable[Concatenate[_KB, _P], _R]) -> Callable[Concatenate[_KB, _P], _R]:
    """Wrap a look-up so that it raises KBUnusable if it fails on a damaged file; other errors are unchanged."""

    @wraps(method)
    def look_up(self: _KB, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return method(self, *args, **kwargs)
        except (IndexError, ValueError, OverflowError, MemoryError, RuntimeError, lmdb.Error) as error:
            if damage := self.explain():
                raise KBUnusable(damage, path=str(self.path)) from error
            raise

    return look_up


class FolderKB(BackendDefaults, ABC):
    """A knowledge base in a folder; see `KnowledgeBase` for the contract of each method."""

    path: Path
    manifest: Manifest
    form_filter: FormFilter

    def __init__(self) -> None:
        self.damage = ""
        self.vector_index: VectorIndex | None = None
        self.last_near: dict[str, list[str]] = {}
        self.cached: dict[str, Sequence[NameMatch]] = {}

    def __reduce__(self) -> tuple[Callable[[Path], "FolderKB"], tuple[Path]]:
        """Pickle by path: unpickling opens the folder."""
        return load_class(BACKENDS, "embedded"), (self.path.absolute(),)

    def close(self) -> None:
        """Release every file; others in this process that have the folder open keep what they share."""
        remaining = {"path": self.path, "manifest": self.manifest}
        vars(self).clear()
        vars(self).update(remaining)

    def explain(self) -> str:
        """Return a message that names a damaged file; empty if every file is intact."""
        self.damage = self.damage or next(find_damage(self.path, self.manifest), "")
        return self.damage

    @contextmanager
    def opening(self) -> Iterator[None]:
        """Raise KBUnusable that names the damage if files cannot be opened because they are inconsistent."""
        try:
            yield
        except (IndexError, TypeError, ValueError, OverflowError, lmdb.Error) as error:
            damage = self.explain() or f"{self.path}: its files do not match each other; {INDEX_AGAIN}"
            raise KBUnusable(damage, path=str(self.path)) from error

    @abstractmethod
    def stored_names(self, forms: Sequence[str]) -> dict[str, list[NameMatch]]:
        """Return the names under each stored form."""

    @abstractmethod
    def recall(self, probes: Probes) -> list[list[str]]:
        """Return the normal forms that may be within two edits of each probed form."""

    @abstractmethod
    def trigram_names(self, form: str) -> set[str]:
        """Return normal forms that share the rarest trigrams of a form."""

    @abstractmethod
    def alias_counts(self, entities: EntityRows) -> NDArray[np.int64]:
        """Count the names and aliases of each entity."""

    @abstractmethod
    def open_vectors(self) -> VectorIndex:
        """Open the vectors of the knowledge base."""

    @abstractmethod
    def row_of(self, entity_id: str) -> int | None:
        """Return the row of an id, or of the entity that it was merged into; None if it is unknown."""

    @abstractmethod
    def parts_of_name(self, name: str, entities: EntityRows, tags: frozenset[str]) -> NDArray[np.uint8]:
        """Return for each entity whether a name is its NAME, an ALIAS or ABSENT in some languages."""

    @abstractmethod
    def forms_with_prefix(self, prefix: str, *, limit: int) -> list[str]: ...

    @explained
    def rows(self, ids: Sequence[str]) -> list[int | None]:
        return [self.row_of(entity_id) for entity_id in ids]

    @explained
    def lookup(self, forms: Sequence[str]) -> Mapping[str, Sequence[NameMatch]]:
        kept = self.form_filter.keep(forms)
        cached = self.cached
        matches = {form: cached[form] for form in kept if form in cached}
        if len(matches) < len(kept):
            new = self.stored_names([form for form in kept if form not in matches])
            self.cache(new)
            matches |= new
        return matches

    def cache(self, matches: Mapping[str, Sequence[NameMatch]]) -> None:
        """Cache matches: the words in most questions are names with a dozen spellings each."""
        if len(self.cached) + len(matches) > CACHED_FORMS:
            self.cached = {}
        for form, matches_of_form in matches.items():
            if sum([len(match.entities) for match in matches_of_form]) <= MOST_CACHED:
                self.cached[form] = matches_of_form

    def likely_runs(self, words: Sequence[str], lengths: frozenset[int]) -> list[tuple[int, int]]:
        return self.form_filter.runs(words, lengths)

    @explained
    def similar(
        self, forms: Sequence[str], *, limit: int = 20, cutoff: float = USUAL_CUTOFF, edits_only: bool = False
    ) -> list[list[SimilarName]]:
        near = self.names_near(forms)
        recalled = [
            within_edits(form, near[form]) if edits_only else self.recall_similar(form, near[form], cutoff=cutoff)
            for form in forms
        ]
        return [
            self.rescored(form, names, limit=limit, cutoff=cutoff) for form, names in zip(forms, recalled, strict=True)
        ]

    def recall_similar(self, form: str, near: Sequence[str], *, cutoff: float) -> Collection[str]:
        """Return similar normal forms: `near` ones, and unless edits suffice, those by trigrams and prefix."""
        if not form or len(form) > LONGEST_NAME:
            return ()
        recalled = set(near)
        if not edits_suffice(form, recalled, cutoff=cutoff, names=self.form_count):
            recalled |= self.trigram_names(form)
            recalled.update(self.forms_with_prefix(form, limit=_PREFIXED))
        return recalled

    def names_near(self, forms: Sequence[str]) -> dict[str, list[str]]:
        """Return for each form the normal forms within two edits; the latest results are cached."""
        near = self.last_near
        if not near.keys() >= set(forms):
            near = self.last_near = dict(zip(forms, self.recall(probes_of(forms)), strict=True))
        return near

    def rescored(self, form: str, recalled: Iterable[str], *, limit: int, cutoff: float) -> list[SimilarName]:
        return rescore(form, recalled, limit=limit, cutoff=cutoff, names=self.form_count, bearers=self.bearers)

    @property
    def form_count(self) -> int:
        """Count the forms of names, as a cluster does."""
        return self.manifest.statistics["forms"]

    def bearers(self, forms: Sequence[str]) -> list[Bearer]:
        """Return for each stored form its entity with the most names."""
        if not forms:
            return []
        matches = self.lookup(forms)
        groups = [np.concatenate([match.entities for match in matches[form]]) for form in forms]
        entities = np.concatenate(groups)
        return bearers_with_most_names(entities, self.alias_counts(entities), list(map(len, groups)))

    @explained
    def parts_of(self, matches: Sequence[NameMatch], tags: frozenset[str]) -> list[NDArray[np.uint8]]:
        return [self.parts_of_name(match.name, match.entities, tags) for match in matches]

    def vectors(self) -> VectorIndex:
        if self.vector_index is None:
            self.vector_index = self.open_vectors()
        return self.vector_index
