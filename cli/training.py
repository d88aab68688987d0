"""What the commands that train have in common: their options, their settings, and what they say of a training."""

import tomllib
from collections.abc import Callable
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, TypeVar

import click

from kbtools.cli.display import echo
from kbtools.cli.homes import elasticsearch_options
from kbtools.cli.options import device_option, kb_option_if
from kbtools.errors import BadSetting
from kbtools.scorers.profiles import PROFILES

Command = TypeVar("Command", bound=Callable[..., object])

FILE = click.Path(path_type=Path)


def training_options(*, required: bool) -> Callable[[Command], Command]:
    """Take what every training needs."""
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
        click.option("--config", type=FILE, help="A TOML file of settings, by the names of the options."),
        device_option,
    ]

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def settings_options(settings: Any) -> Callable[[Command], Command]:
    """Make an option of every setting; what is not given keeps the value of the profile."""

    def decorate(command: Command) -> Command:
        for part in reversed(fields(settings)):
            for one in reversed(fields(getattr(settings, part.name))):
                kind = type(one.default)
                name = one.name.replace("_", "-")
                spelt = f"--{name}/--no-{name}" if kind is bool else f"--{name}"
                command = click.option(
                    spelt, one.name, default=None, type=None if kind is bool else kind, help=one.metadata["help"]
                )(command)
        return command

    return decorate


def read_config(path: Path | None) -> dict[str, Any]:
    """Read settings from a TOML file; raise BadSetting where it is none."""
    if path is None:
        return {}
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadSetting(f"{path}: cannot be read as TOML ({error})", path=str(path)) from error


def options_given(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def say(text: str, *, err: bool = False) -> None:
    """Print what the first of the processes of a launcher says for all."""
    from kbtools.scorers.distributed import rank

    if rank() == 0:
        echo(text, err=err)


def show_epoch(epoch: Any) -> None:
    figures = "".join(f", {100 * value:.2f} % {name}" for name, value in epoch.figures.items())
    say(f"  epoch {epoch.number}: loss {epoch.loss:.4f}{figures}, {epoch.seconds:.1f} s", err=True)


def show_name(name: str) -> None:
    say(f"{name}:", err=True)


def show_chosen(chosen: Any) -> None:
    weights = ", ".join(f"{name} {value:g}" for name, value in asdict(chosen.weights).items())
    say(f"{chosen.before:.2%} -> {chosen.after:.2%} of {chosen.questions:,} questions right; {weights}")


def show_trained(trained: Any) -> None:
    figures = ", ".join(f"{100 * value:.2f} % {name}" for name, value in trained.figures.items() if name != "seconds")
    state = "trained" if trained.fresh else "already trained"
    seconds = trained.figures.get("seconds", 0.0)
    say(f"{trained.folder}: {state}, {figures}, {seconds:.0f} CPU seconds")
