"""The embedded knowledge base: one folder, opened through the memory map, shared by any number of processes."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property, wraps
from itertools import islice
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

import lmdb
import numpy as np
from numpy.typing import NDArray

from kbtools.entry_points import BACKENDS, load_class
from kbtools.errors import KBUnusable
from kbtools.indexers.folder.checksums import INDEX_AGAIN, require_files
from kbtools.indexers.folder.column_files import StringTable, read_column
from kbtools.indexers.folder.edit_index import EditIndex, Probes, probes_of
from kbtools.indexers.folder.faiss_index import FaissVectors
from kbtools.indexers.folder.form_filter import FormFilter
from kbtools.indexers.folder.form_store import FormStore
from kbtools.indexers.folder.fuzzy_index import FuzzyIndex
from kbtools.indexers.folder.kb_folder import COLUMNS, FORMS, FUZZY, REQUIRED, find_damage, read_manifest
from kbtools.indexers.folder.language_sets import LanguageSets
from kbtools.indexers.folder.name_counts import counts_at
from kbtools.indexers.folder.name_ranks import rank_names, rank_spoken
from kbtools.indexers.folder.run_columns import facts_among, facts_at, gather, spread, within
from kbtools.kb.contract import BackendDefaults, NameMatch, SimilarName
from kbtools.kb.manifest import Manifest
from kbtools.kb.rows import EntityRows, Grouped, IncomingFacts
from kbtools.kb.spoken_names import SpokenName
from kbtools.kb.vector_index import VectorIndex
from kbtools.linking.similarity import LONGEST_NAME, USUAL, edits_suffice, rescore, within_edits
from kbtools.storage import folder_identity

P = ParamSpec("P")
R = TypeVar("R")
KB = TypeVar("KB", bound="EmbeddedKB")

PREFIXED = 50
"""Names that begin with a form and are compared with it."""

REMEMBERED, MOST_BEARERS = 10_000, 1_000
"""Forms whose names are kept in memory, those of so many bearers: 10 MB for 10,000 forms of FB5M's questions."""


def explained(method: Callable[Concatenate[KB, P], R]) -> Callable[Concatenate[KB, P], R]:
    """Let a look-up that fails over damaged files say which file is damaged; other errors stay what they are."""

    @wraps(method)
    def look_up(self: KB, /, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(self, *args, **kwargs)
        except (IndexError, ValueError, OverflowError, MemoryError, RuntimeError, lmdb.Error) as error:
            if damage := self.explain(error):
                raise KBUnusable(damage, path=str(self.path)) from error
            raise

    return look_up


def near_forms(edits: EditIndex, fuzzy: FuzzyIndex, probes: Probes) -> list[list[str]]:
    """List what an edit index has near each form that was probed for, in normal forms."""
    rows = edits.recall(probes)
    names = iter(fuzzy.forms(np.concatenate(rows).tolist() if rows else ()))
    return [list(islice(names, len(own))) for own in rows]


def reopen(path: Path) -> "EmbeddedKB":
    """Open a folder that was pickled, with the class that its updates need."""
    kb: EmbeddedKB = load_class(BACKENDS, "embedded")(path)
    return kb


class EmbeddedKB(BackendDefaults):
    """A knowledge base in a folder; see `KnowledgeBase` for what each method promises.

    Every file is opened at once, so that a folder that is replaced meanwhile answers as before to who has it open.
    """

    reads_updates = False
    misread = "holds updates, which kbtools.open reads and this does not; merge them with kbtools compact"
    """Why a folder is refused: updates that are not read would be answers of long ago."""

    def __init__(self, path: str | Path, *, manifest: Manifest | None = None) -> None:
        """Open a folder; a build gives the manifest that it has yet to write."""
        self.path = Path(path)
        # A build may put another folder in its place while the files are opened: then all of them are opened again.
        while True:
            before = folder_identity(self.path)
            try:
                self.open(manifest or read_manifest(self.path))
            except KBUnusable:
                if folder_identity(self.path) == before:
                    raise
            except (IndexError, TypeError, ValueError, OverflowError, lmdb.Error) as error:
                damage = self.explain(error) or f"{self.path}: its files do not fit each other; {INDEX_AGAIN}"
                raise KBUnusable(damage, path=str(self.path)) from error
            if folder_identity(self.path) == before:
                return

    def open(self, manifest: Manifest) -> None:
        """Open every file; raise KBUnusable where one is not as it was written, or the folder was just replaced."""
        self.manifest = manifest
        self.vector_index: VectorIndex | None = None
        self.damage = ""
        self.last_near: dict[str, list[str]] = {}
        self.remembered: dict[str, Sequence[NameMatch]] = {}
        files = manifest.files
        if manifest.is_updated is not self.reads_updates:
            raise KBUnusable(f"{self.path}: {self.misread}", path=str(self.path))
        require_files(self.path, files, manifest.checksums, INDEX_AGAIN)
        if missing := sorted(REQUIRED - files.keys()):
            raise KBUnusable(f"{self.path}: built by another kbtools, without {missing[0]}; index again")
        self.columns = {name: read_column(self.path / name, dtype) for name, dtype in COLUMNS.items() if name in files}
        self.entity_ids = StringTable(self.path / "entity.id")
        self.base_entities = len(self.entity_ids)
        self.relation_ids = StringTable(self.path / "relation.id")
        self.type_ids = StringTable(self.path / "type.id")
        self.relation_texts = StringTable(self.path / "relation.name") if "relation.name.utf8" in files else None
        self.redirects = StringTable(self.path / "redirect.old") if "redirect.old.utf8" in files else None
        self.alias_texts = StringTable(self.path / "alias.text")
        self.description_texts = (
            StringTable(self.path / "description.text") if "description.text.utf8" in files else None
        )
        self.languages = LanguageSets(self.path, files, names=len(self.alias_texts))
        self.forms = FormStore.open(self.path / FORMS)
        self.form_filter = FormFilter(self.columns["form.filter"]) if "form.filter" in files else None
        self.fuzzy = FuzzyIndex(self.path / FUZZY, texts=self.alias_texts)
        self.edits = EditIndex(
            *(self.columns[f"edit.{part}"] for part in ("key", "row", "signature")), texts=self.alias_texts
        )

    def __reduce__(self) -> tuple[Callable[[Path], "EmbeddedKB"], tuple[Path]]:
        """Pickle by path: whoever unpickles it opens the folder."""
        return reopen, (self.path.absolute(),)

    def close(self) -> None:
        """Let go of every file; others in this process that have the folder open keep what they share."""
        remaining = {"path": self.path, "manifest": self.manifest}
        vars(self).clear()
        vars(self).update(remaining)

    def explain(self, error: Exception) -> str:
        """Say which file is damaged where a look-up failed; nothing where all files are as they were written."""
        if not self.damage and not self.manifest.checksums:
            self.damage = (
                f"{self.path}: a look-up failed ({error!r}), and there are no checksums to find a damaged file by; "
                "index again"
            )
        self.damage = self.damage or next(map(str, find_damage(self.path, self.manifest)), "")
        return self.damage

    @cached_property
    @explained
    def relations(self) -> Sequence[str]:
        return tuple(self.relation_ids)

    @cached_property
    @explained
    def relation_names(self) -> Sequence[str | None]:
        if self.relation_texts is None:
            return (None,) * len(self.relations)
        return tuple(name or None for name in self.relation_texts)

    @cached_property
    @explained
    def types(self) -> Sequence[str]:
        return tuple(self.type_ids)

    @explained
    def lookup(self, forms: Sequence[str]) -> Mapping[str, Sequence[NameMatch]]:
        kept = forms if self.form_filter is None else self.form_filter.keep(forms)
        remembered = self.remembered
        matches = {form: remembered[form] for form in kept if form in remembered}
        if len(matches) < len(kept):
            new = self.stored_names([form for form in kept if form not in matches])
            self.remember(new)
            matches |= new
        return matches

    def likely_runs(self, words: Sequence[str], lengths: frozenset[int]) -> list[tuple[int, int]]:
        return (
            super().likely_runs(words, lengths) if self.form_filter is None else self.form_filter.runs(words, lengths)
        )

    def stored_names(self, forms: Sequence[str]) -> dict[str, list[NameMatch]]:
        """Read the names under each form that is stored."""
        return self.forms.lookup(forms, self.alias_texts)

    def remember(self, matches: Mapping[str, Sequence[NameMatch]]) -> None:
        """Keep matches in memory: the words that most questions have are names of a dozen spellings each."""
        if len(self.remembered) + len(matches) > REMEMBERED:
            self.remembered = {}
        for form, own in matches.items():
            if sum([len(match.entities) for match in own]) <= MOST_BEARERS:
                self.remembered[form] = own

    @explained
    def similar(
        self, forms: Sequence[str], *, limit: int = 20, cutoff: float = USUAL, edits_only: bool = False
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
        """Recall the normal forms similar to one by trigrams and as its beginning too, unless edits suffice."""
        if not form or len(form) > LONGEST_NAME:
            return ()
        recalled = set(near)
        if not edits_suffice(form, recalled, cutoff=cutoff, names=self.form_count):
            recalled |= self.trigram_names(form)
            recalled.update(self.forms_with_prefix(form, limit=PREFIXED))
        return recalled

    def names_near(self, forms: Sequence[str]) -> dict[str, list[str]]:
        """Recall for each form the normal forms within two edits; the last ones asked for are at hand."""
        near = self.last_near
        if not near.keys() >= set(forms):
            names = self.recall(probes_of(forms))
            near = self.last_near = dict(zip(forms, names, strict=True))
        return near

    def recall(self, probes: Probes) -> list[list[str]]:
        """List the normal forms within two edits of each form that was probed for."""
        return near_forms(self.edits, self.fuzzy, probes)

    def rescored(self, form: str, recalled: Iterable[str], *, limit: int, cutoff: float) -> list[SimilarName]:
        return rescore(
            form, recalled, limit=limit, cutoff=cutoff, names=self.form_count, popularity=self.names_of_bearers
        )

    @property
    def form_count(self) -> int:
        """Count the forms of names, which a cluster counts too."""
        return self.manifest.statistics.get("forms", 0)

    def trigram_names(self, form: str) -> set[str]:
        """Recall names that share the rarest trigrams of a form."""
        return self.fuzzy.names(self.fuzzy.near(form))

    def names_of_bearers(self, forms: Sequence[str]) -> list[int]:
        """Count, for each form, the names of that of its bearers that has most."""
        if not forms:
            return []
        matches = self.lookup(forms)
        bearers = [np.concatenate([match.entities for match in matches[form]]) for form in forms]
        # For every form, for every bearer: the number of its names.
        counts = self.alias_counts(np.concatenate(bearers))
        most: list[int] = np.maximum.reduceat(counts, np.cumsum([0, *map(len, bearers[:-1])])).tolist()
        return most

    def alias_counts(self, entities: EntityRows) -> NDArray[np.int64]:
        """Count the names and aliases of each entity."""
        first, rows = self.columns["alias.first"], entities.astype(np.int64)
        counts: NDArray[np.int64] = (first[rows + 1] - first[rows]).astype(np.int64)
        return counts

    @explained
    def forms_with_prefix(self, prefix: str, *, limit: int) -> list[str]:
        return list(self.forms.forms_with_prefix(prefix, limit=limit))

    @explained
    def name_frequency(self, words: Sequence[str]) -> list[int]:
        return self.forms.name_frequency(words)

    @explained
    def relations_of(self, entities: EntityRows) -> Grouped:
        return within(
            gather(self.columns["fact.first"], self.columns["fact.relation"], entities), len(self.relation_ids)
        )

    @explained
    def facts_of(self, entities: EntityRows) -> NDArray[np.int64]:
        """List the facts of entities, by the entities' order, then relation and object: (facts, 3)."""
        return facts_at(self.columns, entities, entities)

    @explained
    def objects_of(self, pairs: Sequence[tuple[int, int]]) -> list[EntityRows]:
        return [self.objects(entity_row, relation) for entity_row, relation in pairs]

    def objects(self, entity_row: int, relation: int) -> EntityRows:
        """Return the objects of one entity under one relation."""
        columns = self.columns
        first, last = columns["fact.first"][entity_row : entity_row + 2].tolist()
        relations = columns["fact.relation"][first:last]
        pair = first + int(relations.searchsorted(relation))
        if pair == last or relations[pair - first] != relation:
            return np.empty(0, dtype=np.uint32)
        begin, end = columns["fact.first_object"][pair : pair + 2].tolist()
        return columns["fact.object"][begin:end]

    @explained
    def facts_between(self, first: int, last: int) -> NDArray[np.int64]:
        """List the facts of the entities from row `first` up to `last`."""
        return facts_among(self.columns, first, np.arange(first, last))

    @explained
    def types_of(self, entities: EntityRows) -> Grouped:
        return within(gather(self.columns["type.first"], self.columns["type.type"], entities), len(self.type_ids))

    @explained
    def fact_counts(self, entities: EntityRows) -> NDArray[np.int64]:
        first, objects = self.columns["fact.first"], self.columns["fact.first_object"]
        rows = entities.astype(np.int64)
        counts: NDArray[np.int64] = objects.take(first.take(rows + 1)) - objects.take(first.take(rows))
        return counts

    @explained
    def incoming_counts(self, entities: EntityRows) -> NDArray[np.int64]:
        first, rows = self.columns["incoming.first"], entities.astype(np.int64)
        counts: NDArray[np.int64] = (first[rows + 1] - first[rows]).astype(np.int64)
        return counts

    def is_object_of_more(self, entity: int, *, than: int) -> bool:
        """Tell whether an entity is the object of more than so many facts."""
        return int(self.incoming_counts(np.array([entity], dtype=np.uint32))[0]) > than

    @explained
    def subjects_of(self, entities: EntityRows) -> list[IncomingFacts]:
        return [self.incoming(entity_row) for entity_row in entities.tolist()]

    def incoming(self, entity_row: int) -> IncomingFacts:
        """Return the facts that one entity is the object of."""
        first, last = self.columns["incoming.first"][entity_row : entity_row + 2].tolist()
        return IncomingFacts(
            self.columns["incoming.relation"][first:last], self.columns["incoming.subject"][first:last]
        )

    @explained
    def name_counts(self, form: str, entities: EntityRows) -> NDArray[np.int64] | None:
        return counts_at(self.columns, form, entities)

    @explained
    def ids(self, entities: EntityRows) -> list[str]:
        return self.entity_ids.take(entities.tolist())

    @explained
    def names(self, entities: EntityRows) -> list[str | None]:
        starts, rows, texts = self.columns["alias.first"], entities.astype(np.int64), self.alias_texts
        edges = zip(starts[rows].tolist(), starts[rows + 1].tolist(), strict=True)
        return [texts[first] if first < end else None for first, end in edges]

    @explained
    def aliases(self, entity: int) -> list[str]:
        """Return every name and alias of one entity, names first."""
        first, last = self.columns["alias.first"][entity : entity + 2].tolist()
        return [self.alias_texts[row] for row in range(first, last)]

    @explained
    def ranked_names(self, entity: int) -> list[tuple[str, int]]:
        """List the names of an entity in their order, each with its rank: the first language 0, aliases ALIAS."""
        first, last = self.columns["alias.first"][entity : entity + 2].tolist()
        flags = self.columns["alias.is_alias"][first:last].tolist()
        if not self.manifest.languages:
            return rank_names([self.alias_texts[row] for row in range(first, last)], flags)
        return rank_spoken(self.names_with_languages(entity), flags)

    @explained
    def names_of(self, entities: EntityRows) -> list[list[SpokenName]]:
        return [self.names_with_languages(entity) for entity in entities.tolist()]

    def names_with_languages(self, entity: int) -> list[SpokenName]:
        """List the names of one entity with their languages."""
        first, last = self.columns["alias.first"][entity : entity + 2].tolist()
        flags = self.columns["alias.is_alias"][first:last].tolist()
        return [
            self.languages.spoken(row, self.alias_texts[row], is_alias=flag)
            for row, flag in zip(range(first, last), flags, strict=True)
        ]

    @explained
    def parts_of(self, matches: Sequence[NameMatch], tags: frozenset[str]) -> list[NDArray[np.uint8]]:
        return [self.parts_of_name(match.name, match.entities, tags) for match in matches]

    def parts_of_name(self, name: str, entities: EntityRows, tags: frozenset[str]) -> NDArray[np.uint8]:
        """Tell which part a name plays for each of some entities."""
        bounds, rows = spread(self.columns["alias.first"], entities, len(self.alias_texts))
        places = self.alias_texts.places_of(name, rows)
        parts = np.zeros(len(entities), dtype=np.uint8)
        rows = rows[places]
        owners = np.searchsorted(bounds, places, side="right") - 1
        parts[owners] = self.languages.parts(rows, self.columns["alias.is_alias"][rows], tags)
        return parts

    @property
    def base_descriptions(self) -> int:
        """Count the descriptions that the build wrote."""
        rows: NDArray[np.uint32] = self.columns.get("description.row", np.empty(0, dtype=np.uint32))
        return len(rows)

    @explained
    def descriptions(self, entities: EntityRows) -> list[str | None]:
        if not self.description_texts:
            return [None] * len(entities)
        described = self.columns["description.row"]
        places = np.minimum(np.searchsorted(described, entities), len(described) - 1)
        found = described[places] == entities
        return [
            self.description_texts[place] if has else None
            for place, has in zip(places.tolist(), found.tolist(), strict=True)
        ]

    def vectors(self) -> VectorIndex:
        if self.vector_index is None:
            self.vector_index = self.open_vectors()
        return self.vector_index

    def open_vectors(self) -> VectorIndex:
        return FaissVectors(self.path, self.manifest)

    def added_ids(self) -> list[str]:
        """List the ids of the entities that updates brought, by row; here there are none."""
        return []

    def expect_entities(self, ids: Sequence[str]) -> None:
        """Do nothing: all is at hand."""

    @explained
    def rows(self, ids: Sequence[str]) -> list[int | None]:
        return [self.row_of(entity_id) for entity_id in ids]

    def row_of(self, entity_id: str) -> int | None:
        """Find the row of an id, or of the entity that it was merged into."""
        row = self.entity_ids.find(entity_id)
        if row is None and self.redirects is not None:
            merged = self.redirects.find(entity_id)
            return None if merged is None else int(self.columns["redirect.row"][merged])
        return row
