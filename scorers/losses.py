"""Losses: the paper's hinge with its negatives, and the cross entropies that it names as alternatives."""

import torch
import torch.nn.functional as F
from torch import Tensor


def hinge(scores: Tensor, *, gold: Tensor, negatives: Tensor, margin: float) -> Tensor:
    """Sum max(0, margin - v(gold) + v(negative)) over the negatives of a question (paper, section Approximation).

    scores (batch, rows), gold (batch,), negatives (batch, negatives) -> (batch,)
    """
    right = scores.gather(1, gold[:, None])
    return torch.relu(margin - right + scores.gather(1, negatives)).sum(dim=1)


def cross_entropy(scores: Tensor, *, gold: Tensor) -> Tensor:
    """Give -log p(gold|q), p as in Eq. 9 of the paper: scores (batch, rows), gold (batch,) -> (batch,)."""
    return F.cross_entropy(scores, gold, reduction="none")


def type_wise_cross_entropy(scores: Tensor, *, types: Tensor) -> Tensor:
    """Sum the binary cross entropy of every type (paper, section Approximation), scores before the sigmoid.

    scores (batch, types), types (batch, types) of zeros and ones -> (batch,)
    """
    return F.binary_cross_entropy_with_logits(scores, types, reduction="none").sum(dim=1)


def sample_negatives(forbidden: Tensor, *, count: int) -> Tensor:
    """Draw rows uniformly, with repetition, from those that are not forbidden: relations that the subject lacks.

    forbidden (batch, rows) of booleans -> (batch, count). A question whose every row is forbidden draws from all.
    """
    allowed = (~forbidden).float()
    allowed[allowed.sum(dim=1) == 0] = 1.0
    return torch.multinomial(allowed, count, replacement=True)
