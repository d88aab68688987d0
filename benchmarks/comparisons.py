"""The comparison in docs/compare.md: every pruner without training, with default and with tuned weights.

python benchmarks/comparisons.py [--kb build/fbsq.kb] [--out build/comparisons] [--limit N]
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kb", type=Path, default=Path("build/fbsq.kb"))
    parser.add_argument("--out", type=Path, default=Path("build/comparisons"))
    parser.add_argument("--limit", type=int, help="take only the first questions")
    arguments = parse(parser, out=SMALL / "comparisons", limit=10)
    build(sources(), arguments.kb, options=ReadOptions(), watch=BuildProgress())
    with kbtools.open(arguments.kb) as answerer:
        for weights in ("default", "tuned"):
            request = Request(
                questions("test"),
                arguments.out / weights,
                Grid(UNGUIDED),
                arguments.kb,
                valid=questions("valid"),
                tune=weights == "tuned",
                limit=arguments.limit,
            )
            for section in make_sections(make_report(compare(answerer, request))):
                show_table(f"{weights}: {section.title.lower()}", section.head, section.rows)


if __name__ == "__main__":
    main()
