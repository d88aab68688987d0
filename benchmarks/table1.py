"""Table 1 of the paper: train all that it shows by the profile `paper`, and print it beside the paper's values.

python benchmarks/table1.py --out build/table1 [--limit 1000] [--epochs 2]
    [--kb build/sample.kb --train FILE --valid FILE --test FILE]

Over FBSQ, where no other knowledge base is named, it takes some three hours of one idle core. What was trained or
compared before is not done again; a limit takes the first questions of every file.
"""

import argparse
from pathlib import Path

import torch
from fbsq import first_lines, questions, sources

import kbtools
from kbtools.comparison.experiment import Request, compare
from kbtools.comparison.grid import Grid
from kbtools.comparison.report.paper_tables import NETWORKS, PRUNINGS, SUBJECTS, table_1, table_2
from kbtools.comparison.report.summary import aligned, make_report, terminal_table
from kbtools.indexers.build import BuildProgress, build
from kbtools.indexers.readers.reading import ReadOptions
from kbtools.kb.contract import KnowledgeBase
from kbtools.ranking.models import ENTITIES, RELATION, SUBJECT, TAGGER
from kbtools.ranking.system import keep_system
from kbtools.scorers.profiles import PLANS, profile_settings
from kbtools.scorers.splits import Splits
from kbtools.scorers.training import change_known, train

PLAN = PLANS["paper"]

MODELS = (
    (TAGGER, PLAN.tagger),
    *((RELATION, name) for name in NETWORKS),
    (ENTITIES, "transe"),
    *((SUBJECT, name) for name in SUBJECTS),
)
"""In the order of training: the vectors of TransE are what the subject scorer `transe` starts from."""


def train_models(kb: KnowledgeBase, splits: Splits, models: Path, *, epochs: int | None) -> None:
    """Train what Table 1 shows, and record that it is ranked by Eq. 4."""
    for part, name in MODELS:
        settings = change_known(profile_settings("paper", part, name), {"epochs": epochs} if epochs else {})
        model = train(kb, splits, part=part, name=name, settings=settings, models=models)
        figures = ", ".join(f"{figure} {value:.3f}" for figure, value in model.figures.items())
        print(f"{part} {name}: {figures}", flush=True)
    keep_system(models, PLAN.system(typed=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kb", type=Path, default=Path("build/fbsq.kb"))
    for split in ("train", "valid", "test"):
        parser.add_argument(f"--{split}", type=Path, default=questions(split))
    parser.add_argument("--out", type=Path, default=Path("build/table1"))
    parser.add_argument("--limit", type=int, help="take only the first questions of every file")
    parser.add_argument("--epochs", type=int, help="train every model for so long, instead of as the profile says")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if not arguments.kb.exists():
        build(sources(), arguments.kb, options=ReadOptions(), watch=BuildProgress())
    models, slices = arguments.out / "models", arguments.out / "questions"
    slices.mkdir(parents=True, exist_ok=True)
    train_file, valid_file, test_file = (
        first_lines(path, arguments.limit, slices) for path in (arguments.train, arguments.valid, arguments.test)
    )
    kb = kbtools.open(arguments.kb).kb
    train_models(kb, Splits.read(kb, train=train_file, valid=valid_file), models, epochs=arguments.epochs)
    grid = Grid(tuple(PRUNINGS), tuple(NETWORKS), tuple(SUBJECTS))
    request = Request(test_file, arguments.out / "run", grid, arguments.kb)
    report = make_report(compare(kbtools.open(arguments.kb, models=models), request))
    print(terminal_table(report))
    figures = {cell.cell: cell for cell in report.cells}
    for section in (table_1(figures), table_2(figures)):
        print("\n" + section.title + ". " + section.lead)
        print("\n".join(aligned([section.head, *section.rows], section.words)))


if __name__ == "__main__":
    main()
