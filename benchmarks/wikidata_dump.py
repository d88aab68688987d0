"""Write an invented Wikidata dump with lines as long and as deep as real ones.

python benchmarks/wikidata_dump.py --entities 100000 [--shape whole] [--times 1] --out build/dump.json.gz

It follows Wikidata's published statistics (Special:Statistics and the Wikidata:Statistics pages, 2024): 14 statements
per item, most with a reference of two or three snaks; labels in 5 languages on average and at most 200; descriptions in
20; an alias for every second item; sitelinks for a third of the items. That is 15 kB of JSON per line. `--shape short`
writes items of a reduced dump with 1.5 kB per line: three statements without references, labels and descriptions in two
languages. With `--times 3` each item is written three times, with different ids.
"""

import argparse
import gzip
import json
import random
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha1
from pathlib import Path
from typing import Any

from fbsq import SMALL, parse
from figures import show_table

LANGUAGES = (
    "en de fr nl es it sv ru pl pt ja zh vi uk ar ca fa he cs fi no hu ko tr da ro id sr bg eo el et sk sl".split()
)
MORE = [f"x{number:03d}" for number in range(170)]
SYLLABLES = (
    "ba be bi bo da de di do ka ke ki ko la le li lo ma me mi mo na ne ni no ra re ri ro sa se si so ta te ti".split()
)
PROPERTIES = 1_200
SHARES = {"wikibase-item": 45, "external-id": 22, "time": 9, "string": 8, "quantity": 8, "monolingualtext": 4,
          "globe-coordinate": 2, "url": 2}  # fmt: skip
"""Statements of each data type, of a hundred."""


@dataclass(frozen=True)
class Shape:
    """The logarithms' means of labels, descriptions and statements, and the shares of qualifiers and references."""

    labels: float
    descriptions: float
    statements: float
    qualified: float
    referenced: float


SHAPES = {"whole": Shape(1.1, 2.4, 2.3, 0.2, 0.75), "short": Shape(-0.3, 0.2, 0.4, 0.0, 0.0)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entities", type=int, default=100_000)
    parser.add_argument("--shape", choices=SHAPES, default="whole")
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("build/dump.json.gz"), help="plain, .gz or .bz2")
    asked = parse(parser, entities=3, out=SMALL / "small-dump.json.gz")
    write_dump(asked.out, asked.entities, SHAPES[asked.shape], times=asked.times)
    show_table("dump", ("file", "MB"), [(asked.out.name, f"{asked.out.stat().st_size / 1e6:,.1f}")])


def write_dump(path: Path, entities: int, shape: Shape, *, times: int = 1) -> None:
    """Write a dump, compressed according to its suffix."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".bz2":
        with path.open("wb") as out, subprocess.Popen(["bzip2", "-c"], stdin=subprocess.PIPE, stdout=out) as packer:
            assert packer.stdin is not None
            packer.stdin.writelines(lines(entities, shape, times=times))
        return
    with gzip.open(path, "wb", compresslevel=6) if path.suffix == ".gz" else path.open("wb") as file:
        file.writelines(lines(entities, shape, times=times))


def lines(entities: int, shape: Shape, *, times: int = 1) -> Iterator[bytes]:
    """Yield the lines of a dump: an array with one entity per line, properties after the items."""
    yield b"[\n"
    draw = random.Random(11)
    types = list(SHARES)
    kinds = draw.choices(types, weights=list(SHARES.values()), k=PROPERTIES)
    numbers = [*range(1, entities + 1)]
    for number in numbers:
        line = json.dumps(item(draw, shape, number, kinds, entities), separators=(",", ":")).encode() + b",\n"
        yield line
        for copy in range(1, times):
            yield line.replace(b'"Q', b'"Q%d0000000' % copy, 1)
    properties = [{**head(draw, shape, f"P{number}", "property"), "datatype": kind, "claims": {}}
                  for number, kind in enumerate(kinds, 1)]  # fmt: skip
    yield b",\n".join(json.dumps(entity, separators=(",", ":")).encode() for entity in properties) + b"\n]\n"


def words(draw: random.Random, count: int) -> str:
    """Make up words."""
    return " ".join("".join(draw.choices(SYLLABLES, k=draw.randint(2, 4))) for _ in range(count)).title()


def head(draw: random.Random, shape: Shape, entity_id: str, kind: str) -> dict[str, Any]:
    """Make an entity without statements."""
    labels = min(int(draw.lognormvariate(shape.labels, 1.0)) + 1, 200)
    languages = (LANGUAGES + MORE)[:labels]
    name = words(draw, draw.randint(1, 4))
    described = words(draw, 3).lower()
    aliases = {language: [{"language": language, "value": words(draw, 2)} for _ in range(draw.randint(1, 3))]
               for language in languages if draw.random() < 0.12}  # fmt: skip
    return {
        "type": kind,
        "id": entity_id,
        "labels": {language: {"language": language, "value": name} for language in languages},
        "descriptions": {
            language: {"language": language, "value": described}
            for language in (LANGUAGES + MORE)[: min(int(draw.lognormvariate(shape.descriptions, 1.0)), 200)]
        },
        "aliases": aliases,
    }


def item(draw: random.Random, shape: Shape, number: int, kinds: list[str], entities: int) -> dict[str, Any]:
    """Make an item with its statements and sitelinks."""
    record = head(draw, shape, f"Q{number}", "item")
    claims: dict[str, list[dict[str, Any]]] = {"P31": [statement(draw, shape, number, "P31", "wikibase-item", 2_000)]}
    for _ in range(min(int(draw.lognormvariate(shape.statements, 0.8)) + 1, 400)):
        place = min(int(draw.paretovariate(0.6)), PROPERTIES) - 1
        name = f"P{place + 1}"
        claims.setdefault(name, []).append(statement(draw, shape, number, name, kinds[place], entities))
    record["claims"] = claims
    count = min(int(draw.paretovariate(0.9)), 250) if draw.random() < 0.33 else 0
    record["sitelinks"] = {
        f"{language}wiki": {"site": f"{language}wiki", "title": words(draw, 2), "badges": []}
        for language in (LANGUAGES + MORE)[:count]
    }
    return {**record, "pageid": number + 100, "ns": 0, "title": record["id"], "lastrevid": 2_000_000_000 + number,
            "modified": "2024-05-01T10:00:00Z"}  # fmt: skip


def statement(draw: random.Random, shape: Shape, number: int, name: str, kind: str, entities: int) -> dict[str, Any]:
    """Make a statement with its references."""
    made: dict[str, Any] = {
        "mainsnak": snak(draw, name, kind, entities),
        "type": "statement",
        "id": f"Q{number}${digest(draw)[:36].upper()}",
        "rank": draw.choices(["normal", "preferred", "deprecated"], weights=[96, 3, 1])[0],
    }
    if draw.random() < shape.qualified:
        made["qualifiers"] = {"P580": [snak(draw, "P580", "time", entities)]}
        made["qualifiers-order"] = ["P580"]
    if draw.random() < shape.referenced:
        snaks = {"P248": [snak(draw, "P248", "wikibase-item", 3_000)], "P813": [snak(draw, "P813", "time", entities)]}
        if draw.random() < 0.5:
            snaks["P854"] = [snak(draw, "P854", "url", entities)]
        made["references"] = [{"hash": digest(draw), "snaks": snaks, "snaks-order": list(snaks)}]
    return made


def snak(draw: random.Random, name: str, kind: str, entities: int) -> dict[str, Any]:
    """Make a property with a value."""
    number = draw.randint(1, entities)
    value: Any
    match kind:
        case "wikibase-item":
            value = {"entity-type": "item", "numeric-id": number, "id": f"Q{number}"}
        case "time":
            day = f"{draw.randint(1500, 2024)}-{draw.randint(1, 12):02d}-{draw.randint(1, 28):02d}"
            value = {"time": f"+{day}T00:00:00Z", "precision": draw.choice([9, 11, 11]), "timezone": 0, "before": 0,
                     "after": 0, "calendarmodel": "http://www.wikidata.org/entity/Q1985727"}  # fmt: skip
        case "quantity":
            value = {
                "amount": f"+{draw.randint(1, 99_999)}",
                "unit": draw.choice(["1", "http://www.wikidata.org/entity/Q573"]),
            }
        case "monolingualtext":
            value = {"text": words(draw, 3), "language": draw.choice(LANGUAGES)}
        case "globe-coordinate":
            value = {"latitude": round(draw.uniform(-90, 90), 6), "longitude": round(draw.uniform(-180, 180), 6),
                     "altitude": None, "precision": 1e-06, "globe": "http://www.wikidata.org/entity/Q2"}  # fmt: skip
        case "url":
            value = f"https://{words(draw, 1).lower()}.example/{draw.randint(1, 10**9)}"
        case _:
            value = digest(draw)[:10]
    value_kinds = {"wikibase-item": "wikibase-entityid", "monolingualtext": "monolingualtext", "time": "time",
                   "quantity": "quantity", "globe-coordinate": "globecoordinate"}  # fmt: skip
    return {
        "snaktype": "value",
        "property": name,
        "hash": digest(draw),
        "datavalue": {"value": value, "type": value_kinds.get(kind, "string")},
        "datatype": kind,
    }


def digest(draw: random.Random) -> str:
    """Make up a hash."""
    return sha1(draw.randbytes(8), usedforsecurity=False).hexdigest()


if __name__ == "__main__":
    main()
