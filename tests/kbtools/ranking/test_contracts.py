"""Scores of any plugin: converted where they are numbers, else refused in one true sentence."""

import numpy as np
import pytest

from kbtools.answering.answerer import Answerer
from kbtools.errors import BrokenPlugin
from kbtools.ranking.contracts import as_scores, log_total
from kbtools.text.question import MarkedQuestion


@pytest.mark.parametrize(
    "scores",
    [
        pytest.param([[1, 2]], id="list"),
        pytest.param(((1.0, 2.0),), id="tuple"),
        pytest.param(np.array([[1, 2]]), id="integers"),
        pytest.param(np.array([[1, 2]], dtype=np.float16), id="half precision"),
        pytest.param(np.array([[1, 2.0]], dtype=object), id="objects that are numbers"),
    ],
)
def test_numbers_of_any_kind_become_an_array_of_floats(scores: object) -> None:
    converted = as_scores(scores, scorer="Any", shape=(1, 2))

    assert converted.dtype == np.float64
    assert converted.tolist() == [[1.0, 2.0]]


@pytest.mark.parametrize("gradients", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64"])
def test_tensors_become_arrays_whatever_their_precision(gradients: bool, dtype: str) -> None:
    torch = pytest.importorskip("torch", reason="tensors need torch: pip install 'kbtools[train]'")
    tensor = torch.tensor([[1.0, 2.0]], requires_grad=gradients).to(getattr(torch, dtype))

    assert as_scores(tensor, scorer="Any", shape=(1, 2)).tolist() == [[1.0, 2.0]]


@pytest.mark.parametrize(
    ("scores", "sentence"),
    [
        pytest.param("high", "gave str with ragged rows or values that are not numbers, expected", id="text"),
        pytest.param([["1.5", "2"]], "gave list with ragged rows or values that are not numbers", id="text of digits"),
        pytest.param(None, "gave NoneType with ragged rows or values that are not numbers", id="nothing"),
        pytest.param(
            np.array([["a", "b"]], dtype=object),
            "gave ndarray with ragged rows or values that are not numbers",
            id="objects",
        ),
        pytest.param([[1.0], [1.0, 2.0]], "gave list with ragged rows or values that are not numbers", id="ragged"),
        pytest.param([[1j, 2j]], "gave list with ragged rows or values that are not numbers", id="complex"),
        pytest.param([1.0, 2.0], r"gave scores \(2,\), expected \(1, 2\)", id="one row"),
        pytest.param(7, r"gave scores \(\), expected \(1, 2\)", id="one number"),
        pytest.param([[1.0, np.nan]], "gave a score that is not finite", id="nan"),
        pytest.param([[1.0, -np.inf]], "gave a score that is not finite", id="infinity"),
    ],
)
def test_what_is_no_table_of_numbers_is_refused_in_one_sentence(scores: object, sentence: str) -> None:
    with pytest.raises(BrokenPlugin, match=f"^scorer Any {sentence}") as caught:
        as_scores(scores, scorer="Any", shape=(1, 2))
    assert "\n" not in str(caught.value)


class Plain:
    """A scorer that gives lists."""

    def __init__(self, relations: list[str]) -> None:
        self.count = len(relations)

    def score(self, questions: list[MarkedQuestion]) -> list[list[float]]:
        return [[float(column) for column in range(self.count)] for _ in questions]


class Short(Plain):
    """A scorer that knows one relation alone."""

    def __init__(self, relations: list[str]) -> None:
        super().__init__(relations[:1])


class Leaving(Plain):
    """A scorer that ends the program."""

    def score(self, questions: list[MarkedQuestion]) -> list[list[float]]:
        raise SystemExit(3)


@pytest.mark.parametrize("names", ["{0}:Plain", "{0}:Plain,{0}:Plain"])
def test_a_scorer_that_gives_lists_answers(sample_memory: Answerer, names: str) -> None:
    assert sample_memory.query("who wrote dune", scorer=names.format(__name__)).candidates


def test_a_scorer_that_ends_the_program_is_named(sample_memory: Answerer) -> None:
    with pytest.raises(BrokenPlugin, match=r"scorer Leaving failed: SystemExit\(3\)"):
        sample_memory.query("who wrote dune", scorer=f"{__name__}:Leaving")


def test_scorers_that_are_averaged_are_each_held_to_the_contract(sample_memory: Answerer) -> None:
    with pytest.raises(BrokenPlugin, match=r"scorer Short gave scores \(1, 1\), expected \(1, 45\)"):
        sample_memory.query("who wrote dune", scorer=f"lexical,{__name__}:Short")


def test_no_relations_have_no_probability() -> None:
    assert log_total(np.empty((2, 0))).tolist() == [[0.0], [0.0]]
