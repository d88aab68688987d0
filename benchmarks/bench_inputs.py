"""The input files of the benchmark suite: FBSQ with titles of DBpedia, each with facts, and queries.

Files are in the format of the SimpleQuestions release, with the same bytes for the same number of titles.
"""

import gzip
import lzma
import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from fbsq import names_file, questions, sources
from variants import read_variants

from kbtools.answering.questions import read_annotated
from kbtools.text.normaliser import normal_form

SEED = 5
FACTS_EACH = 5
"""Facts of a title: FB5M has five per entity."""

LETTERS = "0123456789bcdfghjklmnpqrstvwxyz_"
FB = "www.freebase.com/"


@dataclass(frozen=True, slots=True)
class Inputs:
    """The folder of the files; `read_variants` and `read_questions` return the queries."""

    folder: Path

    @property
    def facts(self) -> Path:
        return self.folder / "facts.txt"

    @property
    def names(self) -> Path:
        return self.folder / "names.txt"

    @property
    def types(self) -> Path:
        return self.folder / "types.txt"

    def read_names(self) -> Iterator[tuple[str, str]]:
        """Yield pairs of an entity's id and one of its names."""
        with self.names.open(encoding="utf-8") as lines:
            for line in lines:
                entity, _, literal, _ = line.split("\t")
                yield entity[4:-1], literal[1 : literal.rindex('"@')]

    def read_variants(self, limit: int) -> list[tuple[str, str]]:
        """Draw variants, which people use for titles in the files, each with its title."""
        names = {normal_form(name) for _, name in self.read_names()}
        pairs = read_variants(names_file("variants.tsv.gz"))
        meant = [(variant, title) for variant, title in pairs if title in names and normal_form(variant) not in names]
        return random.Random(SEED).sample(meant, min(limit, len(meant)))

    def read_questions(self, limit: int) -> list[tuple[str, str]]:
        """Return questions of FBSQ's test split, and the id of the subject of each."""
        return [(gold.text, gold.subject) for gold in islice(read_annotated(questions("test")), limit)]


def write_inputs(folder: Path, *, titles: int) -> Inputs:
    """Write facts, names and types of FBSQ and of some titles, unless the folder has them."""
    inputs, done = Inputs(folder), folder / f"done.{titles}"
    if done.exists():
        return inputs
    folder.mkdir(parents=True, exist_ok=True)
    for other in folder.glob("done.*"):
        other.unlink()
    draw = random.Random(SEED)
    with lzma.open(names_file("titles.txt.xz"), "rt", encoding="utf-8") as lines:
        every = [line.rstrip("\n") for line in lines]
    draw.shuffle(every)
    for kind, path in (("facts", inputs.facts), ("names", inputs.names), ("types", inputs.types)):
        with path.open("wb") as file:
            for source in sources():
                if source.kind == kind:
                    with gzip.open(source.path, "rb") as packed:
                        file.writelines(packed)
    with inputs.facts.open(encoding="utf-8") as facts, inputs.types.open(encoding="utf-8") as types:
        relations = sorted({line.split("\t")[1] for line in facts})
        kinds = sorted({line.split("\t")[2] for line in types})
    count = min(titles, len(every))
    with (
        inputs.facts.open("a", encoding="utf-8") as facts,
        inputs.names.open("a", encoding="utf-8") as names,
        inputs.types.open("a", encoding="utf-8") as types,
    ):
        for row, title in enumerate(every[:count]):
            mid = mid_of(row)
            for _ in range(FACTS_EACH):
                target = mid_of(int(draw.random() * count))
                facts.write(f"{FB}m/{mid}\t{draw.choice(relations)}\t{FB}m/{target}\n")
            name = " ".join(word.capitalize() for word in title.split("_")).replace("\\", "").replace('"', '\\"')
            names.write(f'<fb:m.{mid}>\t<fb:type.object.name>\t"{name}"@en\t.\n')
            types.write(f"<fb:m.{mid}>\t<fb:type.object.type>\t{draw.choice(kinds)}\t.\n")
    done.touch()
    return inputs


def mid_of(row: int) -> str:
    """Return an id that no file of FBSQ has, since none there begins with y."""
    letters = ""
    for _ in range(6):
        row, place = divmod(row, len(LETTERS))
        letters = LETTERS[place] + letters
    return f"y{letters}"
