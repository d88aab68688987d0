"""Whether what is computed from something else has another fingerprint."""

from pathlib import Path

import pytest

from kbtools.comparison.fingerprints import pruning_code, scorer_identity

MODULE = "class Mine:\n    def __init__(self, relations):\n        self.relations = relations\n"


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a module with a scorer on Python's path."""
    monkeypatch.syspath_prepend(str(tmp_path))
    path = tmp_path / "scorer_under_development.py"
    path.write_text(MODULE, encoding="utf-8")
    return path


def test_a_plugin_whose_code_changes_is_another(module: Path) -> None:
    before = scorer_identity("scorer_under_development:Mine", None)
    module.write_text(MODULE + "\n# better\n", encoding="utf-8")

    assert scorer_identity("scorer_under_development:Mine", None) != before


def test_a_plugin_that_stays_is_the_same(module: Path, tmp_path: Path) -> None:
    before = scorer_identity("scorer_under_development:Mine", tmp_path / "models")

    assert scorer_identity("scorer_under_development:Mine", tmp_path / "models") == before


def test_averages_differ_from_their_parts() -> None:
    assert len({scorer_identity(names, None) for names in ("lexical", "lexical,lexical")}) == 2


def test_the_code_of_pruners_is_known() -> None:
    assert len(pruning_code()) == 64
