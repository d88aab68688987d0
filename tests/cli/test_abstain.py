"""kbtools query withholds what it is not sure of, in every form of output."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kbtools.cli.main import main


@pytest.fixture
def query(sample_path: Path) -> Callable[..., Result]:
    return lambda *options: CliRunner().invoke(main, ["query", "--kb", str(sample_path), *options, "who wrote it"])


def test_a_sure_answer_is_given_with_its_confidence(query: Callable[..., Result]) -> None:
    lines = query("--abstain", "0.5", "--top", "2").stdout.splitlines()

    assert len(lines) == 5
    assert lines[-2:] == ["  confidence 0.57", "  answers: Stephen King (m.0jt90f5)"]


def test_an_unsure_answer_is_withheld(query: Callable[..., Result]) -> None:
    assert query("--abstain", "0.9", "--top", "2").stdout.splitlines()[-1] == "  no answer: confidence 0.57"


def test_an_unsure_answer_is_withheld_from_json(query: Callable[..., Result]) -> None:
    record = json.loads(query("--abstain", "0.9", "--json").stdout)

    assert (record["answers"], record["answered"]) == ([], False)
    assert record["confidence"] == pytest.approx(0.566, abs=1e-3)


def test_an_unsure_answer_is_withheld_from_sparql(query: Callable[..., Result]) -> None:
    assert query("--abstain", "0.9", "--sparql").stdout == "# no answer: confidence 0.57\n"


def test_without_the_option_confidence_is_shown_and_nothing_withheld(query: Callable[..., Result]) -> None:
    record = json.loads(query("--json").stdout)

    assert record["answered"]
    assert record["confidence"] == pytest.approx(0.566, abs=1e-3)
    assert "  confidence 0.57\n" in query().stdout


def test_calibration_alone_is_a_mistake(query: Callable[..., Result], tmp_path: Path) -> None:
    assert query("--calibration", str(tmp_path)).exit_code == 2


def test_a_calibration_that_is_no_run_is_one_sentence(query: Callable[..., Result], tmp_path: Path) -> None:
    done = query("--abstain", "0.5", "--calibration", str(tmp_path))

    assert done.exit_code == 1
    assert "no run here" in done.stderr
