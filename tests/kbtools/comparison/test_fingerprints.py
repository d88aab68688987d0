"""Results are computed again where their code, by its version, or their model changed, and nowhere else."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from kbtools import entry_points, version
from kbtools.answering.answerer import Answerer
from kbtools.answering.questions import AnnotatedQuestion
from kbtools.comparison import fingerprints
from kbtools.comparison.experiment import Request, compare
from kbtools.comparison.fingerprints import (
    Fingerprints,
    Identity,
    identify,
    kb_digest,
    plugin_identity,
    questions_digest,
    scorer_identity,
)
from kbtools.comparison.grid import Cell, Grid
from kbtools.comparison.run_folder import Run
from kbtools.entry_points import SCORERS, TAGGERS
from kbtools.kb.contract import KnowledgeBase
from kbtools.kb.vector_index import VectorOrigin
from kbtools.pruning.n_gram import NGramPlus
from kbtools.ranking.confidence import Calibration
from kbtools.ranking.model_store import Stamp, write_model
from kbtools.ranking.models import model_digest
from kbtools.ranking.system import Cascade, FittedRanker, System
from kbtools.ranking.weights import DEFAULT, Weights
from kbtools.scorers.relations.lexical import LexicalScorer
from kbtools.scorers.subjects.subject import TypeCount
from kbtools.text import normaliser

MODULE = "class Mine:\n    def __init__(self, relations):\n        self.relations = relations\n"

GRID = Grid(("n-gram", "n-gram+"))

EVERYTHING = {"gold", "pools/n-gram", "pools/n-gram+", "relation/n-gram~lexical", "relation/n-gram+~lexical",
              "cells/n-gram~lexical~none", "cells/n-gram+~lexical~type-count"}  # fmt: skip
"""Some files of each stage."""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a module with a scorer on Python's path."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "scorer_under_development", raising=False)
    path = tmp_path / "scorer_under_development.py"
    path.write_text(MODULE, encoding="utf-8")
    return path


def contents(run: Run) -> dict[str, int]:
    """List the files of a run, by stage and names, with the time each was written."""
    return {
        str(path.relative_to(run.folder).with_suffix("")): path.stat().st_mtime_ns
        for path in run.folder.rglob("*.columns")
    }


@pytest.mark.parametrize(
    ("holder", "name", "renewed"),
    [
        (normaliser, "NORMALISER_VERSION", EVERYTHING),
        (version, "LINKING_VERSION", EVERYTHING),
        (version, "POOLS_VERSION", EVERYTHING - {"gold"}),
        (version, "SCORE_VERSION", {name for name in EVERYTHING if "cells" in name}),
        (NGramPlus, "version", {name for name in EVERYTHING if "n-gram+" in name}),
        (LexicalScorer, "version", {name for name in EVERYTHING if "lexical" in name}),
        (TypeCount, "version", {name for name in EVERYTHING if "type-count" in name}),
    ],
)
def test_a_raised_version_computes_again_what_depends_on_it(
    sample_memory: Answerer,
    request_for: Callable[..., Request],
    monkeypatch: pytest.MonkeyPatch,
    holder: object,
    name: str,
    renewed: set[str],
) -> None:
    before = contents(compare(Answerer(sample_memory.kb), request_for(grid=GRID)))
    monkeypatch.setattr(holder, name, getattr(holder, name, 1) + 1, raising=False)

    after = contents(compare(Answerer(sample_memory.kb), request_for(grid=GRID)))

    assert {file for file in EVERYTHING if before[file] != after[file]} == renewed


@pytest.mark.parametrize("name", ["LINKING_VERSION", "POOLS_VERSION", "SCORE_VERSION"])
def test_cells_of_an_earlier_version_are_not_shown_beside_new_ones(
    sample_memory: Answerer, request_for: Callable[..., Request], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    compare(sample_memory, request_for(grid=Grid(("n-gram",))))
    monkeypatch.setattr(version, name, 99)

    run = compare(sample_memory, request_for(grid=Grid(("n-gram+",))))

    assert {cell.pruning for cell in run.cells} == {"n-gram+", "n-gram-idf"}


def test_a_plugin_of_kbtools_is_known_by_its_version() -> None:
    assert plugin_identity(SCORERS, "lexical") == ["lexical", 2, None, None]


def test_a_release_of_kbtools_alone_computes_nothing_again(
    sample_memory: Answerer, request_for: Callable[..., Request], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(compare(sample_memory, request_for(grid=GRID)))
    monkeypatch.setattr(version, "__version__", "99")

    assert contents(compare(sample_memory, request_for(grid=GRID))) == before


def test_a_comment_in_a_module_changes_nothing(module: Path) -> None:
    before = scorer_identity(["scorer_under_development:Mine"], None)
    module.write_text(f"# better\n\n{MODULE}\n\n# by far\n", encoding="utf-8")

    assert scorer_identity(["scorer_under_development:Mine"], None) == before


def test_a_plugin_of_somebody_else_whose_code_changes_is_another(module: Path) -> None:
    before = scorer_identity(["scorer_under_development:Mine"], None)
    module.write_text(MODULE + "        self.relations.reverse()\n", encoding="utf-8")

    assert scorer_identity(["scorer_under_development:Mine"], None) != before


def test_a_plugin_that_stays_is_the_same(module: Path, tmp_path: Path) -> None:
    before = scorer_identity(["scorer_under_development:Mine"], tmp_path / "models")

    assert scorer_identity(["scorer_under_development:Mine"], tmp_path / "models") == before


def test_a_release_of_somebody_elses_distribution_is_another_plugin(
    tmp_path: Path, module: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entry_points, "every_point", entry_points.every_point.__wrapped__)
    folder = tmp_path / "theirs-1.0.dist-info"
    folder.mkdir()
    (folder / "entry_points.txt").write_text("[kbtools.scorers]\ntheirs = scorer_under_development:Mine\n")
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    before = scorer_identity(["theirs"], None)
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.1\n")

    assert scorer_identity(["theirs"], None) != before


def test_averages_differ_from_their_parts() -> None:
    assert len({scorer_identity(names, None) for names in (["lexical"], ["lexical", "lexical"])}) == 2


class Reordered:
    """A knowledge base whose relations stand in another order, so that their rows mean others."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self.manifest, self.relations = kb.manifest, tuple(reversed(kb.relations))


def test_other_rows_of_relations_are_another_knowledge_base(sample_memory: Answerer) -> None:
    assert kb_digest(Reordered(sample_memory.kb)) != kb_digest(sample_memory.kb)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "renewed"),
    [
        ("LINKING_VERSION", {"gold", "tagger", "pools", "scores", "tuned", "cell"}),
        ("POOLS_VERSION", {"pools", "scores", "tuned", "cell"}),
        ("SCORE_VERSION", {"tuned", "cell"}),
    ],
)
def test_a_fingerprint_changes_with_the_versions_that_it_rests_on(
    monkeypatch: pytest.MonkeyPatch, name: str, renewed: set[str]
) -> None:
    def steps() -> dict[str, str]:
        run = Fingerprints("kb", "questions")
        tuned, cell = run.tuned("p", "r", "s"), run.cell("p", "r", "s", weights=Weights())
        return {
            "gold": run.gold(),
            "tagger": run.tagger("t"),
            "pools": run.pools("p"),
            "scores": run.scores("p", "r"),
            "tuned": tuned,
            "cell": cell,
        }

    before = steps()
    monkeypatch.setattr(version, name, 99)

    assert {step for step, digest in steps().items() if digest != before[step]} == renewed


def test_a_fingerprint_tells_all_apart_that_it_rests_on() -> None:
    runs = [Fingerprints("kb", "questions"), Fingerprints("other", "questions"), Fingerprints("kb", "other")]
    names = [("p", "r", "s"), ("other", "r", "s"), ("p", "other", "s"), ("p", "r", "other")]

    for steps in [
        [run.gold() for run in runs],
        [run.pools(name) for run in runs for name in ("p", "other")],
        [run.tagger(name) for run in runs for name in ("t", "other")],
        [run.scores(*name[:2]) for run in runs for name in names[:3]],
        [run.tuned(*name) for run in runs for name in names],
        [
            run.cell(*name, weights=weights)
            for run in runs
            for name in names
            for weights in (Weights(), Weights(rung=0))
        ],
    ]:
        assert len(set(steps)) == len(steps)


@pytest.mark.parametrize(("name", "other"), [("GRID", {"relation": (1.0,)}), ("SWEEPS", 3)])
def test_tuned_weights_rest_on_the_values_that_were_tried(
    monkeypatch: pytest.MonkeyPatch, name: str, other: object
) -> None:
    run = Fingerprints("kb", "questions")
    before = run.tuned("p", "r", "s"), run.cell("p", "r", "s", weights=Weights())
    monkeypatch.setattr(fingerprints, name, other)

    after = run.tuned("p", "r", "s"), run.cell("p", "r", "s", weights=Weights())

    assert [now == then for now, then in zip(after, before, strict=True)] == [False, True]


def test_a_ranker_belongs_to_the_fingerprint_of_its_cell() -> None:
    run = Fingerprints("kb", "questions")

    assert len({run.cell("p", "r", "s", ranker, weights=Weights()) for ranker in ("", "one", "two")}) == 3


def test_questions_are_told_apart_by_every_field_and_their_order() -> None:
    one, other = AnnotatedQuestion("a", "b", "c", "d"), AnnotatedQuestion("x", "b", "c", "d")
    changed = [replace(one, **{name: "x"}) for name in ("subject", "relation", "object", "text")]
    orders = [list(order) for order in permutations([one, other])]

    assert len({questions_digest(some) for some in ([one], *([some] for some in changed), *orders, [one, one])}) == 8


class Tagger:
    """A tagger whose version is a word."""

    version: Any = "first"


class Published:
    """A relation scorer with published weights."""

    weights = "old"

    @classmethod
    def zero_shot(cls, relations: Sequence[str], *, device: str = "cpu") -> LexicalScorer:
        return LexicalScorer(relations)

    @classmethod
    def origin(cls) -> str:
        return cls.weights


class Ranker:
    """A ranker that is only named."""


TAGGER, PUBLISHED, RANKER = (f"{__name__}:{kind.__name__}" for kind in (Tagger, Published, Ranker))
FITTED = FittedRanker(RANKER, "digest", (), 1, Calibration((0.5,), (0.5,)))
SYSTEM = System("n-gram", ("lexical",), "popularity", None, DEFAULT)


class Vectors:
    """The vectors of entities, as far as a fingerprint reads them."""

    def __init__(self, origin: VectorOrigin, dim: int, count: int) -> None:
        self.origin, self.dim, self.count = origin, dim, count

    def __len__(self) -> int:
        return self.count


@pytest.fixture
def changed(sample_memory: Answerer, tmp_path: Path) -> Callable[[System], list[int]]:
    """Return a function that gives the parts whose fingerprint is not that of the system before."""
    answerer = Answerer(sample_memory.kb, models=tmp_path)
    seen: list[Identity] = []

    def compared(system: System) -> list[int]:
        seen.append(identify(answerer, {Cell.of(system): system})[Cell.of(system)])
        return [at for at in range(4) if len(seen) > 1 and seen[-1][at] != seen[-2][at]]

    return compared


PRUNER_PART, SCORER_PART, SUBJECT_PART, RANKER_PART = range(4)


def test_a_part_is_known_by_its_name(changed: Callable[[System], list[int]]) -> None:
    changed(SYSTEM)

    assert changed(replace(SYSTEM, pruner="n-gram+")) == [PRUNER_PART]
    assert changed(SYSTEM) == [PRUNER_PART]
    assert changed(replace(SYSTEM, scorers=("lexical", PUBLISHED))) == [SCORER_PART]
    assert changed(replace(SYSTEM, scorers=(PUBLISHED, "lexical"))) == [SCORER_PART]
    assert changed(SYSTEM) == [SCORER_PART]
    first = replace(SYSTEM, scorers=(PUBLISHED,))
    assert changed(replace(SYSTEM, cascade=Cascade(first, 0.5))) == [SCORER_PART]
    assert changed(SYSTEM) == [SCORER_PART]
    assert changed(replace(SYSTEM, subject="none")) == [SUBJECT_PART]
    assert changed(replace(SYSTEM, subject="type-count")) == [SUBJECT_PART]


def test_a_ranker_is_known_by_all_that_it_was_fitted_with(
    changed: Callable[[System], list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted = replace(SYSTEM, ranker=FITTED)

    assert changed(SYSTEM) == []
    for system in (
        fitted,
        replace(fitted, ranker=replace(FITTED, digest="other")),
        replace(fitted, ranker=replace(FITTED, calibration=Calibration((0.5,), (0.6,)))),
        replace(fitted, weights=Weights(rung=0.7)),
        replace(fitted, cascade=Cascade(SYSTEM, 0.5)),
        replace(fitted, cascade=Cascade(SYSTEM, 0.6)),
    ):
        assert changed(system) == [RANKER_PART]
    assert changed(system) == []
    monkeypatch.setattr(Ranker, "version", 2, raising=False)
    assert changed(system) == [RANKER_PART]
    monkeypatch.setattr(LexicalScorer, "version", 99, raising=False)
    assert changed(system) == [SCORER_PART, RANKER_PART]


def test_a_guide_belongs_to_its_pruner(
    changed: Callable[[System], list[int]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    guided = replace(SYSTEM, pruner="focused", guide=TAGGER)
    changed(guided)

    assert changed(replace(guided, guide=PUBLISHED)) == [PRUNER_PART]
    assert changed(guided) == [PRUNER_PART]
    for number in ("second", 2, 3):
        monkeypatch.setattr(Tagger, "version", number)
        assert changed(guided) == [PRUNER_PART]
    monkeypatch.setattr(Tagger, "version", property(lambda self: "no version"))
    assert changed(guided) == [PRUNER_PART]
    monkeypatch.setattr(Tagger, "version", 1)
    assert changed(guided) == []
    folder = tmp_path / "tagger" / TAGGER.replace(":", ".")
    for name, content in (("weights", "old"), ("weights", "new"), ("inner/weights", "old"), ("other/weights", "old")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content, encoding="utf-8")
        assert changed(guided) == [PRUNER_PART]
    (folder / "inner" / "weights").rename(folder / "inner" / "heavier")
    assert changed(guided) == [PRUNER_PART]
    assert changed(guided) == []


def test_vectors_belong_to_the_pruner_that_searches_them(
    changed: Callable[[System], list[int]], sample_memory: Answerer, monkeypatch: pytest.MonkeyPatch
) -> None:
    searching = replace(SYSTEM, pruner="n-gram-vectors")
    guides = {"n-gram-vectors": "subject"}
    monkeypatch.setattr("kbtools.ranking.parts.Parts.guide_kind", lambda self, pruner: guides.get(pruner))
    monkeypatch.setattr(fingerprints, "plugin_identity", lambda *names, **options: list(map(str, names)))
    one = VectorOrigin("type-vector", "first")

    for vectors in (
        Vectors(one, 8, 5),
        Vectors(VectorOrigin("type-vector", "second"), 8, 5),
        Vectors(one, 9, 5),
        Vectors(one, 9, 6),
    ):
        monkeypatch.setattr(sample_memory.kb, "vectors", lambda vectors=vectors: vectors, raising=False)
        assert changed(searching) == ([] if vectors.origin is one and vectors.dim == 8 else [PRUNER_PART])


def test_a_model_of_kbtools_is_known_by_its_record(tmp_path: Path) -> None:
    folder = tmp_path / "relation" / PUBLISHED.replace(":", ".")
    write_model(folder, Stamp(PUBLISHED), {}, file="weights", write=lambda path: path.write_bytes(b"some"))
    before = plugin_identity(SCORERS, PUBLISHED, part="relation", models=tmp_path)
    (folder / "notes").write_text("of no meaning", encoding="utf-8")

    assert before[3] == model_digest(folder) != ""
    assert plugin_identity(SCORERS, PUBLISHED, part="relation", models=tmp_path) == before
    assert len(before) == 4


def test_published_weights_count_where_there_is_no_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = plugin_identity(SCORERS, PUBLISHED, part="relation", models=tmp_path)
    monkeypatch.setattr(Published, "weights", "new")

    assert plugin_identity(SCORERS, PUBLISHED, part="relation", models=tmp_path) != before
    assert plugin_identity(TAGGERS, TAGGER)[3:] == [None]


def test_a_module_that_cannot_be_read_has_no_digest(module: Path) -> None:
    scorer_identity(["scorer_under_development:Mine"], None)
    module.write_text("class Mine(", encoding="utf-8")

    assert plugin_identity(SCORERS, "scorer_under_development:Mine")[2] == [None]
    assert plugin_identity(SCORERS, "builtins:dict")[2] == [None]
