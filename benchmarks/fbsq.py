"""Find the part of SimpleQuestions over Freebase that benchmarks and some tests read.

With `--small`, a script uses the sample knowledge base instead and runs for seconds, as a smoke test.
"""

import gzip
import lzma
import os
import sys
from argparse import ArgumentParser, Namespace
from itertools import islice
from pathlib import Path

from kbtools.indexers.building.build import BuildProgress, build
from kbtools.indexers.readers.batches import SourceKind
from kbtools.indexers.readers.reading import ReadOptions, Source

SAMPLE = Path(__file__).resolve().parents[1] / "examples"
SMALL = Path("build", "small")
"""The folder of what a small run writes."""

KINDS: tuple[SourceKind, ...] = ("facts", "names", "types")

LAYERS = ("freebase-FBSQ", "FBSQ"), ("freebase-FBSQ.ambiguity", "FBSQ.ambiguity")


def data_folder() -> Path:
    """Return the folder of the data: KBTOOLS_DATA, else ../shared/data from the project's root."""
    default = Path(__file__).resolve().parents[2] / "shared" / "data"
    return Path(os.environ.get("KBTOOLS_DATA", default)) / "simplequestions"


def names_file(name: str) -> Path:
    """Return a file of names and their spellings beside the data."""
    return SMALL / name if is_small() else data_folder().parent / "names" / name


def sources() -> list[Source]:
    """List both layers of the knowledge base."""
    if is_small():
        return [Source(SMALL / f"sample.{kind}.txt.gz", kind) for kind in KINDS]
    folder = data_folder()
    found = []
    for facts, others in LAYERS:
        found.append(Source(folder / f"{facts}.txt.gz", "facts"))
        found.append(Source(folder / f"{others}.name.txt.gz", "names"))
        found.append(Source(folder / f"{others}.type.txt.gz", "types"))
    return found


def questions(split: str) -> Path:
    """Return the annotated questions of a split."""
    if is_small():
        return SMALL / "valid.txt" if split == "valid" else SAMPLE / f"sample.{split}.txt"
    return data_folder() / f"annotated_fb_data_{split}.txt"


def first_lines(path: Path, count: int | None, folder: Path) -> Path:
    """Copy the first lines of a file to a folder; without a count, return the file itself."""
    if count is None:
        return path
    copy = folder / path.name
    with path.open(encoding="utf-8") as lines:
        copy.write_text("".join(islice(lines, count)), encoding="utf-8")
    return copy


def is_small() -> bool:
    return "--small" in sys.argv


def parse(parser: ArgumentParser, **small: object) -> Namespace:
    """Read the options; with --small the knowledge base and the models are those of the sample.

    `small` are the other options of a small run.
    """
    parser.add_argument("--small", action="store_true", help="take the sample knowledge base, to see that this runs")
    arguments = parser.parse_args()
    if arguments.small:
        write_sample()
        own = {"kb": SMALL / "sample.kb"}
        if "models" in arguments:
            own["models"] = train_sample()
        vars(arguments).update({name: path for name, path in own.items() if name in arguments} | small)
    return arguments


def write_sample() -> None:
    """Pack and index the sample, and write its names as titles and, with the last two letters swapped, as variants."""
    SMALL.mkdir(parents=True, exist_ok=True)
    for source in sources():
        source.path.write_bytes(gzip.compress((SAMPLE / source.path.stem).read_bytes(), mtime=0))
    # A ranker learns from a hundred questions or more, which the validation questions alone are not.
    splits = [SAMPLE / f"sample.{split}.txt" for split in ("train", "valid")]
    (SMALL / "valid.txt").write_text("".join(path.read_text(encoding="utf-8") for path in splits), encoding="utf-8")
    build(sources(), SMALL / "sample.kb", options=ReadOptions(), watch=BuildProgress())
    lines = (SAMPLE / "sample.names.txt").read_text(encoding="utf-8").splitlines()
    names = [line.split('"')[1] for line in lines if '"' in line]
    with lzma.open(SMALL / "titles.txt.xz", "wt", encoding="utf-8") as file:
        file.writelines(f"{name}\n" for name in names)
    with gzip.open(SMALL / "variants.tsv.gz", "wt", encoding="utf-8") as file:
        file.writelines(f"1\t{name[:-2]}{name[:-3:-1]}\t{name}\n" for name in names if len(name) > 5)


def train_sample() -> Path:
    """Train small models of the profile `best` over the sample for an epoch, if that is not done yet."""
    from kbtools.cli.main import main

    models = SMALL / "models"
    if not models.exists():
        files = ["--train", str(questions("train")), "--valid", str(questions("valid"))]
        small = "--set epochs=1 --set words=random --set dim=16 --set words_dim=16 --set hidden=16".split()
        command = ["train", str(SMALL / "sample.kb"), *files, "--profile", "best", *small]
        main([*command, "--out", str(models)], standalone_mode=False)
    return models
