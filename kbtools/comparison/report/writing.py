"""Write the pictures and the page of a run into its folder."""

from pathlib import Path

from kbtools.comparison.report.files import write_text
from kbtools.comparison.report.page import html_page
from kbtools.comparison.report.pictures import draw_pictures, picture_bytes
from kbtools.comparison.report.sections import make_sections
from kbtools.comparison.report.summary import Report
from kbtools.errors import OutputUnusable

PICTURES, PAGE = "pictures", "report.html"


def write_page(report: Report) -> Path:
    """Write the page without pictures, for where nothing can draw them."""
    return write_text(report.run.folder / PAGE, html_page(report, make_sections(report), {}))


def write_page_with_pictures(report: Report) -> Path:
    """Write each picture as PNG and SVG, and the page; raise MissingDependency without matplotlib."""
    drawn = {name: {kind: picture_bytes(figure, kind) for kind in ("png", "svg")}
             for name, figure in draw_pictures(report).items()}  # fmt: skip
    folder = report.run.folder / PICTURES
    try:
        folder.mkdir(exist_ok=True)
        for name, kinds in drawn.items():
            for kind, content in kinds.items():
                (folder / f"{name}.{kind}").write_bytes(content)
    except OSError as error:
        raise OutputUnusable(f"{folder}: cannot be written ({error.strerror})", path=str(folder)) from error
    page = html_page(report, make_sections(report), {name: kinds["svg"] for name, kinds in drawn.items()})
    return write_text(report.run.folder / PAGE, page)
