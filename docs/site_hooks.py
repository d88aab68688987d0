"""Pages of the site that live elsewhere in the repository, and links to them."""

from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

PAGES = {
    "figures.md": "benchmarks/README.md",
    "security.md": "SECURITY.md",
    "changelog.md": "CHANGELOG.md",
}
"""Pages, and the files that they are made from."""


def on_files(files: Any, config: Any) -> Any:
    """Add the pages."""
    root = Path(config.config_file_path).parent
    for page, source in PAGES.items():
        files.append(File.generated(config, page, content=relink((root / source).read_text(encoding="utf-8"))))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Point links that leave the folder of the documents to the pages."""
    return relink(markdown)


def relink(markdown: str) -> str:
    for page, source in PAGES.items():
        markdown = markdown.replace(f"](../{source}", f"]({page}").replace(f"](./{source}", f"]({page}")
    return markdown.replace("](../docs/", "](").replace("](docs/", "](")
