"""Options shared by the commands of `kbtools train`, and the settings that they and a file change."""

import tomllib
from collections.abc import Callable
from dataclasses import fields
from functools import wraps
from pathlib import Path
from typing import Any, cast

import click

from kbtools.cli.homes import kb_argument
from kbtools.cli.options import FILE, Command, take_options
from kbtools.errors import BadSetting
from kbtools.scorers.fitting.profiles import PROFILES
from kbtools.scorers.networks.training_settings import (
    PretrainedSettings,
    TaggerSettings,
    TrainingSettings,
    TransESettings,
)

SETTINGS: dict[str, Any] = {
    "relation and subject scorers": TrainingSettings(),
    "taggers": TaggerSettings(),
    "encoder, which is pretrained": PretrainedSettings(),
    "transe": TransESettings(),
}
"""The settings of each kind of model, with the values of the paper."""

_FIELDS = {
    setting.name: setting
    for settings in SETTINGS.values()
    for part in fields(settings)
    for setting in fields(getattr(settings, part.name))
}
SPELLINGS = {f"--{name.replace('_', '-')}": f"--set {name}={{}}" for name in _FIELDS} | {
    f"--{'' if value else 'no-'}{name}": f"--set {name}={str(value).lower()}"
    for name, field in _FIELDS.items()
    if isinstance(field.default, bool)
    for value in (True, False)
}
"""Each setting is also an option of its own: `--epochs 3` is `--set epochs=3`."""

OUT = click.option("--out", "models", required=True, type=FILE, help="The folder of models.")

_WORDS = {"true": True, "false": False}


def read_setting(context: click.Context, option: click.Parameter, texts: tuple[str, ...]) -> dict[str, Any]:
    """Read `--set NAME=VALUE` options by the types of the settings; raise BadParameter for a value of another type."""
    changes: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        field = _FIELDS.get(name.replace("-", "_"))
        if field is None or not equals:
            raise click.BadParameter(f"found {text!r}, expected NAME=VALUE; kbtools train settings lists the names")
        kind: type[Any] = type(field.default)
        try:
            changes[field.name] = _WORDS[value] if kind is bool else kind(value)
        except (ValueError, KeyError) as error:
            expected = {bool: "true or false", int: "a whole number", float: "a number"}[kind]
            raise click.BadParameter(f"{name} is {expected}, found {value!r}") from error
    return changes


def settings_options(command: Command) -> Command:
    """Pass changes of settings as `changes`: those of `--set` override those of `--config`."""

    @wraps(command)
    def gathered(*args: Any, changes: dict[str, Any], config: Path | None, **kwargs: Any) -> object:
        return command(*args, changes=(_read_settings(config) if config else {}) | changes, **kwargs)

    options = [
        click.option(
            "--set", "changes", multiple=True, metavar="NAME=VALUE", callback=read_setting,
            help="Change a setting of the profile, such as epochs=3; kbtools train settings lists them.",
        ),
        click.option("--config", type=FILE, help="A TOML file of settings with the same names."),
    ]  # fmt: skip
    return cast(Command, take_options(gathered, options))


def training_options(command: Command) -> Command:
    """Pass the knowledge base, the questions, the folder of models, the profile and changes of its settings."""
    options = [
        kb_argument(),
        click.option("--train", required=True, type=FILE, help="Annotated questions for training."),
        click.option("--valid", required=True, type=FILE, help="Annotated questions for measuring during training."),
        OUT,
        click.option("--profile", default=PROFILES[0], type=click.Choice(PROFILES), help="The settings to start from."),
        settings_options,
    ]
    return take_options(command, options)


def names_option(option: str, default: str, of: str) -> Callable[[Command], Command]:
    """Pass the names of the models to train."""
    return click.option(option, "names", default=default, help=f"{of}, separated by commas.")


def leaving(command: Command) -> Command:
    """End a launcher's process when its command is done."""

    @wraps(command)
    def ended(*args: Any, **kwargs: Any) -> None:
        from kbtools.scorers.networks.distributed import leave

        command(*args, **kwargs)
        leave()

    return cast(Command, ended)


def _read_settings(config: Path) -> dict[str, Any]:
    """Read settings from a TOML file; raise BadSetting for any other file."""
    try:
        return tomllib.loads(config.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadSetting.at(config, f"cannot be read as TOML ({error})") from error
