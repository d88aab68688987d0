"""Parts that are made from plugins, models and names: which scorer is made of what, and what a model record keeps."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest

from kbtools import index
from kbtools.answering.answerer import Answerer
from kbtools.errors import BadArgument, ModelMissing, ModelUnusable
from kbtools.indexers.folder.memory import MemoryKB
from kbtools.kb.contract import KnowledgeBase
from kbtools.kb.views import BothWays
from kbtools.ranking import models as models_module
from kbtools.ranking.direction import Directions
from kbtools.ranking.head import Head, minimise
from kbtools.ranking.model_store import (
    RECORD,
    Stamp,
    check_plugin,
    read_model,
    require_records,
    write_listed,
    write_model,
)
from kbtools.ranking.models import (
    best_of_labels,
    default_scorer,
    make_relation_scorer,
    model_digest,
    model_folder,
    read_scorers,
)
from kbtools.ranking.parts import Parts
from kbtools.ranking.taught import TaughtScorer
from kbtools.record_files import read_record
from kbtools.text.question import MarkedQuestion, Question

MARKED = [MarkedQuestion(Question.read("who flew it"), 9, 11)] * 2


class Lengths:
    """An untrained scorer: the length of each text."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.scores = np.array([float(len(text)) for text in texts])

    def score(self, questions: Sequence[MarkedQuestion]) -> np.ndarray[Any, Any]:
        return np.tile(self.scores, (len(questions), 1))


class Learned(Lengths):
    """A scorer that has to be trained."""

    @classmethod
    def load(cls, folder: Path, kb: KnowledgeBase, *, device: str = "cpu") -> Self:
        return cls([device + folder.name for _ in kb.relations])


class Published(Learned):
    """A scorer with published weights, which may be trained as well."""

    version = 7

    @classmethod
    def zero_shot(cls, relations: Sequence[str], *, device: str = "cpu") -> Self:
        return cls(relations)

    @classmethod
    def origin(cls) -> str:
        return "weights of yesterday"


class Comparing(Lengths):
    """A scorer that compares vectors."""

    def embed(self, questions: Sequence[MarkedQuestion]) -> np.ndarray[Any, Any]:
        return np.array([[1, 0], [0, 1]], dtype=np.float32)[: len(questions)]

    def score_embedded(
        self, vectors: np.ndarray[Any, Any], questions: Sequence[MarkedQuestion]
    ) -> np.ndarray[Any, Any]:
        return self.score(questions) + vectors[:, :1]


@pytest.fixture
def spoken(tmp_path: Path) -> KnowledgeBase:
    """Build two relations, the second with two labels in the languages of questions."""
    return index(
        facts=[("a", "born", "b"), ("a", "near", "b")],
        names=[("a", "Elm", "de"), ("a", "Orme", "fr")],
        relations=[("born", "geboren", "de"), ("near", "nah", "de"), ("near", "tout pres", "fr")],
        language="de,fr",
        out=tmp_path / "elms.kb",
    ).kb


@pytest.mark.parametrize("name", ["Lengths", "Published"])
def test_a_scorer_of_labels_gives_a_relation_its_best_one(spoken: KnowledgeBase, tmp_path: Path, name: str) -> None:
    (tmp_path / "models").mkdir()

    for models in (None, tmp_path / "models"):
        scorer = make_relation_scorer(f"{__name__}:{name}", spoken, models=models)
        assert scorer.score(MARKED).tolist() == [[7, 9]] * 2


@pytest.mark.parametrize("name", ["Learned", "Published"])
def test_a_trained_scorer_is_loaded_from_its_folder_on_its_device(
    spoken: KnowledgeBase, tmp_path: Path, name: str
) -> None:
    folder = model_folder(tmp_path / "models", "relation", f"{__name__}:{name}")
    folder.mkdir(parents=True)

    scorer = make_relation_scorer(f"{__name__}:{name}", spoken, models=tmp_path / "models", device="mps")

    assert ":" not in folder.name
    assert scorer.score(MARKED).tolist() == [[len(folder.name) + 3] * 2] * 2


def test_a_scorer_that_has_to_be_trained_asks_for_its_model(spoken: KnowledgeBase) -> None:
    with pytest.raises(ModelMissing, match="--models"):
        make_relation_scorer(f"{__name__}:Learned", spoken)


@pytest.mark.parametrize("kind", [Lengths, Comparing])
def test_labels_of_a_relation_stand_together_and_the_best_counts(kind: type[Lengths]) -> None:
    inner = kind(["aaa", "a", "bbbb", "b", "bb"])

    scorer, single = best_of_labels(inner, [2, 3]), best_of_labels(inner, [1] * 5)

    assert scorer.score(MARKED).tolist() == [[3, 4], [3, 4]]
    assert single is inner
    assert hasattr(scorer, "embed") is (kind is Comparing)
    if isinstance(inner, Comparing):
        assert scorer.score_embedded(inner.embed(MARKED), MARKED).tolist() == [[4, 5], [3, 4]]  # type: ignore[attr-defined]
        assert scorer.embed(MARKED[:1]).tolist() == [[1, 0]]  # type: ignore[attr-defined]


def test_a_taught_scorer_adds_its_head_to_the_scores() -> None:
    head = Head(
        np.zeros(2, dtype=np.float32), np.array([1]), np.array([[2.0, 4.0]], dtype=np.float32),
        np.array([0.5], dtype=np.float32),
    )  # fmt: skip

    scores = TaughtScorer(Comparing(["aaa", "a"]), head, None).score(MARKED)

    assert scores.tolist() == [[4, 2 + 2.5], [3, 1 + 4.5]]


@pytest.mark.parametrize(
    ("installed", "named", "package", "scorer"),
    [
        (True, "", True, "static/encoder"),
        (True, "folder", False, "static/encoder"),
        (True, "", False, "static"),
        (False, "folder", True, "static"),
    ],
)
def test_the_encoder_is_used_where_it_is_installed_and_has_weights(
    monkeypatch: pytest.MonkeyPatch, installed: bool, named: str, package: bool, scorer: str
) -> None:
    monkeypatch.setattr(models_module, "is_installed", lambda extra: installed)
    monkeypatch.setattr(models_module, "find_spec", lambda name: name if package else None)
    monkeypatch.setenv("KBTOOLS_ENCODER", named)
    monkeypatch.setenv("KBTOOLS_SCORER", "")

    chosen = [default_scorer()]
    monkeypatch.setenv("KBTOOLS_SCORER", "lexical")

    assert [*chosen, default_scorer()] == [scorer, "lexical"]


@pytest.mark.parametrize(
    ("names", "first", "last"),
    [
        ("a", (), ("a",)),
        ("a, b", (), ("a", "b")),
        ("a/b", ("a",), ("b",)),
        (" a , b / c , d", ("a", "b"), ("c", "d")),
    ],
)
def test_scorers_before_a_slash_rank_first(names: str, first: tuple[str, ...], last: tuple[str, ...]) -> None:
    assert read_scorers(names) == (first, last)


@pytest.fixture
def kb() -> MemoryKB:
    return MemoryKB([("a", "pilot", "b")], [("a", "Kite")])


@pytest.mark.parametrize("argument", ["pruning", "scorer", "subject", "ranker"])
def test_the_name_of_a_part_is_a_text(kb: MemoryKB, argument: str) -> None:
    with pytest.raises(BadArgument, match=f"^{argument} is a name"):
        Parts(kb).system(**{argument: 7})  # type: ignore[arg-type]
    assert Parts(kb).system(**{argument: None}) == Parts(kb).system()


def test_a_scorer_is_identified_by_its_version_its_origin_or_its_model(kb: MemoryKB, tmp_path: Path) -> None:
    name = f"{__name__}:Published"
    folder = model_folder(tmp_path, "relation", name)
    plain, untrained = (Parts(kb, tmp_path).made_of(one) for one in ("lexical", name))
    write_model(folder, Stamp(name), {}, file="weights.safetensors", write=lambda path: path.write_bytes(b"x"))

    trained = Parts(kb, tmp_path).made_of(name)

    assert Parts(kb).made_of(name) == untrained == repr((name, 7, "weights of yesterday", ""))
    assert trained == repr((name, 7, "", model_digest(folder)))
    assert eval(plain)[::3] == ("lexical", "")


def test_a_scorer_is_made_once_for_each_set_of_languages(spoken: KnowledgeBase) -> None:
    parts = Parts(spoken)
    german = Answerer(spoken).in_languages("de").kb

    one, other, again = parts.scorer("lexical"), parts.scorer("lexical", german), parts.scorer("lexical", spoken)

    assert (one is again, one is other) == (True, False)
    assert [*parts.scorers] == ["lexical de fr", "lexical de"]


def test_a_model_keeps_its_record(tmp_path: Path) -> None:
    stamp = Stamp("bigru", "questions", {"accuracy": 0.5})

    write_model(tmp_path / "m", stamp, {"a": 1}, file="weights.safetensors", write=lambda path: path.write_bytes(b"x"))
    model = read_model(tmp_path / "m")

    assert (model.stamp, model.contents, model.weights.read_bytes()) == (stamp, {"a": 1}, b"x")
    assert read_record(tmp_path / "m" / RECORD, name="kbtools-model", version=1, cure="")  # of every release
    assert model_digest(tmp_path) == ""
    check_plugin(tmp_path / "m", Lengths, name="bigru")
    check_plugin(tmp_path / "other", Lengths, name="lexical")
    with pytest.raises(ModelUnusable, match="trained as 'bigru'"):
        check_plugin(tmp_path / "m", Lengths, name="lexical")
    (tmp_path / "m" / "weights.safetensors").write_bytes(b"y")
    with pytest.raises(ModelUnusable, match="not as written"):
        read_model(tmp_path / "m")


def test_a_listed_record_that_is_missing_is_named(tmp_path: Path) -> None:
    require_records(tmp_path, ["a", "b"])
    for name in ("a", "b", "a"):
        write_listed(tmp_path / name, {}, name="test", version=1)
    require_records(tmp_path, ["a", "b"])

    for name in ("a", "b"):
        record = (tmp_path / name).read_bytes()
        (tmp_path / name).unlink()
        with pytest.raises(ModelUnusable, match=f"/{name}: "):
            require_records(tmp_path, ["c"])
        (tmp_path / name).write_bytes(record)
    (tmp_path / "a").unlink()
    (tmp_path / "contents.msgpack").unlink()
    with pytest.raises(ModelUnusable, match=r"contents\.msgpack"):
        require_records(tmp_path, ["b"])
    require_records(tmp_path, ["c"])


def test_a_relation_whose_label_has_an_agent_is_agentive() -> None:
    names = ("film.original_author", "directed_by", "book.editors_note", "capital", "film.scientist", "by_road")
    kb = BothWays(MemoryKB([("a", relation, "b") for relation in names], []))

    marks = Directions(kb).agentive.tolist()

    assert {name for name, mark in zip(kb.kb.relations, marks, strict=True) if mark} == {
        "film.original_author", "directed_by", "book.editors_note", "film.scientist",
    }  # fmt: skip


def test_the_search_for_a_minimum_ends_when_it_gains_no_more() -> None:
    calls: list[float] = []

    def bowl(at: np.ndarray[Any, Any]) -> tuple[float, np.ndarray[Any, Any]]:
        calls.append(float(at[0]))
        return float(((at - 3) ** 2).sum()), 2 * (at - 3)

    assert minimise(bowl, np.zeros(1)) == pytest.approx([3.0], abs=1e-3)
    assert len(calls) < 20


@pytest.mark.parametrize("text", ["harry potter", "who wrote it", "where is springfield"])
def test_candidates_within_rounding_of_the_best_are_level(sample_memory: Answerer, text: str) -> None:
    opened = sample_memory.opened(sample_memory.system(scorer="lexical"))

    _, _, (ranking,) = opened.rank(opened.gather([Question.read(text)]), top=3)

    scores = ranking.scores.tolist()
    assert ranking.level == sum(score >= max(scores) - 10.5e-6 for score in scores)
    assert ranking.tied == sum(score == max(scores) for score in scores)
    assert sorted(ranking.all_level)[: ranking.level] == sorted(ranking.all_level)
    assert set(ranking.likeliest) <= set(ranking.all_level)
    assert len(ranking.best) == min(3, len(scores))
