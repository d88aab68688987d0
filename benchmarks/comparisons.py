"""The comparisons in docs/compare.md: every pruner without training, with default and with tuned weights.

python benchmarks/comparisons.py [--kb build/fbsq.kb] [--out build/comparisons] [--limit N]
python benchmarks/comparisons.py --models build/models        # trained systems instead
"""

import argparse
from pathlib import Path

from fbsq import SMALL, parse, questions, sources
from figures import show_table

import kbtools
from kbtools.comparison.experiment import Request, compare
from kbtools.comparison.grid import Grid
from kbtools.comparison.report_files import make_sections
from kbtools.comparison.summary import make_report
from kbtools.indexers.building.build import BuildProgress, build
from kbtools.indexers.readers.reading import ReadOptions
from kbtools.pruning import UNGUIDED

PRUNERS = ("n-gram", "n-gram+", "focused", "focused-k")
SCORERS = ("embed-avg", "bigru", "ltg-cnn+")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kb", type=Path, default=Path("build/fbsq.kb"))
    parser.add_argument("--out", type=Path, default=Path("build/comparisons"))
    parser.add_argument("--models", type=Path, help="compare systems with these models")
    parser.add_argument("--subject", default="type-vector", help="the subject scorer of the trained systems")
    parser.add_argument("--limit", type=int, help="take only the first questions")
    arguments = parse(parser, out=SMALL / "comparisons", limit=10, subject="type-cosine")
    build(sources(), arguments.kb, options=ReadOptions(), watch=BuildProgress())
    untrained = dict.fromkeys(("default", "tuned"), Grid(UNGUIDED))
    trained = {"trained": Grid(PRUNERS, SCORERS, (arguments.subject,))} if arguments.models else {}
    grids = untrained | trained if arguments.small else trained or untrained
    with kbtools.open(arguments.kb, models=arguments.models) as answerer:
        for name, grid in grids.items():
            valid = questions("valid") if name in untrained else None
            out, tune = arguments.out / name, name == "tuned"
            request = Request(questions("test"), out, grid, arguments.kb, arguments.limit, valid=valid, tune=tune)
            for section in make_sections(make_report(compare(answerer, request))):
                show_table(f"{name}: {section.title.lower()}", section.head, section.rows)


if __name__ == "__main__":
    main()
