"""Take the pictures of the documents from the running product: python docs/make_pictures.py (needs Chromium).

The sample knowledge base is built and served, and a headless browser takes a picture of the page.
"""

import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import quote

DOCS = Path(__file__).resolve().parent
PICTURES = {"page.png": "#ask?q=" + quote("who created the character harry potter")}
"""Pictures, and the address of each on the page."""

SIZE = "1100,640"
SETTLED = 8_000
"""Milliseconds of the page's own clock, after which it has been drawn."""


def main() -> None:
    kbtools = [sys.executable, "-c", "from kbtools.cli.start import main; main()"]
    samples = sorted((DOCS.parent / "examples").glob("sample.[fnt]*s.txt"))
    with tempfile.TemporaryDirectory() as folder:
        kb = Path(folder) / "sample.kb"
        subprocess.run([*kbtools, "index", *samples, "--out", kb, "--quiet"], check=True, cwd=folder)
        server = subprocess.Popen([*kbtools, "serve", kb, "--port", "0"], stderr=subprocess.PIPE, text=True, cwd=folder)
        try:
            assert server.stderr is not None
            url = next(line.split()[-1] for line in server.stderr if line.startswith("serving at"))
            (DOCS / "pictures").mkdir(exist_ok=True)
            for name, address in PICTURES.items():
                browser = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
                shot = [
                    f"--window-size={SIZE}",
                    f"--virtual-time-budget={SETTLED}",
                    f"--screenshot={DOCS / 'pictures' / name}",
                ]
                subprocess.run([*browser, *shot, url + address], check=True, capture_output=True, cwd=folder)
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()
