"""Find the working set of SimpleQuestions over Freebase that the benchmarks and some tests read."""

import os
from itertools import islice
from pathlib import Path

from kbtools.indexers.readers.reading import Source

LAYERS = ("freebase-FBSQ", "FBSQ"), ("freebase-FBSQ.ambiguity", "FBSQ.ambiguity")


def data_folder() -> Path:
    """Give the folder of the data: KBTOOLS_DATA, else ../shared/data from the project's root."""
    default = Path(__file__).resolve().parents[2] / "shared" / "data"
    return Path(os.environ.get("KBTOOLS_DATA", default)) / "simplequestions"


def sources() -> list[Source]:
    """List both layers of the knowledge base."""
    folder = data_folder()
    found = []
    for facts, others in LAYERS:
        found.append(Source(folder / f"{facts}.txt.gz", "facts"))
        found.append(Source(folder / f"{others}.name.txt.gz", "names"))
        found.append(Source(folder / f"{others}.type.txt.gz", "types"))
    return found


def questions(split: str) -> Path:
    """Give the annotated questions of a split."""
    return data_folder() / f"annotated_fb_data_{split}.txt"


def first_lines(path: Path, count: int | None, folder: Path) -> Path:
    """Copy the first lines of a file to a folder; give the file itself where none are left out."""
    if count is None:
        return path
    copy = folder / path.name
    with path.open(encoding="utf-8") as lines:
        copy.write_text("".join(islice(lines, count)), encoding="utf-8")
    return copy
