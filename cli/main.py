"""The command `kbtools`; its sub-commands are imported when used."""

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from importlib import import_module
from importlib.util import find_spec
from io import TextIOWrapper
from pathlib import Path

import click

from kbtools.cli.commands import own_first
from kbtools.cli.display import echo
from kbtools.cli.options import EMBEDDED, check_size
from kbtools.entry_points import EXTRAS, TRUST_VARIABLE, install_command
from kbtools.errors import KBToolsError
from kbtools.processes import MOST_JOBS
from kbtools.storage import is_out_of_memory
from kbtools.text.printable import shortened, visible
from kbtools.version import __version__

COMMANDS = {
    "index": "Build a knowledge base from its files.",
    "update": "Change a knowledge base while others read it.",
    "compact": "Merge the updates of a knowledge base.",
    "load": "Load a knowledge base into a cluster.",
    "query": "Answer a question, or a stream of them.",
    "lookup": "Find the entities with a name.",
    "link": "Find the entities that running text mentions.",
    "reconcile": "Find the entities that the rows of a table name.",
    "show": "Show the names, types and facts of an entity.",
    "compare": "Compare pruners and scorers on questions with known answers.",
    "report": "Write the tables, pictures and page of a comparison.",
    "info": "Show the contents of a knowledge base.",
    "check": "Compare the files of a knowledge base with their checksums.",
    "remove": "Delete a knowledge base, or leftovers of builds, from a cluster.",
    "rollback": "Return a knowledge base on a cluster to its previous version.",
    "teach": "Teach a knowledge base the meaning of questions.",
    "train": "Train the models of a knowledge base.",
    "encoder": "Install the encoder that ranks by meaning.",
    "serve": "Serve knowledge bases over HTTP: page, API, reconciliation.",
    "mcp": "Offer a knowledge base to an agent as tools.",
    "similar": "Show the entities nearest to another.",
    "plugins": "List plugins, or check one.",
}
"""The commands, each the object `command` of its module, and their lines in `kbtools --help`."""

_SHARED_MODULES = {
    "check": "info",
    "report": "compare",
    "rollback": "remove",
    "link": "lookup",
    "similar": "show",
    "encoder": "encoder_weights",
}
"""Commands in modules of other names, as objects of their own names."""

_TYPED_PLUGIN = re.compile(r"(?:.*[,&=])?([A-Za-z_]\w*)[\w.]*:[A-Za-z_]\w*")


@contextmanager
def _usage_shown() -> Iterator[None]:
    """Escape what a usage error quotes from the command line."""
    try:
        yield
    except click.ClickException as error:
        vars(error).update(message=visible(error.message))
        raise


class _LazyGroup(click.Group):
    """A group that imports a command when it is called or its help is shown, and prints errors in one place."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"kbtools.cli.{_SHARED_MODULES.get(cmd_name, cmd_name)}")
        command = getattr(module, cmd_name if cmd_name in _SHARED_MODULES else "command")
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        close = get_close_matches(args[0], COMMANDS, n=1)
        if close and args[0] not in COMMANDS and not ctx.resilient_parsing:
            ctx.fail(f"no such command {args[0]!r}; did you mean {close[0]!r}?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Accept the options of `kbtools` itself at any position."""
        _find_typed_plugins(args)
        options = [option for option in self.params if isinstance(option, click.Option) and option.name != "version"]
        with _usage_shown():
            return super().parse_args(
                ctx, own_first(args, {spelling: option.is_flag for option in options for spelling in option.opts})
            )

    def invoke(self, ctx: click.Context) -> object:
        try:
            with _usage_shown():
                return super().invoke(ctx)
        except BrokenPipeError:  # The reader of the output closed it; click ends quietly.
            raise
        # The user can fix an unreadable path, like an error of ours; any other error is a bug and has a traceback.
        except (KBToolsError, OSError) as error:
            if ctx.params["debug"]:
                raise
            echo(f"Error: {shortened(str(error))}", err=True)
            sys.exit(1)
        except (ImportError, MemoryError) as error:
            if ctx.params["debug"]:
                raise
            if is_out_of_memory(error):
                echo("Error: out of memory; raise the limit (ulimit -v) or close other programs", err=True)
            elif isinstance(error, ModuleNotFoundError) and error.name in EXTRAS:
                extra = EXTRAS[error.name]
                echo(f"Error: this needs {error.name}; install it with {install_command(extra)}", err=True)
            else:
                raise
            sys.exit(1)


def _find_typed_plugins(arguments: list[str]) -> None:
    """Append the current folder to the import path if a `module:Class` of the command line is found only there."""
    modules = {match[1] for argument in arguments if (match := _TYPED_PLUGIN.fullmatch(argument))}
    missing = [name for name in modules - sys.modules.keys() if find_spec(name) is None]
    if any(Path(f"{name}.py").is_file() or Path(name).is_dir() for name in missing):
        sys.path.append(os.getcwd())


@click.group(
    cls=_LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100, "show_default": True},
    epilog="These options may appear anywhere on the command line.",
)
@click.version_option(__version__, prog_name="kbtools")
@click.option("--debug", is_flag=True, help="Show a traceback with an error.")
@click.option("--verbose", "-v", is_flag=True, help="Log to standard error.")
@click.option(
    "--backend",
    default=EMBEDDED,
    envvar="KBTOOLS_BACKEND",
    show_envvar=True,
    help="The backend that opens knowledge bases: a plugin, or module:Class.",
)
@click.option(
    "--device",
    default="cpu",
    envvar="KBTOOLS_DEVICE",
    show_envvar=True,
    help="The device for networks: cpu, cuda, cuda:1 or mps; faster with -tf32 or, for queries, -bf16 after it.",
)
@click.option(
    "--memory", default="1GB", callback=check_size, help="Memory for the work tables of a build; the rest goes to disk."
)
@click.option(
    "--jobs",
    type=click.IntRange(1),
    envvar="KBTOOLS_JOBS",
    show_envvar=True,
    help=f"Processes and threads of a build or load.  [default: one for each core, {MOST_JOBS} at most]",
)
@click.option(
    "--trust-plugins",
    is_flag=True,
    envvar=TRUST_VARIABLE,
    show_envvar=True,
    help="Import the module:Class that files of models and vectors name; only for files you trust.",
)
def main(verbose: bool, **_: object) -> None:
    """Answer questions over a knowledge base: index it, prune, rank, answer."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # A terminal that cannot display a name shows escapes, instead of stopping with an error.
            stream.reconfigure(errors="backslashreplace")
    if verbose:
        import logging

        logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
