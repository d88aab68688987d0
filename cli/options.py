"""Options that several commands share."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from kbtools.entry_points import TRUST_VARIABLE
from kbtools.pruning.pruners import DEFAULT

Command = TypeVar("Command", bound=Callable[..., object])
Decorator = Callable[[Any], Any]

FILE = click.Path(path_type=Path)

EMBEDDED = "embedded"
"""The backend of the folders that kbtools index makes."""

TRUST = "kbtools.trust_plugins"
"""The key of `--trust-plugins` in the context of a command."""

BACKEND = "kbtools.backend"
"""The key of `--backend` in the context of a command, where what opens knowledge bases finds it."""


def take_options(command: Command, options: Sequence[Decorator]) -> Command:
    """Give a command several options, which its help lists in this order."""
    # As decorators stand above a function: the last of them is put on first.
    for option in reversed(options):
        command = option(command)
    return command


def changed_kb_option(command: Command) -> Command:
    """Take a knowledge base that is changed in place: a folder, or a name on a cluster."""
    return take_options(
        command,
        [kb_path(required=True, help="The knowledge base: a folder, or with --elasticsearch its name there.")],
    )


def kb_path(*, required: bool, help: str) -> Decorator:
    return click.option("--kb", "path", required=required, type=FILE, envvar="KBTOOLS_KB", show_envvar=True, help=help)


def kb_option(command: Command) -> Command:
    """Take a knowledge base and its backend."""
    return kb_option_if(True)(command)


def kb_option_if(required: bool) -> Callable[[Command], Command]:
    """Take a knowledge base and its backend, where a command can do without one."""
    kb = kb_path(
        required=required,
        help="The knowledge base: a folder that kbtools index made, or with --elasticsearch its name there.",
    )
    backend = click.option(
        "--backend",
        default=EMBEDDED,
        show_default=True,
        envvar="KBTOOLS_BACKEND",
        show_envvar=True,
        expose_value=False,
        callback=keep_backend,
        help="What opens the knowledge base: a plugin, or module:Class.",
    )
    return lambda command: kb(backend(command))


def keep_backend(context: click.Context, option: click.Parameter, name: str) -> None:
    context.meta[BACKEND] = name


def chosen_backend() -> str:
    """Give the backend that the command at hand was told."""
    name: str = click.get_current_context().meta[BACKEND]
    return name


class Between(click.FloatRange):
    """A number between two others; what is no number (`nan`) is between none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number: float = super().convert(value, param, ctx)
        if number != number:  # NaN, which every comparison with the limits lets pass
            self.fail(f"{value} is no number", param, ctx)
        return number


def json_option(command: Command) -> Command:
    """Choose between a table for people and JSON for programs."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")(command)


def inverse_option(command: Command) -> Command:
    """Read facts backwards too."""
    return click.option(
        "--inverse",
        is_flag=True,
        help="Read facts backwards too: what a question names may be their object, and their subjects the answers.",
    )(command)


def lang_option(command: Command) -> Command:
    """Choose the languages of names."""
    return click.option(
        "--lang",
        metavar="TAGS",
        help="Names in these languages, the preferred first, such as de or de,en; names for all languages count too.",
    )(command)


def models_option(command: Command) -> Command:
    """Take the folder of trained models."""
    return click.option(
        "--models",
        type=FILE,
        envvar="KBTOOLS_MODELS",
        show_envvar=True,
        help="The folder of trained models: what kbtools train made.",
    )(command)


def trust_option(command: Command) -> Command:
    """Allow files to name classes; `trusts_files` returns the choice."""

    def keep(context: click.Context, option: click.Parameter, trusted: bool) -> None:
        context.meta[TRUST] = trusted

    return click.option(
        "--trust-plugins",
        is_flag=True,
        envvar=TRUST_VARIABLE,
        show_envvar=True,
        expose_value=False,
        callback=keep,
        help="Import and call what files of models and vectors name as module:Class; only for files you trust.",
    )(command)


def trusts_files() -> bool | None:
    """Return what the command at hand was told by `--trust-plugins`; None where it has no such option."""
    return click.get_current_context().meta.get(TRUST)


def check_device(context: click.Context, option: click.Parameter, name: str) -> str:
    """Raise UnknownDevice before anything is done for a device that this machine does not have."""
    if name != "cpu":
        from kbtools.scorers.networks.devices import resolve_device

        resolve_device(name)
    return name


def device_option(command: Command) -> Command:
    """Choose where networks compute."""
    return click.option(
        "--device",
        default="cpu",
        show_default=True,
        callback=check_device,
        envvar="KBTOOLS_DEVICE",
        show_envvar=True,
        help="Where networks compute: cpu, cuda, cuda:1 or mps.",
    )(command)


def memory_option(command: Command) -> Command:
    """Take the memory of the work tables of a build."""
    return click.option(
        "--memory",
        default="1GB",
        show_default=True,
        callback=check_size,
        help="Memory of the work tables; the disk takes the rest.",
    )(command)


def check_size(context: click.Context, option: click.Parameter, value: str) -> str:
    """Check an amount of memory."""
    if not re.fullmatch(r"\d+(\.\d+)? ?[KMGT]i?B", value, re.IGNORECASE):
        raise click.BadParameter(f"found {value!r}, expected an amount such as 2GB")
    return value


def pruning_option(command: Command) -> Command:
    """Choose the pruner."""
    return click.option("--pruning", default=DEFAULT, show_default=True, help="The pruner: a plugin, or module:Class.")(
        command
    )
