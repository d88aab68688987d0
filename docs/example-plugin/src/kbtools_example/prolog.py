"""A reader of Prolog facts: `directed_by(jaws, spielberg).` is a fact, `name(jaws, 'Jaws').` a name."""

import re
from collections.abc import Iterable, Iterator
from typing import ClassVar

from kbtools.indexers.readers.batches import Block, RecordBatch, Rows, Skips, read_lines
from kbtools.indexers.readers.reading import ReadOptions, Source

FACT = re.compile(r"(\w+)\((\w+), *(?:(\w+)|'([^']+)')\)\.")


class PrologReader:
    """A reader of one fact per line: two entities, or an entity and its name in quotes."""

    suffixes: ClassVar[tuple[str, ...]] = (".pl",)

    def __init__(self, source: Source, options: ReadOptions, skips: Skips) -> None:
        self.skips = skips

    def read(self, blocks: Iterable[Block]) -> Iterator[RecordBatch]:
        for block in blocks:
            yield from read_lines(block, self.read_line, self.skips).batches()

    def read_line(self, number: int, line: str, rows: Rows, skips: Skips) -> None:
        fact = FACT.fullmatch(line)
        if fact is None:
            skips.add("no Prolog fact", line=number, text=line)
        elif fact[3]:
            rows.facts.append((fact[2], fact[1], fact[3]))
        else:
            rows.names.append((fact[2], 0, fact[4]))
