"""Pretrained encoders of sentences as torch trains them, and as GPUs compute them."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from kbtools.scorers.encoders.pretrained import PretrainedFiles, PretrainedRecord, make_tokenizer, split_texts
from kbtools.scorers.encoders.transformer import Shapes, Transformer, shapes_of, sizes_of
from kbtools.scorers.encoders.transformer_config import TransformerConfig
from kbtools.scorers.networks.devices import scoring
from kbtools.scorers.networks.text_batches import group_by_length

AT_ONCE = 256
"""Texts in one batch: more are no faster on a CPU."""


class SentenceEncoder(nn.Module):
    """A transformer with its tokenizer, from texts to vectors of length 1: (texts, dim)."""

    def __init__(self, record: PretrainedRecord) -> None:
        super().__init__()
        self.record = record
        self.tokenizer = make_tokenizer(record)
        self.transformer = Transformer(TransformerConfig.read(record.config))

    @property
    def dim(self) -> int:
        return self.transformer.config.dim

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    def tokens(self, texts: Sequence[str]) -> list[list[int]]:
        """Split texts into tokens."""
        return split_texts(self.tokenizer, texts)

    def pool(self, states: Tensor, shapes: Shapes) -> Tensor:
        """Make a vector of length 1 of the states of each text: (tokens, dim) -> (batch, dim)."""
        groups = zip(torch.split(states, sizes_of(shapes)), shapes, strict=True)
        texts = [group.view(*shape, -1) for group, shape in groups]
        first = self.record.pooling == "first"
        pooled = torch.cat([states[:, 0] if first else states.mean(dim=1) for states in texts])
        return nn.functional.normalize(pooled, dim=-1)

    def forward(self, groups: Sequence[Tensor]) -> Tensor:
        """Encode groups of texts of one length: tokens (batch, length) of each -> (batch of all, dim)."""
        return self.pool(self.transformer(groups), shapes_of(groups))

    def embed(self, texts: Sequence[str]) -> Tensor:
        """Encode a batch of texts of any length: (texts, dim)."""
        tokens = self.tokens(texts)
        groups = group_by_length(tokens)
        vectors: Tensor = self([torch.tensor([tokens[row] for row in group], device=self.device) for group in groups])
        return vectors[torch.tensor([row for group in groups for row in group]).argsort()]

    def encode(self, texts: Sequence[str]) -> Tensor:
        """Encode any number of texts, without gradients: (texts, dim)."""
        order = sorted(range(len(texts)), key=lambda row: len(texts[row]))
        vectors = torch.empty(len(texts), self.dim, device=self.device)
        with scoring(len(texts)):
            for first in range(0, len(order), AT_ONCE):
                rows = order[first : first + AT_ONCE]
                vectors[rows] = self.embed([texts[row] for row in rows])
        return vectors

    def encode_arrays(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Encode any number of texts to an array: (texts, dim)."""
        return np.asarray(self.encode(texts).cpu().numpy())


def build_encoder(files: PretrainedFiles) -> SentenceEncoder:
    """Make an encoder of its files."""
    encoder = SentenceEncoder(files.record)
    tensors = {name: torch.from_numpy(array) for name, array in files.weights.items()}
    encoder.transformer.load_state_dict(tensors, assign=True)
    return encoder.requires_grad_(False).eval()
