"""Measure answers to questions in several languages over a small invented knowledge base.

python benchmarks/languages.py                                  # the questions that words and weights were chosen on
python benchmarks/languages.py --questions benchmarks/languages/report.tsv
"""

import argparse
import csv
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from fbsq import parse
from figures import show_table

import kbtools
from kbtools.answering.answerer import Answerer

FOLDER = Path(__file__).with_suffix("")
LANGUAGES = "en,de,fr,es"
SCORERS = ("lexical", "static", "static/encoder")


class Asked(NamedTuple):
    """A question, its language, and the subject and the relation that it asks for."""

    language: str
    question: str
    subject: str
    relation: str


def read_questions(path: Path) -> list[Asked]:
    """Read questions from a table."""
    with path.open(encoding="utf-8", newline="") as lines:
        return [Asked(**row) for row in csv.DictReader(lines, delimiter="\t")]


def build_world(out: Path) -> Answerer:
    """Index the tables beside the questions."""
    tables = {kind: FOLDER / f"{kind}.tsv" for kind in ("facts", "names", "types", "relations")}
    return kbtools.index(**tables, language=LANGUAGES, out=out)  # type: ignore[arg-type]


def is_right(kb: Answerer, asked: Asked, scorer: str) -> bool:
    """Return whether a question has the objects of its fact for an answer, and no tie or doubt withholds it."""
    facts = kb.facts(asked.subject, limit=None).facts
    gold = {fact.object.id for fact in facts if fact.relation.id == asked.relation}
    result = kb.query(asked.question, lang=asked.language, scorer=scorer)
    return result.answered and {answer.id for answer in result.answers} == gold


def row_of(kb: Answerer, questions: Sequence[Asked], scorer: str, tags: Sequence[str]) -> list[str]:
    """Count the right answers of a scorer, all and of each language, and print the questions answered wrongly."""
    wrong = [question for question in questions if not is_right(kb, question, scorer)]
    for question in wrong:
        print(f"{scorer}, wrong: {question.question}")
    asked, lost = (Counter(question.language for question in some) for some in (questions, wrong))
    shares = [f"{asked[tag] - lost[tag]} of {asked[tag]}" for tag in tags]
    return [f"`{scorer}`", f"{len(questions) - len(wrong)} of {len(questions)}", *shares]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=Path, default=FOLDER / "questions.tsv")
    parser.add_argument("--scorer", action="append", help="a relation scorer; several may be given")
    arguments = parse(parser, scorer=["lexical"])
    with TemporaryDirectory() as folder:
        kb = build_world(Path(folder) / "world.kb")
        questions = read_questions(arguments.questions)
        tags = sorted({question.language for question in questions})
        rows = [row_of(kb, questions, scorer, tags) for scorer in arguments.scorer or SCORERS]
    show_table("right", ("right of the questions in", "all", *tags), rows)


if __name__ == "__main__":
    main()
