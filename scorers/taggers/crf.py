"""The linear-chain CRF of the paper: s(y, q) = sum_t H_(t, y_t) + sum_t A_(y_(t-1), y_t) (section Focused Pruning).

Emissions H are (batch, length, tags), transitions A are (tags, tags); texts of a batch have one length.
"""

import numpy as np
from numpy.typing import NDArray

OUTSIDE, SUBJECT = 0, 1
"""The paper's two tags, O and SUB."""

Numbers = NDArray[np.floating]


def best_sequence(emissions: Numbers, transitions: Numbers) -> NDArray[np.int64]:
    """Find the tagging with the greatest s(y, q), by the Viterbi algorithm: (batch, length)."""
    # best[tag] is the greatest score of the words so far that ends in a tag; came_from says by which tag before.
    best, came_from = emissions[:, 0], []
    for place in range(1, emissions.shape[1]):
        reached = best[:, :, None] + transitions
        came_from.append(reached.argmax(axis=1))
        best = reached.max(axis=1) + emissions[:, place]
    tags = [best.argmax(axis=1)]
    for before in reversed(came_from):
        tags.append(np.take_along_axis(before, tags[-1][:, None], axis=1)[:, 0])
    return np.stack(tags[::-1], axis=1)


def span_log_probabilities(emissions: Numbers, transitions: Numbers) -> NDArray[np.float64]:
    """Return log p(w|q) of every n-gram exactly: of the tagging that is SUB from word i to word j and O elsewhere.

    (batch, length, length) for [i, j], minus infinity where j < i.
    """
    batch, length, _ = emissions.shape
    # A tagging with one mention scores all words as O, plus what each word of the mention gains as SUB: a difference
    # of cumulative sums for every span at once, instead of a loop over the words of each.
    gained = emissions[:, :, SUBJECT] - emissions[:, :, OUTSIDE]
    until = np.concatenate([np.zeros((batch, 1)), gained.cumsum(axis=1)], axis=1)
    emitted = emissions[:, :, OUTSIDE].sum(axis=1)[:, None, None] + until[:, None, 1:] - until[:, :-1, None]
    place = np.arange(length)
    first, last = place[:, None], place[None, :]
    # The transitions of O..O SUB..SUB O..O, counted: one in unless it begins the text, one out unless it ends it.
    enters, leaves, stays = first > 0, last < length - 1, last - first
    apart = length - 1 - enters - leaves - stays
    moved = (
        enters * transitions[OUTSIDE, SUBJECT]
        + leaves * transitions[SUBJECT, OUTSIDE]
        + stays * transitions[SUBJECT, SUBJECT]
        + apart * transitions[OUTSIDE, OUTSIDE]
    )
    spans: NDArray[np.float64] = emitted + moved - log_sum(emissions, transitions)[:, None, None]
    spans[:, last < first] = -np.inf
    return spans


def log_sum(emissions: Numbers, transitions: Numbers) -> NDArray[np.float64]:
    """Return the logarithm of the sum of exp s(y, q) over every tagging, by the forward algorithm: (batch,)."""
    # forward[tag] is the log-sum of all taggings of the words so far that end in a tag.
    forward = emissions[:, 0]
    for place in range(1, emissions.shape[1]):
        forward = np.logaddexp.reduce(forward[:, :, None] + transitions, axis=1) + emissions[:, place]
    total: NDArray[np.float64] = np.logaddexp.reduce(forward, axis=1)
    return total
