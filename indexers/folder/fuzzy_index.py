"""The fuzzy index: names that share trigrams with a form, found by tantivy, to be rescored."""

import errno
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from importlib.metadata import version
from json.encoder import encode_basestring
from operator import itemgetter
from pathlib import Path
from uuid import UUID

import msgspec
import numpy as np
import tantivy
from numpy.typing import NDArray

from kbtools.errors import KBUnusable
from kbtools.indexers.folder.checksums import cannot_open
from kbtools.indexers.folder.column_files import StringTable
from kbtools.linking.similarity import LONGEST_NAME
from kbtools.record_files import file_digest
from kbtools.storage import temporary_folder
from kbtools.text.normaliser import normal_forms

_WRITER_BYTES = 160_000_000
"""Memory of the writer."""

_RECALLED = 100
"""Names returned by trigrams, to be rescored."""

_RAREST = 9
"""Trigrams searched for, the rarest of a form: searching all twenty among 5.9 million names takes six times as long,
and finds the entities of one per cent more misspellings.
"""

_TRIGRAMS = "trigrams"
META, MANAGED = "meta.json", ".managed.json"
_LOCK = ".lock"
_KILLED = "writer was killed"
"""Tantivy's error after one of its threads failed."""


def _schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("trigrams", tokenizer_name=_TRIGRAMS, index_option="freq")
    builder.add_unsigned_field("alias", fast=True)
    return builder.build()


class FuzzyWriter:
    """A writer of the distinct normal forms, each with the row of a name that has it."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder = folder
        self.closed = False
        self.index = tantivy.Index(_schema(), path=str(folder))
        # By default, tantivy looks for commits twice a second and locks the folder when it finds one, even afterwards.
        self.index.config_reader("manual")
        trigrams = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.ngram(3, 3)).build()
        self.index.register_tokenizer(_TRIGRAMS, trigrams)
        # One thread indexes: with several, the segment of a form would be random.
        self.writer = self.index.writer(_WRITER_BYTES, 1)

    def add(self, forms: Sequence[str], aliases: NDArray[np.uint32]) -> None:
        """Add normal forms, each with the row of a name that has it; forms longer than LONGEST_NAME are left out."""
        try:
            for form, alias in zip(forms, aliases.tolist(), strict=True):
                if len(form) <= LONGEST_NAME:
                    # As JSON, which takes three quarters of the time of a `Document`.
                    self.writer.add_json(f'{{"trigrams":{encode_basestring(form)},"alias":{alias}}}')
        except ValueError as error:
            raise self.reason(error) from error

    def reason(self, error: ValueError) -> OSError:
        """Return the reason why tantivy stopped writing; its threads do not report a full disk."""
        if _KILLED in str(error) and shutil.disk_usage(self.folder).free < _WRITER_BYTES:
            return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return _system_error(error) or OSError(errno.EIO, str(error))

    def __enter__(self) -> "FuzzyWriter":
        return self

    def __exit__(self, *_: object) -> None:
        """Wait for the writing threads, so that nothing is written after the block."""
        if not self.closed:
            with suppress(ValueError):
                self.writer.wait_merging_threads()

    def close(self) -> None:
        """Commit, and give the files the permissions of the folder's readers."""
        try:
            self.writer.commit()
            self.closed = True
            self.writer.wait_merging_threads()
        except ValueError as error:
            raise self.reason(error) from error
        del self.writer, self.index
        _name_segments(self.folder)
        for path in self.folder.iterdir():
            # Tantivy makes files readable for their owner only, and leaves its locks.
            if path.suffix == _LOCK:
                path.unlink()
            else:
                path.chmod(self.folder.stat().st_mode & 0o666)


def _name_segments(folder: Path) -> None:
    """Rename the randomly named segments of an index after their content: equal forms make equal files."""
    meta = msgspec.json.decode((folder / META).read_bytes())
    files = []
    for segment in meta["segments"]:
        old = UUID(segment["segment_id"])
        new = UUID(file_digest(folder / f"{old.hex}.fast")[: len(old.hex)])
        segment["segment_id"] = str(new)
        files += [path.rename(path.with_stem(new.hex)).name for path in folder.glob(f"{old.hex}.*")]
    meta["segments"].sort(key=itemgetter("segment_id"))
    meta["opstamp"] = sum(segment["max_doc"] for segment in meta["segments"])
    (folder / META).write_bytes(msgspec.json.encode(meta))
    (folder / MANAGED).write_bytes(msgspec.json.encode([META, *sorted(files)]))


def _system_error(error: Exception) -> OSError | None:
    """Return the system's error contained in tantivy's message, or None."""
    number = re.search(r"(?:os error |code: )(\d+)", str(error))
    return OSError(int(number[1]), os.strerror(int(number[1]))) if number else None


@contextmanager
def _links_to(folder: Path) -> Iterator[str]:
    """Yield a folder of links to files that are read-only: tantivy needs a lock even to read.

    A lock file that tantivy left after a build is not linked, since readers without write permission could not take it.
    """
    place = os.path.realpath(folder)
    names = [name for name in os.listdir(place) if not name.endswith(_LOCK)]
    with ExitStack() as stack:
        try:
            links = stack.enter_context(temporary_folder())
            for name in names:
                os.symlink(os.path.join(place, name), links / name)
        except OSError as error:
            raise KBUnusable.at(
                folder,
                f"cannot create links to its files in the temporary folder "
                f"({error.strerror or error}); set TMPDIR to a folder with more space",
            ) from error
        yield str(links)


class FuzzyIndex:
    """A reader of the fuzzy index: the rows of names that may be near a form."""

    def __init__(self, folder: Path, *, texts: StringTable) -> None:
        self.texts = texts
        try:
            with _links_to(folder) as links:
                self.index = tantivy.Index.open(links)
        except OSError as error:
            raise cannot_open(folder, error) from error
        except ValueError as error:
            if refused := _system_error(error):
                raise cannot_open(folder, refused) from error
            raise KBUnusable(
                f"{folder}: cannot be opened by tantivy {version('tantivy')} ({error}); index again"
            ) from error
        self.schema = self.index.schema
        self.searcher = self.index.searcher()

    def forms(self, rows: Iterable[int]) -> list[str]:
        """Return the normal form of each name by row."""
        return normal_forms(self.texts.take(rows))

    def names(self, rows: Iterable[int]) -> set[str]:
        """Return the distinct normal forms of names by row."""
        return set(self.forms(rows))

    def near(self, form: str) -> list[int]:
        """Return the rows of names that share the rarest trigrams of a form."""
        trigrams = sorted({form[start : start + 3] for start in range(len(form) - 2)})
        names = {trigram: self.searcher.doc_freq(_TRIGRAMS, trigram) for trigram in trigrams}
        rarest = sorted(filter(names.get, names), key=names.__getitem__)[:_RAREST]
        terms = [tantivy.Query.term_query(self.schema, _TRIGRAMS, trigram) for trigram in rarest]
        return self.search(
            tantivy.Query.boolean_query([(tantivy.Occur.Should, term) for term in terms]), limit=_RECALLED
        )

    def search(self, query: tantivy.Query, limit: int) -> list[int]:
        try:
            hits = self.searcher.search(query, limit=limit, count=False).hits
            rows = self.searcher.fast_field_values("alias", [address for _, address in hits])
        except BaseException as error:
            if type(error).__module__ != "pyo3_runtime":
                raise
            raise ValueError(
                f"tantivy failed: {error}"
            ) from error  # A Rust panic is not an Exception; it means damaged files.
        return [int(row or 0) for row in rows]
