"""Make the token vectors of the scorer `static` from all-MiniLM-L6-v2 (Apache-2.0), in about half a CPU minute.

python benchmarks/make_static_vectors.py [--out scorers/relations/static.safetensors]

Each token of the vocabulary is encoded alone, and the mean is subtracted. Tokens are weighted by the smooth inverse
frequency of Arora, Liang and Ma (ICLR 2017), with Zipf's law instead of counts, since the vocabulary is sorted by
frequency. The vectors keep DIMENSIONS principal components, in 8 bits.
"""

import argparse
from pathlib import Path

import numpy as np
from fbsq import SMALL, parse
from figures import show_table
from numpy.typing import NDArray

from kbtools.scorers.encoders.pretrained import read_files
from kbtools.scorers.encoders.sentence_forward import SentenceForward
from kbtools.scorers.networks.checkpoint import write_weights

SMOOTHING = 1e-4
"""The constant `a` of the weight a / (a + p(token)): on FBSQ validation 59.5 % at 3e-5, 59.9 at 1e-4, 60.1 at 3e-4."""

DIMENSIONS = 256
"""Of 384: accuracy on FBSQ validation stays the same, and the file is a third smaller."""

FIRST_WORD = 1996
"""The row of the first whole word of BERT's vocabulary; special tokens and characters come before it."""

AT_ONCE = 64


def encode_tokens(encoder: SentenceForward, count: int) -> NDArray[np.float32]:
    """Return the vector of each token between the tokens that begin and end a text: (tokens, dim), of length 1."""
    begin, end = (encoder.tokenizer.token_to_id(token) for token in ("[CLS]", "[SEP]"))
    vectors = np.empty((count, encoder.dim), dtype=np.float32)
    for first in range(0, count, AT_ONCE):
        rows = np.arange(first, min(count, first + AT_ONCE))
        texts = np.stack([np.full_like(rows, begin), rows, np.full_like(rows, end)], axis=1)
        vectors[rows] = encoder.session(tokens=texts)
    return vectors


def reduce(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return centred, weighted vectors in their principal components: (tokens, DIMENSIONS)."""
    rank = np.maximum(np.arange(len(vectors)) - FIRST_WORD + 1, 1)
    frequency = 1 / (rank * np.log(len(vectors)))
    weighted = (vectors - vectors.mean(axis=0)) * (SMOOTHING / (SMOOTHING + frequency))[:, None]
    _, _, components = np.linalg.svd(weighted, full_matrices=False)
    reduced: NDArray[np.float32] = weighted @ components[:DIMENSIONS].T
    return reduced


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("scorers/relations/static.safetensors"))
    parser.add_argument("--tokens", type=int, help="only the first of the vocabulary")
    arguments = parse(parser, out=SMALL / "static.safetensors", tokens=300)
    files = read_files()
    encoder = SentenceForward.of_files(files)
    size = encoder.tokenizer.get_vocab_size()
    tokens = [str(encoder.tokenizer.id_to_token(row)) for row in range(size)][: arguments.tokens]
    vectors = reduce(encode_tokens(encoder, len(tokens)))
    scales = np.abs(vectors).max(axis=1, keepdims=True) / 127
    packed = {
        "tokens": np.frombuffer("\n".join(tokens).encode(), dtype=np.int8),
        "vectors": np.round(vectors / scales).astype(np.int8),
        "scales": scales[:, 0].astype(np.float32),
    }
    write_weights(arguments.out, packed)
    written = str(arguments.out), f"{len(tokens):,}", f"{arguments.out.stat().st_size / 1e6:.1f}"
    show_table("vectors", ("vectors", "tokens", "MB"), [written])


if __name__ == "__main__":
    main()
