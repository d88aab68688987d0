"""Boosted trees as arrays: scores, and what each feature adds to them, without the library that grew the trees.

A query need not import LightGBM, whose own contributions, exact Shapley values, take a millisecond a candidate.
"""

import re
from typing import Self

import numpy as np
from numpy.typing import NDArray

MOST_LEAVES = 64
"""Leaves of a tree: each is a bit of an integer."""

AT_ONCE = 32
"""Candidates that are looked at together: the splits of 400 trees for so many fit the cache of a core."""

CHILDREN = ("left_child", "right_child")

ALL = np.uint64(2**64 - 1)
"""The leaves that a split keeps whose feature is not above its threshold: all."""

Floats = NDArray[np.float64]


class TreeEnsemble:
    """Trees whose splits lie end to end, each the leaves that it rules out where a feature is above its threshold.

    Of the leaves that no split on the way rules out, the first is the one that a candidate falls into: with all splits
    looked at together no tree is walked (QuickScorer; Lucchese et al. 2015).
    """

    def __init__(self, trees: list[dict[str, list[str]]], features: int) -> None:
        self.features = features
        columns: list[NDArray[np.int64]] = []
        thresholds: list[Floats] = []
        kept: list[NDArray[np.uint64]] = []
        self.values = np.zeros((len(trees), MOST_LEAVES))
        self.added = np.zeros((len(trees), MOST_LEAVES, features))
        self.expected = np.zeros(len(trees))
        for number, tree in enumerate(trees):
            split, threshold, masks = self.read_tree(number, tree)
            columns.append(split)
            thresholds.append(threshold)
            kept.append(masks)
        sizes = np.array([len(split) for split in columns])
        self.starts = np.cumsum(sizes) - sizes
        self.columns, self.thresholds = np.concatenate(columns), np.concatenate(thresholds)
        self.kept = np.concatenate(kept)

    @classmethod
    def parse(cls, text: str, *, features: int) -> Self:
        """Read the trees of a model that LightGBM wrote."""
        blocks = re.split(r"^Tree=\d+\n", text.partition("\nend of trees")[0], flags=re.MULTILINE)[1:]
        fields = (dict(line.split("=", 1) for line in block.splitlines() if "=" in line) for block in blocks)
        return cls([{name: value.split() for name, value in tree.items()} for tree in fields], features)

    def read_tree(
        self, number: int, tree: dict[str, list[str]]
    ) -> tuple[NDArray[np.int64], Floats, NDArray[np.uint64]]:
        """Fill in the leaves of a tree; give the features of its splits, their thresholds, and the leaves they keep."""
        leaves = [float(value) for value in tree["leaf_value"]]
        if len(leaves) == 1:  # a tree that found no split: one that rules out nothing stands for its splits
            self.values[number], self.expected[number] = leaves[0], leaves[0]
            return np.zeros(1, dtype=np.int64), np.full(1, np.inf), np.full(1, ALL)
        counts = [float(count) for count in tree["leaf_count"]]
        split, left, right = ([int(part) for part in tree[name]] for name in ("split_feature", *CHILDREN))
        masks = np.zeros(len(split), dtype=np.uint64)
        added = self.added[number]
        place = 0

        # Leaves are numbered from left to right; a child below zero is a leaf, of the number beyond.
        def walk(node: int) -> tuple[int, float, float]:
            """Number the leaves below a node; give their bits, their mean value and their count."""
            nonlocal place
            if node < 0:
                own, place = place, place + 1
                self.values[number, own] = leaves[~node]
                return 1 << own, leaves[~node], counts[~node]
            first = place
            below = [walk(child) for child in (left[node], right[node])]
            masks[node] = ALL ^ np.uint64(below[0][0])
            total = below[0][2] + below[1][2]
            mean = sum(value * count for _, value, count in below) / total
            middle = first + below[0][0].bit_count()
            # Going left or right moves the mean of the leaves ahead: what the split's feature adds.
            added[first:middle, split[node]] += below[0][1] - mean
            added[middle:place, split[node]] += below[1][1] - mean
            return below[0][0] | below[1][0], mean, total

        self.expected[number] = walk(0)[1]
        return np.array(split), np.array(tree["threshold"], dtype=np.float64), masks

    def leaves(self, values: Floats) -> NDArray[np.int64]:
        """Find the leaf of each tree that candidates fall into: (candidates, features) -> (candidates, trees)."""
        kept = np.where(values[:, self.columns] > self.thresholds, self.kept, ALL)
        remaining = np.bitwise_and.reduceat(kept, self.starts, axis=1)
        # The lowest bit that is set is a power of two, which a float holds exactly.
        lowest = remaining & (~remaining + np.uint64(1))
        return np.log2(lowest.astype(np.float64)).astype(np.int64)

    def predict(self, values: Floats) -> Floats:
        """Add up the leaves that candidates fall into, less what all have in common: (candidates,)."""
        trees = np.arange(len(self.expected))
        blocks = [np.empty(0)]
        for first in range(0, len(values), AT_ONCE):
            leaves = self.leaves(values[first : first + AT_ONCE])
            blocks.append((self.values[trees, leaves] - self.expected).sum(axis=1))
        return np.concatenate(blocks)

    def contributions(self, values: Floats) -> Floats:
        """Give what each feature adds, by the splits on the way to the leaves: (candidates, features)."""
        trees = np.arange(len(self.expected))
        added = np.empty((len(values), self.features))
        for row in range(len(values)):  # one by one: a megabyte each
            (leaves,) = self.leaves(values[row : row + 1])
            added[row] = self.added[trees, leaves].sum(axis=0)
        return added
