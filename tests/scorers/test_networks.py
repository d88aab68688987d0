"""The encoders compute what the paper says, against plain twins."""

from collections import Counter

import pytest

pytest.importorskip("torch", reason="networks need torch: pip install 'kbtools[train]'")

import torch

from kbtools.scorers.networks.training_settings import EncoderConfig
from kbtools.scorers.networks.word_networks import BiGRU, DotScorer, EmbedAverage, LetterTrigramCNN, initialise
from kbtools.scorers.networks.words import SPECIAL, SYMBOL, letter_trigrams, load_words, name_words
from kbtools.scorers.relations.relation import (
    EmbedAveragePlusScorer,
    EmbedAverageScorer,
    LetterTrigramScorer,
)
from kbtools.text.question import MarkedQuestion, Question

CONFIG = EncoderConfig(dim=5, words_dim=4, hidden=3, dropout=0.0, word_dropout=0.0)
WORDS = [*SPECIAL, "who", "wrote", "dune"]


def test_embed_avg_is_the_mean_of_the_words() -> None:
    encoder = EmbedAverage(CONFIG, WORDS)

    vector = encoder(*encoder.collate([["who", "dune"]]))[0]

    assert torch.allclose(vector, (encoder.embedding.weight[3] + encoder.embedding.weight[5]) / 2)


def test_bigru_projects_the_last_state_of_each_direction() -> None:
    encoder = BiGRU(CONFIG, WORDS)
    tokens = encoder.collate([["who", "wrote", "dune"]])
    states, _ = encoder.gru(encoder.embedding(tokens[0].T))

    vector = encoder(*tokens)[0]

    final = torch.cat([states[-1, 0, :3], states[0, 0, 3:]])
    assert torch.allclose(vector, encoder.projection(final), atol=1e-6)


def test_letter_trigrams_have_boundaries() -> None:
    assert letter_trigrams("cat") == ["#ca", "cat", "at#"]
    assert letter_trigrams("a") == ["#a#"]
    assert letter_trigrams(SYMBOL) == [SYMBOL]


def test_ltg_cnn_is_a_convolution_over_trigram_counts() -> None:
    text = ["banana", "wrote", "dune", "wrote"]
    encoder = LetterTrigramCNN(CONFIG, LetterTrigramCNN.collect([text], words=None, config=CONFIG))
    initialise(encoder)
    counts = torch.zeros(len(text) + 2, len(encoder.rows))
    for place, word in enumerate(text, 1):
        for trigram, count in Counter(letter_trigrams(word)).items():
            counts[place, encoder.rows[trigram]] = count
    windows = torch.stack([counts[place : place + 3].flatten() for place in range(len(text))])
    convolution = torch.cat(encoder.trigrams.weight.chunk(3, dim=1))

    vector = encoder(*encoder.collate([text]))[0]

    pooled = torch.tanh(windows @ convolution + encoder.bias).max(dim=0).values
    assert torch.allclose(vector, torch.tanh(encoder.semantic(pooled)), atol=1e-6)


def test_relation_names_are_kept_at_inference_and_dropped_at_each_training_step() -> None:
    names = [name_words("book.written_work.author"), name_words("music.album.genre")]
    encoder = LetterTrigramCNN(CONFIG, LetterTrigramCNN.collect(names, words=None, config=CONFIG))
    network = DotScorer(encoder, names).eval()

    with torch.inference_mode():
        network.vectors()
    kept = network.known is not None
    network.train()

    assert kept
    assert network.known is None


def test_a_score_is_a_dot_product() -> None:
    network = DotScorer(EmbedAverage(CONFIG, WORDS), [["a"], ["b"]])
    torch.nn.init.normal_(network.table)

    scores = network.scores([["who", "wrote"]])

    expected = network.encoder(*network.collate([["who", "wrote"]])) @ network.table.T
    assert torch.allclose(scores, expected)


def test_the_symbol_stands_for_the_whole_mention() -> None:
    asked = MarkedQuestion(Question.read("who wrote harder.....faster?"), 10, 27)

    assert EmbedAveragePlusScorer.text(asked) == ("who", "wrote", SYMBOL)
    assert EmbedAverageScorer.text(asked) == ("who", "wrote", "harder", "faster")
    assert asked.context() == ["who", "wrote"]


def test_names_read_at_inference_do_not_keep_training_from_reading_them() -> None:
    names = [name_words("book.written_work.author"), name_words("music.album.genre")]
    encoder = LetterTrigramCNN(CONFIG, LetterTrigramCNN.collect(names, words=None, config=CONFIG))
    network = DotScorer(encoder, names).eval()
    with torch.inference_mode():
        network.scores([["author"]])

    network.train()
    network.scores([["author"]]).sum().backward()

    assert encoder.semantic.weight.grad.isfinite().all()


def test_relation_names_stay_known_from_one_question_to_the_next() -> None:
    scorer = LetterTrigramScorer.new(
        CONFIG, rows=["book.author", "music.genre"], texts=[], words=load_words("random"), seed=1
    )

    scorer.score_texts([["author"]])
    known = scorer.trainable.known
    scorer.score_texts([["genre"]])

    assert known is not None
    assert scorer.trainable.known is known
