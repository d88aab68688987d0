"""The manifest: what a build counted, and which normaliser it was built with."""

import pytest

from kbtools.errors import KBUnusable
from kbtools.kb.manifest import COUNTED, STATISTICS, Count, Manifest, SourceFile
from kbtools.text.normaliser import NORMALISER_VERSION


def test_a_manifest_is_rebuilt_from_its_record() -> None:
    source = SourceFile("facts.txt", "facts", 9, "abc", 2, (("blank line", 1, "line 2"),), ("a header",))
    counts, statistics = dict.fromkeys(COUNTED, Count(5, 3)), dict.fromkeys([*STATISTICS, "values"], 4)
    manifest = Manifest("digest", counts, (source,), (1, 2), statistics)

    assert Manifest.from_record(manifest.to_record()) == manifest
    assert (manifest.counts["facts"].duplicate, manifest.normaliser) == (2, NORMALISER_VERSION)


def test_a_manifest_of_another_normaliser_is_refused() -> None:
    record = Manifest("digest", {}, (), (1,), {}).to_record() | {"normaliser": NORMALISER_VERSION - 1}

    with pytest.raises(KBUnusable, match=f"built with normaliser version {NORMALISER_VERSION - 1}"):
        Manifest.from_record(record)


@pytest.mark.parametrize(("part", "name"), [("counts", "entities"), ("statistics", "values"), ("statistics", "pairs")])
def test_a_manifest_that_lacks_a_number_is_damaged(part: str, name: str) -> None:
    counts, statistics = dict.fromkeys(COUNTED, Count(5, 3)), dict.fromkeys([*STATISTICS, "values"], 4)
    record = Manifest("digest", counts, (), (1,), statistics).to_record()
    del record[part][name]

    with pytest.raises(ValueError, match="a part is missing"):
        Manifest.from_record(record)
