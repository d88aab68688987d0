"""The loss of the linear-chain CRF of the paper: s(y, q) = sum_t H_(t, y_t) + sum_t A_(y_(t-1), y_t) (section Focused
Pruning).

Emissions H are (batch, length, tags), transitions A are (tags, tags); texts of a batch have one length.
"""

import torch
from torch import Tensor


def sequence_score(emissions: Tensor, transitions: Tensor, tags: Tensor) -> Tensor:
    """Give s(y, q) of one tagging of each text: tags (batch, length) -> (batch,)."""
    emitted = emissions.gather(2, tags[:, :, None]).sum(dim=(1, 2))
    return emitted + transitions[tags[:, :-1], tags[:, 1:]].sum(dim=1)


def log_partition(emissions: Tensor, transitions: Tensor) -> Tensor:
    """Give the logarithm of the sum of exp s(y, q) over every tagging, by the forward algorithm: (batch,)."""
    # forward[tag] is the log-sum of all taggings of the words so far that end in a tag.
    forward = emissions[:, 0]
    for place in range(1, emissions.shape[1]):
        forward = torch.logsumexp(forward[:, :, None] + transitions, dim=1) + emissions[:, place]
    return torch.logsumexp(forward, dim=1)
