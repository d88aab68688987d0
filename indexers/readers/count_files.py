"""The files of `kbtools index --counts`: how often names mean entities.

A line is name TAB id TAB count, or id TAB count for an entity whatever it is called.
"""

import re
from collections.abc import Iterator

from kbtools.indexers.folder.name_counts import count_key
from kbtools.indexers.readers.batches import RecordBatch, Rows
from kbtools.indexers.readers.lines import read_lines
from kbtools.indexers.readers.reading import Meter, Reading
from kbtools.indexers.readers.skips import Skips
from kbtools.indexers.readers.sources import read_blocks
from kbtools.kb.ids import canonical_id
from kbtools.text.normaliser import normal_form

COUNT = re.compile("[0-9]{1,15}")
"""A count: longer numbers are not exact where they become shares."""


class CountsReading(Reading):
    """One pass over a file of counts."""

    def batches(self) -> Iterator[RecordBatch]:
        """Yield the counts of a file; raise TooManyBadLines at its end where too many lines are none."""
        meter = Meter()
        for block in read_blocks(self.source.path, digest=meter):
            yield from read_lines(block, read_count, self.skips).batches()
            self.progress(meter.size)
        self.skips.check()
        self.digest = meter.hexdigest()


def read_count(number: int, line: str, rows: Rows, skips: Skips) -> None:
    """Read a line into entity, key of the name, and count; count it among what is left out where it is none."""
    *name, entity, count = line.split("\t") if "\t" in line else ("", "", line)
    count = count.strip()
    if len(name) > 1 or not entity.strip() or not COUNT.fullmatch(count):
        heads = number == 1 and not any(map(str.isdigit, count))
        kind = "line of heads" if heads else "no name, id and count, nor id and count, with tabs between"
        skips.add(kind, line=number, text=line, bad=not heads)
    elif name and not normal_form(name[0]):
        skips.add("blank name", line=number, text=line)
    else:
        rows.counts.append((canonical_id(entity.strip()), count_key(normal_form(name[0])) if name else 0, int(count)))
