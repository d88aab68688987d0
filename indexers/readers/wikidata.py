"""Wikidata's dumps: the JSON one, an array with an entity a line, and the truthy one in N-Triples."""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, ClassVar

import numpy as np

from kbtools.errors import WrongFormat
from kbtools.indexers.readers.batches import RecordBatch, Rows
from kbtools.indexers.readers.lines import Block
from kbtools.indexers.readers.parsing_processes import parse_in_order
from kbtools.indexers.readers.reading import Keep, ReadOptions, Source
from kbtools.indexers.readers.skips import Skips
from kbtools.indexers.readers.wikidata_entities import EntityParser
from kbtools.indexers.readers.wikidata_rows import ParsedBlock
from kbtools.indexers.readers.wikidata_triples import TruthyReader

CHUNK = 16
"""Bits of an entity's number within a chunk: ids come close together, and a stray one costs 64 KiB."""


class WikidataReader:
    """A reader of dumps of Wikidata: JSON, each entity as names, best statements and types; or truthy N-Triples."""

    suffixes: ClassVar[tuple[str, ...]] = ()
    sample: ClassVar[bytes] = (
        b'[\n{"type": "item", "id": "Q42", "labels": {"en": {"language": "en", "value": "Douglas Adams"}}, "claims": '
        b'{"P31": [{"rank": "normal", "mainsnak": {"snaktype": "value", "datavalue": {"type": "wikibase-entityid", '
        b'"value": {"id": "Q5"}}}}]}},\nbroken,\n'
        b'{"type": "property", "id": "P31", "labels": {"en": {"language": "en", "value": "instance of"}}}\n]\n'
    )

    def __init__(self, source: Source, options: ReadOptions, skips: Skips) -> None:
        self.source = source
        self.options = options
        self.skips = skips
        self.seen = SeenNumbers()
        self.opened = self.closed = 0

    def read(self, blocks: Iterable[Block]) -> Iterator[RecordBatch]:
        """Read each block on any core; then say whether the array came to its end."""
        blocks = iter(blocks)
        first = next(blocks)
        if first.text.lstrip().startswith((b"<", b"_:")):
            if self.options.keep != Keep():
                raise WrongFormat(
                    f"{self.source.path}: N-Triples have an entity on many lines, which --min-sitelinks, --keep-type, "
                    "--keep-property and --keep-ids cannot choose from; take the JSON dump",
                    path=str(self.source.path),
                )
            yield from TruthyReader(self.source, self.options, self.skips).read(chain([first], blocks))
            return
        parser = EntityParser(str(self.source.path), self.options)
        for parsed in parse_in_order(chain([first], blocks), parser):
            self.account(parsed)
            yield from parsed.batches
            # A batch each, so that each has its line.
            yield from (redirect_batch(*redirect) for redirect in parsed.redirects)
        if self.opened > self.closed:
            self.skips.add("array without its end", line=self.skips.lines, text="no ] after the last entity")

    def account(self, parsed: ParsedBlock) -> None:
        """Add the account of a block to that of the file; name ids that came before."""
        self.opened += parsed.opened
        self.closed += parsed.closed
        self.skips.absorb(parsed.skips)
        repeated = self.seen.add(parsed.numbers)
        for number, line in zip(parsed.numbers[repeated].tolist(), parsed.lines[repeated].tolist(), strict=True):
            entity_id = f"Q{number}" if number > 0 else f"P{-number}"
            self.skips.add("id that repeats", line=line, text=entity_id)


def redirect_batch(line: int, old: str, new: str) -> RecordBatch:
    rows = Rows(redirects=[(old, new)])
    rows.mark(line)
    (batch,) = rows.batches()
    return batch


class SeenNumbers:
    """A set of the numbers of entities, a byte each: what a hundred million of them take is 100 MB."""

    def __init__(self) -> None:
        self.chunks: dict[int, np.ndarray[Any, np.dtype[np.bool_]]] = {}

    def add(self, numbers: "np.ndarray[Any, np.dtype[np.int64]]") -> "np.ndarray[Any, np.dtype[np.bool_]]":
        """Add numbers; tell which of them were there, or came before in the same array."""
        repeated = np.ones(len(numbers), dtype=bool)
        repeated[np.unique(numbers, return_index=True)[1]] = False
        chunks = numbers >> CHUNK
        for chunk in np.unique(chunks).tolist():
            there = self.chunks.setdefault(chunk, np.zeros(1 << CHUNK, dtype=bool))
            inside = chunks == chunk
            places = numbers[inside] & ((1 << CHUNK) - 1)
            repeated[inside] |= there[places]
            there[places] = True
        return repeated
