"""Lost questions by cause, with examples, for a person to read: a page and a file of records per cell."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from kbtools.comparison.causes import Cause, find_causes
from kbtools.comparison.columns import Columns
from kbtools.comparison.gold import ABSENT, Gold
from kbtools.comparison.grid import Cell
from kbtools.comparison.pools import Pools
from kbtools.kb.contract import KnowledgeBase

FOLDER = "errors"
SEED = 0


def write_examples(
    out: Path, kb: KnowledgeBase, cell: Cell, outcomes: Columns, pools: Pools, gold: Gold, most: int
) -> None:
    """Write at most so many examples of each cause, drawn at random, the same in every run."""
    causes = find_causes(outcomes.arrays, fault=gold.fault, linkable=gold.linkable)
    lost = 1 - outcomes["strict"]
    lines = [f"# {cell.label}\n", f"{lost.sum():.1f} of {len(gold):,} questions are lost, ties as expected values.\n"]
    records = []
    for cause in [cause for cause in Cause if cause is not Cause.NONE]:
        found = np.flatnonzero(causes == cause).tolist()
        lines.append(f"## {cause.label}: {len(found):,} questions, {lost[found].sum():.1f} lost\n")
        lines.append(f"{cause.meaning[0].upper()}{cause.meaning[1:]}.\n")
        for question in sorted(random.Random(SEED).sample(found, min(most, len(found)))):
            record = describe(kb, question, outcomes, pools, gold) | {"cause": cause.label}
            records.append(json.dumps(record, ensure_ascii=False) + "\n")
            lines += [*write_out(record), ""]
    folder = out / FOLDER
    folder.mkdir(exist_ok=True)
    (folder / f"{cell.file}.md").write_text("\n".join(lines), encoding="utf-8", errors="backslashreplace")
    (folder / f"{cell.file}.jsonl").write_text("".join(records), encoding="utf-8", errors="backslashreplace")


def describe(kb: KnowledgeBase, question: int, outcomes: Columns, pools: Pools, gold: Gold) -> dict[str, Any]:
    """Say what was asked, what is right, and what won; of tied winners the first by id."""
    asked = gold.questions[question]
    record: dict[str, Any] = {
        "question": asked.text,
        "gold": {"subject": asked.subject, "name": name_of(kb, asked.subject), "relation": asked.relation},
        "tied": int(outcomes["tied"][question]),
        "pool": int(outcomes["pool"][question]),
        "found": None,
    }
    pair = int(outcomes["winner"][question])
    if pair != ABSENT:
        entry, link = int(pools.column("pair_entry")[pair]), int(pools.link_of_pair[pair])
        subject = pools.subject_ids[int(pools.column("entry_subject")[entry])]
        start, end = int(pools.column("link_start")[link]), int(pools.column("link_end")[link])
        record["found"] = {
            "subject": subject,
            "name": name_of(kb, subject),
            "relation": kb.relations[int(pools.relation_of_pair[pair])],
            "mention": asked.text[start:end],
            "confidence": round(float(outcomes["confidence"][question]), 4),
        }
    return record


def name_of(kb: KnowledgeBase, subject: str) -> str | None:
    (row,) = kb.rows([subject])
    return None if row is None else kb.names(np.array([row], dtype=np.uint32))[0]


def write_out(record: dict[str, Any]) -> Iterator[str]:
    """Lay out one example."""
    gold, found = record["gold"], record["found"]
    yield f"- {record['question']}"
    yield f"  - gold: {gold['name'] or 'no name'} (`{gold['subject']}`), `{gold['relation']}`"
    if found is None:
        yield "  - found: no candidates"
        return
    tied = f", {record['tied']} tied" if record["tied"] > 1 else ""
    yield (
        f"  - found: {found['name'] or 'no name'} (`{found['subject']}`), `{found['relation']}`, "
        f"by `{found['mention']}`; confidence {found['confidence']:.2f}, {record['pool']:,} candidates{tied}"
    )
