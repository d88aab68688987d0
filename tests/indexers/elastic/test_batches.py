"""Batches of documents, kinds of errors, and the settings of a connection."""

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbtools.errors import NotAllowed, VectorsMissing, WrongFormat
from kbtools.indexers.elastic import bulk, cluster_vectors
from kbtools.indexers.elastic.bulk import Rejected, note_kinds
from kbtools.indexers.elastic.catalog import chunked
from kbtools.indexers.elastic.cluster import kind_of, root_cause
from kbtools.indexers.elastic.cluster_vectors import ElasticVectors
from kbtools.indexers.elastic.connection import read_connection
from kbtools.indexers.elastic.documents import Document
from kbtools.indexers.elastic.mapping import IndexMark
from kbtools.indexers.elastic.versions import Version
from kbtools.kb.vector_index import EntityVectors, VectorOrigin

PREFIX = "KBTOOLS_ELASTICSEARCH_"


@given(st.lists(st.integers(0, 2_500_000), max_size=8), st.integers(1, 3))
def test_a_batch_is_as_large_as_it_may_be_and_keeps_the_order(sizes: list[int], most: int) -> None:
    documents = [Document(str(place), b"x" * size, place) for place, size in enumerate(sizes)]

    batches = list(bulk._cut_batches(documents, most))

    assert [document for batch in batches for document in batch] == documents
    totals = [sum(len(document.source) + 40 for document in batch) for batch in batches]
    assert all(len(batch) <= most for batch in batches)
    assert all(total <= 4_000_000 or len(batch) == 1 for total, batch in zip(totals, batches, strict=True))
    # The first document of the next batch did not fit.
    for batch, total, following in zip(batches, totals, batches[1:], strict=False):
        assert len(batch) == most or total + len(following[0].source) + 40 > 4_000_000


@given(st.lists(st.integers(0, 600_000), max_size=8))
def test_texts_are_cut_into_lists_of_a_million_characters(sizes: list[int]) -> None:
    texts = ["x" * size for size in sizes]

    lists = list(chunked(texts))

    assert [text for chunk in lists for text in chunk] == texts
    assert all(sum(len(text) + 4 for text in chunk) > 1_000_000 for chunk in lists[:-1])
    assert all(sum(len(text) + 4 for text in chunk[:-1]) <= 1_000_000 for chunk in lists)


def test_the_first_document_of_each_kind_of_rejection_is_noted() -> None:
    kinds = {"a": "kept"}
    note_kinds(kinds, [Rejected(*facts, b"") for facts in (("1", "a", "x"), ("2", "b", "y"), ("3", "b", "z"))])
    assert kinds == {"a": "kept", "b": "document 2: y"}


CAUSED = {"type": "outer", "reason": "o", "caused_by": {"type": "inner", "reason": "i" * 400}}


@pytest.mark.parametrize(
    ("error", "cause", "kind"),
    [
        (CAUSED, "inner: " + "i" * 300, "outer < inner"),
        ({**CAUSED, "root_cause": [{"type": "root", "reason": "r"}]}, "root: r", "outer < inner"),
        ({"type": "a", "caused_by": {"type": "a", "reason": "b"}}, "a: b", "a"),
        (
            {"type": "a", "caused_by": {"type": "b", "caused_by": CAUSED}},
            "inner: " + "i" * 300,
            "a < b < outer < inner",
        ),
        ({}, ": ", "unknown"),
    ],
)
def test_an_error_is_known_by_its_innermost_cause_and_all_its_kinds(
    error: dict[str, Any], cause: str, kind: str
) -> None:
    assert (root_cause(error), kind_of(error)) == (cause, kind)


def test_an_error_without_parts_is_its_text() -> None:
    assert (root_cause("x" * 400), root_cause(None)) == ("x" * 300, "")


def test_settings_of_the_environment_outrank_those_of_the_url(tmp_path: Path) -> None:
    for name in ("ca", "cert", "key", "secret"):
        (tmp_path / name).write_text("\ufefffrom file\r\n" if name == "secret" else "x")
    environment = {
        f"{PREFIX}{name}": value
        for name, value in {
            "USER": "own", "PASSWORD_FILE": str(tmp_path / "secret"), "CA_FILE": str(tmp_path / "ca"), "TIMEOUT": "2.5",
            "CLIENT_CERT": str(tmp_path / "cert"), "CLIENT_KEY": str(tmp_path / "key"), "API_KEY": " key== ",
        }.items()
    }  # fmt: skip

    own = read_connection("http://theirs:secret@Host,https://other:p%40ss@second", environment)
    plain = read_connection("http://first:one@a, http://second@b, HTTPS://M%C3%BC:p%40s@xn--a/es//", {})

    assert (own.user, own.password, own.api_key, own.timeout) == ("own", "from file", "key==", 2.5)
    assert (own.ca_file, own.client_cert, own.client_key) == tuple(tmp_path / name for name in ("ca", "cert", "key"))
    assert own.urls == ("http://host:9200", "https://second:443")
    # Of several URLs the last user and password count.
    assert (plain.user, plain.password, plain.api_key, plain.timeout) == ("Mü", "p@s", None, 30.0)
    assert plain.urls == ("http://a:9200", "http://b:9200", "https://xn--a:443/es")
    assert read_connection(None, {f"{PREFIX}PASSWORD": "x", f"{PREFIX}PASSWORD_FILE": "none"}).password == "x"


@pytest.mark.parametrize(
    ("settings", "error", "sentence"),
    [
        ({"CLIENT_KEY": __file__}, NotAllowed, "CLIENT_KEY needs"),
        ({"USER": "a:b"}, NotAllowed, "cannot contain a colon"),
        ({"API_KEY": "a b"}, NotAllowed, "API_KEY, or its file: contains a line break, a space"),
        ({"API_KEY": "é"}, NotAllowed, "API_KEY"),
        ({"PASSWORD": "\udcff"}, NotAllowed, "PASSWORD: is not UTF-8"),
        ({"URL": "http://a:0"}, WrongFormat, "port from 1"),
        ({"URL": "http://a:65536"}, WrongFormat, "port from 1"),
        ({"URL": "http://u:p/q@a"}, WrongFormat, "write / as %2F"),
        ({"TIMEOUT": "86400"}, WrongFormat, "between 0 and 86400"),
    ],
)
def test_settings_that_cannot_be_are_named_by_their_variable(
    settings: dict[str, str], error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error, match=sentence):
        read_connection(None, {f"{PREFIX}{name}": value for name, value in settings.items()})
    assert read_connection(None, {f"{PREFIX}URL": "http://a:65535"}).urls == ("http://a:65535",)


class FakeVectors:
    """A stand-in for the searches of an index of vectors: scores are (1 + cosine) / 2 of each row."""

    def __init__(self, scores: dict[int, float]) -> None:
        self.scores, self.asked = scores, list[int]()

    def ask(self, method: str, path: str) -> Any:
        mark = IndexMark("kb", 1, 2, complete=True, origin={"subject": "s", "model": "m"})
        mapping = {"mappings": {"properties": {"vector": {"dims": 2}}, "_meta": mark.to_meta()}}
        return {"count": len(self.scores)} if path.endswith("_count") else {"v": mapping}

    def run(self, asked: Any) -> Any:
        self.asked += [body["knn"]["num_candidates"] for _, body in asked]
        hits = [{"_score": score, "fields": {"row": [row]}} for row, score in self.scores.items()]
        return [{"hits": {"hits": hits[: body["size"]]}} for _, body in asked]


def test_neighbours_are_by_cosine_then_row_and_candidates_are_bounded() -> None:
    searches: Any = FakeVectors({5: 0.5, 3: 1.0, 2: 0.5})
    own = ElasticVectors("kb", own_version(), searches)

    near = own.nearest(np.ones((51, 2), dtype=np.float32), limit=7)

    assert (own.dim, len(own), own.origin) == (2, 3, VectorOrigin("s", "m"))
    assert near.rows.tolist() == [[3, 2, 5]] * 51
    assert near.cosines.tolist() == [[1.0, 0.0, 0.0]] * 51
    searches.scores = dict.fromkeys(range(2_000), 0.5)
    many = ElasticVectors("kb", own_version(), searches)
    for limit in (30, 2_000):
        assert many.nearest(np.ones((1, 2), dtype=np.float32), limit=limit).rows.tolist() == [list(range(limit))]
    assert searches.asked == [200] * 51 + [300, 10_000]
    with pytest.raises(VectorsMissing, match="has no entity vectors"):
        ElasticVectors("kb", Version("kb", 1, {}), searches)


def own_version() -> Version:
    return Version("kb", 1, {"vectors": "v"})


@pytest.mark.parametrize(
    ("rows", "dim", "refused"),
    [([0, 4], 4_096, False), ([], 1, False), ([0, 5], 3, True), ([1, 1], 3, True), ([0], 4_097, True), ([0], 0, True)],
)
def test_vectors_of_entities_alone_are_sent(rows: list[int], dim: int, refused: bool) -> None:
    vectors = EntityVectors(
        np.array(rows, dtype=np.uint32), dim, lambda some: np.ones((len(some), dim), dtype=np.float32)
    )
    with pytest.raises(WrongFormat, match=r"dimensions|distinct rows below 5") if refused else nullcontext():
        cluster_vectors._check_vectors(vectors, 5)
