"""Trees give what walking them node by node gives, whatever the trees are."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbtools.tree_ensemble import TreeEnsemble

FEATURES = 3


@dataclass
class Node:
    """A node of a plain tree: a leaf with a value and a count, or a split."""

    value: float = 0.0
    count: int = 1
    feature: int = 0
    threshold: float = 0.0
    children: "tuple[Node, Node] | None" = None


leaves = st.builds(Node, value=st.integers(-8, 8).map(float), count=st.integers(1, 9))
trees = st.recursive(
    leaves,
    lambda below: st.builds(
        lambda feature, threshold, left, right: Node(feature=feature, threshold=threshold, children=(left, right)),
        st.integers(0, FEATURES - 1),
        st.sampled_from([-1.0, 0.0, 0.5, 2.0]),
        below,
        below,
    ),
    max_leaves=20,
)


def write(tree: Node, number: int) -> str:
    """Write a tree as LightGBM does: splits and leaves are numbered, a leaf by the complement of its number."""
    splits: list[Node] = []
    own_leaves: list[Node] = []
    children: dict[int, tuple[int, int]] = {}

    def place(node: Node) -> int:
        if node.children is None:
            own_leaves.append(node)
            return ~(len(own_leaves) - 1)
        splits.append(node)
        at = len(splits) - 1
        children[at] = (place(node.children[0]), place(node.children[1]))
        return at

    place(tree)
    lines: dict[str, list[Any]] = {
        "leaf_value": [node.value for node in own_leaves],
        "leaf_count": [node.count for node in own_leaves],
        "split_feature": [node.feature for node in splits],
        "threshold": [node.threshold for node in splits],
        "left_child": [children[at][0] for at in range(len(splits))],
        "right_child": [children[at][1] for at in range(len(splits))],
    }
    return f"Tree={number}\n" + "".join(f"{name}={' '.join(map(str, own))}\n" for name, own in lines.items()) + "\n"


def total(node: Node) -> tuple[float, int]:
    """Return the sum of values by count, and the count, of the leaves below a node."""
    if node.children is None:
        return node.value * node.count, node.count
    (left, left_count), (right, right_count) = map(total, node.children)
    return left + right, left_count + right_count


def mean(node: Node) -> float:
    value, count = total(node)
    return value / count


def walk(node: Node, values: list[float]) -> tuple[float, list[float]]:
    """Return the value of a candidate's leaf, and the change of the mean at each split by its feature."""
    added = [0.0] * FEATURES
    while node.children is not None:
        below = node.children[values[node.feature] > node.threshold]
        added[node.feature] += mean(below) - mean(node)
        node = below
    return node.value, added


@settings(max_examples=60)
@given(
    st.lists(trees, min_size=1, max_size=4),
    st.lists(st.lists(st.sampled_from([-2.0, -1.0, 0.0, 0.25, 0.5, 2.0, 3.0]), min_size=3, max_size=3), max_size=5),
)
def test_an_ensemble_is_its_trees_walked_node_by_node(forest: list[Node], rows: list[list[float]]) -> None:
    text = "head\n" + "".join(write(tree, number) for number, tree in enumerate(forest)) + "\nend of trees\nTree=9\n"
    ensemble = TreeEnsemble.parse(text, features=FEATURES)
    values = np.array(rows, dtype=np.float64).reshape(-1, FEATURES)

    walked = [[walk(tree, row) for tree in forest] for row in rows]

    base = sum(mean(tree) for tree in forest)
    assert ensemble.predict(values) == pytest.approx([sum(value for value, _ in own) - base for own in walked])
    assert ensemble.contributions(values) == pytest.approx(
        np.array([np.sum([added for _, added in own], axis=0) for own in walked]).reshape(-1, FEATURES)
    )


@pytest.mark.parametrize("leaves", [15, 16, 17, 63, 64])
def test_each_leaf_of_a_large_tree_is_found(leaves: int) -> None:
    tree = Node(value=0.0)
    for at in range(1, leaves):
        tree = Node(threshold=float(at), children=(tree, Node(value=float(at), count=at)))
    ensemble = TreeEnsemble.parse(write(tree, 0), features=1)
    values = np.arange(0.5, leaves)[:, None]

    assert ensemble.predict(values) + mean(tree) == pytest.approx(np.arange(leaves))


def test_many_candidates_are_as_few(monkeypatch: pytest.MonkeyPatch) -> None:
    tree = Node(threshold=0.5, children=(Node(value=1.0), Node(value=3.0)))
    ensemble = TreeEnsemble.parse(write(tree, 0), features=1)
    values = np.tile([[0.5], [0.6]], (300, 1))

    assert ensemble.predict(values).tolist() == [-1.0, 1.0] * 300
    assert ensemble.contributions(values).tolist() == [[-1.0], [1.0]] * 300
