"""The manifest: what a build counted, and which normaliser it was built with."""

import pytest

from kbtools.errors import KBUnusable
from kbtools.kb.language_tags import UND, listed
from kbtools.kb.manifest import (
    COUNTED,
    LATEST,
    MERGE,
    STATISTICS,
    UPDATE,
    Change,
    Count,
    Manifest,
    SourceFile,
    change_line,
    changes_text,
    counts_report,
    history_report,
    languages_report,
    size_text,
    skipped_report,
    statistics_report,
)
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

    with pytest.raises(ValueError, match="a field is missing"):
        Manifest.from_record(record)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"), (999, "999 B"), (1_000, "1.0 KB"), (48_700, "48.7 KB"), (1_000_000, "1.0 MB"),
        (999_900_000, "999.9 MB"), (1_000_000_000, "1.00 GB"), (12_345_000_000_000, "12345.00 GB"),
    ],
)  # fmt: skip
def test_sizes_are_in_steps_of_a_thousand(size: int, text: str) -> None:
    assert size_text(size) == text


def test_one_change_is_in_the_singular() -> None:
    counts = {"entities added": 1, "facts removed": 2_000, "names added": 1, "types added": 0}

    assert changes_text(counts) == "1 entity added, 2,000 facts removed, 1 name added, 0 types added"


@pytest.mark.parametrize(
    ("languages", "report"),
    [
        ({}, ""),
        ({UND: 3}, ""),
        ({"en": 1_200}, "names in 1 language: 1,200 en\n"),
        ({"en": 2, UND: 5, "de": 1}, "names in 2 languages: 2 en, 1 de, 5 without a language\n"),
    ],
)
def test_languages_are_reported_with_their_names(languages: dict[str, int], report: str) -> None:
    assert languages_report(Manifest("digest", {}, (), (1,), {}, languages=languages)) == report


@pytest.mark.parametrize(("number", "end"), [(20, "t18, t19"), (21, "t18, t19 and 1 more")])
def test_a_long_list_of_languages_says_how_many_more(number: int, end: str) -> None:
    assert listed([f"t{place}" for place in range(number)]).endswith(end)


def test_values_are_reported_apart_from_entities() -> None:
    counts = {"facts": Count(9, 7), "entities": Count(6, 6)}
    report = counts_report(Manifest("digest", counts, (), (1,), {"values": 2})).split("\n")

    assert [line.split() for line in report] == [
        ["raw", "duplicate", "unique"], ["facts", "9", "2", "7"], ["entities", "4", "0", "4"],
        ["values", "2", "0", "2"],
    ]  # fmt: skip


def change(action: str, number: int) -> Change:
    return Change(action, f"day {number}", f"d{number}", f"d{number + 1}", counts={"facts added": number})


@pytest.mark.parametrize(
    ("actions", "pending", "lineage"),
    [
        ([], [], ["own"]),
        ([UPDATE, UPDATE], [0, 1], ["d0", "d1", "own"]),
        ([UPDATE, MERGE], [], ["own"]),
        ([MERGE, UPDATE, MERGE, UPDATE, UPDATE], [3, 4], ["d3", "d4", "own"]),
    ],
)
def test_updates_since_the_last_merge_are_pending(actions: list[str], pending: list[int], lineage: list[str]) -> None:
    history = tuple(change(action, number) for number, action in enumerate(actions))
    manifest = Manifest("own", {}, (), (1,), {}, history=history)

    assert [*manifest.pending] == [history[number] for number in pending]
    assert [*manifest.lineage] == lineage


def test_only_earlier_updates_are_summed_up() -> None:
    actions = [UPDATE, UPDATE, UPDATE, MERGE, UPDATE, *[UPDATE] * LATEST]
    history = tuple(change(action, number) for number, action in enumerate(actions, 1))
    lines = history_report(Manifest("own", {}, (), (1,), {}, history=history)).split("\n")

    assert lines[:4] == [
        "3 updates from day 1 to day 3: 6 facts added",
        "merge day 4: 4 facts added",
        "update day 5: 5 facts added",
        "update day 6: 6 facts added",
    ]
    assert len(lines) == 3 + LATEST + 1


def test_other_counts_are_reported_with_their_meaning() -> None:
    statistics = {name: 1_000 + number for number, name in enumerate(STATISTICS)}

    lines = statistics_report(Manifest("own", {}, (), (1,), statistics)).split("\n")

    assert [line.split("  ")[-1] for line in lines] == list(STATISTICS.values())
    assert [line.split()[0] for line in lines] == [f"1,{number:03}" for number in range(len(STATISTICS))]


def test_skipped_lines_and_notes_of_every_source_are_reported() -> None:
    sources = (
        SourceFile("a", "facts", 1, "x", 2_000, (("blank line", 1_500, "a:7"),), ("a:1: a header",)),
        SourceFile("b", "names", 1, "x", 3, (("bad id", 1, "b:2"), ("no text under x, left out", 7, "b:1"))),
        SourceFile("c", "names", 1, "x", 2, (("name in a language other than 'de'", 4, "c:1"),)),
    )

    assert skipped_report(Manifest("own", {}, sources, (1,), {})).splitlines() == [
        "skipped 1,500 of 2,000 lines: blank line; first: a:7",
        "skipped 1 of 3 lines: bad id; first: b:2",
        "left out 7 of the cells: no text under x; first: b:1",
        "left out 4 of the names: name in a language other than 'de'; first: c:1",
        "noticed at a:1: a header",
    ]
    assert skipped_report(Manifest("own", {}, (), (1,), {})) == ""


def test_a_change_without_counts_is_told_by_its_sources_and_size() -> None:
    assert change_line(Change(UPDATE, "today", "a", "b", ("x", "y"), bytes=1_500)) == "update today from x, y: 1.5 KB"


def test_a_manifest_with_files_of_a_segment_is_updated_and_has_its_own_spellings() -> None:
    files, options = {"segment/facts": 1}, {"variants": {"mt": [["mt", "mount"]]}}
    updated = Manifest("own", {}, (), (1,), {}, files=files, options=options)

    assert updated.is_updated
    assert updated.variants == options["variants"]
    assert not Manifest("own", {}, (), (1,), {}, files={"segments": 1}).is_updated
    assert not Manifest("own", {}, (), (1,), {}).variants
