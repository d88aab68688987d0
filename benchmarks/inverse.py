"""Facts read backwards on FBSQ: the cost for ordinary questions, and the answers to questions without a forward fact.

python benchmarks/inverse.py [--kb build/fbsq.kb] [--split valid] [--questions 2000] [--models models --scorer bigru]

Ordinary questions are asked with and without inverse relations. Questions whose fact is also stored in the other
direction, `(film, directed_by, X)` beside `(X, film, film)`, are asked again with their own fact removed from the pool.
The default rule, without `--inverse`, is measured last, on the ordinary questions and on a knowledge base without the
forward facts of the others. About three minutes on one core for the validation questions.
"""

import argparse
import gzip
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np
from fbsq import parse, questions, sources
from figures import show_table

import kbtools
from kbtools.answering.answerer import Answerer
from kbtools.answering.query_options import QueryOptions
from kbtools.answering.questions import read_annotated
from kbtools.answering.results import Result
from kbtools.indexers.building.build import BuildProgress, build
from kbtools.indexers.readers.reading import ReadOptions, Source
from kbtools.kb.contract import KnowledgeBase
from kbtools.kb.ids import canonical_id
from kbtools.kb.views import read_direction
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
    """Read the questions whose gold fact is in the knowledge base."""
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
) -> list[str]:
    """Format the shares of right pairs and right objects, and of winners that are read backwards."""
    kb = answerer.kb
    texts = [Question.read(one.text) for one in gold]
    system = answerer.system(pruning="n-gram-idf", scorer=scorer, subject=subject, ranker="weighted-sum")
    opened = answerer.opened(system)
    pools = opened.gather_pools(texts)
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
    return [f"{count / max(len(gold), 1):.1%}" for count in (pairs, objects, inverse)]


def own_facts(answerer: Answerer, gold: Sequence[MirroredQuestion], options: QueryOptions) -> list[bool]:
    """Return whether each question's winner is its own subject and relation, read forwards."""
    kb = answerer.kb
    results = answerer.query_many([one.text for one in gold], **options)
    wanted = zip(kb.ids(np.array([one.subject for one in gold], dtype=np.uint32)), gold, strict=True)
    return [
        bool(result.candidates)
        and not result.candidates[0].inverse
        and (result.candidates[0].subject, result.candidates[0].relation) == (subject, kb.relations[one.relation])
        for result, (subject, one) in zip(results, wanted, strict=True)
    ]


def count_read_again(answerer: Answerer, texts: Sequence[str], options: QueryOptions) -> int:
    """Count the questions that the default rule asks once more, with facts read backwards."""
    asked: list[str] = []
    both_ways = answerer.both_ways()
    answer_batches = both_ways.answer_batches

    def counted(questions: Iterator[str], *others: Any) -> Iterator[list[Result]]:
        again = list(questions)
        asked.extend(again)
        return answer_batches(iter(again), *others)

    with patch.object(both_ways, "answer_batches", counted):
        for _ in answerer.query_many(texts, **options):
            pass
    return len(asked)


def sources_without(gold: Sequence[MirroredQuestion], kb: KnowledgeBase, folder: Path) -> list[Source]:
    """Return the sources of FBSQ with the facts of some questions left out of copies in a folder."""
    subjects = kb.ids(np.array([one.subject for one in gold], dtype=np.uint32))
    objects = kb.ids(np.array([one.object for one in gold], dtype=np.uint32))
    left_out = {(s, kb.relations[one.relation], o) for s, one, o in zip(subjects, gold, objects, strict=True)}
    copies = []
    for source in sources():
        if source.kind == "facts":
            path = folder / source.path.name
            with (
                gzip.open(source.path, "rt", encoding="utf-8") as lines,
                gzip.open(path, "wt", 1, encoding="utf-8") as out,
            ):
                out.writelines(line for line in lines if fact_of(line) not in left_out)
            source = replace(source, path=path)
        copies.append(source)
    return copies


def fact_of(line: str) -> tuple[str, str, str]:
    """Return the ids of a line of FBSQ's facts."""
    subject, relation, target = map(canonical_id, line.rstrip("\n").split("\t"))
    return subject, relation, target


def objects_right(
    answerer: Answerer, gold: Sequence[MirroredQuestion], whole: KnowledgeBase, options: QueryOptions
) -> float:
    """Return the share of questions whose winner's answers include the object of their fact."""
    results = answerer.query_many([one.text for one in gold], **options)
    wanted = whole.ids(np.array([one.object for one in gold], dtype=np.uint32))
    right = [target in {answer.id for answer in result.answers} for result, target in zip(results, wanted, strict=True)]
    return sum(right) / max(len(right), 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kb", type=Path, default=Path("build/fbsq.kb"))
    parser.add_argument("--split", default="valid")
    parser.add_argument("--questions", type=int, default=2000, help="ordinary questions, drawn with the seed 1")
    parser.add_argument("--models", type=Path)
    parser.add_argument("--scorer", default="lexical")
    parser.add_argument("--subject")
    arguments = parse(parser, questions=10)
    build(sources(), arguments.kb, options=ReadOptions(), watch=BuildProgress())
    answerer = kbtools.open(arguments.kb, models=arguments.models)
    gold = read_gold(answerer.kb, questions(arguments.split))
    mirrored = [one for one in gold if one.mirrors]
    ordinary = random.Random(1).sample(gold, min(arguments.questions, len(gold)))
    system = (arguments.scorer, arguments.subject)
    tried = [
        (f"{len(ordinary):,} whose fact is stored", answerer, ordinary, False),
        ("the same, with `--inverse`", answerer.both_ways(), ordinary, False),
        (f"{len(mirrored):,} whose fact is stored the other way round too", answerer, mirrored, False),
        ("the same without the fact that they ask for", answerer, mirrored, True),
        ("the same without it, with `--inverse`", answerer.both_ways(), mirrored, True),
    ]
    rows = [(label, *share_right(kb, own, *system, mirrored=without)) for label, kb, own, without in tried]
    show_table("backwards", (f"questions of the {arguments.split} split", "pair", "object", "inverse"), rows)
    options = QueryOptions(pruning="n-gram-idf", scorer=arguments.scorer, subject=arguments.subject, top=1, answers=0)
    texts = [one.text for one in ordinary]
    plain = own_facts(answerer, ordinary, {**options, "inverse": False})
    default, read_again = own_facts(answerer, ordinary, options), count_read_again(answerer, texts, options)
    lost = sum(before and not after for before, after in zip(plain, default, strict=True))
    with TemporaryDirectory() as folder:
        cut = Path(folder)
        build(sources_without(mirrored, answerer.kb, cut), cut / "cut.kb", options=ReadOptions(), watch=BuildProgress())
        others = kbtools.open(cut / "cut.kb", models=arguments.models)
        shares = [objects_right(others, mirrored, answerer.kb, {**options, "inverse": False})]
        shares.append(objects_right(others, mirrored, answerer.kb, options))
    show_table(
        "default",
        ("by default, without `--inverse` or `--no-inverse`", "share"),
        [
            ("ordinary questions that are read backwards as well", f"{read_again / len(texts):.1%}"),
            ("ordinary questions that become wrong by it", f"{lost / len(texts):.2%}"),
            ("object right where the fact is stored the other way round alone, read forwards", f"{shares[0]:.1%}"),
            ("the same, by default", f"{shares[1]:.1%}"),
        ],
    )


if __name__ == "__main__":
    main()
