"""Tables 1 to 3 of the paper: train all their models with the profile `paper`, and print them with the paper's values.

python benchmarks/table1.py --out build/table1 [--limit 1000] [--epochs 4] [--epochs embed-avg=15]
    [--network bigru] [--subject type-vector] [--kb build/sample.kb --train FILE --valid FILE --test FILE]

On FBSQ, the default, it takes about two hours of one idle core with all epochs of the profile; --epochs reduces the
epochs of every model, or of one. Finished trainings and comparisons are not repeated; a limit takes the first questions
of every file. The epochs of each model are printed below the tables.
"""

import argparse
from collections.abc import Container, Mapping
from pathlib import Path

import torch
from fbsq import SMALL, first_lines, parse, questions, sources
from figures import show_table
from paper_tables import AVERAGED, NETWORKS, PRUNINGS, SUBJECTS, paper_sections

import kbtools
from kbtools.comparison.experiment import Request, compare
from kbtools.comparison.grid import Grid
from kbtools.comparison.summary import make_report, terminal_table
from kbtools.indexers.building.build import BuildProgress, build
from kbtools.indexers.readers.reading import ReadOptions
from kbtools.kb.contract import KnowledgeBase
from kbtools.ranking.models import ENTITIES, RELATION, SUBJECT, TAGGER
from kbtools.ranking.trained import read_systems
from kbtools.scorers.fitting.profiles import PLANS, profile_settings
from kbtools.scorers.fitting.splits import Splits
from kbtools.scorers.fitting.training import change_known, train

PLAN = PLANS["paper"]

MODELS = (
    (TAGGER, PLAN.tagger),
    *((RELATION, name) for name in NETWORKS),
    (ENTITIES, "transe"),
    *((SUBJECT, name) for name in (*SUBJECTS, AVERAGED)),
)
"""In the order of training: the vectors of TransE are what the subject scorer `transe` starts from."""


def read_epochs(options: list[str]) -> dict[str, int]:
    """Return the epochs of models by name; an empty name stands for all others."""
    epochs = {}
    for option in options:
        name, _, count = option.rpartition("=")
        epochs[name] = int(count)
    return epochs


def train_models(
    kb: KnowledgeBase,
    splits: Splits,
    models: Path,
    *,
    epochs: Mapping[str, int],
    words: str | None,
    wanted: Container[str],
) -> list[list[str]]:
    """Train the models of the tables, ranked by Eq. 4, and return a row of figures for each."""
    trained = []
    for part, name in MODELS:
        if part != TAGGER and name not in wanted:
            continue
        whole = profile_settings("paper", part, name)
        # What is said of one model goes before what is said of all.
        said = [epochs[key] for key in (f"{part}/{name}", name, "") if key in epochs]
        changes = ({"epochs": said[0]} if said else {}) | ({"words": words} if words else {})
        settings = change_known(whole, changes)
        model = train(kb, splits, part=part, name=name, settings=settings, models=models)
        seconds = f"{model.figures['seconds']:,.0f}"
        figures = [f"{key} {100 * value:.1f} %" for key, value in model.figures.items() if key != "seconds"]
        print(f"{part} {name}: {', '.join(figures)}", flush=True)
        epochs_of = f"{settings.fit.epochs} of {whole.fit.epochs}"
        trained.append([f"`{name}`", epochs_of, ", ".join(figures), seconds])
    read_systems(models).choose(PLAN.system(typed=True))
    return trained


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kb", type=Path, default=Path("build/fbsq.kb"))
    for split in ("train", "valid", "test"):
        parser.add_argument(f"--{split}", type=Path, default=questions(split))
    parser.add_argument("--out", type=Path, default=Path("build/table1"))
    parser.add_argument("--network", action="append", choices=NETWORKS, help="of relations; all by default")
    parser.add_argument("--subject", action="append", choices=[*SUBJECTS, AVERAGED], help="scorer; all by default")
    parser.add_argument("--limit", type=int, help="take only the first questions of every file")
    parser.add_argument("--epochs", action="append", default=[], help="of all models; of one NAME=N, or PART/NAME=N")
    parser.add_argument("--words", help="word vectors of all models; those of the profile by default")
    arguments = parse(parser, limit=20, epochs=["1"], words="random", out=SMALL / "table1")
    torch.set_num_threads(1)
    if not arguments.kb.exists():
        build(sources(), arguments.kb, options=ReadOptions(), watch=BuildProgress())
    models, slices = arguments.out / "models", arguments.out / "questions"
    slices.mkdir(parents=True, exist_ok=True)
    train_file, valid_file, test_file = (
        first_lines(path, arguments.limit, slices) for path in (arguments.train, arguments.valid, arguments.test)
    )
    kb = kbtools.open(arguments.kb).kb
    splits = Splits.read(kb, train=train_file, valid=valid_file)
    networks, subjects = tuple(arguments.network or NETWORKS), tuple(arguments.subject or (*SUBJECTS, AVERAGED))
    epochs, wanted = read_epochs(arguments.epochs), {*networks, *subjects}
    trained = train_models(kb, splits, models, epochs=epochs, words=arguments.words, wanted=wanted)
    grid = Grid(tuple(PRUNINGS), networks, subjects)
    request = Request(test_file, arguments.out / "run", grid, arguments.kb)
    report = make_report(compare(kbtools.open(arguments.kb, models=models), request))
    print(terminal_table(report))
    for section in paper_sections(report):
        print("\n" + section.title + ". " + section.lead)
        show_table(section.title, section.head, section.rows)
    show_table("models", ["model", "epochs", "on the validation questions", "CPU seconds of training"], trained)
    print(f"\nn = {len(report.run):,} test questions, {len(splits.train):,} to learn from")


if __name__ == "__main__":
    main()
