"""What a tagger learns: the likelihood of the labels that reverse linking gives (paper, Parameter Estimation)."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kbtools.pruning.tagging import word_span
from kbtools.scorers.crf import SUBJECT, best_sequence, log_partition, sequence_score
from kbtools.scorers.examples import Examples
from kbtools.scorers.tagger import BiGRUTagger, TaggerNetwork


@dataclass(frozen=True, slots=True, eq=False)
class Labelled:
    """Questions whose mention is known: words, bits of the gazetteer, and which words are the mention."""

    texts: list[list[str]]
    bits: list[NDArray[np.float32]]
    spans: list[tuple[int, int]]

    def __len__(self) -> int:
        return len(self.texts)

    def tags(self, rows: NDArray[np.int64]) -> Tensor:
        """Give the gold tags of questions of one length: (batch, length)."""
        tags = torch.zeros(len(rows), len(self.texts[rows[0]]), dtype=torch.int64)
        for place, row in enumerate(rows):
            first, last = self.spans[row]
            tags[place, first : last + 1] = SUBJECT
        return tags


def label_questions(tagger: BiGRUTagger, examples: Examples) -> Labelled:
    """Keep the questions in which a name of the subject was found, as the tagger reads them."""
    labelled = Labelled([], [], [])
    for asked, mention in zip(examples.asked, examples.mentions, strict=True):
        span = word_span(asked.question, mention) if mention else None
        if span:
            words, bits = tagger.read(asked.question)
            labelled.texts.append(words)
            labelled.bits.append(bits)
            labelled.spans.append(span)
    return labelled


class TaggingTask:
    """Make the labels of the training questions likely."""

    def __init__(self, tagger: BiGRUTagger, *, train: Labelled, valid: Labelled) -> None:
        self.tagger = tagger
        self.train, self.valid = train, valid
        self.lengths = np.array([len(text) for text in train.texts], dtype=np.int64)

    @property
    def network(self) -> TaggerNetwork:
        return self.tagger.network

    def loss(self, rows: NDArray[np.int64]) -> Tensor:
        """Give -log p(y|q) of the gold tags: (batch,)."""
        emissions, transitions = emissions_of(self.tagger, self.train, rows).float(), self.network.transitions
        gold = self.train.tags(rows).to(emissions.device)
        return log_partition(emissions, transitions) - sequence_score(emissions, transitions, gold)

    def measure(self) -> dict[str, float]:
        return {"of sentences tagged right": sentence_accuracy(self.tagger, self.valid)}


def emissions_of(tagger: BiGRUTagger, labelled: Labelled, rows: NDArray[np.int64]) -> Tensor:
    """Give H(q) of questions of one length: (batch, length, tags)."""
    return tagger.emissions([labelled.texts[row] for row in rows], [labelled.bits[row] for row in rows])


def sentence_accuracy(tagger: BiGRUTagger, labelled: Labelled) -> float:
    """Give the share of labelled questions whose every word is tagged right (paper, section Additional Analysis)."""
    right = 0
    lengths = np.array([len(text) for text in labelled.texts])
    tagger.network.eval()
    with torch.inference_mode():
        for length in np.unique(lengths):
            rows = np.flatnonzero(lengths == length)
            tags = best_sequence(emissions_of(tagger, labelled, rows), tagger.network.transitions).cpu()
            right += int((tags == labelled.tags(rows)).all(dim=1).sum())
    return right / len(labelled)
