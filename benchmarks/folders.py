"""Knowledge bases of invented books, films and albums, to be broken."""

from pathlib import Path

import numpy as np

from kbtools.indexers.building.build import BuildProgress, build
from kbtools.indexers.folder.embedded import EmbeddedKB
from kbtools.indexers.folder.faiss_index import write_vectors
from kbtools.indexers.readers.reading import ReadOptions, Source
from kbtools.kb.vector_index import EntityVectors


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
