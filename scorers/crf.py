"""The linear-chain CRF of the paper: s(y, q) = sum_t H_(t, y_t) + sum_t A_(y_(t-1), y_t) (section Focused Pruning).

Emissions H are (batch, length, tags), transitions A are (tags, tags); texts of a batch have one length.
"""

import torch
from torch import Tensor

OUTSIDE, SUBJECT = 0, 1
"""The paper's two tags, O and SUB."""


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


def best_sequence(emissions: Tensor, transitions: Tensor) -> Tensor:
    """Find the tagging with the greatest s(y, q), by the Viterbi algorithm: (batch, length)."""
    # best[tag] is the greatest score of the words so far that ends in a tag; came_from says by which tag before.
    best, came_from = emissions[:, 0], []
    for place in range(1, emissions.shape[1]):
        best, before = (best[:, :, None] + transitions).max(dim=1)
        best = best + emissions[:, place]
        came_from.append(before)
    tags = [best.argmax(dim=1)]
    for before in reversed(came_from):
        tags.append(before.gather(1, tags[-1][:, None])[:, 0])
    return torch.stack(tags[::-1], dim=1)


def span_log_probabilities(emissions: Tensor, transitions: Tensor) -> Tensor:
    """Give log p(w|q) of every n-gram exactly: of the tagging that is SUB from word i to word j and O elsewhere.

    (batch, length, length) for [i, j], minus infinity where j < i.
    """
    batch, length, _ = emissions.shape
    # A tagging with one mention scores all words as O, plus what each word of the mention gains as SUB: a difference
    # of cumulative sums for every span at once, instead of a loop over the words of each.
    gained = emissions[:, :, SUBJECT] - emissions[:, :, OUTSIDE]
    until = torch.cat([emissions.new_zeros(batch, 1), gained.cumsum(dim=1)], dim=1)
    emitted = emissions[:, :, OUTSIDE].sum(dim=1)[:, None, None] + until[:, None, 1:] - until[:, :-1, None]
    place = torch.arange(length, device=emissions.device)
    first, last = place[:, None], place[None, :]
    # The transitions of O..O SUB..SUB O..O, counted: one in unless it begins the text, one out unless it ends it.
    enters, leaves, stays = (first > 0).float(), (last < length - 1).float(), (last - first).float()
    apart = length - 1 - enters - leaves - stays
    moved = (
        enters * transitions[OUTSIDE, SUBJECT]
        + leaves * transitions[SUBJECT, OUTSIDE]
        + stays * transitions[SUBJECT, SUBJECT]
        + apart * transitions[OUTSIDE, OUTSIDE]
    )
    spans = emitted + moved - log_partition(emissions, transitions)[:, None, None]
    return spans.masked_fill(last < first, -torch.inf)
