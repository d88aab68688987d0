"""The number of sampled subjects with a loss at the start of training, by alpha in Eq. 12, which the paper leaves open.

python benchmarks/silenced.py [--kb build/fbsq.kb] [--questions 500]

The subject scorer is `random` of the profile `paper`. A sampled subject without the gold relation has no loss while
alpha exceeds the margin and the vectors are still small.
"""

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from fbsq import first_lines, parse, questions
from figures import show_table

import kbtools
from kbtools.ranking.models import SUBJECT
from kbtools.scorers.fitting.profiles import profile_settings
from kbtools.scorers.fitting.splits import Splits
from kbtools.scorers.fitting.training import load_trainable
from kbtools.scorers.subjects import subject_training

ALPHAS = (0.0, 0.05, subject_training.ALPHA)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kb", type=Path, default=Path("build/fbsq.kb"))
    parser.add_argument("--questions", type=int, default=500)
    arguments = parse(parser, questions=20)
    torch.set_num_threads(1)
    kb = kbtools.open(arguments.kb).kb
    with TemporaryDirectory() as folder:
        train, valid = (
            first_lines(questions(split), arguments.questions, Path(folder)) for split in ("train", "valid")
        )
        splits = Splits.read(kb, train=train, valid=valid)
    settings = profile_settings("paper", SUBJECT, "random")
    task = load_trainable(SUBJECT, "random").task(kb, splits, settings, models=Path())
    assert isinstance(task, subject_training.SubjectTask)
    rows = []
    for alpha in ALPHAS:
        subject_training.ALPHA = alpha
        torch.manual_seed(1)
        with torch.no_grad():
            # One by one, since a batch has questions of one length.
            losses = torch.cat([task.sample_losses(np.array([row])) for row in range(len(task.rows))])
        own = (losses > 0).float().sum(dim=1).mean()
        rows.append((f"{alpha:g}", f"{own:.0f}", f"{losses.sum(dim=1).mean():.1f}"))
    subject_training.ALPHA = ALPHAS[-1]
    margin, samples = task.config.margin, task.config.negatives
    show_table("silenced", ("alpha", f"of {samples:,} sampled subjects, with a loss", f"loss, margin {margin:g}"), rows)


if __name__ == "__main__":
    main()
