"""The files of `kbtools index --counts`: how often names mean entities.

A line is name TAB id TAB count, or id TAB count for an entity whatever it is called.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from kbtools.indexers.folder.name_counts import count_key
from kbtools.indexers.readers.batches import SCHEMAS, RecordBatch, flaw
from kbtools.indexers.readers.lines import lines_of
from kbtools.indexers.readers.reading import Meter, ReadOptions, Source
from kbtools.indexers.readers.skips import Skips
from kbtools.indexers.readers.sources import read_blocks
from kbtools.kb.ids import canonical_id
from kbtools.text.normaliser import normal_form

COUNT = re.compile("[0-9]{1,15}")
"""A count: longer numbers are not exact where they become shares."""


@dataclass(slots=True)
class CountsReading:
    """One pass over a file of counts, with the account that a `Reading` keeps."""

    source: Source
    options: ReadOptions
    progress: Callable[[int], None] = lambda size: None
    digest: str = ""
    skips: Skips = field(init=False)

    def __post_init__(self) -> None:
        self.skips = Skips(self.source.name, self.options.max_bad)

    def batches(self) -> Iterator[RecordBatch]:
        """Yield the counts of a file; raise TooManyBadLines at its end where too many lines are none."""
        meter = Meter()
        for block in read_blocks(self.source.path, digest=meter):
            rows = [row for number, line in lines_of(block) if (row := self.read_line(number, line))]
            if rows:
                schema = SCHEMAS["counts"]
                columns = [
                    pa.array(column, kind) for column, kind in zip(zip(*rows, strict=True), schema.types, strict=True)
                ]
                yield RecordBatch("counts", pa.Table.from_arrays(columns, schema=schema), block.first_line)
            self.progress(meter.size)
        self.skips.check()
        self.digest = meter.hexdigest()

    def read_line(self, number: int, raw: bytes) -> tuple[str, int, int] | None:
        """Read a line into entity, key of the name, and count; count it among what is left out where it is none."""
        self.skips.lines += 1
        if not raw.strip():
            self.skips.add("blank line", line=number, text="", bad=False)
            return None
        try:
            line = raw.decode()
        except UnicodeDecodeError:
            self.skips.add("invalid UTF-8", line=number, text=raw.decode(errors="backslashreplace"))
            return None
        *name, entity, count = line.split("\t") if "\t" in line else ("", "", line)
        count = count.strip()
        if problem := flaw(line):
            self.skips.add(problem, line=number, text=line)
        elif len(name) > 1 or not entity.strip() or not COUNT.fullmatch(count):
            heads = number == 1 and not any(map(str.isdigit, count))
            kind = "line of heads" if heads else "no name, id and count, nor id and count, with tabs between"
            self.skips.add(kind, line=number, text=line, bad=not heads)
        elif name and not normal_form(name[0]):
            self.skips.add("blank name", line=number, text=line)
        else:
            return canonical_id(entity.strip()), count_key(normal_form(name[0])) if name else 0, int(count)
        return None
