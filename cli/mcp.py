"""kbtools mcp: a knowledge base as tools for an agent, over standard input and output."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

from kbtools.answering.answerer import Answerer
from kbtools.cli.commands import Command
from kbtools.cli.display import echo
from kbtools.cli.homes import Home, kb_argument
from kbtools.cli.options import models_option
from kbtools.entry_points import import_object

_T = TypeVar("_T")


@click.command("mcp", cls=Command, examples=("kbtools mcp sample.kb", "kbtools mcp sample.kb --schema > tools.json"))
@kb_argument()
@models_option
@click.option("--schema", is_flag=True, help="Print the tools as function schemas of OpenAI's API and exit.")
def command(home: Home, models: Path | None, schema: bool) -> None:
    """Offer a knowledge base to an agent by the Model Context Protocol: lookup, show, facts, link and query.

    The agent starts this command and communicates over standard input and output. `kbtools serve` offers the same tools
    under /mcp. Needs the extra mcp.
    """
    make_server = import_object("kbtools.serve.agent_tools:make_server")
    answerer = home.open(models=models)

    async def ask(job: Callable[[Answerer], _T], /, *, characters: float) -> _T:
        return job(answerer)

    describe_tools = import_object("kbtools.serve.agent_tools:function_schemas")
    server = make_server(ask, name=home.path.name)
    if schema:
        echo(*json.dumps(asyncio.run(describe_tools(server)), indent=2).splitlines())
        return
    server.run("stdio")
