"""The encoders compute what the paper says, against plain twins."""

from collections import Counter

import numpy as np
import pytest

pytest.importorskip("torch", reason="networks need torch: pip install 'kbtools[train]'")

import torch

from kbtools.scorers.networks.training_settings import EncoderConfig
from kbtools.scorers.networks.word_networks import (
    BiGRU,
    DotScorer,
    EmbedAverage,
    Encoder,
    LetterTrigramCNN,
    initialise,
)
from kbtools.scorers.networks.words import SPECIAL, SYMBOL, letter_trigrams, load_words, name_words
from kbtools.scorers.relations.relation import (
    EmbedAveragePlusScorer,
    EmbedAverageScorer,
    LetterTrigramScorer,
)
from kbtools.scorers.taggers.tagger_training import TaggerNetwork
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
    assert torch.allclose(network.scores([["who", "wrote"]], rows=np.array([1])), expected[:, [1]])


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


@pytest.mark.parametrize("encoder_class", [BiGRU, LetterTrigramCNN])
def test_training_drops_what_goes_into_each_layer(encoder_class: type[Encoder]) -> None:
    config = EncoderConfig(dim=5, words_dim=40, hidden=40, layers=2, dropout=0.5, word_dropout=0.0)
    texts = [["who", "wrote", "dune"]]
    encoder = encoder_class(config, encoder_class.collect(texts, words=load_words("random"), config=config))
    initialise(encoder)
    layers = {"gru": encoder.gru, "projection": encoder.projection} if isinstance(encoder, BiGRU) else {}
    layers |= {"semantic": encoder.semantic} if isinstance(encoder, LetterTrigramCNN) else {}
    dropped: list[tuple[str, bool]] = []
    for name, layer in layers.items():
        layer.register_forward_pre_hook(
            lambda _, inputs, name=name: dropped.append((name, 0.3 < float((inputs[0] == 0).float().mean()) < 0.7))
        )

    encoder.train()(*encoder.collate(texts))
    encoder.eval()(*encoder.collate(texts))

    assert dropped == [(name, training) for training in (True, False) for name in layers]


def test_dropout_stands_between_the_layers_of_units() -> None:
    config = EncoderConfig(dim=5, words_dim=4, hidden=3, layers=2, dropout=0.5)

    assert BiGRU(config, WORDS).gru.dropout == TaggerNetwork(config, WORDS, bits=0).gru.dropout == 0.5


def test_a_tagger_in_training_drops_words_and_states_but_no_bit_of_the_gazetteer() -> None:
    config = EncoderConfig(words_dim=40, hidden=40, layers=1, dropout=0.5, word_dropout=0.0)
    network = TaggerNetwork(config, WORDS, bits=6)
    initialise(network)
    seen: list[torch.Tensor] = []
    for layer in (network.gru, network.emissions):
        layer.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))

    network.train()(torch.tensor([[3, 4, 5]]), torch.ones(1, 3, 6))

    (words, states) = seen
    assert 0.3 < float((words[..., :40] == 0).float().mean()) < 0.7
    assert bool((words[..., 40:] == 1).all())
    assert 0.3 < float((states == 0).float().mean()) < 0.7
