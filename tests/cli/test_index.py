"""kbtools index: sources in, a knowledge base out, or one line that says why not."""

import json
import logging
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from click.testing import Result as Invocation

from kbtools.cli.main import main
from kbtools.indexers.folder.embedded import EmbeddedKB

WITHOUT_PANDAS = """
import sys

class NoPandas:
    def find_spec(self, name, path=None, target=None):
        if name == "pandas":
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, NoPandas())
"""
"""The start of a program: pyarrow would import pandas, which a build does not need, and that takes 0.3 s."""

KBTOOLS = (sys.executable, "-c", WITHOUT_PANDAS + "from kbtools.cli.main import main; main()")

SIGNALLED = f"""
{WITHOUT_PANDAS}
import logging, os
from kbtools.cli.main import main

class Stop(logging.Handler):
    def emit(self, record):
        if record.getMessage().startswith(sys.argv[2] + ":"):
            os.kill(os.getpid(), int(sys.argv[1]))

logging.getLogger("kbtools.indexers.building.build").addHandler(Stop())
logging.getLogger("kbtools.indexers.building.build").setLevel(logging.INFO)
main(sys.argv[3:])
"""
"""A build that sends itself a signal at the end of a phase."""

SIGNALLED_IN_A_LIBRARY = "import atexit, ctypes, signal, threading\n" + SIGNALLED.replace(
    "            os.kill(os.getpid(), int(sys.argv[1]))\n",
    """
            signal.pthread_sigmask(signal.SIG_BLOCK, [int(sys.argv[1])])
            threading.Timer(0.3, os.kill, (os.getpid(), int(sys.argv[1]))).start()
            atexit.register(print, "ended by itself", flush=True)
            ctypes.CDLL(None).sleep(20)
""",
)
"""The same, while the thread that Python handles signals in is busy outside of Python for 20 seconds."""


def run(*args: object) -> Invocation:
    return CliRunner().invoke(main, [str(arg) for arg in args])


def interrupt(script: str, number: signal.Signals, phase: str, *args: object) -> subprocess.CompletedProcess[str]:
    """Index in a process that sends itself a signal at the end of a phase."""
    command = [sys.executable, "-c", script, str(int(number)), phase, "index", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def sample_options(examples: Path) -> list[str]:
    return [f"--{kind}={examples / f'sample.{kind}.txt'}" for kind in ("facts", "names", "types")]


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str], Path]:
    """Write a source; give its path."""

    def write_source(name: str, text: str) -> Path:
        (tmp_path / name).write_text(text, encoding="utf-8")
        return tmp_path / name

    return write_source


@pytest.fixture
def own(write: Callable[[str, str], Path]) -> list[str | Path]:
    """Write the smallest knowledge base: Alpha -> r -> Beta."""
    facts = write("f.tsv", "subject\trelation\tobject\na\tr\tb\n")
    return ["--facts", facts, "--names", write("n.tsv", "id\tname\na\tAlpha\nb\tBeta\n")]


def test_it_prints_a_line_per_phase_then_the_counts(sample_options: list[str], tmp_path: Path) -> None:
    result = run("index", *sample_options, "--out", tmp_path / "s.kb")
    lines = result.stdout.splitlines()
    phases = [line.partition(":")[0] for line in lines if re.fullmatch(r".+: .+ \(\d+\.\d s\)", line)]
    assert result.exit_code == 0
    assert phases == [
        "read sample.facts.txt",
        "read sample.names.txt",
        "read sample.types.txt",
        *("entities", "facts", "names", "types", "forms", "check"),
    ]
    assert "facts                537             3           534" in lines
    assert lines[-1].startswith(f"{tmp_path / 's.kb'}: ")


def test_quiet_prints_the_counts_alone(own: list[str | Path], tmp_path: Path) -> None:
    result = run("index", *own, "--quiet", "--out", tmp_path / "s.kb")
    assert " s)" not in result.stdout
    assert "facts                  1             0             1" in result.stdout


def test_a_second_run_says_that_there_is_nothing_to_do(own: list[str | Path], tmp_path: Path) -> None:
    run("index", *own, "--out", tmp_path / "s.kb")
    result = run("index", *own, "--out", tmp_path / "s.kb")
    assert result.exit_code == 0
    assert "already has these sources, nothing to do (--force builds it again)" in result.stdout
    assert "facts                  1             0             1" in result.stdout


def test_force_builds_again(own: list[str | Path], tmp_path: Path) -> None:
    run("index", *own, "--out", tmp_path / "s.kb")
    assert "check: " in run("index", *own, "--force", "--out", tmp_path / "s.kb").stdout


@pytest.mark.parametrize("option", ["--lang=de", "--column=entity=id"])
def test_another_option_builds_again(own: list[str | Path], tmp_path: Path, option: str) -> None:
    run("index", *own, "--out", tmp_path / "s.kb")
    assert "check: " in run("index", *own, option, "--out", tmp_path / "s.kb").stdout


def test_a_table_of_an_entity_a_row_is_indexed(write: Callable[[str, str], Path], tmp_path: Path) -> None:
    table = write("p.csv", "key,label,gene\nP1,Titin,G1;G2\n")
    result = run(
        "index", "--table", table, "--subject", "key", "--name", "label", "--list-separator", ";", "--quiet",
        "--out", tmp_path / "p.kb",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert list(EmbeddedKB(tmp_path / "p.kb").entity_ids) == ['"G1"', '"G2"', "P1"]


def test_wikidata_is_filtered_by_ids_of_a_file(
    examples: Path, write: Callable[[str, str], Path], tmp_path: Path
) -> None:
    ids = write("ids.txt", "Q903011\n")
    dump = examples / "sample.wikidata.json"
    result = run("index", "--wikidata", dump, "--keep-ids", ids, "--closure", "--out", tmp_path / "p.kb")
    kb = EmbeddedKB(tmp_path / "p.kb")
    assert result.exit_code == 0, result.output
    assert list(kb.entity_ids) == ["Q5", "Q900103", "Q901001", "Q901002", "Q903011"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["wikidata", "dump.json", "--keep-type", "human"], "found 'human', expected ids such as Q5 or P19"),
        (["--facts", "f.txt", "--min-sitelinks", "1"], "name the dump of Wikidata that these options choose from"),
    ],
)
def test_filters_of_wikidata_are_checked(arguments: list[str], message: str, tmp_path: Path) -> None:
    result = run("index", *arguments, "--out", tmp_path / "p.kb")
    assert result.exit_code == 2
    assert message in result.stderr


def test_facts_or_names_are_needed(own: list[str | Path], tmp_path: Path) -> None:
    result = run("index", "--types", own[3], "--out", tmp_path / "s.kb")
    assert result.exit_code == 2
    assert "give at least one file of facts, names, RDF, a table or Wikidata's dump" in result.stderr


@pytest.mark.parametrize("option", ["--max-bad=2", "--column=subject", "--column==x", "--column=subjekt=head"])
def test_a_malformed_option_is_a_usage_error(own: list[str | Path], tmp_path: Path, option: str) -> None:
    assert run("index", *own, option, "--out", tmp_path / "s.kb").exit_code == 2


def test_bad_lines_up_to_the_limit_are_skipped_and_shown(
    own: list[str | Path], write: Callable[[str, str], Path], tmp_path: Path
) -> None:
    write("f.tsv", "subject\trelation\tobject\na\tr\tb\n" + "odd\n" * 2)
    result = run("index", *own, "--max-bad", "0.6", "--out", tmp_path / "s.kb")
    shown = f"skipped 2 of 4 lines: 1 columns where 3 were expected; first: {tmp_path / 'f.tsv'}:3: 'odd'"
    assert result.exit_code == 0
    assert shown in result.stdout


def test_more_bad_lines_are_refused_and_nothing_is_written(
    own: list[str | Path], write: Callable[[str, str], Path], tmp_path: Path
) -> None:
    write("f.tsv", "subject\trelation\tobject\na\tr\tb\n" + "odd\n" * 2)
    result = run("index", *own, "--out", tmp_path / "new" / "s.kb")
    assert result.exit_code == 1
    assert f"first at {tmp_path / 'f.tsv'}:3" in result.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"f.tsv", "n.tsv"}


def test_a_stricter_limit_is_not_met_by_an_older_build(
    own: list[str | Path], write: Callable[[str, str], Path], tmp_path: Path
) -> None:
    write("f.tsv", "subject\trelation\tobject\na\tr\tb\nodd\n")
    assert run("index", *own, "--max-bad", "1", "--out", tmp_path / "s.kb").exit_code == 0
    assert run("index", *own, "--max-bad", "0", "--out", tmp_path / "s.kb").exit_code == 1


def test_an_own_knowledge_base_of_three_formats_answers(write: Callable[[str, str], Path], tmp_path: Path) -> None:
    facts = write("f.csv", 'head,property,tail\n"http://ex.org/a b",born in,c 1\n"x ""y""",r,c 1\nc 1,r,"x ""y"""\n')
    names = write("n.tsv", 'id\tlabel\nhttp://ex.org/a b\tSay "hi" \\ back\nc 1\tÜberß\n')
    types = write("t.jsonl", json.dumps({"id": "c 1", "types": ["T x", "City"]}) + "\n")
    out = tmp_path / "own.kb"
    built = run("index", "--facts", facts, "--names", names, "--types", types, "--out", out)
    record = json.loads(run("query", "--kb", out, "--json", 'where was say "hi" \\ back born in').stdout)
    assert "types                  2             0             2" in built.stdout
    assert record["candidates"][0]["subject"] == "http://ex.org/a b"
    assert record["candidates"][0]["subject_name"] == 'Say "hi" \\ back'
    assert record["answers"] == [{"id": "c 1", "name": "Überß"}]


LABEL = "<http://www.w3.org/2000/01/rdf-schema#label>"
RDF = f"""\
<http://ex.org/e1> {LABEL} "Marie Curie"@en .
<http://ex.org/e1> {LABEL} "Maria Skłodowska"@pl .
<http://ex.org/e1> <http://ex.org/birthDate> "1867-11-07"^^<http://www.w3.org/2001/XMLSchema#date> .
<http://ex.org/e1> <http://ex.org/birthPlace> <http://ex.org/warsaw> .
<http://ex.org/warsaw> {LABEL} "Warsaw"@en .
<http://ex.org/warsaw> {LABEL} "Warszawa"@pl .
"""


@pytest.mark.parametrize(
    ("lang", "question", "answer"),
    [
        ("en", "birth place of marie curie", "Warsaw (http://ex.org/warsaw)"),
        ("pl", "birth place of maria skłodowska", "Warszawa (http://ex.org/warsaw)"),
        ("", "birth place of maria skłodowska", "(http://ex.org/warsaw)"),
        ("en", "birth date of marie curie", "answers: 1867-11-07"),
    ],
)
def test_an_rdf_file_answers_in_the_language_asked_for(
    write: Callable[[str, str], Path], tmp_path: Path, lang: str, question: str, answer: str
) -> None:
    assert run("index", "--rdf", write("k.nt", RDF), "--lang", lang, "--out", tmp_path / "k.kb").exit_code == 0
    assert answer in run("query", "--kb", tmp_path / "k.kb", "--top", "1", question).stdout


NOTHING = {
    "facts": "subject\trelation\tobject\n",
    "names": "id\tname\nzzz\tNobody\n",
    "types": "id\ttype\na\tT\n",
}


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--facts", "nothing.facts.tsv", "--names", "n.tsv"], "nothing.facts.tsv: no facts among its 1 line;"),
        (
            ["--facts", "f.tsv", "--names", "nothing.names.tsv"],
            "no name belongs to the subject of a fact; check that f.tsv, nothing.names.tsv belong together and are "
            "passed to the right options (facts are of 'a', names of 'zzz')",
        ),
        (
            ["--facts", "f.tsv"],
            "no name belongs to the subject of a fact; check that f.tsv is passed to the right options "
            "(no name was read); give the names of 'a' and others with --names",
        ),
        (
            ["--rdf", "german.nt"],
            "(no name was read; left out: literal in a language other than 'en,mul')",
        ),
        (["--facts", "f.tsv", "--types", "nothing.types.tsv"], "no name belongs to the subject of a fact; check"),
    ],
)
def test_a_stage_that_gave_nothing_is_a_failure(
    own: list[str | Path],
    write: Callable[[str, str], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
    told: str,
) -> None:
    for kind, text in NOTHING.items():
        write(f"nothing.{kind}.tsv", text)
    label = "http://www.w3.org/2000/01/rdf-schema#label"
    write("german.nt", f'<http://e/a> <http://e/r> <http://e/b> .\n<http://e/a> <{label}> "Alfa"@de .\n')
    monkeypatch.chdir(tmp_path)
    before = set(os.listdir())
    result = run("index", *options, "--out", "s.kb")
    assert result.exit_code == 1
    assert told in result.stderr
    assert set(os.listdir()) == before


CITY = "<http://e.org/caf%C3%A9_noir> <http://e.org/city> <http://e.org/place#Warsaw> .\n"


@pytest.mark.parametrize(
    ("name", "text", "question", "told"),
    [
        ("f.txt", "marie_curie\tborn_in\twarsaw\n", "where was marie curie born", "answers: warsaw (warsaw)"),
        ("f.txt", "/c/en/ink_horn\tmade_of\t/c/en/ox\n", "what is an ink horn made of", "answers: ox (/c/en/ox)"),
        ("f.txt", "玛丽\tborn in\tm.0abcd\n", "where was 玛丽 born", "answers: m.0abcd"),
        (
            "f.csv",
            "subject,relation,object\nMarie Curie,field,physics\nQ1,field,law\n",
            "field of marie curie",
            "physics",
        ),
        ("f.txt", "concept:person:ann_lee\tborn_in\tcity:ulm\n", "where was ann lee born", "answers: ulm (city:ulm)"),
        ("f.txt", "Bach/Busoni\tpianist\tIda Holt\n", "who is the pianist of bach/busoni", "answers: Ida Holt"),
        ("f.tsv", "<Ann_Lee>\t<wasBornIn>\t<Ulm>\n", "where was ann lee born", "answers: Ulm (<Ulm>)"),
        ("f.nt", CITY, "city of café noir", "answers: Warsaw (http://e.org/place#Warsaw)"),
        ("f.txt", "m.0abcd\tr\tm.0defg\n", "", "no name was read"),
        ("f.txt", "tt0012345\tr\talpha\n", "", "no name was read"),
        ("f.txt", "alpha\tr\tQ1\nQ2\tr\tQ1\nQ3\tr\tQ1\n", "", "no name was read"),
    ],
)
def test_ids_of_words_are_names_where_none_are_given(
    write: Callable[[str, str], Path],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    name: str,
    text: str,
    question: str,
    told: str,
) -> None:
    result = run("index", write(name, text), "--out", tmp_path / "s.kb")
    assert ("no names were given, so ids are names" in caplog.text) is bool(question)
    assert told in (run("query", "--kb", tmp_path / "s.kb", question).stdout if question else result.stderr)


def test_names_follow_ids_without_a_header_as_in_benchmarks_of_link_prediction(
    write: Callable[[str, str], Path], tmp_path: Path
) -> None:
    facts = write("triples.txt", "Q42\tP19\tQ350\n/m/0abc2\t/location/country/capital\t/m/0abc1\n")
    named = "Q42\tDouglas Adams\tDNA\t\nQ350\tCambridge\n/m/0abc2\tPeru\n/m/0abc1\tLima\nQ7\nQ8\t\n"
    relations = write("relation.txt", "P19\tplace of birth\tborn in\n/location/country/capital\tseat\n")
    options = (
        "--facts",
        facts,
        "--names",
        write("entity2text.txt", named),
        "--relations",
        relations,
        "--max-bad",
        "0.5",
    )
    result = run("index", *options, "--out", tmp_path / "s.kb")
    assert "skipped 2 of 6 lines: no id followed by a tab and a name" in result.stdout
    for question, told in (
        ("where was dna born", "Douglas Adams (Q42)  place of birth (P19)  [case: dna]"),
        ("seat of peru", "answers: Lima (m.0abc1)"),
    ):
        assert told in run("query", "--kb", tmp_path / "s.kb", "--top", "1", question).stdout


@pytest.mark.parametrize("option", ["facts", "names", "types", "rdf"])
def test_a_missing_source_is_named(own: list[str | Path], tmp_path: Path, option: str) -> None:
    result = run("index", *own, f"--{option}", tmp_path / "absent.txt", "--out", tmp_path / "s.kb")
    assert result.exit_code == 1
    assert result.stderr.startswith(f"Error: {tmp_path / 'absent.txt'}: ")
    assert not (tmp_path / "s.kb").exists()


@pytest.mark.parametrize("out", ["./s.kb/", "new/a b ü/s.kb", "-dash.kb", "x/../s.kb"])
def test_out_may_be_any_path_and_its_parents_are_made(
    own: list[str | Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, out: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x").mkdir()
    assert run("index", *own, "--out", out).exit_code == 0
    assert run("query", "--kb", out, "alpha").exit_code == 0
    assert {path.name for path in tmp_path.rglob(".*")} == {".managed.json"}


def test_out_may_be_the_empty_folder_one_is_in(
    own: list[str | Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert run("index", *own, "--out", ".").exit_code == 0
    assert run("info", tmp_path / "here").exit_code == 0


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (
            lambda out: (out.mkdir(), (out / "notes.txt").write_text("mine")),
            "contains 'notes.txt', which would be overwritten",
        ),
        (
            lambda out: (out.mkdir(), (out / "fact.first").write_text("mine")),
            "contains 'fact.first', which would be overwritten",
        ),
        (lambda out: out.write_text("mine"), "is a file or inside one"),
    ],
)
def test_what_is_no_knowledge_base_is_never_replaced(
    own: list[str | Path], tmp_path: Path, make: Callable[..., Any], told: str
) -> None:
    make(tmp_path / "out")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    result = run("index", *own, "--force", "--out", tmp_path / "out")
    assert result.exit_code == 1
    assert told in result.stderr
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_a_knowledge_base_that_something_was_put_into_is_not_replaced(own: list[str | Path], tmp_path: Path) -> None:
    run("index", *own, "--out", tmp_path / "s.kb")
    (tmp_path / "s.kb" / "notes.txt").write_text("mine")
    result = run("index", *own, "--force", "--out", tmp_path / "s.kb")
    assert result.exit_code == 1
    assert "contains 'notes.txt', which would be overwritten" in result.stderr
    assert run("query", "--kb", tmp_path / "s.kb", "alpha").exit_code == 0


def test_the_folder_of_the_sources_is_not_replaced(own: list[str | Path], tmp_path: Path) -> None:
    assert "'f.tsv', which would be overwritten" in run("index", *own, "--out", tmp_path).stderr


def test_out_below_a_file_is_refused(own: list[str | Path], tmp_path: Path) -> None:
    result = run("index", *own, "--out", tmp_path / "f.tsv" / "s.kb")
    assert result.exit_code == 1
    assert "is a file or inside one" in result.stderr


def test_a_name_that_the_disk_cannot_hold_is_refused(own: list[str | Path], tmp_path: Path) -> None:
    result = run("index", *own, "--out", tmp_path / ("x" * 250))
    assert result.exit_code == 1
    assert "cannot be written (File name too long)" in result.stderr


def test_a_link_is_followed(own: list[str | Path], tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "link.kb").symlink_to(tmp_path / "far" / "s.kb")
    first = run("index", *own, "--out", tmp_path / "link.kb")
    again = run("index", *own, "--force", "--out", tmp_path / "link.kb")
    assert (first.exit_code, again.exit_code) == (0, 0)
    assert (tmp_path / "link.kb").is_symlink()
    assert os.listdir(tmp_path / "far") == ["s.kb"]
    assert run("query", "--kb", tmp_path / "link.kb", "alpha").exit_code == 0


def test_a_folder_whose_path_is_no_utf_8_is_refused_in_one_sentence(own: list[str | Path], tmp_path: Path) -> None:
    result = run("index", *own, "--out", os.fsdecode(os.fsencode(tmp_path) + b"/\xff/s.kb"))

    assert result.exit_code == 1
    assert result.stderr == (
        f"Error: {tmp_path}/\\xff/s.kb: the path is not UTF-8, which DuckDB and tantivy require; choose another "
        "folder for --out\n"
    )
    assert {path.name for path in tmp_path.iterdir()} == {"f.tsv", "n.tsv"}


NAMES = "id\tname\nq\tFoo Land\n"


def test_names_without_facts_are_a_knowledge_base(
    write: Callable[[str, str], Path], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    result = run("index", "--names", write("n.tsv", NAMES), "--out", tmp_path / "n.kb")

    kb = EmbeddedKB(tmp_path / "n.kb")
    assert result.exit_code == 0
    assert [kb.ids(match.entities) for match in kb.lookup(["foo land"])["foo land"]] == [["q"]]
    assert [similar.form for similar in kb.similar(["foo lnad"])[0]] == ["foo land"]
    assert "no facts were given: look-ups work, but no question has an answer" in caplog.messages
    assert run("query", "--kb", tmp_path / "n.kb", "where is foo land").exit_code == 0


def test_what_is_noticed_is_printed_with_the_counts(
    own: list[str | Path], write: Callable[[str, str], Path], tmp_path: Path
) -> None:
    write("n.tsv", "id\tname\tnick\na\tAlpha\tA\n")
    result = run("index", *own, "--quiet", "--out", tmp_path / "s.kb")

    assert (
        f"noticed at {tmp_path / 'n.tsv'}:1: columns not used: 'nick'; --column alias=nick takes one" in result.stdout
    )
    assert result.stdout.count("noticed at") == 1


def test_merged_ids_and_relations_have_options(
    own: list[str | Path], write: Callable[[str, str], Path], tmp_path: Path
) -> None:
    redirects = write("redirects.tsv", "old\tnew\na\tz\n")
    relations = write("relations.tsv", "relation\tname\nr\tborn in\n")

    result = run("index", *own, "--redirects", redirects, "--relations", relations, "--out", tmp_path / "s.kb")

    kb = EmbeddedKB(tmp_path / "s.kb")
    assert "2 entities, 0 values, 1 relation, 1 of them with a name; 1 id merged into others" in result.stdout
    assert kb.relation_names == ("born in",)
    assert kb.rows(["a"]) == kb.rows(["z"]) != [None]


@pytest.mark.parametrize("name", ["tsv", "kbtools.indexers.readers.delimited:TSVReader"])
def test_a_format_is_named(own: list[str | Path], write: Callable[[str, str], Path], tmp_path: Path, name: str) -> None:
    facts = write("facts.dat", "subject\trelation\tobject\na\tr\tb\n")

    assert run("index", "--facts", facts, *own[2:], "--format", name, "--out", tmp_path / "s.kb").exit_code == 0


def test_an_unknown_format_lists_those_there_are(own: list[str | Path], tmp_path: Path) -> None:
    result = run("index", *own, "--format", "xml", "--out", tmp_path / "s.kb")

    assert result.exit_code == 1
    assert (
        "no reader 'xml'; known: csv, json-ld, jsonl, n-quads, n-triples, rdf-xml, release, trig, tsv, turtle, wikidata"
        in result.stderr
    )


def test_a_path_that_is_no_utf_8_is_told_with_escapes(own: list[str | Path], tmp_path: Path) -> None:
    odd = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.tsv")
    os.rename(own[1], odd)
    built = run("index", "--facts", odd, *own[2:], "--out", tmp_path / "s.kb")
    record = json.loads(run("info", tmp_path / "s.kb", "--json").stdout)
    assert built.exit_code == 0
    assert record["sources"][0]["path"] == f"{tmp_path}/\\xff.tsv"


@pytest.mark.parametrize(
    ("number", "phase"),
    [(signal.SIGINT, "forms"), (signal.SIGTERM, "read sample.facts.txt"), (signal.SIGHUP, "facts")],
)
def test_a_stopped_build_leaves_the_old_one_and_nothing_else(
    own: list[str | Path], sample_options: list[str], tmp_path: Path, number: signal.Signals, phase: str
) -> None:
    out = tmp_path / "kbs" / "s.kb"
    run("index", *own, "--out", out)
    stopped = interrupt(SIGNALLED, number, phase, *sample_options, "--out", out)
    assert (stopped.returncode, stopped.stderr.strip()) == (1, "Aborted!")
    assert os.listdir(out.parent) == ["s.kb"]
    assert run("query", "--kb", out, "alpha").exit_code == 0


@pytest.mark.parametrize("phase", ["entities", "check"])
def test_a_killed_build_leaves_the_old_one_and_the_next_run_cleans_up(
    own: list[str | Path], sample_options: list[str], tmp_path: Path, phase: str
) -> None:
    out = tmp_path / "kbs" / "s.kb"
    run("index", *own, "--out", out)
    killed = interrupt(SIGNALLED, signal.SIGKILL, phase, *sample_options, "--out", out)
    left = set(os.listdir(out.parent))
    old = run("query", "--kb", out, "alpha")
    built = run("index", *sample_options, "--out", out)
    assert (killed.returncode, killed.stderr) == (-signal.SIGKILL, "")
    assert left == {"s.kb", ".s.kb.building", ".s.kb.lock"}
    assert "Alpha (a)" in old.stdout
    assert built.exit_code == 0
    assert os.listdir(out.parent) == ["s.kb"]


def test_what_a_killed_build_leaves_is_no_knowledge_base(sample_options: list[str], tmp_path: Path) -> None:
    interrupt(SIGNALLED, signal.SIGKILL, "forms", *sample_options, "--out", tmp_path / "s.kb")
    results = [run("info", path) for path in (tmp_path / "s.kb", tmp_path / ".s.kb.building")]
    assert [result.exit_code for result in results] == [1, 1]
    assert "no such knowledge base; build it" in results[0].stderr
    assert "not a knowledge base" in results[1].stderr


@pytest.mark.parametrize("size", [2_000, 60_000, 80_000, 90_000])
def test_a_limit_on_file_size_is_one_line(
    own: list[str | Path], sample_options: list[str], tmp_path: Path, size: int
) -> None:
    out = tmp_path / "kbs" / "s.kb"
    run("index", *own, "--out", out)
    limit = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size})); "
    command: list[str | Path] = [sys.executable, "-c", limit + KBTOOLS[2], "index", *sample_options, "--out", out]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.stderr == (
        f"Error: {out}: no space left on the disk; nothing was changed, free some space and run it again\n"
    )
    assert result.returncode == 1
    assert os.listdir(out.parent) == ["s.kb"]
    assert run("query", "--kb", out, "alpha").exit_code == 0


def test_a_reader_of_the_phases_that_has_had_enough_ends_it_quietly(sample_options: list[str], tmp_path: Path) -> None:
    command = [*KBTOOLS, "index", *sample_options, "--out", str(tmp_path / "kbs" / "s.kb")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1
    assert not (tmp_path / "kbs").exists()


def test_the_log_tells_each_phase_once(own: list[str | Path], tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "kbtools.indexers.building.build")
    run("index", *own, "--quiet", "--out", tmp_path / "s.kb")
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == [
        *("read f.tsv", "read n.tsv", "entities", "facts", "names", "types", "forms", "check")
    ]


def test_work_tables_that_do_not_fit_in_memory_name_the_option(sample_options: list[str], tmp_path: Path) -> None:
    result = run("index", *sample_options, "--out", tmp_path / "s.kb", "--memory", "1MB")
    assert (result.exit_code, "raise the limit with --memory" in result.stderr) == (1, True)
    assert list(tmp_path.iterdir()) == []


def test_an_amount_of_memory_that_no_machine_has_is_one_sentence(sample_options: list[str], tmp_path: Path) -> None:
    result = run("index", *sample_options, "--out", tmp_path / "s.kb", "--memory", "99999999999TB")

    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "Error: memory is an amount such as 2GB, found '99999999999TB'\n"


def test_an_amount_of_memory_without_a_unit_is_a_usage_error(sample_options: list[str], tmp_path: Path) -> None:
    assert run("index", *sample_options, "--out", tmp_path / "s.kb", "--memory", "5XB").exit_code == 2


def test_a_build_under_nohup_does_not_hear_that_the_terminal_is_gone(sample_options: list[str], tmp_path: Path) -> None:
    out = tmp_path / "s.kb"
    under_nohup = "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n" + SIGNALLED

    built = interrupt(under_nohup, signal.SIGHUP, "facts", *sample_options, "--out", out)

    assert (built.returncode, built.stderr) == (0, "")
    assert run("info", out).exit_code == 0


def test_a_build_inside_a_library_does_not_wait_for_it_and_the_next_cleans_up(
    sample_options: list[str], tmp_path: Path
) -> None:
    out = tmp_path / "kbs" / "s.kb"

    stopped = interrupt(SIGNALLED_IN_A_LIBRARY, signal.SIGTERM, "forms", *sample_options, "--out", out)
    built = run("index", *sample_options, "--out", out)

    assert stopped.returncode == 128 + signal.SIGTERM
    assert "ended by itself" not in stopped.stdout
    assert built.exit_code == 0
    assert os.listdir(out.parent) == ["s.kb"]
