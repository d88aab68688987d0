"""kbtools lookup, link and show: what they print for people and for programs, and how they refuse."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kbtools.cli.main import main

Run = Callable[..., Result]


@pytest.fixture
def run(sample_path: Path) -> Run:
    def invoke(command: str, *arguments: str, given: str | bytes | None = None) -> Result:
        return CliRunner().invoke(main, [command, "--kb", str(sample_path), *arguments], input=given)

    return invoke


def test_lookup_prints_matches_best_first(run: Run) -> None:
    lines = run("lookup", "The Who").stdout.splitlines()
    assert lines[0] == "The Who"
    assert lines[1] == "  1  100.00  The Who (m.01v0sxx)  [exact: The Who]  music.artist, music.musical_group"
    assert "[variant: Who]" in lines[2]


def test_lookup_explains_each_match(run: Run) -> None:
    output = run("lookup", "pirates of the carribean", "--type", "film.film", "--explain").stdout
    assert "      'pirates of the carribean' resembles the name 'Pirates of the Caribbean'" in output
    assert "      prior 1.000, from 3 facts out and 0 in" in output


def test_lookup_reads_names_from_standard_input(run: Run) -> None:
    records = [json.loads(line) for line in run("lookup", "--json", "-", given="It\nno such\n").stdout.splitlines()]
    assert [(record["json_version"], record["text"]) for record in records] == [(1, "It"), (1, "no such")]
    assert [len(record["matches"]) for record in records] == [3, 0]


def test_lookup_says_that_there_is_no_such_name(run: Run) -> None:
    done = run("lookup", "zqxjkv")
    assert (done.exit_code, done.stdout) == (0, "zqxjkv\n  no entity has this name\n")


def test_lookup_names_the_type_that_no_bearer_has(run: Run) -> None:
    assert run("lookup", "zqxjkv", "--type", "film.film").stdout == (
        "zqxjkv\n  no entity has this name and the type film.film\n"
    )


def test_link_counts_the_other_candidates_unless_it_explains_them(run: Run) -> None:
    text = "They read Harry Potter"
    (mention,) = json.loads(run("link", "--json", text).stdout)["mentions"]
    short, long = run("link", text).stdout.splitlines(), run("link", "--explain", text).stdout.splitlines()

    assert len(mention["candidates"]) > 1
    assert short[1].endswith(f": Harry Potter (m.078ffw) or {len(mention['candidates']) - 1} more")
    assert long[1] == short[1].partition(" or ")[0]
    assert all(any(one["id"] in line for line in long[2:]) for one in mention["candidates"])


def test_lookup_refuses_an_unknown_type(run: Run) -> None:
    done = run("lookup", "It", "--type", "film.flim")
    assert done.exit_code == 1
    assert done.stderr.startswith("Error: no entity has the type 'film.flim'")


def test_link_prints_mentions_in_order(run: Run) -> None:
    lines = run("link", "J. K. Rowling lives in Edinburgh").stdout.splitlines()
    assert [line.split("  ")[-1] for line in lines[1:]] == [
        "J. K. Rowling: J. K. Rowling (m.042xh)",
        "Edinburgh: Edinburgh (m.02m77)",
    ]
    assert lines[1].startswith("     0-13  1.000  ")


def test_link_gives_json_with_offsets_into_the_text(run: Run) -> None:
    text = "Then J. K. Rowling wrote Harry Potter."
    record = json.loads(run("link", "--json", "--limit", "1", text).stdout)
    assert [text[mention["start"] : mention["end"]] for mention in record["mentions"]] == [
        "J. K. Rowling",
        "Harry Potter",
    ]
    assert [len(mention["candidates"]) for mention in record["mentions"]] == [1, 1]


def test_link_says_that_there_is_no_mention(run: Run) -> None:
    assert run("link", "nothing here").stdout == "nothing here\n  no mention\n"


def test_show_prints_facts_in_both_directions(run: Run) -> None:
    lines = run("show", "m.042xh").stdout.splitlines()
    assert lines[0] == "J. K. Rowling (m.042xh)"
    arrow = lines.index("    Harry Potter (m.078ffw)  fictional_universe.fictional_character.character_created_by")
    assert lines.index("  object of 5 facts") < arrow


def test_show_cuts_long_lists_and_says_how_many_are_left(run: Run) -> None:
    lines = run("show", "m.0f8l9c", "--limit", "1").stdout.splitlines()
    assert [line for line in lines if line.startswith("    and ")] == [
        "    and 4 more (--limit)",
        "    and 2 more (--limit)",
    ]


def test_show_gives_json(run: Run) -> None:
    record = json.loads(run("show", "--json", "m.078ffw").stdout)
    assert (record["json_version"], record["name"], record["facts"]["total"]) == (1, "Harry Potter", 2)
    assert record["incoming"]["facts"] == []


@pytest.mark.parametrize("text", ["m.0none", "zqxjkv"])
def test_show_says_that_an_id_or_a_name_is_unknown(run: Run, text: str) -> None:
    done = run("show", text)
    assert (done.exit_code, done.stderr) == (1, f"Error: no entity has the id or the name {text!r}\n")


@pytest.mark.parametrize("command", ["lookup", "link", "show"])
def test_bytes_that_are_no_text_are_no_surprise(run: Run, command: str) -> None:
    done = run(command, "\udcff")
    assert done.exit_code == (1 if command == "show" else 0)
    assert done.exception is None or isinstance(done.exception, SystemExit)


@pytest.mark.parametrize("command", ["lookup", "link"])
def test_an_empty_text_is_a_usage_error(run: Run, command: str) -> None:
    assert run(command, " ").exit_code == 2


@pytest.mark.parametrize("arguments", [("lookup", "\x1b[31mIt"), ("link", "\x1b[31mIt"), ("show", "\x1b[31m")])
def test_no_text_commands_the_terminal(run: Run, arguments: tuple[str, ...]) -> None:
    done = run(*arguments)
    assert "\x1b" not in done.stdout + done.stderr
    assert "\\x1b" in done.stdout + done.stderr
