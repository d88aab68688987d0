"""The cluster answers as the embedded index does, on four hundred questions of FBSQ, both layers."""

import random
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from kbtools.answering.answerer import Answerer
from kbtools.indexers.building.build import BuildProgress
from kbtools.indexers.elastic.cluster import Cluster
from kbtools.indexers.elastic.connection import read_connection
from kbtools.indexers.elastic.knowledge import ElasticKB
from kbtools.indexers.elastic.loading import LoadOptions, load
from kbtools.indexers.elastic.mapping import IndexSettings
from kbtools.indexers.elastic.versions import delete_versions, list_versions
from kbtools.indexers.folder.embedded import EmbeddedKB
from kbtools.linking.fuzzy import SPANS_TRIED, Misspelling
from kbtools.text.question import Question

NAME = "test-fbsq"
QUESTIONS = 400
FUZZY_FORMS = 500
FUZZY = 0.95
"""Share of the names found fuzzily by either that both find."""


@pytest.fixture(scope="module")
def both(cluster_url: str, fbsq: Answerer) -> Iterator[tuple[Answerer, Answerer]]:
    cluster = Cluster(read_connection(cluster_url, {}))
    assert isinstance(fbsq.kb, EmbeddedKB)
    load(fbsq.kb, cluster, NAME, options=LoadOptions(settings=IndexSettings(replicas=0)), watch=BuildProgress())
    yield fbsq, Answerer(ElasticKB(NAME, cluster))
    delete_versions(cluster, list_versions(cluster, NAME))
    cluster.close()


@pytest.fixture(scope="module")
def every_question(fbsq_folder: Path) -> list[str]:
    lines = (fbsq_folder / "annotated_fb_data_test.txt").read_text(encoding="utf-8").splitlines()
    return [line.split("\t")[3] for line in lines]


@pytest.fixture(scope="module")
def questions(every_question: list[str]) -> list[str]:
    return random.Random(6).sample(every_question, QUESTIONS)


@pytest.mark.parametrize("pruning", ["n-gram", "n-gram+", "n-gram-idf"])
def test_every_pool_that_was_linked_strictly_is_identical(
    both: tuple[Answerer, Answerer], questions: list[str], pruning: str
) -> None:
    embedded, elastic = both
    theirs = [embedded.query(text, pruning=pruning, top=None) for text in questions]
    ours = list(elastic.query_many(questions, pruning=pruning, top=None))
    pairs = [
        (one.to_json() | {"milliseconds": 0}, other.to_json() | {"milliseconds": 0})
        for one, other in zip(ours, theirs, strict=True)
        if not any(found.rung == "fuzzy" for found in one.candidates + other.candidates)
    ]
    assert len(pairs) > 0.9 * QUESTIONS
    assert [one["question"] for one, other in pairs if one != other] == []


def test_fuzzy_links_are_nearly_the_same(both: tuple[Answerer, Answerer], every_question: list[str]) -> None:
    embedded, elastic = both
    misspelling = Misspelling(embedded.kb)
    questions = [Question.read(text) for text in every_question]
    spans = (span for own in misspelling.spans(questions, [()] * len(questions)) for span in own[:SPANS_TRIED])
    asked = list(islice(dict.fromkeys(span.form for span in spans), FUZZY_FORMS))
    ours, theirs = ([{near.form for near in own} for own in one.kb.similar(asked)] for one in (elastic, embedded))
    shared = sum(len(one & other) for one, other in zip(ours, theirs, strict=True))
    either = sum(len(one | other) for one, other in zip(ours, theirs, strict=True))
    assert either > 100
    assert shared >= FUZZY * either
