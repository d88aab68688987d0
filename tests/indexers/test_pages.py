"""Whether pages that were given back come again with the same content."""

import sys
from pathlib import Path

import pytest

from kbtools.indexers.arrays import StringTable
from kbtools.indexers.embedded import EmbeddedKB
from kbtools.indexers.pages import release_pages


def resident() -> int:
    with open("/proc/self/status", encoding="utf-8") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("RssFile"))


def test_a_knowledge_base_reads_the_same_after_its_pages_are_given_back(sample_path: Path) -> None:
    kb = EmbeddedKB(sample_path)
    before = (list(kb.entity_ids), list(kb.alias_texts), kb.lookup(["harry potter"]).keys(), list(kb.forms.entries()))

    release_pages(sample_path)

    assert (
        list(kb.entity_ids),
        list(kb.alias_texts),
        kb.lookup(["harry potter"]).keys(),
        list(kb.forms.entries()),
    ) == before


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells what is mapped")
def test_pages_that_were_read_are_given_back(tmp_path: Path) -> None:
    (tmp_path / "big.starts").write_bytes(b"\0" * 8 * 4_000_000)
    (tmp_path / "big.utf8").write_bytes(b"")
    table = StringTable(tmp_path / "big")
    assert sum(table.starts) == 0
    before = resident()

    release_pages(tmp_path)

    assert before - resident() > 20_000  # kilobytes of the 32 MB
