"""Options shared by several commands."""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from kbtools.processes import default_jobs
from kbtools.pruning.pruners import DEFAULT

Command = TypeVar("Command", bound=Callable[..., object])
_Decorator = Callable[[Any], Any]

FILE = click.Path(path_type=Path)

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
inverse_option = click.option(
    "--inverse/--no-inverse",
    default=None,
    help="Also read facts backwards: the question names their object, and the answers are their subjects.  "
    "[default: in kbtools query, if nothing else is likely]",
)
lang_option = click.option(
    "--lang",
    metavar="TAGS",
    help="Languages of names, preferred first, such as de or de,en; names without a language are included.",
)
models_option = click.option(
    "--models", type=FILE, envvar="KBTOOLS_MODELS", show_envvar=True, help="The folder of models made by kbtools train."
)
pruning_option = click.option("--pruning", default=DEFAULT, help="The pruner: a plugin, or module:Class.")

EMBEDDED = "embedded"
"""The backend of the folders that kbtools index makes."""


def take_options(command: Command, options: Sequence[_Decorator]) -> Command:
    """Add several options to a command, in the order of its help."""
    # Reversed, as the last decorator above a function is applied first.
    for option in reversed(options):
        command = option(command)
    return command


def files_options(helps: Mapping[str, str]) -> Callable[[Command], Command]:
    """Take an option for files of each kind, with its help text."""
    options = [click.option(f"--{kind}", multiple=True, type=FILE, help=text) for kind, text in helps.items()]
    return lambda command: take_options(command, options)


def _own_option(name: str) -> Any:
    """Return the value of an option of `kbtools` itself."""
    return click.get_current_context().find_root().params[name]


def chosen_backend() -> str:
    """Return the backend set on the command line or in the environment."""
    name: str = _own_option("backend")
    return name


def chosen_device() -> str:
    """Return the device for networks; raise UnknownDevice if this machine does not have it."""
    name: str = _own_option("device")
    if name != "cpu":
        from kbtools.scorers.networks.devices import BF16, resolve_device

        resolve_device(name.removesuffix(BF16))
    return name


def chosen_memory() -> str:
    """Return the amount of memory for the work tables of a build."""
    amount: str = _own_option("memory")
    return amount


def chosen_jobs() -> int:
    """Return the number of processes and threads of a build."""
    jobs: int | None = _own_option("jobs")
    return jobs or default_jobs()


def trusts_files() -> bool:
    """Return whether files may name classes as module:Class."""
    trusted: bool = _own_option("trust_plugins")
    return trusted


KB_FIRST = "name a knowledge base (the first argument, --kb or KBTOOLS_KB)"


def require_text(text: str | None, what: str) -> str:
    """Return the text argument of a command; raise UsageError if it is missing."""
    if text is None:
        raise click.UsageError(f"{KB_FIRST} and {what}")
    if not text.strip():
        raise click.UsageError(f"the {what.split()[-1].lower()} is empty")
    return text


class Between(click.FloatRange):
    """A number in a range; NaN is outside every range."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number: float = super().convert(value, param, ctx)
        if number != number:  # NaN would pass every comparison with the limits.
            self.fail(f"{value} is not a number", param, ctx)
        return number


def output_option(*more: str) -> Callable[[Command], Command]:
    """Pass `--format` or `--json` as `output`, None for a table; `more` are additional formats of this command."""
    formats = ["json", "csv", "tsv", *more]
    options = [
        click.option("--json", "output", flag_value="json", help="Print JSON, as --format json does."),
        click.option(
            "--format",
            "output",
            type=click.Choice(formats),
            help="Print this format instead of a table."
            + (" sparql prints the query of the first candidate." if more else ""),
        ),
    ]
    return lambda command: take_options(command, options)


def check_size(context: click.Context, option: click.Parameter, value: str) -> str:
    """Return an amount of memory unchanged; raise BadParameter if it is not one."""
    if not re.fullmatch(r"\d+(\.\d+)? ?[KMGT]i?B", value, re.IGNORECASE):
        raise click.BadParameter(f"found {value!r}, expected an amount such as 2GB")
    return value
