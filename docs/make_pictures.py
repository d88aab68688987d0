"""Take the pictures of the documents from the running product: python docs/make_pictures.py (needs Chromium).

The sample knowledge base is built, served and compared on, and a headless browser takes pictures of the page, of the
report of the comparison, and of what a terminal shows.
"""

import subprocess
import sys
import tempfile
from html import escape
from pathlib import Path
from urllib.parse import quote

DOCS = Path(__file__).resolve().parent
EXAMPLES = DOCS.parent / "examples"
QUESTION = "who created the character harry potter"
PAGES = {
    "home.png": ("", "1100,640"),
    "page.png": ("#ask?q=" + quote(QUESTION), "1100,640"),
    "entity.png": ("#entity?id=m.0f8l9c", "1100,640"),
}
"""Pictures of the page: the address of each, and the size in pixels."""

TERMINAL = """<!doctype html><meta charset="utf-8"><style>
body { background: #1b1f24; color: #e6e9ec; font: 14px/1.45 monospace; margin: 1.25rem; white-space: pre-wrap; }
</style>"""

SETTLED = 8_000
"""Milliseconds of the page's own clock, after which it has been drawn."""


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run("index", *sorted(EXAMPLES.glob("sample.[fnt]*s.txt")), "--out", "sample.kb", "--quiet", folder=folder)
        (DOCS / "pictures").mkdir(exist_ok=True)
        take_pages(folder)
        asked = ["query", "sample.kb", "--top", "2", "--explain", QUESTION]
        shown = f"<b>$ kbtools {escape(' '.join(asked))}</b>\n{escape(run(*asked, folder=folder))}"
        (folder / "terminal.html").write_text(TERMINAL + shown, "utf-8")
        take("terminal.png", (folder / "terminal.html").as_uri(), size="1000,480")
        files = ("--questions", EXAMPLES / "sample.test.txt", "--valid", EXAMPLES / "sample.valid.txt")
        run("compare", "sample.kb", *files, "--out", "run", "--quiet", folder=folder)
        run("report", "run", folder=folder)
        take("report.png", (folder / "run" / "report.html").as_uri(), size="1100,900")


def take_pages(folder: Path) -> None:
    """Serve the sample knowledge base and take the pictures of its page."""
    serve = [*command(), "serve", "sample.kb", "--port", "0"]
    server = subprocess.Popen(serve, stderr=subprocess.PIPE, text=True, cwd=folder)
    try:
        assert server.stderr is not None
        url = next(line.split()[-1] for line in server.stderr if line.startswith("serving at"))
        for name, (address, size) in PAGES.items():
            take(name, url + address, size=size)
    finally:
        server.terminate()
        server.wait()


def command() -> list[str]:
    return [sys.executable, "-c", "from kbtools.cli.start import main; main()"]


def run(*arguments: str | Path, folder: Path) -> str:
    """Run a command of kbtools in a folder; return what it prints."""
    words = [*command(), *map(str, arguments)]
    return subprocess.run(words, check=True, cwd=folder, capture_output=True, text=True).stdout


def take(name: str, url: str, *, size: str) -> None:
    """Take a picture of an address."""
    browser = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    shot = [f"--window-size={size}", f"--virtual-time-budget={SETTLED}", f"--screenshot={DOCS / 'pictures' / name}"]
    subprocess.run([*browser, *shot, url], check=True, capture_output=True)


if __name__ == "__main__":
    main()
