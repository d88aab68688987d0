"""Boosted trees as arrays: scores, and what each feature adds to them, without the library that grew the trees.

A query need not import LightGBM, whose own contributions, exact Shapley values, take a millisecond a candidate.
"""

import re
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

MASKS = {16: np.uint16, 64: np.uint64}
"""The integers that have a bit for each leaf of a tree, by the most leaves that they have room for."""

AT_ONCE = 256
"""Candidates that are looked at together: their leaves in 400 trees fit the cache of a core."""

EXPONENT, BIAS = 23, 127
"""Where the exponent lies in a float of 32 bits, and what is added to it."""

CHILDREN = ("left_child", "right_child")
FIELDS = ("leaf_value", "leaf_count", "split_feature", "threshold", *CHILDREN)
"""What is read of a tree; one of a single leaf has its value alone."""

Floats = NDArray[np.float64]
Masks = NDArray[Any]


class TreeEnsemble:
    """Trees as the leaves that their splits rule out, by feature and by the thresholds that its value is above.

    Of the leaves that no split rules out, the first is the one that a candidate falls into: no tree is walked
    (QuickScorer; Lucchese et al. 2015). Splits of one feature are looked at together too: `kept` has a row for each
    interval between its thresholds, which says what all of them leave of every tree.
    """

    def __init__(self, trees: list[dict[str, list[str]]], features: int) -> None:
        most = max((len(tree["leaf_value"]) for tree in trees), default=1)
        room = min(leaves for leaves in MASKS if leaves >= most)
        self.features = features
        self.gains = np.zeros((len(trees), room))
        self.added = np.zeros((len(trees), room, features))
        self.first_leaves = np.arange(len(trees)) * room
        splits = [split for number, tree in enumerate(trees) for split in self.read_tree(number, tree)]
        number, column, threshold, ruled_out = (np.array(part) for part in zip(*splits, strict=True))
        # The distinct thresholds of each feature, ascending, and before them the interval that none lies below.
        self.thresholds, sizes, above = [], np.zeros(features, dtype=np.int64), np.zeros(len(column), dtype=np.int64)
        for feature in range(features):
            own = np.flatnonzero(column == feature)
            distinct, places = np.unique(threshold[own], return_inverse=True)
            self.thresholds.append(distinct)
            sizes[feature], above[own] = len(distinct) + 1, places + 1
        self.intervals = np.cumsum(sizes) - sizes
        self.every_leaf = np.array(2**room - 1, dtype=MASKS[room])
        self.kept = np.full((sizes.sum(), len(trees)), self.every_leaf)
        left_over = ~ruled_out.astype(MASKS[room])
        np.bitwise_and.at(self.kept, (self.intervals[column] + above, number), left_over)
        # A value above a threshold is above all smaller ones.
        for first, size in zip(self.intervals, sizes, strict=True):
            block = self.kept[first : first + size]
            np.bitwise_and.accumulate(block, axis=0, out=block)

    @classmethod
    def parse(cls, text: str, *, features: int) -> Self:
        """Read the trees of a model that LightGBM wrote."""
        blocks = re.split(r"^Tree=\d+\n", text.partition("\nend of trees")[0], flags=re.MULTILINE)[1:]
        fields = (dict(line.split("=", 1) for line in block.splitlines() if "=" in line) for block in blocks)
        return cls([{name: tree[name].split() for name in FIELDS if name in tree} for tree in fields], features)

    def read_tree(self, number: int, tree: dict[str, list[str]]) -> list[tuple[int, int, float, int]]:
        """Fill in the leaves of a tree; give its number, and feature, threshold and ruled-out leaves of its splits."""
        leaves = [float(value) for value in tree["leaf_value"]]
        if len(leaves) == 1:  # a tree that found no split, whose one leaf all candidates have in common
            return []
        counts = [float(count) for count in tree["leaf_count"]]
        columns, left, right = ([int(part) for part in tree[name]] for name in ("split_feature", *CHILDREN))
        ruled_out = [0] * len(columns)
        added, gains = self.added[number], self.gains[number]
        place = 0

        # Leaves are numbered from left to right; a child below zero is a leaf, of the number beyond.
        def walk(node: int) -> tuple[int, float, float]:
            """Number the leaves below a node; give their bits, their mean value and their count."""
            nonlocal place
            if node < 0:
                own, place = place, place + 1
                gains[own] = leaves[~node]
                return 1 << own, leaves[~node], counts[~node]
            first = place
            below = [walk(child) for child in (left[node], right[node])]
            ruled_out[node] = below[0][0]
            total = below[0][2] + below[1][2]
            mean = sum(value * count for _, value, count in below) / total
            middle = first + below[0][0].bit_count()
            # Going left or right moves the mean of the leaves ahead: what the split's feature adds.
            added[first:middle, columns[node]] += below[0][1] - mean
            added[middle:place, columns[node]] += below[1][1] - mean
            return below[0][0] | below[1][0], mean, total

        gains -= walk(0)[1]
        thresholds = map(float, tree["threshold"])
        return list(zip([number] * len(columns), columns, thresholds, ruled_out, strict=True))

    def leaves(self, values: Floats) -> NDArray[np.int64]:
        """Find the leaf of each tree that candidates fall into, of those of all: (candidates, trees)."""
        kept = np.full((len(values), len(self.first_leaves)), self.every_leaf)
        for first, thresholds, own in zip(self.intervals.tolist(), self.thresholds, values.T, strict=True):
            if len(thresholds):
                kept &= self.kept[first + thresholds.searchsorted(own)]
        # The lowest bit that is set is a power of two, whose exponent a float holds.
        lowest = kept & (~kept + kept.dtype.type(1))
        exponents = (lowest.astype(np.float32).view(np.int32) >> EXPONENT) - BIAS
        leaves: NDArray[np.int64] = exponents + self.first_leaves
        return leaves

    def predict(self, values: Floats) -> Floats:
        """Add up the leaves that candidates fall into, less what all have in common: (candidates,)."""
        gains = self.gains.reshape(-1)
        blocks = [values[first : first + AT_ONCE] for first in range(0, len(values), AT_ONCE)]
        return np.concatenate([np.empty(0), *(gains[self.leaves(block)].sum(axis=1) for block in blocks)])

    def contributions(self, values: Floats) -> Floats:
        """Give what each feature adds, by the splits on the way to the leaves: (candidates, features)."""
        added = self.added.reshape(-1, self.features)
        blocks = [values[first : first + AT_ONCE] for first in range(0, len(values), AT_ONCE)]
        # One by one: a tenth of a megabyte each.
        contributed = [added[own].sum(axis=0) for block in blocks for own in self.leaves(block)]
        return np.array(contributed).reshape(-1, self.features)
