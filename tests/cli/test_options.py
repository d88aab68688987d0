"""The shape of the command line: few options, two examples a command, a knowledge base first, other spellings."""

import csv
import io
import json
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from click.testing import Result as Invocation

from kbtools.cli.commands import own_first, respelt
from kbtools.cli.main import main
from tests.conftest import ROOT


def walk(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    """Yield every command with its path, parts after the command that they belong to."""
    yield " ".join(("kbtools", *path)), command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            part = command.get_command(context, name)
            assert part is not None
            yield from walk(part, (*path, name))


def options_of(command: click.Command) -> list[click.Option]:
    return [parameter for parameter in command.params if isinstance(parameter, click.Option)]


COMMANDS = dict(walk(main))


def test_no_command_has_more_than_twenty_options_and_all_of_them_at_most_three_hundred() -> None:
    counts = {path: len(options_of(command)) for path, command in COMMANDS.items()}

    assert {path: count for path, count in counts.items() if count > 20} == {}
    assert sum(counts.values()) <= 300


def test_every_option_says_what_it_is_for() -> None:
    silent = [
        (path, option.opts) for path, command in COMMANDS.items() for option in options_of(command) if not option.help
    ]

    assert silent == []


@pytest.mark.parametrize("path", COMMANDS)
def test_names_ranges_and_defaults_of_options_are_those_of_the_page(path: str) -> None:
    page = "".join((ROOT / "docs" / "cli.md").read_text(encoding="utf-8").split())
    command = dict(walk(main))[path]
    context = click.Context(command, info_name=path, **main.context_settings)
    records = [record for option in options_of(command) if (record := option.get_help_record(context))]
    texts = ["".join("".join(record).split()) for record in records]

    # A record without its last brackets, with a default or a variable, would be in the page as well.
    assert [text for text in texts if not re.search(rf"{re.escape(text)}(?!\[)", page)] == []


EXAMPLES = [(path, line) for path, command in COMMANDS.items() for line in getattr(command, "examples", ())]


def test_every_command_has_two_examples() -> None:
    counts = {path: sum(other == path for other, _ in EXAMPLES) for path in COMMANDS if path != "kbtools"}

    assert counts == dict.fromkeys(counts, 2)


@pytest.mark.parametrize(("path", "line"), EXAMPLES)
def test_examples_are_commands_that_can_be_read(path: str, line: str) -> None:
    arguments = shlex.split(line.partition(" < ")[0].partition(" > ")[0])[1:]
    context = main.make_context("kbtools", arguments)
    name, command, rest = main.resolve_command(context, [*context._protected_args, *context.args])
    assert command is not None

    made = command.make_context(name, rest, parent=context)

    assert made.command is COMMANDS[path]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Invocation]:
    monkeypatch.delenv("KBTOOLS_KB", raising=False)
    return lambda *arguments: CliRunner().invoke(main, [str(argument) for argument in arguments])


QUESTION = "who created the character harry potter"


@pytest.mark.parametrize(
    ("command", "words"),
    [("query", QUESTION), ("lookup", "stephen king"), ("link", "a book by J. K. Rowling"), ("show", "m.078ffw")],
)
def test_the_knowledge_base_comes_first_and_words_need_no_quotes(
    run: Callable[..., Invocation], sample_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, words: str
) -> None:
    quiet = ("--no-timing",) if command == "query" else ()
    by_option = run(command, "--kb", sample_path, "--json", *quiet, words)

    by_place = run(command, sample_path, "--json", *quiet, *words.split())
    monkeypatch.setenv("KBTOOLS_KB", str(sample_path))
    by_environment = run(command, "--json", *quiet, *words.split())

    assert by_option.exit_code == 0, by_option.output
    assert by_place.stdout == by_environment.stdout == by_option.stdout


def test_a_folder_that_is_named_outranks_the_environment(
    run: Callable[..., Invocation], sample_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KBTOOLS_KB", str(tmp_path / "no.kb"))

    assert run("query", sample_path, *QUESTION.split()).exit_code == 0
    assert run("info", sample_path).exit_code == 0
    assert "no.kb: no such knowledge base" in run("query", *QUESTION.split()).stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["info", "a.kb", "b.kb"], "unexpected argument 'b.kb'"),
        (["info", "--kb", "a.kb", "b.kb"], "unexpected argument 'b.kb'"),
        (["compact"], "name a knowledge base"),
        (["lookup"], "KBTOOLS_KB"),
        (["show", "a.kb"], "and an id or a name"),
        (["link", "--kb", "a.kb", " "], "the text is empty"),
        (["quary"], "did you mean 'query'?"),
        (["info", "--elasticsearch", "elastic:secret@host"], "passwords are not accepted on the command line"),
        (["info", "--elasticsearch", "http://elastic:my secret@host"], "passwords are not accepted"),
        (["info", "--elasticsearch", "who wrote it"], "takes a URL, found 'who wrote it'"),
        (["info", "--elasticsearch", "secret"], "takes a URL; use --elasticsearch=http://host:9200"),
        (["train", "relation", "--set", "epoch=3"], "kbtools train settings lists the names"),
        (["train", "relation", "--set", "epochs=many"], "epochs is a whole number, found 'many'"),
        (["train", "relation", "--set", "amp=perhaps"], "amp is true or false"),
        (
            ["index", "--facts", "f.tsv", "--predicate", "nick=http://a"],
            "expected one of name, alias, description, type",
        ),
    ],
)
def test_wrong_usage_is_named(run: Callable[..., Invocation], arguments: list[str], sentence: str) -> None:
    failed = run(*arguments)

    assert failed.exit_code == 2
    assert sentence in failed.stderr


def test_a_name_is_shown_like_an_id(run: Callable[..., Invocation], sample_path: Path) -> None:
    by_id = run("show", sample_path, "m.0jt90f5", "--json")
    by_name = run("show", sample_path, "Stephen", "King", "--json")
    namesakes = run("show", sample_path, "Harry Potter")
    unknown = run("show", sample_path, "nobody at all")

    assert by_name.stdout == by_id.stdout
    assert "other entities have the name 'Harry Potter'" in namesakes.stderr
    assert (unknown.exit_code, "'nobody at all'" in unknown.stderr) == (1, True)


@pytest.mark.parametrize("name", ["csv", "tsv"])
def test_results_are_printed_as_a_table_with_one_header(
    run: Callable[..., Invocation], sample_path: Path, tmp_path: Path, name: str
) -> None:
    (tmp_path / "q.txt").write_text(f"{QUESTION}\nwho wrote it\n", encoding="utf-8")

    printed = run("query", sample_path, "--questions", tmp_path / "q.txt", "--top", "2", "--format", name).stdout

    rows = [*csv.DictReader(io.StringIO(printed), delimiter="," if name == "csv" else "\t")]
    assert [row["place"] for row in rows] == ["1", "2", "1", "2"]
    assert rows[0]["question"] == QUESTION
    assert rows[0]["answers"]


@pytest.mark.parametrize(
    ("arguments", "header"),
    [(["lookup", "stephen king"], "text,place,id"), (["link", "by Stephen King"], "text,mention,start"),
     (["show", "Stephen King"], "subject,subject_name,relation")],
)  # fmt: skip
def test_look_ups_links_and_facts_are_tables_too(
    run: Callable[..., Invocation], sample_path: Path, arguments: list[str], header: str
) -> None:
    printed = run(arguments[0], sample_path, *arguments[1:], "--format", "csv")

    assert printed.stdout.startswith(header)
    assert len(printed.stdout.splitlines()) > 1


def test_json_is_a_format(run: Callable[..., Invocation], sample_path: Path) -> None:
    assert (
        run("lookup", sample_path, "it", "--format", "json").stdout == run("lookup", sample_path, "it", "--json").stdout
    )


def test_sparql_is_a_format_and_has_its_old_spelling(run: Callable[..., Invocation], sample_path: Path) -> None:
    printed = run("query", sample_path, QUESTION, "--format", "sparql").stdout

    assert printed.startswith("SELECT")
    assert run("query", sample_path, QUESTION, "--sparql").stdout == printed


def test_the_options_of_kbtools_itself_stand_anywhere(run: Callable[..., Invocation], sample_path: Path) -> None:
    behind = run("query", sample_path, QUESTION, "--backend", "nope")
    before = run("--backend=nope", "query", sample_path, QUESTION)

    assert behind.stderr == before.stderr
    assert "no backend 'nope'" in behind.stderr
    assert isinstance(run("info", "no.kb", "--debug").exception, Exception)


def test_what_stands_behind_two_dashes_is_left_alone() -> None:
    assert own_first(["query", "--", "-v", "--debug"], {"-v": True, "--debug": True}) == [
        "query",
        "--",
        "-v",
        "--debug",
    ]
    assert [*respelt(["--", "--a"], {"--a": "--b"})] == ["--", "--a"]


def test_a_setting_is_an_option_as_well() -> None:
    spellings = {"--epochs": "--set epochs={}", "--amp": "--set amp=true"}

    assert [*respelt(["--epochs", "3", "--amp"], spellings)] == ["--set", "epochs=3", "--set", "amp=true"]
    assert [*respelt(["--epochs=3", "--out", "m"], spellings)] == ["--set", "epochs=3", "--out", "m"]


def test_settings_are_listed_with_their_values(run: Callable[..., Invocation]) -> None:
    pytest.importorskip("torch", reason="training needs torch: pip install 'kbtools[train]'")

    best, paper = run("train", "settings"), run("train", "settings", "--profile", "paper")

    assert "  epochs=9: Passes over the questions." in best.stdout
    assert "  epochs=15: Passes over the questions." in paper.stdout
    assert "  direct=false: " in paper.stdout


def test_files_are_indexed_by_what_they_hold(run: Callable[..., Invocation], examples: Path, tmp_path: Path) -> None:
    files = [examples / f"sample.{kind}.txt" for kind in ("facts", "names", "types")]
    by_option = [f"--{path.suffixes[0][1:]}={path}" for path in files]

    found = run("index", *files, "--out", tmp_path / "found.kb")
    told = run("index", *by_option, "--out", tmp_path / "told.kb")

    assert found.exit_code == 0, found.output
    assert found.stderr.splitlines()[:3] == [
        f"{files[0]}: facts without a header, one per line",
        f"{files[1]}: names in the format of the release",
        f"{files[2]}: types in the format of the release",
    ]
    assert found.stdout.splitlines()[-1].split()[-1] == told.stdout.splitlines()[-1].split()[-1]


@pytest.mark.parametrize("command", [["index", "--table"], ["index", "table"]])
def test_a_table_and_other_files_make_one_knowledge_base(
    run: Callable[..., Invocation], tmp_path: Path, command: list[str]
) -> None:
    (tmp_path / "t.csv").write_text("key,label,near\na,Alpha,b\n", encoding="utf-8")
    (tmp_path / "n.tsv").write_text("id\tname\nb\tBeta\n", encoding="utf-8")
    columns = ("--id", "key", "--name", "label", "--names", tmp_path / "n.tsv")

    built = run(*command, tmp_path / "t.csv", *columns, "--out", tmp_path / "t.kb")

    assert built.exit_code == 0, built.output
    assert "answers: Beta (b)" in run("query", tmp_path / "t.kb", "what is alpha near").stdout


def test_a_predicate_of_rdf_is_named_by_its_part(run: Callable[..., Invocation], tmp_path: Path) -> None:
    (tmp_path / "k.nt").write_text(
        '<http://e/a> <http://e/called> "Alpha" .\n<http://e/a> <http://e/near> <http://e/b> .\n'
    )

    for option in (["--predicate", "name=http://e/called"], ["--name-predicate", "http://e/called"]):
        out = tmp_path / option[0].strip("-")
        assert run("index", tmp_path / "k.nt", *option, "--out", out).exit_code == 0
        assert json.loads(run("lookup", out, "alpha", "--json").stdout)["matches"][0]["id"] == "http://e/a"


def test_a_plugin_in_the_current_folder_is_found(
    run: Callable[..., Invocation], sample_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.path", [path for path in __import__("sys").path if path])
    monkeypatch.chdir(tmp_path)
    text = "from kbtools.pruning.n_gram import NGram\n\n\nclass Mine(NGram):\n    pass\n"
    (tmp_path / "pruner_here.py").write_text(text, encoding="utf-8")

    answered = run("query", sample_path, "--pruning", "pruner_here:Mine", QUESTION)

    assert answered.exit_code == 0, answered.output
