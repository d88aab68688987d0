"""Make the learned order of the names near a misspelt one: kbtools/linking/near_names.txt.

python benchmarks/make_near_ranking.py --kb build/fb5m.kb --kb build/bench.kb      (benchmarks/fuzzy.py makes both)

The file has the weights of the kinds of edits, one a line, and trees. Both are fitted on variants from each of two
knowledge bases of different size; rounds and leaves are chosen on others. It prints how often the entity is first for
3,000 variants with other names, in the order that it has made and in simpler ones.
"""

import argparse
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from fbsq import SMALL, names_file, parse
from figures import show_table
from numpy.typing import NDArray
from variants import CHOOSE, FIT, REPORT, bearers, bearers_without, nearest_by_edits, stored_variants

import kbtools
from kbtools.entry_points import import_object
from kbtools.kb.contract import SimilarName
from kbtools.linking import near_ranking
from kbtools.linking.near_ranking import FEATURES, Bearer, features_of, kinds_of_edits, order_by_entity
from kbtools.scorers.rankers.boosted_ranker import PARAMETERS, softmax_objective
from kbtools.tree_ensemble import TreeEnsemble

SEED = 1
SIZES = {FIT: 30_000, CHOOSE: 12_000, REPORT: 3_000}
"""The most variants of each part from one knowledge base."""

LEAVES, ROUNDS = (7, 15), (100, 150)
LEARNING = {"learning_rate": 0.1, "min_data_in_leaf": 20, "seed": SEED, "monotone_constraints_method": "intermediate"}
KEPT = ("split_feature", "threshold", "left_child", "right_child", "leaf_value", "leaf_count")

DIRECTIONS = {"names of a bearer": 1, "names below the most": -1}
"""The features that can only raise (1) or only lower (-1) a score: more names never make an entity less likely."""

RAREST, SHRINKAGE = 30, 3.0
"""A kind of edit in fewer names has no weight; the other weights are shrunk by this much, as by an L2 penalty."""

Floats = NDArray[np.float64]


class Near(NamedTuple):
    """The names near a variant, the fewest edits away first, their bearers, and which have the entity as bearer."""

    variant: str
    names: list[SimilarName]
    bearers: list[Bearer]
    right: NDArray[np.bool_]

    def features(self, weights: Mapping[str, float]) -> Floats:
        """Return the features of the names, empty if there are none."""
        if not self.names:
            return np.empty((0, len(FEATURES)))
        return features_of(self.variant, self.names, [bearer.names for bearer in self.bearers], weights=weights)

    @property
    def decides(self) -> bool:
        """Whether some names are right and some are not."""
        return bool(self.right.any() and not self.right.all())


def collect(kb: Any, pairs: Iterable[tuple[str, str]]) -> list[Near]:
    """Look up variants."""
    collected = []
    for variant, name in pairs:
        names = nearest_by_edits(kb, variant)
        forms = [similar.form for similar in names]
        (wanted,) = bearers(kb, [name])
        right = np.array([bool(wanted & rows) for rows in bearers(kb, forms)], dtype=bool)
        collected.append(Near(variant, names, bearers_without(kb, variant, forms) if forms else [], right))
    return collected


def share_first(near: Sequence[Near], order: Callable[[Near], Sequence[int]]) -> float:
    """Return how often the first name is right."""
    return float(np.mean([len(own.right) > 0 and bool(own.right[order(own)[0]]) for own in near]))


def share_of_model(near: Sequence[Near], features: Sequence[Floats], model: Any) -> float:
    """Return how often the first name is right if names are ordered by entity, by the scores of a model."""
    scores = np.split(model.predict(np.concatenate(features)), np.cumsum([len(own.right) for own in near])[:-1])
    scored = {id(own): own_scores for own, own_scores in zip(near, scores, strict=True)}
    return share_first(near, lambda own: order_by_entity(scored[id(own)], own.bearers))


def fit_weights(near: Sequence[Near]) -> dict[str, float]:
    """Fit the weights of kinds of edits: a linear model of the softmax over the names near a variant."""
    near = [own for own in near if own.decides]
    kinds = [list(kinds_of_edits(own.variant, name.form)) for own in near for name in own.names]
    counts = Counter(kind for own_kinds in kinds for kind in set(own_kinds))
    place = {kind: at for at, kind in enumerate(sorted(kind for kind, count in counts.items() if count >= RAREST))}
    rows = [row for row, own_kinds in enumerate(kinds) for kind in own_kinds if kind in place]
    columns = [place[kind] for own_kinds in kinds for kind in own_kinds if kind in place]
    edits = import_object("scipy.sparse:csr_matrix")((np.ones(len(rows)), (rows, columns)), (len(kinds), len(place)))
    gold = np.concatenate([own.right / own.right.sum() for own in near])
    sizes = np.array([len(own.right) for own in near])
    starts = np.cumsum(sizes) - sizes

    def loss(weights: Floats) -> tuple[float, Floats]:
        scores = edits @ weights
        scores -= np.repeat(np.maximum.reduceat(scores, starts), sizes)
        scores -= np.repeat(np.log(np.add.reduceat(np.exp(scores), starts)), sizes)
        penalty = SHRINKAGE * weights
        return float(penalty @ weights / 2 - gold @ scores), edits.T @ (np.exp(scores) - gold) + penalty

    fitted = import_object("scipy.optimize:minimize")(loss, np.zeros(len(place)), jac=True, method="L-BFGS-B")
    return dict(zip(place, fitted.x.round(3).tolist(), strict=True))


def grow(near: Sequence[Near], features: Sequence[Floats], *, leaves: int, rounds: int) -> Any:
    """Fit trees by the cross entropy of the softmax over the names near a variant; the right names share the gold."""
    deciding = [(own, own_features) for own, own_features in zip(near, features, strict=True) if own.decides]
    gold = np.concatenate([own.right / own.right.sum() for own, _ in deciding])
    sizes = np.array([len(own.right) for own, _ in deciding])
    values = np.concatenate([own_features for _, own_features in deciding])
    data = import_object("lightgbm:Dataset")(values, label=gold, group=sizes)
    parameters = PARAMETERS | LEARNING | {"num_leaves": leaves, "objective": softmax_objective(gold, sizes)}
    parameters["monotone_constraints"] = [DIRECTIONS.get(name, 0) for name in FEATURES]
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
    bases = [kbtools.open(path).kb for path in arguments.kb or [Path("build/fb5m.kb"), Path("build/bench.kb")]]
    parts: dict[str, list[list[Near]]] = {part: [] for part in SIZES}
    for kb, (part, size) in product(bases, SIZES.items()):
        pairs = stored_variants(kb, arguments.variants, part)
        parts[part].append(collect(kb, random.Random(SEED).sample(pairs, min(size, len(pairs)))))
    fitted, chosen = ([own for near in parts[part] for own in near] for part in (FIT, CHOOSE))
    # The trees learn from weights that were fitted on other variants, as those of later misspellings will be.
    halves = fitted[::2], fitted[1::2]
    weights = [fit_weights(half) for half in halves]
    features = [own.features(other) for half, other in zip(halves, weights[::-1], strict=True) for own in half]
    final = fit_weights(fitted)
    chosen_features = [own.features(final) for own in chosen]
    best, trees = max(
        ((share_of_model(chosen, chosen_features, model), model) for leaves, rounds in product(LEAVES, ROUNDS)
         for model in [grow([*halves[0], *halves[1]], features, leaves=leaves, rounds=rounds)]),
        key=lambda pair: pair[0],
    )  # fmt: skip
    text = compact(trees.model_to_string())
    made = TreeEnsemble.parse(text, features=len(FEATURES))
    arguments.out.write_text("".join(f"{kind}\t{weight}\n" for kind, weight in final.items()) + text, encoding="utf-8")
    print(f"{trees.num_trees()} trees of {trees.params['num_leaves']} leaves, chosen on {len(chosen):,}: {best:.4f}")
    similarity, popular = map(FEATURES.index, ("similarity", "names of a bearer"))

    def popularity(own: Near) -> list[int]:
        features = own.features(final)
        return np.argsort(-features[:, similarity] - features[:, popular] / 1_000, kind="stable").tolist()  # type: ignore[no-any-return]

    def by_trees(own: Near) -> list[int]:
        return np.argsort(-made.predict(own.features(final)), kind="stable").tolist()  # type: ignore[no-any-return]

    orders: dict[str, Callable[[Near], Sequence[int]]] = {
        "similarity, then popularity": popularity,
        "edits, then similarity": lambda own: range(len(own.right)),
        "the trees, name by name": by_trees,
        "the trees, by entity": lambda own: order_by_entity(made.predict(own.features(final)), own.bearers),
    }
    rows = [
        (f"{kb.manifest.statistics['forms']:,}", order, f"{share_first(near, places):.2%}")
        for kb, near in zip(bases, parts[REPORT], strict=True)
        for order, places in orders.items()
    ]
    show_table("orders", ("forms", "order of the same names", "first"), rows)


if __name__ == "__main__":
    main()
