"""The loss of TransE with its gradients by hand: each row is read once, and each has one sparse gradient."""

from typing import Any

import torch
from torch import Tensor

LEAST = 1e-12
"""Shorter vectors are as good as zero, and are not divided by."""


class Translation(torch.autograd.Function):
    """max(0, margin + |e_s + r - e_o| - |e_s' + r - e_o'|), e of length 1, where one of s' and o' is another entity."""

    @staticmethod
    def forward(
        ctx: Any, entities: Tensor, relations: Tensor, facts: Tensor, others: Tensor, tails: Tensor, margin: float
    ) -> Tensor:
        """Facts (batch, 3), others (batch,) in the place of the object where tails (batch,), else of the subject."""
        rows = torch.cat([facts[:, 0], facts[:, 2], others])
        unit = entities[rows]
        lengths = unit.norm(dim=1, keepdim=True).clamp_min_(LEAST)
        subjects, objects, replaced = unit.div_(lengths).chunk(3)
        tails, moved = tails[:, None], relations[facts[:, 1]]
        true = subjects + moved - objects
        false = torch.where(tails, subjects - replaced, replaced - objects) + moved
        near, far = true.norm(dim=1, keepdim=True), false.norm(dim=1, keepdim=True)
        losses = torch.relu(margin + near - far)
        ctx.save_for_backward(rows, facts[:, 1], unit, lengths, true, false, near, far, tails, losses > 0)
        ctx.sizes = entities.shape, relations.shape
        return losses[:, 0]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        rows, relations, unit, lengths, true, false, near, far, tails, active = ctx.saved_tensors
        weight = gradients[0][:, None] * active
        nearer, farther = true * (weight / near.clamp_min(LEAST)), false * (-weight / far.clamp_min(LEAST))
        at_tails = farther * tails
        at_heads = farther - at_tails
        at_units = torch.cat([nearer + at_tails, -nearer - at_heads, at_heads - at_tails])
        # A vector of length 1 moves along the sphere alone.
        at_entities = (at_units - unit * (unit * at_units).sum(dim=1, keepdim=True)).div_(lengths)
        return sparse(rows, at_entities, ctx.sizes[0]), sparse(relations, nearer + farther, ctx.sizes[1]), *[None] * 4


def sparse(rows: Tensor, values: Tensor, size: torch.Size) -> Tensor:
    return torch.sparse_coo_tensor(rows[None], values, size, check_invariants=False)
