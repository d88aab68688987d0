"""The writer of a knowledge base's files from sorted tables, for a build or a segment."""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kbtools.indexers.building.form_rows import form_rows_of
from kbtools.indexers.building.form_writer import FormGroups, FormWriter, LanguageWriter, group_forms
from kbtools.indexers.building.near_names import Indexer, near_indexer
from kbtools.indexers.folder.column_files import ColumnWriter, StartsWriter, StringWriter
from kbtools.indexers.folder.form_store import FilterWriter
from kbtools.indexers.folder.kb_folder import COLUMNS, FORMS, STRINGS, WORK
from kbtools.processes import in_order
from kbtools.read_ahead import read_ahead
from kbtools.record_files import file_digest
from kbtools.text.printable import plural

_HEX = 64
"""Hexadecimal digits of a SHA-256."""

NAMES_AT_ONCE = 50_000
"""Names per batch for finding forms: 0.4 s of one core on DBpedia's titles."""

_WORDS_AT_ONCE = 250_000
"""Counts of words stored together."""

_Batches = Iterable[pa.RecordBatch]
_Report = Callable[[str, str], None]
"""Called after each step with its name and counts."""

_TABLES = {
    "relation_names": "the name of each relation, empty for none",
    "redirects": "merged ids, ascending, and the row of the entity that each belongs to",
    "descriptions": "entities, ascending, and the description of each",
    "facts": "subjects, relations and objects",
    "incoming": "objects, relations and subjects of the facts",
    "names": "entities, whether a name is an alias, texts, and their parts in each language, in the order of an entity",
    "types": "entities and types",
    "counts": "keys of names, entities and counts",
    "forms": "forms of names, by form, kind, text and entity, with the row of the name",
    "words": "words, ascending, with the number of normal forms that contain each",
}
"""The columns of each table; its rows are sorted by all of them unless stated otherwise."""


class _SortedTables(Protocol):
    """The content of a knowledge base for the writer: rows of entities, relations and types, sorted."""

    @property
    def languages(self) -> Collection[str]:
        """The tags of the languages of names, by number."""
        ...

    def ids(self, table: str) -> Iterable[pa.StringArray]:
        """Return the ids of `entities`, `relations` or `kinds`, by row."""
        ...

    def rows(self, table: str) -> _Batches:
        """Return the rows of a table, as TABLES names and orders them; facts may repeat."""
        ...

    def unknown_types(self) -> int:
        """Count the types of ids that are not entities."""
        ...

    def searchable(self, forms: pa.StringArray, names: NDArray[np.uint32]) -> tuple[list[str], NDArray[np.uint32]]:
        """Return the normal forms for the fuzzy and the edit index, each with the row of a name."""
        ...

    def add(self, table: str, rows: pa.Table) -> None:
        """Append rows to the table `forms` or `words`."""
        ...

    def drop(self, table: str) -> None:
        """Free a table that has been written."""
        ...


@dataclass(frozen=True, slots=True)
class Content:
    """The account of what was written: the digest of the content, distinct rows by kind, checksums of files."""

    digest: str
    counts: dict[str, int]
    statistics: dict[str, int]
    lengths: tuple[int, ...]
    languages: dict[str, int]
    files: dict[str, int]
    checksums: dict[str, str]


def write_content(tables: _SortedTables, folder: Path, *, done: _Report, jobs: int) -> Content:
    """Write every file of a knowledge base except its manifest; temporary files go to WORK inside the folder."""
    with ExitStack() as files:
        writer = _Writer(folder, tables, files)
        entities = writer.write_ids()
        named = writer.write_relation_names()
        merged = writer.write_optional("redirects", "redirect.old", "redirect.row")
        described = writer.write_optional("descriptions", "description.row", "description.text")
        writer.statistics["descriptions"] = described
        tables.drop("descriptions")
        values, relations = writer.statistics["values"], writer.statistics["relations"]
        done("entities", ", ".join(map(plural, (entities - values, values, relations), ("entity", "value", "relation")))
             + (f", {named:,} of them with a name" if named else "")
             + (f"; {plural(described, 'description')}" if described else "")
             + (f"; {plural(merged, 'id')} merged into others" if merged else ""))  # fmt: skip
        facts, pairs = writer.write_facts(entities)
        writer.write_incoming(entities)
        tables.drop("fact_rows")
        done("facts", f"{plural(facts, 'fact')}, {plural(pairs, 'subject-relation pair')}")
        names = writer.write_names(entities, jobs=jobs)
        tables.drop("names")
        done("names", f"{names:,} names and aliases")
        types = writer.write_types(entities)
        unknown = tables.unknown_types()
        tables.drop("types")
        if counts := writer.write_optional("counts", "count.key", "count.entity", "count.count"):
            done("counts", f"{counts:,} counts of names")
        done("types", f"{plural(types, 'type')} of entities")
        lengths, forms = writer.write_forms(names, jobs=jobs)
        done("forms", f"{plural(forms, 'form')} of names, exact and fuzzy")
    work = folder / WORK
    paths = {
        str(path.relative_to(folder)): path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_relative_to(work)
    }
    hashed = writer.checksums()
    return Content(
        digest=writer.digest(),
        counts={"facts": facts, "names": names, "types": types + unknown, "entities": entities},
        statistics=writer.statistics | {"pairs": pairs, "forms": forms, "types_of_unknown_entities": unknown},
        lengths=tuple(sorted(lengths)),
        languages=writer.languages,
        files={name: path.stat().st_size for name, path in paths.items()},
        checksums={name: hashed.get(name) or file_digest(path) for name, path in paths.items()},
    )


class _Writer:
    """A writer of the files of a knowledge base from sorted tables; hashes the content as it goes."""

    def __init__(self, folder: Path, tables: _SortedTables, files: ExitStack) -> None:
        self.folder = folder
        self.tables = tables
        self.files = files
        self.hashes: dict[str, str] = {}
        self.derived: dict[str, str] = {}
        self.statistics: dict[str, int] = {}
        self.languages: dict[str, int] = {}

    def digest(self) -> str:
        """Return a hash of the content: ids, facts, names and types, in the order of their rows."""
        return sha256("".join(f"{name}={value}\n" for name, value in sorted(self.hashes.items())).encode()).hexdigest()

    def checksums(self) -> dict[str, str]:
        """Return the SHA-256 of each file of columns and strings, as written."""
        hashes = self.hashes | self.derived
        columns = {name: value for name, value in hashes.items() if len(value) == _HEX}
        strings = {name: value for name, value in hashes.items() if len(value) > _HEX}
        texts = {f"{name}.utf8": value[:_HEX] for name, value in strings.items()}
        return columns | texts | {f"{name}.starts": value[_HEX:] for name, value in strings.items()}

    def write_ids(self) -> int:
        """Write the ids of entities, relations and types; return the number of entities, including values."""
        counts = {}
        for table, name in (("relations", "relation.id"), ("kinds", "type.id"), ("entities", "entity.id")):
            writer = self.strings(name)
            values = 0
            for ids in self.tables.ids(table):
                writer.write(ids)
                values += pc.sum(pc.starts_with(ids, '"')).as_py() or 0
            self.hashes[name], counts[table] = writer.close(), writer.starts.count - 1
        self.statistics |= {"relations": counts["relations"], "types": counts["kinds"], "values": values}
        return counts["entities"]

    def write_relation_names(self) -> int:
        """Write the name of each relation, empty if it has none; return the number of names."""
        names, named = self.strings("relation.name"), 0
        for batch in self.tables.rows("relation_names"):
            names.write(batch.column(0))
            named += len(batch) - (pc.sum(pc.equal(batch.column(0), "")).as_py() or 0)
        self.of_content(named)["relation.name"] = names.close()
        return named

    def write_optional(self, table: str, *names: str) -> int:
        """Write the columns of a table that may be empty; return the number of its rows."""
        writers = [self.strings(name) if name in STRINGS else self.column(name) for name in names]
        rows = 0
        for batch in self.tables.rows(table):
            rows += len(batch)
            for writer, column in zip(writers, batch.columns, strict=True):
                writer.write(column if isinstance(writer, StringWriter) else column.to_numpy())
        hashes = self.of_content(rows)
        hashes |= {name: writer.close() for name, writer in zip(names, writers, strict=True)}
        return rows

    def of_content(self, size: int) -> dict[str, str]:
        """Return where to record an optional table's hash: an empty table must not change the digest of the content."""
        return self.hashes if size else self.derived

    def column(self, name: str) -> ColumnWriter:
        writer = ColumnWriter(self.folder / name, COLUMNS[name])
        self.files.callback(writer.close)
        return writer

    def strings(self, name: str) -> StringWriter:
        writer = StringWriter(self.folder / name)
        self.files.callback(writer.close)
        return writer

    def starts(self, name: str) -> StartsWriter:
        return StartsWriter(self.column(name))

    def write_facts(self, entities: int) -> tuple[int, int]:
        """Write pairs and objects; return the numbers of facts and of pairs."""
        relations, firsts, objects = (self.column(f"fact.{name}") for name in ("relation", "first_object", "object"))
        pairs_of = self.starts("fact.first")
        in_facts = np.zeros(entities, dtype=bool)
        last = (-1, -1)
        for subject, relation, target in _without_repeats(self.tables.rows("facts")):
            # A pair begins where the subject or relation changes, across batches too.
            new = np.ones(len(subject), dtype=bool)
            new[1:] = (subject[1:] != subject[:-1]) | (relation[1:] != relation[:-1])
            new[0] = last != (int(subject[0]), int(relation[0]))
            relations.write(relation[new])
            firsts.write(np.flatnonzero(new) + objects.count)
            objects.write(target)
            pairs_of.write(subject[new])
            in_facts[subject] = in_facts[target] = True
            last = (int(subject[-1]), int(relation[-1]))
        # One more than pairs: where the objects of the last one end.
        firsts.write(np.array([objects.count]))
        for name, writer in (("relation", relations), ("first_object", firsts), ("object", objects)):
            self.hashes[f"fact.{name}"] = writer.close()
        self.hashes["fact.first"] = pairs_of.close(entities)
        self.statistics["subjects"] = pairs_of.rows
        self.statistics["entities_without_facts"] = entities - int(np.count_nonzero(in_facts))
        self.statistics["subjects_of_no_fact"] = entities - pairs_of.rows - self.statistics["values"]
        return objects.count, relations.count

    def write_incoming(self, entities: int) -> None:
        """Write the facts again, by object: the relation and the subject of each, ascending."""
        relations, subjects = self.column("incoming.relation"), self.column("incoming.subject")
        facts_of = self.starts("incoming.first")
        for target, relation, subject in _without_repeats(self.tables.rows("incoming")):
            facts_of.write(target)
            relations.write(relation)
            subjects.write(subject)
        self.derived["incoming.relation"], self.derived["incoming.subject"] = relations.close(), subjects.close()
        self.derived["incoming.first"] = facts_of.close(entities)
        self.statistics["objects"] = facts_of.rows

    def write_names(self, entities: int, *, jobs: int) -> int:
        """Write the names of every entity, names before aliases, and add their forms to the tables."""
        texts = self.strings("alias.text")
        is_alias = self.column("alias.is_alias")
        names_of = self.starts("alias.first")
        languages = LanguageWriter(self.folder, list(self.tables.languages))
        self.files.callback(languages.column.close)
        # The forms of a batch are computed while those of the previous one are stored.
        with closing(read_ahead(self.named_forms(jobs))) as batches:
            for batch, forms in batches:
                entity, alias, text, parts = batch.columns
                texts.write(text)
                is_alias.write(alias.to_numpy(zero_copy_only=False))
                names_of.write(entity.to_numpy())
                languages.write(parts)
                self.tables.add("forms", forms)
        self.languages, hashes = languages.counts(), languages.close()
        # If all names have the same language, the languages must not change the digest of the content.
        self.of_content(len(hashes) - 1).update(hashes)
        self.hashes["alias.text"] = texts.close()
        self.hashes["alias.is_alias"] = is_alias.close()
        self.hashes["alias.first"] = names_of.close(entities)
        self.statistics["entities_without_names"] = entities - names_of.rows - self.statistics["values"]
        return is_alias.count

    def named_forms(self, jobs: int) -> Iterator[tuple[pa.RecordBatch, pa.Table]]:
        """Yield the names of entities, and the rows of their forms."""
        batches: deque[pa.RecordBatch] = deque()

        def pieces() -> Iterator[tuple[pa.RecordBatch, int]]:
            row = 0
            for batch in filter(len, self.tables.rows("names")):
                batches.append(batch)
                for first in range(0, len(batch), NAMES_AT_ONCE):
                    yield batch.slice(first, NAMES_AT_ONCE), row + first
                row += len(batch)

        forms: list[pa.Table] = []
        # One core is left to this process, which stores the forms that the others compute.
        for table in in_order(form_rows_of, pieces(), jobs=max(1, jobs - 1)):
            forms.append(table)
            if len(forms) * NAMES_AT_ONCE >= len(batches[0]):
                yield batches.popleft(), pa.concat_tables(forms)
                forms.clear()

    def write_types(self, entities: int) -> int:
        """Write the types of every entity."""
        types = self.column("type.type")
        types_of = self.starts("type.first")
        for batch in self.tables.rows("types"):
            types.write(batch.column(1).to_numpy())
            types_of.write(batch.column(0).to_numpy())
        self.hashes["type.type"] = types.close()
        self.hashes["type.first"] = types_of.close(entities)
        self.statistics["entities_without_types"] = entities - types_of.rows - self.statistics["values"]
        return types.count

    def write_forms(self, names: int, *, jobs: int) -> tuple[set[int], int]:
        """Write the exact, the fuzzy and the edit index over `names` names.

        Return the lengths of the forms in words, and the number of forms.
        """
        exact = self.files.enter_context(FormWriter(self.folder / FORMS))
        form_filter = FilterWriter(names)

        def groups(index_near: Indexer) -> Iterator[FormGroups]:
            words: list[pa.Table] = []
            # This process and that of near names consume the groups of the others.
            for group in group_forms(self.tables.rows("forms"), jobs=max(1, jobs - 1)):
                index_near(self.tables.searchable(*group.normal()))
                form_filter.add(group.hashes)
                words.append(group.words)
                if sum(map(len, words)) >= _WORDS_AT_ONCE:
                    self.tables.add("words", pa.concat_tables(words))
                    words.clear()
                yield group
            if words:
                self.tables.add("words", pa.concat_tables(words))

        # One pass over the sorted forms fills all three indexes and counts words.
        with near_indexer(self.folder, names=names, jobs=jobs) as index_near:
            exact.write_forms(groups(index_near))
            self.derived |= index_near(None)
        bits = self.column("form.filter")
        bits.write(form_filter.bits)
        self.derived["form.filter"] = bits.close()
        exact.write_words(self.tables.rows("words"))
        exact.close()
        return exact.lengths, exact.forms


def _without_repeats(batches: Iterable[pa.RecordBatch]) -> Iterator[list[NDArray[np.uint32]]]:
    """Yield the columns of sorted rows without repeated rows, across batches too."""
    last: list[int] = []
    for batch in filter(len, batches):
        columns = [column.to_numpy() for column in batch.columns]
        new = np.zeros(batch.num_rows, dtype=bool)
        new[0] = [int(column[0]) for column in columns] != last
        for column in columns:
            new[1:] |= column[1:] != column[:-1]
        last = [int(column[-1]) for column in columns]
        if new.any():
            yield columns if new.all() else [column[new] for column in columns]
