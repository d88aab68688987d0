"""Lost questions by cause, with examples that show what to improve."""

import json
import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbtools.answering.gold import Fault, Gold, Labelled
from kbtools.comparison.column_store import Columns, named_failure, write_text
from kbtools.comparison.gold_pools import GoldPools
from kbtools.comparison.grid import Cell
from kbtools.errors import RunUnusable
from kbtools.kb.contract import ABSENT, KnowledgeBase
from kbtools.storage import make_folder
from kbtools.text.printable import markdown_text

EXAMPLES = "errors"
"""The folder of a run with the examples."""

_SEED = 0
"""The seed of the random examples, so that they do not change."""


class Cause(Labelled):
    """The reason why a question was not fully answered: the first that applies, in this order."""

    NONE = 0
    UNKNOWN_SUBJECT = 1
    UNKNOWN_RELATION = 2
    NO_SUCH_FACT = 3
    UNNAMED_SUBJECT = 4
    MENTION_NOT_LINKED = 5
    PRUNED_AWAY = 6
    NAMESAKE_TIE = 7
    RELATION_TIE = 8
    OBJECT_RIGHT = 9
    WRONG_RELATION = 10
    WRONG_SUBJECT = 11

    @property
    def meaning(self) -> str:
        return _MEANINGS[self]


_MEANINGS = {
    Cause.NONE: "answered",
    Cause.UNKNOWN_SUBJECT: "the gold subject is not in the knowledge base",
    Cause.UNKNOWN_RELATION: "the gold relation is not in the knowledge base",
    Cause.NO_SUCH_FACT: "the gold subject has no fact of the gold relation",
    Cause.UNNAMED_SUBJECT: "the gold subject has neither name nor alias",
    Cause.MENTION_NOT_LINKED: "no words of the question are a name of the gold subject",
    Cause.PRUNED_AWAY: "a name of the gold subject is in the question, but the pruner did not keep it",
    Cause.NAMESAKE_TIE: "correct, but tied with namesakes that also have the relation",
    Cause.RELATION_TIE: "correct, but tied with pairs of other relations",
    Cause.OBJECT_RIGHT: "another pair that has the gold object too",
    Cause.WRONG_RELATION: "another relation won",
    Cause.WRONG_SUBJECT: "the relation is correct, but another subject won",
}


def find_causes(
    outcomes: Mapping[str, NDArray[Any]], *, fault: NDArray[np.int8], linkable: NDArray[np.bool_]
) -> NDArray[np.int8]:
    """Return the cause of each question that is not fully answered: (questions,)."""
    strict = outcomes["strict"]
    recalled = outcomes["recalled"].astype(bool)
    # In this order: faults of the data, of linking, of pruning, of ranking.
    tests = [
        (strict == 1, Cause.NONE),
        *((fault == kind, Cause[kind.name]) for kind in Fault if kind is not Fault.NONE),
        (~recalled & ~linkable, Cause.MENTION_NOT_LINKED),
        (~recalled, Cause.PRUNED_AWAY),
        ((strict > 0) & (outcomes["right_relations"] == outcomes["tied"]), Cause.NAMESAKE_TIE),
        (strict > 0, Cause.RELATION_TIE),
        (outcomes["object"] > 0, Cause.OBJECT_RIGHT),
        (outcomes["right_relations"] == 0, Cause.WRONG_RELATION),
    ]
    return np.select([test for test, _ in tests], [cause for _, cause in tests], Cause.WRONG_SUBJECT).astype(np.int8)


def write_examples(
    out: Path, linkable: NDArray[np.bool_], cell: Cell, outcomes: Columns, pools: GoldPools, gold: Gold, most: int
) -> None:
    """Write at most `most` random examples of each cause, the same in every run."""
    causes = find_causes(outcomes.arrays, fault=gold.fault, linkable=linkable)
    lost = 1 - outcomes["strict"]
    lines = [f"# {cell.label}\n", f"{lost.sum():.1f} of {len(gold):,} questions are lost, ties as expected values.\n"]
    records = []
    for cause in [cause for cause in Cause if cause is not Cause.NONE]:
        questions = np.flatnonzero(causes == cause).tolist()
        lines.append(f"## {cause.label}: {len(questions):,} questions, {lost[questions].sum():.1f} lost\n")
        lines.append(f"{cause.meaning[0].upper()}{cause.meaning[1:]}.\n")
        for question in sorted(random.Random(_SEED).sample(questions, min(most, len(questions)))):
            record = _example_record(question, outcomes, pools, gold) | {"cause": cause.label}
            records.append(json.dumps(record, ensure_ascii=False) + "\n")
            lines += [*example_lines(record), ""]
    folder = out / EXAMPLES
    with named_failure(folder):
        make_folder(folder)
    write_text(folder / f"{cell.file}.md", "\n".join(lines))
    write_text(folder / f"{cell.file}.jsonl", "".join(records))


def remove_examples(out: Path, cell: Cell) -> None:
    """Remove the examples of a cell that was computed again."""
    for suffix in ("md", "jsonl"):
        (out / EXAMPLES / f"{cell.file}.{suffix}").unlink(missing_ok=True)


def read_examples(out: Path, cell: Cell) -> list[dict[str, Any]]:
    """Return the examples of a cell, empty if it has none; raise RunUnusable if they are damaged."""
    path = out / EXAMPLES / f"{cell.file}.jsonl"
    if not path.is_file():
        return []
    try:
        return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]
    except ValueError as error:
        raise RunUnusable.at(path, "damaged; run kbtools compare --errors again") from error


def _example_record(question: int, outcomes: Columns, pools: GoldPools, gold: Gold) -> dict[str, Any]:
    """Return a question with its gold pair and the winning pair, ties by id."""
    annotated, kb = gold.questions[question], gold.kb
    record: dict[str, Any] = {
        "question": annotated.text,
        "gold": {"subject": annotated.subject, "name": _name_of(kb, annotated.subject), "relation": annotated.relation},
        "tied": int(outcomes["tied"][question]),
        "pool": int(outcomes["pool"][question]),
        "found": None,
    }
    pair = int(outcomes["winner"][question])
    if pair != ABSENT:
        candidates = pools.pools
        subject = pools.subject_ids[int(pools.subject_place[candidates.pair_subject[pair]])]
        link = int(candidates.link_of_pair[pair])
        start, end = int(candidates.link_start[link]), int(candidates.link_end[link])
        record["found"] = {
            "subject": subject,
            "name": _name_of(kb, subject),
            "relation": kb.relations[int(candidates.relation_of_pair[pair])],
            "mention": annotated.text[start:end],
            "confidence": round(float(outcomes["confidence"][question]), 4),
        }
    return record


def _name_of(kb: KnowledgeBase, subject: str) -> str | None:
    (row,) = kb.rows([subject])
    return None if row is None else kb.names(np.array([row], dtype=np.uint32))[0]


def example_lines(record: dict[str, Any]) -> Iterator[str]:
    """Yield one example as lines of a Markdown list."""
    gold, winner = record["gold"], record["found"]
    yield f"- {markdown_text(record['question'])}"
    yield f"  - gold: {_pair_text(gold)}"
    if winner is None:
        yield "  - found: no candidates"
        return
    tied = f", {record['tied']} tied" if record["tied"] > 1 else ""
    yield (
        f"  - found: {_pair_text(winner)}, by {markdown_text(winner['mention'])}; "
        f"confidence {winner['confidence']:.2f}, {record['pool']:,} candidates{tied}"
    )


def _pair_text(pair: Mapping[str, Any]) -> str:
    """Return a subject and a relation as Markdown."""
    name, subject, relation = (markdown_text(pair[part] or "no name") for part in ("name", "subject", "relation"))
    return f"{name} ({subject}), {relation}"
