"""Fuzzy look-up of misspelt names: how often the entity is found, how often it is first, and CPU milliseconds.

python benchmarks/fuzzy.py [--titles 900000 --kb build/large.kb] [--limit 3000]

A knowledge base that does not exist is built of the names of `make bench`, with as many titles of DBpedia as given. The
ranking was neither fitted nor chosen on these variants (benchmarks/make_near_ranking.py). A variant is a real spelling
of an entity, one or two edits from its name. If the variant itself is an alias, it is neither a result nor counted
among the names of its entity, so that every entity must be found by another name.
"""

import argparse
import random
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from bench_inputs import write_inputs
from fbsq import names_file, parse
from figures import show_table
from variants import bearers, bearers_without, nearest_by_edits, stored_variants

import kbtools
from kbtools.indexers.building.build import BuildProgress, build
from kbtools.indexers.readers.reading import ReadOptions, Source
from kbtools.linking.near_ranking import rank_names

SEED = 1
LISTED = 20
"""The names that `similar` returns."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kb", type=Path, default=Path("build/bench.kb"))
    parser.add_argument("--titles", type=int, default=200_000, help="titles of DBpedia beside FBSQ's entities")
    parser.add_argument("--variants", type=Path, default=names_file("variants.tsv.gz"))
    parser.add_argument("--limit", type=int, default=3000)
    arguments = parse(parser, limit=20)
    if not arguments.kb.exists():
        inputs = write_inputs(Path("build", "bench", "inputs"), titles=arguments.titles)
        sources = [Source(inputs.facts, "facts"), Source(inputs.names, "names"), Source(inputs.types, "types")]
        build(sources, arguments.kb, options=ReadOptions(), watch=BuildProgress())
    kb: Any = kbtools.open(arguments.kb).kb
    pairs = stored_variants(kb, arguments.variants)
    pairs = random.Random(SEED).sample(pairs, min(arguments.limit, len(pairs)))
    for variant, _ in pairs[:200]:  # the first round reads pages from the disk
        kb.similar([variant])[0]
    recalled, first, by_edits_alone, seconds = 0, 0, 0, []
    for variant, name in pairs:
        begun = time.process_time()
        kb.similar([variant])
        seconds.append(time.process_time() - begun)
        nearest = nearest_by_edits(kb, variant)
        near = rank_names(variant, nearest, bearers=partial(bearers_without, kb, variant))[:LISTED]
        (wanted,) = bearers(kb, [name])
        hits = [bool(wanted & rows) for rows in bearers(kb, [similar.form for similar in near])]
        recalled += any(hits)
        first += hits[:1] == [True]
        by_edits_alone += any(wanted & rows for rows in bearers(kb, [similar.form for similar in nearest[:1]]))
    times = np.percentile(seconds, [50, 99]) * 1000
    count = len(pairs)
    show_table(
        "near",
        ("variants", "forms", "among the first twenty", "first", "first by edits alone", "CPU ms, p50 / p99"),
        [(f"{count:,}", f"{kb.manifest.statistics['forms']:,}", f"{recalled / count:.2%}", f"{first / count:.2%}",
          f"{by_edits_alone / count:.2%}", "{:.2f} / {:.2f}".format(*times))],
    )  # fmt: skip


if __name__ == "__main__":
    main()
