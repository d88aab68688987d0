"""Options that name vectors of entities made elsewhere."""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from kbtools.cli.options import FILE, Command, take_options
from kbtools.kb.contract import KnowledgeBase

if TYPE_CHECKING:
    from kbtools.scorers.entities.vector_files import GivenVectors

ReadVectors = Callable[[KnowledgeBase], "GivenVectors"]


def read_vectors_options(command: Command) -> Command:
    """Take `--vectors` with `--ids` as one argument, `read_vectors`: their reader, None without them."""

    @wraps(command)
    def gathered(*args: Any, vectors: Path | None, ids: Path | None, **kwargs: Any) -> object:
        if (vectors is None) != (ids is None):
            raise click.UsageError("give --vectors and --ids together")

        def read(kb: KnowledgeBase) -> "GivenVectors":
            from kbtools.scorers.entities.vector_files import read_array

            return read_array(kb, cast(Path, vectors), cast(Path, ids))

        return command(*args, read_vectors=read if vectors else None, **kwargs)

    options = [
        click.option("--vectors", type=FILE, help="Vectors trained elsewhere: a .npy file, a row for each of --ids."),
        click.option("--ids", type=FILE, help="The ids that the rows of --vectors belong to, one a line."),
    ]
    return cast(Command, take_options(gathered, options))
