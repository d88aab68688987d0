"""Make the trees that rank the names near a misspelt one: kbtools/linking/near_names.txt.

python benchmarks/make_near_ranking.py --kb build/large.kb --kb build/bench.kb      (made by benchmarks/fuzzy.py)

They are fitted on 6,000 variants, half of them from each of two knowledge bases of different size; rounds and leaves
are chosen on others. It prints how often the entity is first for 3,000 variants with other names, in the order that it
has made and in simpler ones.
"""

import argparse
import random
import re
from collections.abc import Callable, Iterable
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from fbsq import SMALL, names_file, parse
from figures import show_table
from numpy.typing import NDArray
from variants import CHOOSE, FIT, REPORT, bearers, nearest_by_edits, stored_variants

import kbtools
from kbtools.entry_points import import_object
from kbtools.linking import near_ranking
from kbtools.linking.near_ranking import FEATURES, features_of
from kbtools.scorers.rankers.boosted_ranker import PARAMETERS, softmax_objective
from kbtools.tree_ensemble import TreeEnsemble

SEED = 1
SIZES = {FIT: 6_000, CHOOSE: 1_500, REPORT: 3_000}
LEAVES, ROUNDS = (7, 15), (60, 100, 150)
LEARNING = {"learning_rate": 0.1, "min_data_in_leaf": 20, "seed": SEED}
KEPT = ("split_feature", "threshold", "left_child", "right_child", "leaf_value", "leaf_count")

Floats = NDArray[np.float64]


class Near(NamedTuple):
    """The names near a variant, the fewest edits away first: their features, and which have the entity as bearer."""

    features: Floats
    right: NDArray[np.bool_]


def collect(kb: Any, pairs: Iterable[tuple[str, str]]) -> list[Near]:
    """Look up variants; the features are empty if no name is near."""
    collected = []
    for variant, name in pairs:
        near = nearest_by_edits(kb, variant)
        (wanted,) = bearers(kb, [name])
        forms = [similar.form for similar in near]
        right = np.array([bool(wanted & rows) for rows in bearers(kb, forms)], dtype=bool)
        features = features_of(variant, near, kb.popularity(forms)) if near else np.empty((0, len(FEATURES)))
        collected.append(Near(features, right))
    return collected


def share_first(near: list[Near], score: Callable[[Floats], Floats]) -> float:
    """Return how often the first name is right; ties are in the order of edits."""
    return float(np.mean([len(own.right) > 0 and bool(own.right[np.argmax(score(own.features))]) for own in near]))


def grow(near: list[Near], *, leaves: int, rounds: int) -> Any:
    """Fit trees by the cross entropy of the softmax over the names near a variant; the right names share the gold."""
    near = [own for own in near if own.right.any() and not own.right.all()]
    gold = np.concatenate([own.right / own.right.sum() for own in near])
    sizes = np.array([len(own.right) for own in near])
    data = import_object("lightgbm:Dataset")(np.concatenate([own.features for own in near]), label=gold, group=sizes)
    parameters = PARAMETERS | LEARNING | {"num_leaves": leaves, "objective": softmax_objective(gold, sizes)}
    return import_object("lightgbm:train")(parameters, data, num_boost_round=rounds)


def compact(text: str) -> str:
    """Return the evaluated lines of the text of a model, with numbers of five digits."""
    lines = [line for line in text.partition("\nend of trees")[0].split("\n") if line.split("=")[0] in (*KEPT, "Tree")]
    numbers = re.compile(r"-?\d+\.\d+(e[-+]\d+)?")
    return numbers.sub(lambda number: f"{float(number[0]):.5g}", "\n".join(lines)) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kb", type=Path, action="append")
    parser.add_argument("--variants", type=Path, default=names_file("variants.tsv.gz"))
    parser.add_argument("--out", type=Path, default=Path(near_ranking.__file__).with_name(near_ranking.TREES))
    arguments = parse(parser, kb=[SMALL / "sample.kb"], out=SMALL / near_ranking.TREES)
    bases = [kbtools.open(path).kb for path in arguments.kb or [Path("build/large.kb"), Path("build/bench.kb")]]
    parts: dict[str, list[list[Near]]] = {part: [] for part in SIZES}
    for kb, (part, size) in product(bases, SIZES.items()):
        pairs = stored_variants(kb, arguments.variants, part)
        size = size // len(bases) if part == FIT else size
        parts[part].append(collect(kb, random.Random(SEED).sample(pairs, min(size, len(pairs)))))
    fitted, chosen = ([own for near in parts[part] for own in near] for part in (FIT, CHOOSE))
    best, trees = max(
        ((share_first(chosen, model.predict), model) for leaves, rounds in product(LEAVES, ROUNDS)
         for model in [grow(fitted, leaves=leaves, rounds=rounds)]),
        key=lambda pair: pair[0],
    )  # fmt: skip
    text = compact(trees.model_to_string())
    arguments.out.write_text(text, encoding="utf-8")
    made = TreeEnsemble.parse(text, features=len(FEATURES))
    print(f"{trees.num_trees()} trees of {trees.params['num_leaves']} leaves, chosen on {len(chosen):,}: {best:.4f}")
    similarity, edits, popular = map(FEATURES.index, ("similarity", "edits", "names of a bearer"))
    orders: dict[str, Callable[[Floats], Floats]] = {
        "similarity, then popularity": lambda features: features[:, similarity] + features[:, popular] / 1_000,
        "edits, then similarity": lambda features: -features[:, edits],
        "the trees": made.predict,
    }
    rows = [
        (f"{kb.manifest.statistics['forms']:,}", order, f"{share_first(near, score):.2%}")
        for kb, near in zip(bases, parts[REPORT], strict=True)
        for order, score in orders.items()
    ]
    show_table("orders", ("forms", "order of the same names", "first"), rows)


if __name__ == "__main__":
    main()
