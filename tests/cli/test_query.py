"""kbtools query: what goes in by argument, file and stream, and what comes out."""

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from click.testing import CliRunner
from click.testing import Result as Invocation
from numpy.typing import NDArray

from kbtools.cli.main import main
from kbtools.ranking.system import System
from kbtools.ranking.trained import read_systems
from kbtools.ranking.weights import WITH_SUBJECT
from kbtools.text.question import MarkedQuestion

KBTOOLS = (sys.executable, "-c", "from kbtools.cli.main import main; main()")
WHO = "who created the character harry potter"


@pytest.fixture
def query(sample_path: Path) -> Callable[..., Invocation]:
    """Run kbtools query over the sample."""

    def run(*args: str, given: str | bytes | None = None, env: Mapping[str, str | None] | None = None) -> Invocation:
        return CliRunner().invoke(main, ["query", "--kb", str(sample_path), *args], input=given, env=env)

    return run


@pytest.fixture
def records(query: Callable[..., Invocation]) -> Callable[..., list[dict[str, Any]]]:
    """Ask a stream for JSON, timing left out."""

    def run(given: str | bytes, *args: str) -> list[dict[str, Any]]:
        result = query("--json", "--no-timing", *args, "-", given=given)
        assert (result.exit_code, result.stderr) == (0, "")
        return [json.loads(line) for line in result.stdout.split("\n")[:-1]]

    return run


@pytest.fixture
def started(sample_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Start kbtools query --json - in a process of its own, with pipes."""
    command = [*KBTOOLS, "query", "--kb", str(sample_path), "--json", "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        yield process
        process.kill()


def test_a_table_shows_candidates_and_answers(query: Callable[..., Invocation]) -> None:
    result = query(WHO)
    assert result.exit_code == 0
    assert "Harry Potter (m.078ffw)" in result.stdout
    assert "answers: J. K. Rowling (m.042xh)" in result.stdout


def test_json_is_one_line_with_the_documented_keys(query: Callable[..., Invocation]) -> None:
    (line,) = query("--json", WHO).stdout.splitlines()
    record = json.loads(line)
    assert {"question", "pruning", "scorer", "candidates", "tied", "answers", "milliseconds"} <= set(record)
    assert record["milliseconds"] > 0


def test_without_timing_no_milliseconds_are_told(records: Callable[..., list[dict[str, Any]]]) -> None:
    assert [record["milliseconds"] for record in records(WHO)] == [None]


@pytest.mark.parametrize("given", [[], ["-", "--questions", "file"], ["who wrote it", "--questions", "file"]])
def test_a_question_comes_from_one_place(query: Callable[..., Invocation], given: list[str]) -> None:
    result = query(*given)
    assert result.exit_code == 2
    assert "give one QUESTION" in result.stderr


@pytest.mark.parametrize("question", ["", "  "])
def test_an_empty_argument_is_a_usage_error(query: Callable[..., Invocation], question: str) -> None:
    result = query(question)
    assert result.exit_code == 2
    assert "the question is empty" in result.stderr


def test_the_knowledge_base_comes_from_the_environment(sample_path: Path) -> None:
    result = CliRunner().invoke(main, ["query", WHO], env={"KBTOOLS_KB": str(sample_path)})
    assert "J. K. Rowling" in result.stdout


def test_no_knowledge_base_is_a_usage_error_that_names_the_variable() -> None:
    result = CliRunner().invoke(main, ["query", WHO], env={"KBTOOLS_KB": None})
    assert result.exit_code == 2
    assert "KBTOOLS_KB" in result.stderr


def test_a_question_may_start_with_a_dash(query: Callable[..., Invocation]) -> None:
    assert "Harry Potter" in query("--", "-- " + WHO).stdout


def test_a_question_that_is_no_utf_8_is_answered(query: Callable[..., Invocation]) -> None:
    question = os.fsdecode(b"\xff " + WHO.encode())
    (line,) = query("--json", question).stdout.splitlines()
    assert json.loads(line)["question"] == "\N{REPLACEMENT CHARACTER} " + WHO


def test_an_unknown_pruner_fails_and_lists_them(query: Callable[..., Invocation]) -> None:
    result = query("--pruning", "nope", WHO)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("Error: no pruner 'nope'")
    assert "n-gram+" in result.stderr


def test_a_pruner_may_be_given_by_its_module(query: Callable[..., Invocation]) -> None:
    by_module = query("--pruning", "kbtools.pruning.n_gram:NGram", "--no-timing", WHO)
    assert by_module.exit_code == 0
    assert by_module.stdout == query("--pruning", "n-gram", "--no-timing", WHO).stdout


def test_a_backend_is_a_plugin_or_a_class(query: Callable[..., Invocation]) -> None:
    by_module = query("--backend", "kbtools.indexers.folder.embedded:EmbeddedKB", "--no-timing", WHO)
    assert by_module.exit_code == 0
    assert by_module.stdout == query("--no-timing", WHO).stdout


def test_an_unknown_backend_fails_and_lists_them(query: Callable[..., Invocation]) -> None:
    result = query("--backend", "nope", WHO)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("Error: no backend 'nope'; known: elasticsearch, embedded")


def test_a_cluster_is_a_backend_of_its_own(query: Callable[..., Invocation]) -> None:
    result = query("--backend", "mine", "--elasticsearch=http://localhost:1", WHO)
    assert result.exit_code == 2
    assert "remove --backend" in result.stderr


def test_an_unknown_scorer_fails_and_lists_them(query: Callable[..., Invocation]) -> None:
    result = query("--scorer", "nope", WHO)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("Error: no relation scorer 'nope'")
    assert "known: bigru, " in result.stderr
    assert ", lexical" in result.stderr


@pytest.mark.parametrize("scorer", ["nope:Scorer", "kbtools.scorers.relations.lexical:Nope", ":Scorer", "os:sep"])
def test_a_broken_scorer_fails_in_one_line_that_names_it(query: Callable[..., Invocation], scorer: str) -> None:
    result = query("--scorer", scorer, WHO)
    assert (result.exit_code, result.stdout) == (1, "")
    assert scorer in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_scorer_may_be_given_as_a_class(records: Callable[..., list[dict[str, Any]]]) -> None:
    (record,) = records(WHO, "--scorer", "kbtools.scorers.relations.lexical:LexicalScorer")
    assert record["candidates"][0]["subject"] == "m.078ffw"


def test_top_limits_the_candidates_and_zero_gives_all(records: Callable[..., list[dict[str, Any]]]) -> None:
    asked = ("--pruning", "n-gram")
    whole = len(records(WHO, "--top", "0", *asked)[0]["candidates"])
    assert len(records(WHO, "--top", "1", *asked)[0]["candidates"]) == 1
    assert len(records(WHO, "--top", "100000", *asked)[0]["candidates"]) == whole > 1


def test_a_negative_top_is_a_usage_error(query: Callable[..., Invocation]) -> None:
    assert query("--top", "-1", WHO).exit_code == 2


def test_explain_says_why(query: Callable[..., Invocation]) -> None:
    shown = query("--explain", "--top", "1", WHO).stdout
    assert "is the name 'Harry Potter' in different case" in shown
    assert "popularity" in shown
    assert "pruned by n-gram-idf" in shown


def test_sparql_prints_the_query_of_the_winner(query: Callable[..., Invocation]) -> None:
    shown = query("--sparql", WHO).stdout
    assert "<http://rdf.freebase.com/ns/m.078ffw>" in shown
    assert shown.count("\n") == 1


def test_sparql_of_nothing_is_a_comment(query: Callable[..., Invocation]) -> None:
    assert query("--sparql", "zzzz").stdout == "# no candidates\n"


def test_a_table_of_nothing_says_so(query: Callable[..., Invocation]) -> None:
    assert "no candidates" in query("zzzz").stdout


def test_equally_likely_readings_are_shown_and_give_no_answer(query: Callable[..., Invocation]) -> None:
    shown = query("where is springfield")
    _, doubt, first, second, *_ = shown.stdout.splitlines()
    assert shown.exit_code == 3
    assert "answers:" not in shown.stdout
    assert doubt == "  not sure: 2 readings are equally likely:"
    assert (first.rpartition(": ")[2], second.rpartition(": ")[2]) == ("Illinois (m.03v0t)", "Massachusetts (m.05k7sb)")
    assert "location.citytown" in first


@pytest.mark.parametrize("options", [["--json"], ["--sparql"], ["--explain"], ["--top", "1"], ["--format", "csv"]])
def test_the_exit_code_tells_of_doubt_in_every_format(query: Callable[..., Invocation], options: list[str]) -> None:
    assert query(*options, "where is springfield").exit_code == 3


def test_sparql_of_several_readings_is_a_comment(query: Callable[..., Invocation]) -> None:
    assert query("--sparql", "where is springfield").stdout == "# not sure: 2 readings are equally likely\n"


def test_a_stream_says_in_each_record_where_it_is_unsure(records: Callable[..., list[dict[str, Any]]]) -> None:
    sure, unsure = records("who wrote it\nwhere is springfield\n")
    assert (sure["answered"], sure["doubtful"], sure["readings_total"]) == (True, False, 0)
    assert (unsure["answered"], unsure["doubtful"], unsure["readings_total"]) == (False, True, 2)


def test_every_line_in_is_one_record_out(records: Callable[..., list[dict[str, Any]]]) -> None:
    asked = [record["question"] for record in records("\n  \nwho wrote it\n\n?\n")]
    assert asked == ["", "  ", "who wrote it", "", "?"]


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        (b"who wrote it\r\nwho?\r\n", ["who wrote it", "who?"]),
        (b"\xef\xbb\xbfwho wrote it\n", ["who wrote it"]),
        (b"who wrote \xff\xfe it\n", ["who wrote \ufffd\ufffd it"]),
        (b"who wrote\x00 it\n", ["who wrote\0 it"]),
        (b"no final newline", ["no final newline"]),
        ("who wrote \N{GRINNING FACE} it \u202eمن كتب".encode(), ["who wrote \N{GRINNING FACE} it \u202eمن كتب"]),
        ("one\u2028line\x85and\x0bone\n".encode(), ["one\u2028line\x85and\x0bone"]),
        (b"", []),
    ],
)
def test_a_stream_gives_questions_as_they_are(
    records: Callable[..., list[dict[str, Any]]], given: bytes, asked: list[str]
) -> None:
    assert [record["question"] for record in records(given)] == asked


def test_offsets_are_characters_of_the_question(records: Callable[..., list[dict[str, Any]]]) -> None:
    (record,) = records("\N{GRINNING FACE}\N{GRINNING FACE} " + WHO)
    mention = record["candidates"][0]["mention"]
    assert record["question"][mention["start"] : mention["end"]] == mention["text"] == "harry potter"


def test_a_question_of_five_thousand_tokens_is_answered(records: Callable[..., list[dict[str, Any]]]) -> None:
    (record,) = records("harry potter " * 2_500)
    assert record["candidates"][0]["subject_name"] == "Harry Potter"


def test_a_question_of_a_megabyte_is_answered(records: Callable[..., list[dict[str, Any]]]) -> None:
    (record,) = records("x" * 1_000_000 + " " + WHO)
    assert record["candidates"][0]["subject_name"] == "Harry Potter"


@pytest.mark.parametrize("name", ["questions.txt", "sample.test.txt"])
def test_a_file_of_questions_is_answered_line_by_line(
    query: Callable[..., Invocation], examples: Path, name: str
) -> None:
    lines = (examples / name).read_text(encoding="utf-8").splitlines()
    result = query("--json", "--questions", str(examples / name))
    asked = [json.loads(line)["question"] for line in result.stdout.splitlines()]
    assert asked == [line.rsplit("\t", 1)[-1] for line in lines]


def test_questions_of_a_file_are_answered_together_and_as_alone(
    query: Callable[..., Invocation], tmp_path: Path
) -> None:
    questions = [WHO, "who wrote it", "", "what is nothing called"] * 40
    (tmp_path / "q.txt").write_text("".join(f"{question}\n" for question in questions), encoding="utf-8")
    alone = [query("--json", "--no-timing", question).stdout for question in dict.fromkeys(questions) if question]
    together = query("--json", "--no-timing", "--questions", str(tmp_path / "q.txt")).stdout.splitlines(True)
    assert [json.loads(line)["question"] for line in together] == questions
    assert [together[0], together[1], together[3]] == alone


def test_questions_of_a_file_are_scored_together(query: Callable[..., Invocation], tmp_path: Path) -> None:
    (tmp_path / "q.txt").write_text("who wrote it\n" * 64, encoding="utf-8")
    RefusesNobody.asked = []
    query("--scorer", "tests.cli.test_query:RefusesNobody", "--questions", str(tmp_path / "q.txt"))
    assert len(RefusesNobody.asked) < 64


def test_questions_before_one_that_fails_are_answered(query: Callable[..., Invocation]) -> None:
    scorer = "tests.cli.test_query:RefusesNobody"
    result = query("--json", "--scorer", scorer, "-", given=f"{WHO}\nwho wrote it\nnobody wrote it\n{WHO}\n")
    assert [json.loads(line)["question"] for line in result.stdout.splitlines()] == [WHO, "who wrote it"]
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)


class RefusesNobody:
    """A relation scorer that fails at a question about nobody, and with it all that it is asked with."""

    asked: ClassVar[list[int]] = []
    """The numbers of mentions that it was asked about together."""

    def __init__(self, relations: Sequence[str]) -> None:
        self.relations = relations

    def score(self, questions: Sequence[MarkedQuestion]) -> NDArray[np.float64]:
        self.asked.append(len(questions))
        if any("nobody" in marked.question.text for marked in questions):
            raise ValueError("nobody")
        return np.zeros((len(questions), len(self.relations)))


@pytest.mark.parametrize("content", [None, "", "<!DOCTYPE html>\n"])
def test_a_file_that_holds_no_questions_is_refused(
    query: Callable[..., Invocation], tmp_path: Path, content: str | None
) -> None:
    path = tmp_path / "q.txt"
    (path if content is not None else tmp_path / "other").write_text(content or "", encoding="utf-8")
    result = query("--questions", str(path))
    assert result.exit_code == 1
    assert result.stderr.startswith(f"Error: {path}")


def test_a_table_keeps_one_line_per_name(tmp_path: Path) -> None:
    (tmp_path / "f.jsonl").write_text('{"subject": "a", "relation": "r", "object": "b"}\n')
    names = [{"id": "a", "name": "Alpha"}, {"id": "b", "name": 'two\nlines\t"q" \\ \x1b[31m'}]
    (tmp_path / "n.jsonl").write_text("".join(json.dumps(name) + "\n" for name in names))
    out = str(tmp_path / "o.kb")
    sources = ["--facts", str(tmp_path / "f.jsonl"), "--names", str(tmp_path / "n.jsonl")]
    assert CliRunner().invoke(main, ["index", *sources, "--out", out]).exit_code == 0
    shown = CliRunner().invoke(main, ["query", "--kb", out, "alpha"]).stdout
    record = json.loads(CliRunner().invoke(main, ["query", "--kb", out, "--json", "alpha"]).stdout)
    assert shown.splitlines()[-1] == r'  answers: two\nlines\t"q" \ \x1b[31m (b)'
    assert record["answers"] == [{"id": "b", "name": 'two\nlines\t"q" \\ \x1b[31m'}]


def test_an_answer_comes_before_the_next_question_and_an_interrupt_is_quiet(started: subprocess.Popen[bytes]) -> None:
    started.stdin.write(WHO.encode() + b"\n")
    started.stdin.flush()
    first = json.loads(started.stdout.readline())
    started.send_signal(signal.SIGINT)
    assert started.stderr.read().strip() == b"Aborted!"
    assert first["question"] == WHO
    assert started.wait() == 1


def test_a_reader_that_has_had_enough_ends_it_quietly(started: subprocess.Popen[bytes]) -> None:
    asked = WHO.encode() + b"\n"
    started.stdin.write(asked)
    started.stdin.flush()
    started.stdout.readline()
    started.stdout.close()
    started.stdin.write(asked * 10)
    started.stdin.close()
    assert started.stderr.read() == b""
    assert started.wait() == 1


@pytest.mark.parametrize("form", ["--json", "--explain"])
def test_a_full_disk_under_the_output_is_one_line(sample_path: Path, form: str) -> None:
    command = [*KBTOOLS, "query", "--kb", str(sample_path), form, WHO]
    with open("/dev/full", "w") as full:
        result = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert result.stderr.startswith("Error: [Errno 28]")
    assert (result.returncode, result.stderr.count("\n")) == (1, 1)


def test_json_is_utf_8_whatever_the_terminal_speaks(sample_path: Path) -> None:
    command = [*KBTOOLS, "query", "--kb", str(sample_path)]
    env = os.environ | {"PYTHONIOENCODING": "latin-1"}
    question = "where was sasha vujačić born"
    as_json = subprocess.run([*command, "--json", question], capture_output=True, env=env, check=True)
    as_table = subprocess.run([*command, question], capture_output=True, env=env, check=True)
    assert json.loads(as_json.stdout.decode())["question"] == question
    assert rb"sasha vuja\u010di\u0107" in as_table.stdout


def test_closed_streams_are_no_crash(sample_path: Path) -> None:
    program = shlex.join([*KBTOOLS, "query", "--kb", str(sample_path)])
    no_input = subprocess.run(f"{program} - <&-", shell=True, capture_output=True, check=False)
    no_output = subprocess.run(f"{program} --json '{WHO}' >&-", shell=True, capture_output=True, check=False)
    assert b"Traceback" not in no_input.stderr + no_output.stderr


def test_a_batch_goes_on_after_a_pair_that_no_query_can_name(tmp_path: Path) -> None:
    (tmp_path / "f.tsv").write_text('subject\trelation\tobject\n"Alpha"\tr\tb\nb\tr\tc\nm.0a\ta.r\tc\n')
    (tmp_path / "n.tsv").write_text('id\tname\n"Alpha"\tAlpha\nb\tBeta\nm.0a\tGamma\n')
    sources = ["--facts", str(tmp_path / "f.tsv"), "--names", str(tmp_path / "n.tsv"), "--out", str(tmp_path / "k.kb")]
    assert CliRunner().invoke(main, ["index", *sources]).exit_code == 0

    asked = ["query", "--kb", str(tmp_path / "k.kb"), "--sparql", "-"]
    lines = CliRunner().invoke(main, asked, input="alpha\nbeta\nzzz\ngamma\n").stdout.splitlines()

    assert lines[1:] == [
        "# no query: 'b' is neither an IRI nor an id of Freebase or Wikidata",
        "# no candidates",
        "SELECT ?object WHERE { <http://rdf.freebase.com/ns/m.0a> <http://rdf.freebase.com/ns/a.r> ?object }",
    ]
    assert lines[0].startswith("# ")


@pytest.mark.parametrize("threshold", ["nan", "-nan", "inf", "-1", "1.1", "x"])
def test_a_threshold_that_is_no_confidence_is_a_usage_error(query: Callable[..., Invocation], threshold: str) -> None:
    assert query("--abstain", threshold, WHO).exit_code == 2


def test_answers_are_limited_and_the_rest_is_counted(query: Callable[..., Invocation]) -> None:
    question = "what genre is the who"
    record = json.loads(query("--json", "--answers", "1", question).stdout)
    assert (len(record["answers"]), record["answers_total"]) == (1, 2)
    assert query("--answers", "1", question).stdout.splitlines()[-1].endswith(" and 1 more")
    assert "more" not in query("--answers", "0", question).stdout.splitlines()[-1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--models", "none"], "none: no folder of models; make one with kbtools train"),
        (["--device", "gpu"], "no device 'gpu'; known: cpu"),
        (["--device", "cuda:99"], "device 'cuda:99' is not available"),
    ],
)
def test_models_and_devices_that_are_not_there_are_refused(
    query: Callable[..., Invocation], options: list[str], message: str
) -> None:
    pytest.importorskip("torch", reason="networks need torch: pip install 'kbtools[train]'")
    result = query(*options, WHO)
    assert (result.exit_code, result.stdout) == (1, "")
    assert message in result.stderr


def test_a_folder_of_models_answers_with_what_training_chose(query: Callable[..., Invocation], tmp_path: Path) -> None:
    read_systems(tmp_path).choose(System("n-gram+", ("lexical",), "type-count", None, WITH_SUBJECT))
    chosen = json.loads(query("--models", str(tmp_path), "--json", WHO).stdout)
    named = json.loads(query("--models", str(tmp_path), "--pruning", "n-gram", "--json", WHO).stdout)
    assert (chosen["pruning"], chosen["subject_scorer"]) == ("n-gram+", "type-count")
    assert (named["pruning"], named["subject_scorer"]) == ("n-gram", "type-count")


def test_subjects_may_be_restricted_to_a_type(query: Callable[..., Invocation]) -> None:
    everything = json.loads(query("--json", "--top", "0", WHO).stdout)
    books = json.loads(query("--json", "--top", "0", "--type", "/book/written_work", WHO).stdout)
    assert {tuple(candidate["types"]) for candidate in everything["candidates"]} > {
        ("fictional_universe.fictional_character",)
    }
    assert all("book.written_work" in candidate["types"] for candidate in books["candidates"])
    assert books["type"] == "book.written_work"
    assert query("--type", "no.type", WHO).stderr.startswith("Error: no entity has the type 'no.type'")
