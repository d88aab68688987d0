"""kbtools serve: knowledge bases over HTTP, as a page, an API and a reconciliation service."""

from pathlib import Path

import click

from kbtools.cli.display import echo
from kbtools.cli.homes import Elasticsearch, elasticsearch_options
from kbtools.cli.options import EMBEDDED, device_option, models_option, trust_option, trusts_files


@click.command("serve")
@click.option(
    "--kb",
    "paths",
    multiple=True,
    required=True,
    envvar="KBTOOLS_KB",
    show_envvar=True,
    type=click.Path(),
    help="A knowledge base, also given several times: each answers under its name, the first at the root too.",
)
@click.option(
    "--backend",
    default=EMBEDDED,
    show_default=True,
    envvar="KBTOOLS_BACKEND",
    show_envvar=True,
    help="What opens the knowledge bases: a plugin, or module:Class.",
)
@models_option
@trust_option
@click.option("--tagger", help="The tagger of the focused pruners; if not given, the one that was trained.")
@device_option
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on; 0.0.0.0 is all.")
@click.option(
    "--port", default=8000, show_default=True, type=click.IntRange(0, 65_535), help="The port; 0 takes a free one."
)
@click.option(
    "--workers", default=1, show_default=True, type=click.IntRange(1, 256), help="Processes; they share the files."
)
@click.option("--root-path", default="", metavar="/PATH", help="The prefix that a proxy serves this under.")
@click.option("--cors", multiple=True, metavar="ORIGIN", help="Let pages of this origin read answers; * lets all.")
@click.option(
    "--allowed-host",
    "hosts",
    multiple=True,
    metavar="NAME",
    help="Answer to this host name too; * to any, as a server does that listens beyond this machine.",
)
@elasticsearch_options
def command(
    paths: tuple[str, ...],
    backend: str,
    models: Path | None,
    tagger: str | None,
    device: str,
    host: str,
    port: int,
    workers: int,
    root_path: str,
    cors: tuple[str, ...],
    hosts: tuple[str, ...],
    elasticsearch: Elasticsearch | None,
) -> None:
    """Serve knowledge bases: a page to ask in a browser, a JSON API, and a reconciliation service for OpenRefine.

    Stop it with Ctrl-C, or by SIGTERM; a knowledge base that is rebuilt meanwhile is opened again.
    """
    from kbtools.serve.server import run_server
    from kbtools.serve.settings import ServeSettings

    settings = ServeSettings(
        kbs=paths,
        backend=backend,
        models=None if models is None else str(models),
        tagger=tagger,
        device=device,
        trust_plugins=trusts_files(),
        elasticsearch=None if elasticsearch is None else elasticsearch.options,
        root_path=root_path,
        cors=cors,
        hosts=hosts,
    )
    run_server(
        settings, host=host, port=port, workers=workers, announce=lambda url: echo(f"serving at {url}", err=True)
    )
