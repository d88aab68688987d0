"""The command `kbtools`: its sub-commands are imported when they are asked for."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from io import TextIOWrapper

import click

from kbtools.cli.display import echo
from kbtools.entry_points import EXTRAS, install_command
from kbtools.errors import KBToolsError
from kbtools.storage import is_out_of_memory
from kbtools.text.shown import visible
from kbtools.version import __version__

COMMANDS = {
    "index": "Build a knowledge base from its files.",
    "update": "Change a knowledge base while others read it.",
    "compact": "Merge the updates of a knowledge base.",
    "load": "Load a knowledge base into a cluster.",
    "query": "Answer a question, or a stream of them.",
    "lookup": "Find the entities that bear a name.",
    "link": "Find the entities that running text mentions.",
    "show": "Show the names, types and facts of an entity.",
    "compare": "Compare pruners and scorers on questions with known answers.",
    "report": "Write tables, pictures and a page of a comparison.",
    "info": "Show what a knowledge base holds.",
    "check": "Compare the files of a knowledge base with their checksums.",
    "remove": "Delete a knowledge base, or leftovers of builds, from a cluster.",
    "rollback": "Point a knowledge base on a cluster at the version before.",
    "train": "Train the models of a knowledge base.",
    "serve": "Serve knowledge bases over HTTP: page, API, reconciliation.",
    "similar": "Show the entities nearest to another.",
    "plugins": "List what can be plugged in, or check it.",
}
"""The commands, each the object `command` of its module, and what `kbtools --help` says of it unloaded."""


@contextmanager
def usage_shown() -> Iterator[None]:
    """Make visible what a usage error quotes of the command line."""
    try:
        yield
    except click.ClickException as error:
        vars(error).update(message=visible(error.message))
        raise


class LazyGroup(click.Group):
    """A group that loads a command when it is called or its help is asked for, and prints errors in one place."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = import_module(f"kbtools.cli.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        with usage_shown():
            return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        try:
            with usage_shown():
                return super().invoke(ctx)
        except BrokenPipeError:  # whoever read the output has had enough; click ends quietly
            raise
        # A path that cannot be read is the user's to mend, like an error of our own; others are ours, with a traceback.
        except (KBToolsError, OSError) as error:
            if ctx.params["debug"]:
                raise
            echo(f"Error: {error}", err=True)
            sys.exit(1)
        except (ImportError, MemoryError) as error:
            if ctx.params["debug"]:
                raise
            if is_out_of_memory(error):
                echo("Error: the system gives no more memory; allow more (ulimit -v) or close programs", err=True)
            elif isinstance(error, ModuleNotFoundError) and error.name in EXTRAS:
                extra = EXTRAS[error.name]
                echo(f"Error: this needs {error.name}; install it with {install_command(extra)}", err=True)
            else:
                raise
            sys.exit(1)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="kbtools")
@click.option("--debug", is_flag=True, help="Show a traceback with an error.")
@click.option("--verbose", "-v", is_flag=True, help="Log what happens to standard error.")
def main(debug: bool, verbose: bool) -> None:
    """Answer questions over a knowledge base: index it, prune, rank, answer."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # A terminal that cannot show a name shows its escapes, where Python would stop with an error.
            stream.reconfigure(errors="backslashreplace")
    if verbose:
        import logging

        logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
