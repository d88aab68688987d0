"""Recall and cost of each kind of vector index against the exact ten nearest, and the results of g(q) on FBSQ.

python benchmarks/vectors.py [--count 200000] [--dim 128]
python benchmarks/vectors.py --kb build/fbsq.kb --models build/models --subject transe

The first command draws vectors around a thousand centres; the second indexes E(s) of a trained subject scorer and
searches the entities nearest to g(q) of the test questions.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from fbsq import parse, questions
from figures import show_table
from numpy.typing import NDArray

from kbtools.answering.answerer import open_kb
from kbtools.answering.questions import read_annotated
from kbtools.indexers.folder.faiss_index import FOLDER, KINDS, write_vectors
from kbtools.indexers.folder.memory import MemoryKB
from kbtools.kb.vector_index import EntityVectors, ExactVectors, Neighbours, VectorIndex, recall
from kbtools.pruning.dense import NEAREST
from kbtools.ranking.models import make_embedder, subject_vectors
from kbtools.text.question import MarkedQuestion, Question

COLUMNS = ("CPU seconds to make", "on disk", "recall@10", "one question", "questions a second, 500 together")

ASKED, CENTRES, SPREAD = 500, 1_000, 0.7


def seconds(run: Callable[[], object]) -> float:
    begun = time.perf_counter()
    run()
    return time.perf_counter() - begun


def report(
    kind: str, index: VectorIndex, asked: NDArray[np.float32], exact: Neighbours, *, made: float, size: int
) -> list[str]:
    share = recall(index.nearest(asked, limit=10), exact)
    together = len(asked) / seconds(lambda: index.nearest(asked, limit=10))
    alone = np.median([seconds(lambda one=one: index.nearest(one[None], limit=10)) for one in asked[:200]])  # type: ignore[misc]
    figures = (f"{made:.1f}", f"{size / 1e6:.1f} MB", f"{share:.3f}", f"{1e3 * alone:.2f} ms", f"{together:,.0f}")
    return [f"`{kind}`", *figures]


def drawn(count: int, dim: int) -> None:
    """Compare the kinds over vectors drawn around centres."""
    random = np.random.default_rng(1)
    centres = random.normal(size=(CENTRES, dim))

    def draw(many: int) -> NDArray[np.float32]:
        around = centres[random.integers(0, CENTRES, many)] + SPREAD * random.normal(size=(many, dim))
        return around.astype(np.float32)

    table, asked = draw(count), draw(ASKED)
    rows = np.arange(count, dtype=np.uint32)
    kb = MemoryKB([("s", "r", "o")])
    exact = ExactVectors(rows, table)
    truth = exact.nearest(asked, limit=10)
    kinds = [report("numpy", exact, asked, truth, made=0.0, size=table.nbytes)]
    for kind in KINDS:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder)
            begun = time.process_time()
            index = write_vectors(path, kb, EntityVectors(rows, dim, lambda some: table[some]), kind=kind)
            made = time.process_time() - begun
            size = sum(file.stat().st_size for file in (path / FOLDER).iterdir())
            kinds.append(report(kind, index, asked, truth, made=made, size=size))
    show_table("kinds", (f"kind, {count:,} vectors of {dim} dimensions", *COLUMNS), kinds)


def trained(kb_path: Path, models: Path, subject: str) -> None:
    """Print how often the gold subject is among the entities nearest to g(q), by each kind of index."""
    answerer = open_kb(kb_path, models=models)
    kb = answerer.kb
    gold = list(read_annotated(questions("test")))
    rows = np.array([-1 if row is None else row for row in kb.rows([one.subject for one in gold])])
    opened = answerer.opened(answerer.system(pruning="n-gram-idf"))
    batches = opened.gather_batches([Question.read(each.text) for each in gold])
    unlinked = np.array([not links for batch in batches for links in batch.links])
    vectors = subject_vectors(subject, kb, models=models)
    kinds = []
    for kind in KINDS:
        index = write_vectors(kb_path, kb, vectors, kind=kind)
        asked = make_embedder(kb, models=models)([MarkedQuestion(Question.read(one.text), 0, 0) for one in gold])
        found = index.nearest(asked, limit=NEAREST)
        if kind == KINDS[0]:
            exact = Neighbours(found.rows[:, :10], found.cosines[:, :10])
        hit = (found.rows == rows[:, None]).any(axis=1)
        shown = Neighbours(found.rows[:, :10], found.cosines[:, :10])
        kinds.append((f"`{kind}`", f"{recall(shown, exact):.1%}", f"{hit.mean():.1%}", f"{hit[unlinked].mean():.1%}"))
    columns = ("kind", "of the exact ten nearest", f"gold subject among the {NEAREST} nearest", "where no name links")
    show_table("trained", columns, kinds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200_000, help="vectors to draw")
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument("--kb", type=Path, help="FBSQ, both layers; its vectors are replaced")
    parser.add_argument("--models", type=Path)
    parser.add_argument("--subject", default="transe")
    arguments = parse(parser, count=200, dim=8, kb=None)
    if arguments.kb:
        trained(arguments.kb, arguments.models, arguments.subject)
    else:
        drawn(arguments.count, arguments.dim)


if __name__ == "__main__":
    main()
