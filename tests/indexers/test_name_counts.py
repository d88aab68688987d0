"""Counts of names: their files, what is left out of them, and the same priors as in the reference."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from kbtools.answering.answerer import Answerer, open_kb
from kbtools.cli.main import main
from kbtools.errors import NothingBuilt, TooManyBadLines
from kbtools.indexers.building.build import BuildProgress, Built, build
from kbtools.indexers.folder.memory import MemoryKB
from kbtools.indexers.readers.reading import ReadOptions, Source
from kbtools.indexers.readers.table_files import open_reading
from tests.conftest import World, sample_sources

COUNTS = "Paris\tm.0kba173\t70\nparis\t/m/05qtj\t20\nPARIS\tm.05qtj\t10\nm.0kba107\t5\nParis\tm.0none\t900\n"

Index = Callable[..., Answerer]


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str], Source]:
    def counts(text: str) -> Source:
        path = tmp_path / "counts.tsv"
        path.write_text(text, encoding="utf-8")
        return Source(path, "counts")

    return counts


@pytest.fixture
def make(write: Callable[[str], Source], tmp_path: Path) -> Callable[..., Built]:
    def run(text: str | None, **options: Any) -> Built:
        sources = sample_sources() + ([write(text)] if text is not None else [])
        return build(sources, tmp_path / "x.kb", options=ReadOptions(**options), watch=BuildProgress())

    return run


def test_counts_decide_what_a_name_means(make: Callable[..., Built], tmp_path: Path) -> None:
    make(COUNTS)
    answerer = open_kb(tmp_path / "x.kb")

    first, second, *_ = answerer.lookup("Paris").matches

    assert (first.id, second.id) == ("m.0kba173", "m.05qtj")
    assert first.reasons[-1].endswith("from 70 of 100 counts of the name")
    assert answerer.lookup("It").matches[0].id == "m.0kba107"


def test_the_embedded_knowledge_base_has_the_counts_of_the_reference(
    make: Callable[..., Built], tmp_path: Path, sample_world: World
) -> None:
    make(COUNTS)
    kb = open_kb(tmp_path / "x.kb").kb
    counts = [("Paris", "m.0kba173", 70), ("Paris", "m.05qtj", 30), ("", "m.0kba107", 5), ("Paris", "m.0none", 900)]
    world = sample_world
    reference = MemoryKB(world.facts, world.names, world.types, aliases=world.aliases, counts=counts)
    rows = np.arange(kb.manifest.counts["entities"].unique, dtype=np.uint32)
    assert kb.ids(rows) == reference.ids(rows)
    for form in ("paris", "", "it", "no such name"):
        own, other = kb.name_counts(form, rows), reference.name_counts(form, rows)
        assert (own is None) == (other is None)
        assert own is None or own.tolist() == (other.tolist() if other is not None else None)


def test_a_knowledge_base_without_counts_keeps_its_digest_and_one_with_counts_has_another(
    make: Callable[..., Built],
) -> None:
    before, counted, after = make(None), make(COUNTS), make(None)

    assert before.manifest.digest == after.manifest.digest != counted.manifest.digest
    assert make(None).fresh is False


def test_counts_of_merged_ids_are_of_what_they_were_merged_into(
    make: Callable[..., Built], write: Callable[[str], Source], tmp_path: Path
) -> None:
    redirects = tmp_path / "redirects.tsv"
    redirects.write_text("old\tnew\nm.0old\tm.05qtj\n", encoding="utf-8")
    sources = [*sample_sources(), Source(redirects, "redirects"), write("Paris\tm.0old\t7\n")]

    build(sources, tmp_path / "x.kb", options=ReadOptions(), watch=BuildProgress())

    assert open_kb(tmp_path / "x.kb").lookup("Paris").matches[0].reasons[-1].endswith("7 of 7 counts of the name")


@pytest.mark.parametrize(
    "line",
    ["Paris\tm.05qtj\tmany", "Paris\tm.05qtj\t-1", "Paris\tm.05qtj\t1.5", "m.05qtj", "a\tb\tc\t4", "Paris\t\t4",
     "\tm.1\t4", f"Paris\tm.05qtj\t{'9' * 5_000}", "Paris\tm.0\0\t4", "Paris\tm.05qtj\t٣"],
)  # fmt: skip
def test_a_line_that_is_no_count_is_counted_and_named(write: Callable[[str], Source], line: str) -> None:
    source = write(COUNTS.replace("PARIS", f"{line}\nPARIS"))
    reading = open_reading(source, ReadOptions(max_bad=0.5))

    with pytest.raises(TooManyBadLines, match=r"1 of 6 lines cannot be read.*counts.tsv:3"):
        list(open_reading(source, ReadOptions()).batches())
    assert sum(batch.table.num_rows for batch in reading.batches()) == 5
    assert [skip.count for skip in reading.skips.kinds.values()] == [1]


def test_a_line_of_heads_and_blank_lines_are_left_out(make: Callable[..., Built]) -> None:
    skipped = make(f"name\tid\tcount\n\n{COUNTS}").manifest.sources[-1].skipped

    assert [(kind, count) for kind, count, _ in skipped] == [("line of heads", 1), ("blank line", 1)]


def test_a_first_line_with_digits_for_its_count_is_bad_and_no_line_of_heads(make: Callable[..., Built]) -> None:
    skipped = make(f"Paris\tm.05qtj\t1.5\n{COUNTS}", max_bad=0.5).manifest.sources[-1].skipped

    assert [kind for kind, _, _ in skipped] == ["neither name, id and count nor id and count, separated by tabs"]


def test_counts_of_no_entity_there_are_refused(make: Callable[..., Built]) -> None:
    with pytest.raises(NothingBuilt, match="none of 1 counts belongs to an entity"):
        make("Paris\tm.0none\t9\n")


def test_the_command_takes_counts(write: Callable[[str], Source], tmp_path: Path) -> None:
    files = [argument for source in sample_sources() for argument in (f"--{source.kind}", str(source.path))]
    counts = str(write(COUNTS).path)

    done = CliRunner().invoke(main, ["index", *files, "--counts", counts, "--out", str(tmp_path / "x.kb")])

    assert done.exit_code == 0
    assert open_kb(tmp_path / "x.kb").lookup("It").matches[0].id == "m.0kba107"
