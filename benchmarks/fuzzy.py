"""Fuzzy look-up of misspelt names: how often the entity is found, how often first, and CPU milliseconds.

python benchmarks/fuzzy.py --kb scale.kb --variants variants.tsv.gz [--limit 3000]

They are variants that the ranking was neither fitted nor chosen on (benchmarks/make_near_ranking.py).
A variant is a spelling that people use for an entity, one or two edits from its name. The variant itself is left out
of what is found, also where the knowledge base has it as an alias, so that every one has to be found by another name.
"""

import argparse
import random
import time
from pathlib import Path

import numpy as np
from variants import bearers, stored_variants

import kbtools

SEED = 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kb", type=Path, required=True)
    parser.add_argument("--variants", type=Path, required=True)
    parser.add_argument("--limit", type=int, default=3000)
    arguments = parser.parse_args()
    kb = kbtools.open(arguments.kb).kb
    pairs = stored_variants(kb, arguments.variants)
    pairs = random.Random(SEED).sample(pairs, min(arguments.limit, len(pairs)))
    for variant, _ in pairs[:200]:  # the first round reads pages from the disk
        kb.similar([variant])[0]
    recalled, first, seconds = 0, 0, []
    for variant, name in pairs:
        begun = time.process_time()
        near = kb.similar([variant])[0]
        seconds.append(time.process_time() - begun)
        (wanted,) = bearers(kb, [name])
        hits = [bool(wanted & rows) for rows in bearers(kb, [similar.form for similar in near])]
        recalled += any(hits)
        first += hits[:1] == [True]
    p50, p99 = np.percentile(seconds, [50, 99]) * 1000
    count = len(pairs)
    print(f"{count:,} variants among {kb.manifest.statistics['forms']:,} forms: "
          f"recall@20 {recalled / count:.4f}, first {first / count:.4f}; "
          f"CPU ms mean {1000 * np.mean(seconds):.2f}, p50 {p50:.2f}, p99 {p99:.2f}")  # fmt: skip


if __name__ == "__main__":
    main()
