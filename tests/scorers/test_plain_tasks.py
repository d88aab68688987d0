"""Losses and figures of the tasks are those of plain loops over single questions."""

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kbtools.kb.contract import KnowledgeBase
from kbtools.text.question import Question

pytest.importorskip("torch", reason="networks need torch: pip install 'kbtools[train]'")

import torch

from kbtools.pruning.n_gram import NGramIdf
from kbtools.scorers.fitting.measures import Namesakes
from kbtools.scorers.fitting.profiles import profile_settings
from kbtools.scorers.fitting.splits import Splits, label_questions, read_examples
from kbtools.scorers.fitting.training_loop import fit
from kbtools.scorers.networks import word_networks
from kbtools.scorers.networks.training_settings import EncoderConfig, FitConfig, ObjectiveConfig, change_settings
from kbtools.scorers.networks.word_networks import (
    EmbedAverage,
    Encoder,
    LetterTrigramCNN,
    WordEmbedding,
    initialise,
    make_network,
)
from kbtools.scorers.networks.words import SPECIAL, WordVectors, load_words
from kbtools.scorers.relations.relation import EmbedAverageScorer, LetterTrigramScorer, RelationNetwork
from kbtools.scorers.subjects.entity_vectors import RandomVectorScorer
from kbtools.scorers.subjects.subject import TypeVectorAverageScorer
from kbtools.scorers.subjects.subject_training import SubjectTask
from kbtools.scorers.subjects.transe import TransE, TranslatingTask
from kbtools.scorers.taggers.tagger import Gazetteer
from kbtools.text.function_words import has_content
from kbtools.text.ngrams import ngrams
from tests.scorers.test_fitting import Line

SMALL = {
    "words": "random",
    "dim": 6,
    "words_dim": 6,
    "hidden": 5,
    "known_words": 0,
    "dropout": 0.0,
    "word_dropout": 0.0,
}
TEXTS = [["who", "wrote", "dune"], ["dune"], ["who", "is", "it"], ["wrote", "dune"], ["a", "b", "c", "dune"], ["who"]]


def relation_task(kind: type[RelationNetwork], kb: KnowledgeBase, splits: Splits, **changes: Any) -> Any:
    settings = change_settings(profile_settings("best", "relation", "x"), SMALL | changes)
    task: Any = kind.task(kb, splits, settings, models=Path())
    for parameter in task.network.parameters():
        torch.nn.init.normal_(parameter)
    return task


@pytest.mark.parametrize("kind", [EmbedAverageScorer, LetterTrigramScorer])
def test_the_cross_entropy_of_a_question_is_over_all_relations_or_those_that_training_has_seen(
    sample_kb: KnowledgeBase, splits: Splits, kind: type[RelationNetwork]
) -> None:
    task = relation_task(kind, sample_kb, splits, objective="cross-entropy")
    rows = np.flatnonzero(task.lengths == task.lengths[3])[:6]
    by_name = kind is LetterTrigramScorer
    competing = sorted(set(splits.train.relations.tolist())) if by_name else list(range(len(sample_kb.relations)))

    losses = task.loss(rows).tolist()

    scores = task.scorer.score_texts([kind.text(splits.train.questions[row]) for row in rows])
    expected = [
        math.log(sum(math.exp(own[at]) for at in competing)) - own[splits.train.relations[row]]
        for own, row in zip(scores.astype(float), rows, strict=True)
    ]
    assert losses == pytest.approx(expected, abs=1e-4)


def test_relations_are_measured_on_the_validation_questions(sample_kb: KnowledgeBase, splits: Splits) -> None:
    task = relation_task(EmbedAverageScorer, sample_kb, splits)

    figures = task.measure()

    right = {"of all relations": 0, "given the subject": 0}
    for question, subject, gold in zip(
        splits.valid.questions, splits.valid.subjects.tolist(), splits.valid.relations.tolist(), strict=True
    ):
        (scores,) = task.scorer.score_texts([EmbedAverageScorer.text(question)])
        own = sample_kb.relations_of(np.array([subject], dtype=np.uint32)).values.tolist()
        right["of all relations"] += int(scores.argmax() == gold)
        right["given the subject"] += int(max(own, key=lambda at: scores[at]) == gold)
    assert figures == pytest.approx({name: count / len(splits.valid) for name, count in right.items()})


def test_the_loss_of_types_is_that_of_each_question_alone_and_its_figure_of_validation(
    sample_kb: KnowledgeBase, splits: Splits
) -> None:
    settings = change_settings(profile_settings("best", "subject", "type-vector-avg"), SMALL)
    task: Any = TypeVectorAverageScorer.task(sample_kb, splits, settings, models=Path())
    torch.nn.init.normal_(task.network.table)
    rows = np.flatnonzero(task.lengths == task.lengths[0])[:5]

    losses = task.loss(rows).tolist()

    expected = []
    for row in rows:
        (scores,) = task.network.scores([task.texts[row]]).tolist()
        own = set(sample_kb.types_of(task.subjects[[row]]).values.tolist())
        likely = [1 / (1 + math.exp(-score)) for score in scores]
        expected.append(-sum(math.log(p if at in own else 1 - p) for at, p in enumerate(likely)))
    assert losses == pytest.approx(expected, rel=1e-4)
    share = Namesakes.find(sample_kb, splits.valid).share_told_apart(task.scorer)
    assert task.measure() == {"of namesakes told apart": share}


def test_the_hinge_of_subjects_is_that_of_a_plain_loop(sample_kb: KnowledgeBase, splits: Splits) -> None:
    config = EncoderConfig(dim=4, words_dim=4, hidden=4, dropout=0.0, word_dropout=0.0)
    scorer = RandomVectorScorer.new(config, kb=sample_kb, texts=[["who"]], words=load_words("random"), seed=1)
    subjects = splits.train.subjects.copy()
    subjects[0] = -1
    relations = np.random.default_rng(1).permutation(splits.train.relations)
    splits = Splits(replace(splits.train, subjects=subjects, relations=relations), splits.valid)
    task = SubjectTask(scorer, ObjectiveConfig(negatives=300, margin=0.3), kb=sample_kb, splits=splits)
    torch.nn.init.normal_(task.network.table.weight)
    rows = np.flatnonzero(task.lengths == task.lengths[2])[:4]

    torch.manual_seed(5)
    losses = task.loss(rows).tolist()

    torch.manual_seed(5)
    sampled = torch.randint(task.network.table.num_embeddings, (300,)).tolist()
    table, expected = task.network.table.weight.detach().numpy(), []
    for row in rows + 1:  # the first question has no subject
        g = task.network.questions([scorer.text(splits.train.questions[row])])[0]
        gold, relation = int(subjects[row]), int(relations[row])
        u = {at: float(g @ table[at]) + has_relation(sample_kb, at, relation) for at in {*sampled, gold}}
        u[gold] = float(g @ table[gold]) + 1
        expected.append(sum(max(0.0, 0.3 - u[gold] + u[at]) for at in sampled if at != gold))
    assert losses == pytest.approx(expected, rel=1e-4)
    assert task.rows.tolist() == list(range(1, len(subjects)))


def has_relation(kb: KnowledgeBase, row: int, relation: int) -> bool:
    return relation in kb.relations_of(np.array([row], dtype=np.uint32)).values


def test_transe_is_measured_by_the_objects_among_the_ten_nearest() -> None:
    torch.manual_seed(3)
    facts = np.random.default_rng(1).integers(0, [80, 3, 80], (200, 3))
    network = TransE(80, 3, dim=4)

    (share,) = TranslatingTask(network, facts, margin=1.0).measure().values()

    table = torch.nn.functional.normalize(network.entities.weight.detach(), dim=1)
    right = 0
    for subject, relation, target in facts.tolist():
        distances = (table[subject] + network.relations.weight.detach()[relation] - table).norm(dim=1)
        right += int((distances < distances[target]).sum()) < 10
    assert share == pytest.approx(right / 200)


# Networks


@pytest.mark.parametrize("encoder_class", [EmbedAverage, LetterTrigramCNN])
def test_texts_of_several_lengths_are_scored_as_each_alone(
    monkeypatch: pytest.MonkeyPatch, encoder_class: type[Encoder]
) -> None:
    config = EncoderConfig(dim=4, words_dim=4, hidden=3)
    names = [["book", "author"], ["who"], ["dune", "of", "it"]]
    network = make_network(
        encoder_class, config, names=names, texts=TEXTS, words=load_words("random"), biased=True, seed=1
    )
    torch.nn.init.normal_(network.bias)
    monkeypatch.setattr(word_networks, "TEXTS_AT_ONCE", 2)

    scores = network.train().score_texts(TEXTS)

    assert scores == pytest.approx(np.concatenate([network.score_texts([text]) for text in TEXTS]), abs=1e-6)
    with torch.inference_mode():
        table = network.vectors().numpy()
        vectors = np.concatenate([network.encoder(*network.encoder.collate([text])).numpy() for text in TEXTS])
    assert scores == pytest.approx(vectors @ table.T + network.bias.detach().numpy(), abs=1e-6)
    assert np.abs(np.diff(scores, axis=1)).min() > 0


def test_trigrams_of_texts_of_several_lengths_are_read_as_those_of_each_alone() -> None:
    config = EncoderConfig(dim=4, hidden=3)
    encoder = LetterTrigramCNN(config, LetterTrigramCNN.collect(TEXTS[:3], words=load_words("random"), config=config))
    initialise(encoder)

    together = encoder.eval()(*encoder.collate(TEXTS))

    alone = torch.cat([encoder(*encoder.collate([text])) for text in TEXTS])
    assert torch.allclose(together, alone, atol=1e-6)


@pytest.mark.parametrize("dropped", [0.1, 0.4])
def test_as_many_words_are_dropped_as_asked_for(dropped: float) -> None:
    torch.manual_seed(1)
    embedding = WordEmbedding([*SPECIAL, "who"], 1, word_dropout=dropped).train()
    torch.nn.init.zeros_(embedding.weight)
    embedding.weight.data[1] = 1.0

    share = float(embedding(torch.full((100, 100), len(SPECIAL)))[..., 0].mean().detach())

    assert share == pytest.approx(dropped, abs=0.02)


def test_a_network_is_drawn_by_its_seed_and_starts_from_the_given_vectors() -> None:
    words = WordVectors(("dune", "who"), np.array([[1, 2, 3], [4, 5, 6]], dtype=np.float32))
    config = EncoderConfig(dim=3, known_words=1)

    one, same, other = (
        make_network(EmbedAverage, config, names=[["x"], ["y"]], texts=[["wrote"]], words=words, biased=True, seed=seed)
        for seed in (1, 1, 2)
    )

    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), same.parameters(), strict=True))
    assert not any(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))
    encoder: Any = one.encoder
    assert encoder.vocabulary == (*SPECIAL, "wrote", "dune")
    assert encoder.embedding.weight[-1].tolist() == [1, 2, 3]
    assert not one.training


# Questions and the loop


def test_a_file_is_read_into_columns(sample_kb: KnowledgeBase, annotated: Callable[..., Path]) -> None:
    lines = [
        ("m.078ffw", "book.written_work.author", "is harry potter by whom"),
        ("m.078ffw", "book.written_work.author", "who wrote it"),
        ("m.nobody", "book.written_work.author", "who wrote harry potter"),
        *[("m.078ffw", "book.written_work.author", "harry potter")] * 17,
    ]
    path = annotated(*lines, ("m.078ffw", "no.such.relation", "harry potter"))

    examples = read_examples(sample_kb, path)
    labelled = label_questions(examples, split="train")

    (row,) = sample_kb.rows(["m.078ffw"])
    spans = [(question.start, question.end) for question in examples.questions]
    assert spans == [(3, 15), (0, 0), (0, 0), *[(0, 12)] * 17]
    assert [question.question.text for question in examples.questions] == [text for _, _, text in lines]
    assert examples.subjects.tolist() == [row, row, -1, *[row] * 17]
    assert {sample_kb.relations[at] for at in examples.relations} == {"book.written_work.author"}
    assert [mention.form if mention else None for mention in examples.mentions[:3]] == ["harry potter", None, None]
    assert (examples.unknown, len(examples)) == (1, 20)
    assert examples.digest == hashlib.sha256(path.read_bytes()).hexdigest()
    assert labelled.spans == [(1, 2), *[(0, 1)] * 17]
    assert labelled.questions[0] == examples.questions[0].question


def test_a_network_learns_in_training_mode_and_is_measured_without() -> None:
    modes: list[tuple[str, bool]] = []

    class Watched(Line):
        def loss(self, rows: np.ndarray) -> torch.Tensor:
            modes.append(("loss", self.network.training))
            return super().loss(rows)

        def measure(self) -> dict[str, float]:
            modes.append(("measure", self.network.training))
            return super().measure()

    fit(Watched(), FitConfig(epochs=2, batch=64, optimiser="adam"))

    assert modes == [*[("loss", True)] * 3, ("measure", False)] * 2


@pytest.mark.parametrize(
    "text",
    ["is paris, texas in david bowie", "the who or who", "paris in france and texas", "is it", "rock, hard rock?"],
)
def test_the_bits_of_a_word_are_those_of_a_plain_loop(tiny_memory: KnowledgeBase, text: str) -> None:
    question = Question.read(text)
    words = [place for place, token in enumerate(question.tokens) if token.is_word]
    spans = {
        (ngram.first, ngram.last): ngram.form
        for ngram in ngrams(question, lengths=range(1, 7))
        if ngram.first in words and has_content(ngram.form) and tiny_memory.lookup([ngram.form])
    }
    outer = [
        (first, last)
        for first, last in spans
        if not any(a <= first and last <= b and (a, b) != (first, last) for a, b in spans)
    ]
    rarity = NGramIdf(tiny_memory)
    rarity.learn({word for form in spans.values() for word in form.split()})
    rarest = sorted(spans, key=lambda span: (-rarity.weigh(spans[span]), span[0] - span[1]))[:1]

    bits = Gazetteer(tiny_memory).bits(question)

    for place, own in zip(words, bits.tolist(), strict=True):
        expected = [marks(place, span) for span in outer], [marks(place, span) for span in rarest]
        assert own == [float(any(column)) for some in expected for column in zip((0, 0, 0), *some, strict=True)]


def marks(place: int, span: Sequence[int]) -> tuple[bool, bool, bool]:
    return place == span[0], span[0] <= place <= span[1], place == span[1]
