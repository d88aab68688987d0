"""Negative samples as the paper defines them: relations that the gold subject does not have (s -/-> r)."""

import torch
from torch import Tensor


def sample_negatives(forbidden: Tensor, *, count: int) -> Tensor:
    """Draw rows uniformly, with repetition, from those that are not forbidden.

    forbidden (batch, rows) of booleans -> (batch, count). A question whose every row is forbidden draws from all.
    """
    allowed = (~forbidden).float()
    allowed[allowed.sum(dim=1) == 0] = 1.0
    return torch.multinomial(allowed, count, replacement=True)
