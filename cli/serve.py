"""kbtools serve: knowledge bases over HTTP, as a page, an API and a reconciliation service."""

from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from kbtools.cli.commands import Command
from kbtools.cli.display import echo
from kbtools.cli.homes import Elasticsearch, elasticsearch_options, find_folder
from kbtools.cli.options import KB_FIRST, chosen_backend, chosen_device, models_option, trusts_files


@click.command(
    "serve",
    cls=Command,
    examples=("kbtools serve sample.kb", "kbtools serve first.kb second.kb --host 0.0.0.0 --port 80 --workers 4"),
)
@click.argument("folders", nargs=-1, metavar="[KB]...")
@click.option(
    "--kb",
    "paths",
    multiple=True,
    envvar="KBTOOLS_KB",
    show_envvar=True,
    type=click.Path(),
    help="A knowledge base, instead of the first arguments; may be repeated.",
)
@models_option
@click.option("--tagger", help="The tagger of the focused pruners; by default, the trained one.")
@click.option("--host", default="127.0.0.1", help="The address to listen on; 0.0.0.0 means all.")
@click.option("--port", default=8000, type=click.IntRange(0, 65_535), help="The port; 0 picks a free one.")
@click.option("--workers", default=1, type=click.IntRange(1, 256), help="Processes; they share the files.")
@click.option("--teach", is_flag=True, help="Allow everyone who can reach the server to teach questions.")
@click.option(
    "--link",
    default="",
    metavar="URL",
    help="The web page of an entity, with {id} for its id, such as https://www.wikidata.org/wiki/{id}.",
)
@click.option("--root-path", default="", metavar="/PATH", help="The path prefix that a proxy adds.")
@click.option(
    "--cors", multiple=True, metavar="ORIGIN", help="Allow pages of this origin to read answers; * allows all."
)
@click.option(
    "--allowed-host",
    "hosts",
    multiple=True,
    metavar="NAME",
    help="Also accept this host name; * accepts any, the default if the server listens beyond this machine.",
)
@elasticsearch_options
def command(
    folders: tuple[str, ...],
    paths: tuple[str, ...],
    models: Path | None,
    host: str,
    port: int,
    workers: int,
    elasticsearch: Elasticsearch | None,
    **options: Any,
) -> None:
    """Serve knowledge bases: a page for the browser, a JSON API, and a reconciliation service for OpenRefine.

    Each knowledge base is served under its name, the first one also at the root. Stop the server with Ctrl-C or
    SIGTERM; a rebuilt knowledge base is reopened automatically.
    """
    if folders and click.get_current_context().get_parameter_source("paths") is ParameterSource.COMMANDLINE:
        raise click.UsageError(f"unexpected argument {folders[0]!r}: name knowledge bases as arguments or with --kb")
    if not folders and not paths:
        raise click.UsageError(KB_FIRST)
    from kbtools.serve.server import run_server
    from kbtools.serve.settings import ServeSettings

    settings = ServeSettings(
        kbs=folders or paths
        if elasticsearch
        else tuple(str(find_folder(kb, changed=options["teach"])) for kb in folders or paths),
        backend=chosen_backend(),
        models=None if models is None else str(models),
        device=chosen_device(),
        trust_plugins=trusts_files(),
        elasticsearch=None if elasticsearch is None else elasticsearch.url,
        **options,
    )

    def announce(url: str) -> None:
        echo(f"serving at {url}", err=True)

    run_server(settings, host=host, port=port, workers=workers, announce=announce)
