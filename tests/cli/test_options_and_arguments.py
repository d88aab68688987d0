"""An option of a command does what the argument of that name does in Python, and changes the answer."""

import json
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

import kbtools
from kbtools.cli.main import main
from kbtools.cli.reading_options import reading_options
from kbtools.indexers.readers.reading import Predicates, ReadOptions, wide_of
from tests.conftest import World
from tests.kbtools.test_languages import SPEAKING

MAGIC = "who created the character harry potter"


@pytest.fixture(scope="module")
def spoken_path(make_kb: Callable[[str, World], Any]) -> Path:
    return Path(make_kb("embedded", SPEAKING).path)


def printed(*arguments: str | Path) -> Any:
    done = CliRunner().invoke(main, [*map(str, arguments), "--json"])
    assert done.exit_code in (0, 3), done.stderr
    return json.loads(done.stdout)


def told(result: Any) -> Any:
    return json.loads(json.dumps(result.to_json()))


def untimed(record: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name != "milliseconds"}


@pytest.mark.parametrize(
    ("text", "options", "arguments"),
    [
        (MAGIC, "--pruning n-gram", {"pruning": "n-gram"}),
        ("who wrote it", "--type film.film", {"type": "film.film"}),
        (MAGIC, "--inverse", {"inverse": True}),
        ("what films did stanley kubrick direct", "--no-inverse", {"inverse": False}),
        (MAGIC, "--top 1", {"top": 1}),
        ("what films did stanley kubrick direct", "--answers 1", {"answers": 1}),
        (MAGIC, "--abstain 1", {"abstain": 1.0}),
        (MAGIC, "--no-timing", {}),
    ],
)
def test_a_question_is_asked_as_in_python(
    sample_path: Path, text: str, options: str, arguments: dict[str, Any]
) -> None:
    with kbtools.open(sample_path) as answerer:
        expected, usual = (told(answerer.query(text, **own)) for own in (arguments, {}))

    record = printed("query", sample_path, text, *shlex.split(options))

    assert untimed(record) == untimed(expected)
    assert (untimed(expected) != untimed(usual)) is bool(arguments)
    assert (record["milliseconds"] is None) is ("--no-timing" in options)


@pytest.mark.parametrize(
    ("command", "text", "options", "arguments"),
    [
        ("lookup", "it", "--type film.film", {"type": "film.film"}),
        ("lookup", "it", "--limit 1", {"limit": 1}),
        ("link", "It is about Harry Potter", "--threshold 0.9", {"threshold": 0.9}),
        ("link", "They read Harry Potter", "--limit 1", {"limit": 1}),
    ],
)
def test_names_are_looked_up_and_linked_as_in_python(
    sample_path: Path, command: str, text: str, options: str, arguments: dict[str, Any]
) -> None:
    with kbtools.open(sample_path) as answerer:
        expected, usual = (told(getattr(answerer, command)(text, **own)) for own in (arguments, {}))

    assert printed(command, sample_path, text, *shlex.split(options)) == expected != usual


@pytest.mark.parametrize(
    ("command", "text"), [("query", "gift opposite"), ("lookup", "gift"), ("link", "Gift and Rat and Köln")]
)
def test_names_are_those_of_the_languages_asked_for(spoken_path: Path, command: str, text: str) -> None:
    with kbtools.open(spoken_path) as answerer:
        expected, usual = (told(getattr(answerer, command)(text, **own)) for own in ({"lang": "de"}, {}))

    assert untimed(printed(command, spoken_path, text, "--lang", "de")) == untimed(expected) != untimed(usual)


def test_an_entity_is_shown_in_a_language_with_so_many_facts(sample_path: Path, spoken_path: Path) -> None:
    with kbtools.open(sample_path) as answerer:
        entity = max(("m.09c7w0", "m.02zsn"), key=lambda entity: answerer.facts(entity, reverse=True).total)
        some, back = (answerer.facts(entity, reverse=reverse, limit=2).to_dict() for reverse in (False, True))
        record = printed("show", sample_path, entity, "--limit", "2")

    assert (record["facts"], record["incoming"]) == tuple(json.loads(json.dumps(facts)) for facts in (some, back))
    assert len(record["incoming"]["facts"]) == 2 < record["incoming"]["total"]
    assert [printed("show", spoken_path, "Q365", *lang)["name"] for lang in ([], ["--lang", "de"])] == [
        "Cologne",
        "Köln",
    ]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("", {}),
        ("--lang de,", {"language": "de,"}),
        ("--max-bad 0.5", {"max_bad": 0.5}),
        ("--list-separator |", {"list_separator": "|"}),
        ("--format rdf", {"format": "rdf"}),
        (
            "--predicate name=http://a/n --predicate name=http://b/n --predicate type=http://a/t",
            {
                "predicates": replace(
                    Predicates(), name=frozenset(["http://a/n", "http://b/n"]), type=frozenset(["http://a/t"])
                )
            },
        ),
        (
            "--column subject=who --column id=key --column link=town --column link=land",
            {
                "columns": (columns := {"subject": "who", "entity": "key"}),
                "wide": wide_of(columns | {"link": ["town", "land"]}),
            },
        ),
    ],
)
def test_options_of_reading_are_those_of_python(options: str, expected: dict[str, Any]) -> None:
    read: list[ReadOptions] = []

    @click.group()
    @click.pass_context
    def group(context: click.Context) -> None:
        context.params["jobs"] = 3

    @group.command("read")
    @reading_options
    def command(options: ReadOptions) -> None:
        read.append(options)

    done = CliRunner().invoke(group, ["read", *shlex.split(options)])

    assert done.exit_code == 0, done.output
    assert read == [ReadOptions(**{"jobs": 3, "wide": wide_of({"link": []}), **expected})]
