"""The learning rates at which AdaGrad learns with the paper's momentum, with summed and with averaged steps.

python benchmarks/momentum.py [--part relation --name bigru] [--questions 3000] [--epochs 3] [--rate 0.02 ...]
    [--models DIR]

It trains a model of the profile `paper` on FBSQ, or on another knowledge base (--kb, --train, --valid). A rate diverges
if the loss rises above that of a network with equal scores, 102.4 for the hinge of 1,024 negatives.
"""

import argparse
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from fbsq import first_lines, parse, questions
from figures import show_table

import kbtools
from kbtools.errors import NonFiniteLoss
from kbtools.ranking.models import GROUPS
from kbtools.scorers.fitting.profiles import profile_settings
from kbtools.scorers.fitting.splits import Splits
from kbtools.scorers.fitting.training import load_trainable
from kbtools.scorers.fitting.training_loop import SelfFitting, fit
from kbtools.scorers.networks.training_settings import change_settings

MEASURED = 1_000
"""Validation questions."""

SHARES = (1.0, 0.5, 0.25, 0.1)
"""Shares of the paper's rate that are tried; averaged steps are a tenth of those that add up."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kb", type=Path, default=Path("build/fbsq.kb"))
    parser.add_argument("--train", type=Path, default=questions("train"))
    parser.add_argument("--valid", type=Path, default=questions("valid"))
    parser.add_argument("--part", default="relation", choices=list(GROUPS))
    parser.add_argument("--name", default="bigru")
    parser.add_argument("--models", type=Path, default=Path(), help="the folder with the vectors of TransE")
    parser.add_argument("--questions", type=int, default=3_000)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--rate", type=float, action="append", help="a learning rate; may be repeated")
    arguments = parse(parser, questions=20, epochs=1, rate=[0.002], models=Path())
    torch.set_num_threads(1)
    kb = kbtools.open(arguments.kb).kb
    with TemporaryDirectory() as name:
        train = first_lines(arguments.train, arguments.questions, Path(name))
        splits = Splits.read(kb, train=train, valid=first_lines(arguments.valid, MEASURED, Path(name)))
    rows = []
    for optimiser in ("adagrad", "adagrad-averaged"):
        paper = profile_settings("paper", arguments.part, arguments.name)
        for rate in arguments.rate or [share * paper.fit.learning_rate for share in SHARES]:
            changes = {"optimiser": optimiser, "learning_rate": rate, "epochs": arguments.epochs, "known_words": 0}
            settings = change_settings(paper, changes)
            task = load_trainable(arguments.part, arguments.name).task(kb, splits, settings, models=arguments.models)
            begun = time.process_time()
            try:
                assert not isinstance(task, SelfFitting), "a network alone has an optimiser"
                epochs = fit(task, settings.fit)
            except NonFiniteLoss as error:
                rows.append([optimiser, f"{rate:g}", str(error), "", "", ""])
                continue
            share = 100 * next(iter(epochs[-1].figures.values()))
            figures = (epochs[0].loss, epochs[-1].loss, share)
            seconds = f"{time.process_time() - begun:.0f}"
            rows.append([optimiser, f"{rate:g}", *(f"{figure:.2f}" for figure in figures), seconds])
    show_table("rates", ("optimiser", "rate", "first loss", "last loss", "right, %", "CPU s"), rows)


if __name__ == "__main__":
    main()
