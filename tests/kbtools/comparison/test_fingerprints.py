"""Results are computed again where their code, by its version, or their model changed, and nowhere else."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kbtools import entry_points, version
from kbtools.answering.answerer import Answerer
from kbtools.comparison.experiment import Request, compare
from kbtools.comparison.fingerprints import Fingerprints, kb_digest, plugin_identity, scorer_identity
from kbtools.comparison.grid import Grid
from kbtools.comparison.run_folder import Run
from kbtools.entry_points import SCORERS
from kbtools.kb.contract import KnowledgeBase
from kbtools.pruning.n_gram import NGramPlus
from kbtools.ranking.weights import Weights
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
    assert plugin_identity(SCORERS, "lexical") == ["lexical", 1, None, None]


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
        ("LINKING_VERSION", {"gold", "pools", "scores", "tuned", "cell"}),
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
