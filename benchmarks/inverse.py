"""Facts read backwards on FBSQ: what it costs ordinary questions, and what it answers that has no fact the other way.

python benchmarks/inverse.py [--kb build/fbsq.kb] [--split valid] [--questions 2000] [--models models --scorer bigru]

Ordinary questions are asked with and without inverse relations. Those whose fact is also stored the other way round,
`(film, directed_by, X)` beside `(X, film, film)`, are asked once more as if only that one were stored: their own fact
is taken out of the pool. About two minutes on one core for the validation questions.
"""

import argparse
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from fbsq import questions, sources

import kbtools
from kbtools.answering.answerer import Answerer
from kbtools.answering.questions import read_annotated
from kbtools.indexers.building.build import BuildProgress, build
from kbtools.indexers.readers.reading import ReadOptions
from kbtools.kb.contract import KnowledgeBase
from kbtools.kb.views import read_direction
from kbtools.ranking.pools import concatenate_pools
from kbtools.ranking.rankers import WeightedSum
from kbtools.text.question import Question


@dataclass(frozen=True)
class MirroredQuestion:
    """A question with its gold as rows, and the relations that the object has to the subject."""

    text: str
    subject: int
    relation: int
    object: int
    mirrors: frozenset[int]


def read_gold(kb: KnowledgeBase, path: Path) -> list[MirroredQuestion]:
    """Read the questions whose gold fact the knowledge base holds."""
    relations = {relation: row for row, relation in enumerate(kb.relations)}
    gold = list(read_annotated(path))
    rows = [kb.rows([question.subject, question.object]) for question in gold]
    asked = []
    for question, (subject, target) in zip(gold, rows, strict=True):
        if subject is not None and target is not None and question.relation in relations:
            (facts,) = kb.subjects_of(np.array([subject], dtype=np.uint32))
            mirrors = set(facts.relations[facts.subjects == target].tolist()) - {relations[question.relation]}
            relation = relations[question.relation]
            asked.append(MirroredQuestion(question.text, subject, relation, target, frozenset(mirrors)))
    return asked


def share_right(
    answerer: Answerer, gold: Sequence[MirroredQuestion], scorer: str, subject: str | None, *, mirrored: bool
) -> str:
    """Format the shares of right pairs and right objects, and of winners that are read backwards."""
    kb = answerer.kb
    texts = [Question.read(one.text) for one in gold]
    system = answerer.system(pruning="n-gram-idf", scorer=scorer, subject=subject, ranker="weighted-sum")
    opened = answerer.opened(system)
    pools = concatenate_pools([pool for batch in opened.gather_batches(texts) for pool in batch.pools])
    scores = WeightedSum(system.weights).rate(opened.evidence(pools, texts)).scores
    first = pools.first("pair")
    pairs = objects = inverse = 0
    for one, begin, end in zip(gold, first[:-1], first[1:], strict=True):
        own = range(begin, end)
        ranked = sorted(own, key=lambda at: -scores[at])
        pool = ((int(pools.subject_of_pair[at]), int(pools.relation_of_pair[at])) for at in ranked)
        wanted = (one.subject, one.relation)
        winner = next((pair for pair in pool if not mirrored or pair != wanted), None)
        if winner is not None:
            relation, backwards = read_direction(kb, winner[1])
            as_mirror = mirrored and backwards and winner[0] == one.subject and relation in one.mirrors
            pairs += as_mirror or (not mirrored and winner == wanted)
            objects += one.object in kb.objects_of([winner])[0]
            inverse += backwards
    return f"{pairs / len(gold):>9.1%}{objects / len(gold):>9.1%}{inverse / len(gold):>12.1%}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kb", type=Path, default=Path("build/fbsq.kb"))
    parser.add_argument("--split", default="valid")
    parser.add_argument("--questions", type=int, default=2000, help="ordinary questions, drawn with the seed 1")
    parser.add_argument("--models", type=Path)
    parser.add_argument("--scorer", default="lexical")
    parser.add_argument("--subject")
    arguments = parser.parse_args()
    build(sources(), arguments.kb, options=ReadOptions(), watch=BuildProgress())
    answerer = kbtools.open(arguments.kb, models=arguments.models)
    gold = read_gold(answerer.kb, questions(arguments.split))
    mirrored = [one for one in gold if one.mirrors]
    ordinary = random.Random(1).sample(gold, min(arguments.questions, len(gold)))
    system = (arguments.scorer, arguments.subject)
    print(f"questions of FBSQ's {arguments.split} split, n-gram-idf / {arguments.scorer} / {arguments.subject}")
    print(f"{'':<44}{'pair':>9}{'object':>9}{'backwards':>12}")
    rows = [
        (f"{len(ordinary):,} questions", answerer, ordinary, False),
        ("the same, with inverse relations", answerer.both_ways(), ordinary, False),
        (f"{len(mirrored):,} whose fact is stored both ways", answerer, mirrored, False),
        ("without that fact", answerer, mirrored, True),
        ("without that fact, with inverse relations", answerer.both_ways(), mirrored, True),
    ]
    for label, asked, questions_asked, without in rows:
        print(f"{label:<44}" + share_right(asked, questions_asked, *system, mirrored=without), flush=True)


if __name__ == "__main__":
    main()
