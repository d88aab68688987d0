"""kbtools plugins: what is listed, and what a check says."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kbtools.cli.main import main
from kbtools.entry_points import KINDS
from kbtools.suites.backend_suite import check_backend


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["plugins", *arguments])


def test_plugins_of_every_kind_are_listed() -> None:
    records = [json.loads(line) for line in run("--json").stdout.splitlines()]
    lines = run().stdout.splitlines()

    assert {record["kind"] for record in records} == set(KINDS.values())
    assert [line.split()[0] for line in lines] == [record["name"] for record in records]
    assert lines == [line.rstrip() for line in lines]
    assert {"name": "n-gram", "kind": "pruner"}.items() <= next(r for r in records if r["name"] == "n-gram").items()


def test_a_check_prints_each_claim_that_holds() -> None:
    checked = run("check", "lexical")

    assert checked.exit_code == 0
    assert checked.stdout.count("ok: ") == 7


def test_a_backend_is_checked_on_its_sample(sample_path: Path) -> None:
    checked = run("check", "embedded", "--sample", str(sample_path))

    assert checked.exit_code == 0
    assert checked.stdout.splitlines() == [f"ok: {claim}" for claim in check_backend("embedded", sample_path)]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["nobody"], 1, "Error: 'nobody' is no plugin's name; say which kind: relation scorer, "),
        (["kbtools.answering.results:Result"], 1, "has no method of a plugin; say which kind"),
        (["kbtools.pruning.n_gram:NGram", "--kind", "tagger"], 1, "breaks its contract: each question has spans"),
        (["embedded"], 1, "is checked on a small knowledge base that it opens"),
        (["lexical", "--kind", "oracle"], 2, "'oracle' is not one of 'relation scorer'"),
    ],
)
def test_a_check_that_fails_is_one_sentence(arguments: list[str], code: int, message: str) -> None:
    failed = run("check", *arguments)

    assert failed.exit_code == code
    assert message in failed.stderr
