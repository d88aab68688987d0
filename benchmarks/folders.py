"""Knowledge bases of invented books, films and albums, made to be damaged, with a way to identify their versions."""

import json
from pathlib import Path

import numpy as np

from kbtools.answering.answerer import Answerer
from kbtools.indexers.building.build import BuildProgress, build
from kbtools.indexers.folder.embedded import EmbeddedKB
from kbtools.indexers.folder.faiss_index import write_vectors
from kbtools.indexers.readers.reading import ReadOptions, Source
from kbtools.kb.vector_index import EntityVectors

LOOKED_AT = [f"e{row}" for row in range(0, 300, 25)]
"""Entities that every load and every update changes in the same way."""

Mark = tuple[str, int]
"""The mark of a version: the relation of the sources, and the number of the last update since."""


def mark_of(answerer: Answerer) -> Mark | str:
    """Return the mark of what a reader sees, or a sentence if its entities differ."""
    marks = set()
    for entity_id in LOOKED_AT:
        text = json.dumps([answerer.entity(entity_id).to_json(), answerer.facts(entity_id).to_json()])
        updates = [int(piece.split('"')[0]) for piece in text.split("Update ")[1:]]
        marks.add(("of_the_new_one" if "of_the_new_one" in text else "written_by", max(updates, default=0)))
    return marks.pop() if len(marks) == 1 else f"A MIXTURE of {sorted(marks)}"


def update_records(number: int) -> list[dict[str, object]]:
    """Write the changes of an update."""
    return [{"id": entity_id, "aliases": [f"Update {number}"]} for entity_id in LOOKED_AT]


def write_sources(folder: Path, entities: int, *, relation: str = "written_by") -> list[Source]:
    """Write a knowledge base of invented books, films and albums as tables."""
    folder.mkdir()
    words = ("Harry Potter", "Solaris", "Avatar", "Frankenstein", "The Old Sea", "Iron Kite")
    rows = range(entities)
    lines = {
        "facts": [
            "subject\trelation\tobject",
            *(f"e{row}\t{relation}\te{row * 7919 % entities}" for row in rows),
            *(f"e{row}\tgenre\te{row % 7}" for row in rows),
        ],
        "names": ["id\tname", *(f"e{row}\t{words[row % len(words)]} {row}" for row in rows)],
        "types": ["id\ttype", *(f"e{row}\tt{row % 40}" for row in rows)],
    }
    for kind, table in lines.items():
        (folder / f"{kind}.tsv").write_text("\n".join(table) + "\n", encoding="utf-8")
    facts, names, types = (folder / f"{kind}.tsv" for kind in lines)
    return [Source(facts, "facts"), Source(names, "names"), Source(types, "types")]


def make(sources: list[Source], out: Path, *, vectors: bool = False) -> Path:
    build(sources, out, options=ReadOptions(), watch=BuildProgress(), force=True)
    if vectors:
        kb = EmbeddedKB(out)
        table = np.random.default_rng(1).normal(size=(len(kb.entity_ids), 16)).astype(np.float32)
        rows = np.arange(len(table), dtype=np.uint32)
        write_vectors(out, kb, EntityVectors(rows, 16, lambda some: table[some]), kind="hnsw")
    return out
