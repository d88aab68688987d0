"""Options that the commands of `kbtools train` share, and the settings that they and a file change."""

import tomllib
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from kbtools.cli.homes import elasticsearch_options
from kbtools.cli.options import FILE, Command, device_option, kb_option_if, take_options
from kbtools.errors import BadSetting
from kbtools.scorers.fitting.profiles import PROFILES


def training_options(*, required: bool) -> Callable[[Command], Command]:
    """Take the knowledge base, the questions, the folder of models, the profile and the device of a training."""
    options = [
        kb_option_if(required),
        elasticsearch_options,
        click.option("--train", required=required, type=FILE, help="Annotated questions to learn from."),
        click.option("--valid", required=required, type=FILE, help="Annotated questions to measure on meanwhile."),
        click.option("--out", "models", required=required, type=FILE, help="The folder of models."),
        click.option(
            "--profile",
            default=PROFILES[0],
            show_default=True,
            type=click.Choice(PROFILES),
            help="The settings to start from.",
        ),
        config_option,
        device_option,
    ]
    return lambda command: take_options(command, options)


def config_option(command: Command) -> Command:
    """Take a file of settings."""
    return click.option("--config", type=FILE, help="A TOML file of settings, by the names of the options.")(command)


def ranker_option(command: Command) -> Command:
    """Take the name of a ranker."""
    return click.option(
        "--ranker",
        help="What learns to rank: lightgbm where the extra [ranker] is installed, else weighted-sum, which is the sum "
        "of the parts alone.",
    )(command)


def in_doubt_option(command: Command) -> Command:
    """Take the names of scorers that are asked in doubt alone."""
    return click.option(
        "--in-doubt",
        metavar="NAMES",
        help="Relation scorers, with commas between, that are asked only where a ranker without them is in doubt.",
    )(command)


def settings_options(*kinds: Any) -> Callable[[Command], Command]:
    """Make an option of every setting; one that is not given keeps the value of the profile."""
    options = []
    settings: dict[str, Any] = {}
    for part in [getattr(kind, part.name) for kind in kinds for part in fields(kind)]:
        for setting in fields(part):  # one that models of several kinds have is one option, with the help of the first
            settings.setdefault(setting.name, setting)
    for setting in settings.values():
        kind = type(setting.default)
        name = setting.name.replace("_", "-")
        spelling = f"--{name}/--no-{name}" if kind is bool else f"--{name}"
        # Without a default of its own, so that a value of the profile or of the file is not outranked.
        options.append(
            click.option(
                spelling,
                setting.name,
                default=None,
                type=None if kind is bool else kind,
                help=setting.metadata["help"],
            )
        )
    return lambda command: take_options(command, options)


def read_changes(config: Path | None, options: dict[str, Any]) -> dict[str, Any]:
    """Read settings from a TOML file, which options outrank; raise BadSetting for a file that is none."""
    changes = {}
    if config:
        try:
            changes = tomllib.loads(config.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise BadSetting(f"{config}: cannot be read as TOML ({error})", path=str(config)) from error
    return changes | {name: value for name, value in options.items() if value is not None}
