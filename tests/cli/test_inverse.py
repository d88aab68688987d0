"""--inverse on the command line: answers that are subjects, their query, and comparisons over both directions."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kbtools.cli.main import main

DIRECTED = "what films did stanley kubrick direct"


@pytest.fixture
def run(sample_path: Path) -> Callable[..., Result]:
    """Run a command over the sample."""
    return lambda command, *options: CliRunner().invoke(main, [command, "--kb", str(sample_path), *options])


def test_the_table_says_which_candidates_are_read_backwards(run: Callable[..., Result]) -> None:
    done = run("query", "--inverse", "--answers", "1", DIRECTED)
    assert done.exit_code == 0, done.output
    first = done.stdout.splitlines()[1]
    assert "Stanley Kubrick (m.06mn7)  inverse of film.film.directed_by  [case: stanley kubrick]" in first
    assert done.stdout.endswith(" and 2 more\n")


def test_by_default_a_question_is_read_backwards_where_nothing_else_is_likely(run: Callable[..., Result]) -> None:
    assert "inverse of" in run("query", DIRECTED).stdout.splitlines()[1]
    assert "inverse of" not in run("query", "who wrote it").stdout


@pytest.mark.parametrize("question", [DIRECTED, DIRECTED.replace("what", "which")])
def test_films_of_a_director_are_found_by_meaning_too(run: Callable[..., Result], question: str) -> None:
    first = run("query", "--scorer", "static", "--top", "1", question).stdout.splitlines()[1]

    assert "inverse of film.film.directed_by" in first


def test_without_it_nothing_is_read_backwards(run: Callable[..., Result]) -> None:
    assert "inverse of" not in run("query", "--no-inverse", DIRECTED).stdout
    record = json.loads(run("query", "--no-inverse", "--json", DIRECTED).stdout)
    assert not record["inverse"]
    assert not any(candidate["inverse"] for candidate in record["candidates"])


def test_answers_that_are_subjects_are_bounded_and_counted(run: Callable[..., Result]) -> None:
    record = json.loads(run("query", "--inverse", "--json", "--answers", "2", DIRECTED).stdout)
    assert (len(record["answers"]), record["answers_total"]) == (2, 3)


def test_the_query_asks_for_subjects(run: Callable[..., Result]) -> None:
    done = run("query", "--inverse", "--sparql", DIRECTED)
    namespace = "http://rdf.freebase.com/ns/"
    assert done.stdout == f"SELECT ?x WHERE {{ ?x <{namespace}film.film.directed_by> <{namespace}m.06mn7> }}\n"


def test_a_name_of_no_fact_at_all_is_said_to_be_that(tmp_path: Path) -> None:
    facts, names = tmp_path / "facts.tsv", tmp_path / "names.tsv"
    facts.write_text("subject\trelation\tobject\ne1\tr1\te2\n")
    names.write_text("id\tname\ne1\tAlpha\ne3\tGamma\n")
    kb = str(tmp_path / "kb")
    assert CliRunner().invoke(main, ["index", "--facts", str(facts), "--names", str(names), "--out", kb]).exit_code == 0
    done = CliRunner().invoke(main, ["query", "--kb", kb, "--inverse", "what of gamma"])
    assert "the question names Gamma (e3), for which the knowledge base has no fact\n" in done.stdout


def test_a_comparison_measures_questions_of_both_directions(run: Callable[..., Result], tmp_path: Path) -> None:
    questions = tmp_path / "questions.txt"
    directed = ("www.freebase.com/m/06mn7", "^www.freebase.com/film/film/directed_by", "www.freebase.com/m/04fjzv")
    wrote = ("m.0kba086", "book.written_work.author", "m.0jt90f5")
    lines = ["\t".join([*gold, text]) for gold, text in ((directed, DIRECTED), (wrote, "who wrote it"))]
    questions.write_text("\n".join(lines))
    out = str(tmp_path / "run")
    options = ("--questions", str(questions), "--out", out, "--pruning", "n-gram-idf", "--quiet", "--json")
    both = json.loads(run("compare", "--inverse", *options).stdout)
    assert both["cells"][0]["figures"]["accuracy"]["value"] == 1.0
    assert both["cells"][0]["figures"]["object_accuracy"]["value"] == 1.0
    refused = run("compare", *options)
    assert "with inverse relations" in refused.stderr


def test_confidence_is_calibrated_by_a_run_over_the_same_directions(
    run: Callable[..., Result], examples: Path, tmp_path: Path
) -> None:
    files = ("--questions", str(examples / "sample.test.txt"), "--valid", str(examples / "sample.valid.txt"), "--quiet")
    for name, options in (("both", ("--inverse",)), ("stored", ())):
        done = run("compare", *options, *files, "--pruning", "n-gram-idf", "--out", str(tmp_path / name))
        assert done.exit_code == 0, done.output
    asked = ("--inverse", "--abstain", "0.1", "--json", "--calibration")
    record = json.loads(run("query", *asked, str(tmp_path / "both"), DIRECTED).stdout)
    assert record["answered"]
    refused = run("query", *asked, str(tmp_path / "stored"), DIRECTED)
    assert (refused.exit_code, "not on this one" in refused.stderr) == (1, True)
