"""Whether the pictures are drawn and the page stands alone."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from kbtools.answering import Answerer
from kbtools.comparison.experiment import Request, compare
from kbtools.comparison.grid import Grid
from kbtools.comparison.report.report_files import write_page, write_page_with_pictures
from kbtools.comparison.report.summary import Report, make_report

VOID = {"meta", "img", "br"}


class Tags(HTMLParser):
    """Collect what a page loads, and the tags that are not closed."""

    def __init__(self) -> None:
        super().__init__()
        self.sources: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.sources += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def report(sample_memory: Answerer, examples: Path, tmp_path_factory: pytest.TempPathFactory) -> Report:
    out = tmp_path_factory.mktemp("reports") / "a run"
    grid = Grid(("n-gram+",))
    request = Request(examples / "sample.test.txt", out, grid, Path("<sample>.kb"), valid=examples / "sample.valid.txt")
    return make_report(compare(sample_memory, request))


@pytest.fixture(scope="module")
def page(report: Report) -> Path:
    pytest.importorskip("matplotlib", reason="pictures need matplotlib: pip install 'kbtools[report]'")
    return write_page_with_pictures(report)


def test_every_picture_is_written_as_png_and_svg(page: Path) -> None:
    written = sorted(path.name for path in (page.parent / "pictures").iterdir())

    names = ["accuracy", "calibration", "frequency", "recall", "risk"]
    assert written == [f"{name}.{kind}" for name in names for kind in ("png", "svg")]


def test_the_page_needs_nothing_beside_it(page: Path) -> None:
    tags = Tags()
    tags.feed(page.read_text(encoding="utf-8"))

    assert tags.open == []
    assert len(tags.sources) == 5
    assert all(source.startswith("data:image/svg+xml;base64,") for source in tags.sources)


def test_what_is_written_again_is_the_same(page: Path, report: Report) -> None:
    before = page.read_bytes()

    assert write_page_with_pictures(report).read_bytes() == before


def test_without_pictures_the_page_has_the_tables(report: Report) -> None:
    text = write_page(report).read_text(encoding="utf-8")

    assert "<img" not in text
    assert re.findall("<h2>(.*?)</h2>", text)[:3] == ["Figures", "Significance", "Lost questions by cause"]


def test_paths_are_escaped(report: Report) -> None:
    assert "&lt;sample&gt;.kb" in write_page(report).read_text(encoding="utf-8")


def test_a_run_where_nothing_is_found_is_drawn(sample_memory: Answerer, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="pictures need matplotlib: pip install 'kbtools[report]'")
    (tmp_path / "questions.txt").write_text("m.078ffw\tbook.written_work.author\tm.042xh\tqqq", encoding="utf-8")
    request = Request(tmp_path / "questions.txt", tmp_path / "run", Grid(("n-gram",)), Path("sample.kb"))

    page = write_page_with_pictures(make_report(compare(sample_memory, request)))

    assert page.stat().st_size > 0
