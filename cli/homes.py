"""The place of a knowledge base, a folder or a cluster, and the one function that opens it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from kbtools.answering.answerer import Answerer, models_folder, open_kb
from kbtools.cli.options import EMBEDDED, Command, chosen_backend, chosen_device, trusts_files
from kbtools.entry_points import BACKENDS, load_class
from kbtools.indexers.folder.kb_folder import read_manifest, require_intact

if TYPE_CHECKING:
    from kbtools.indexers.elastic.cluster import Cluster


@dataclass(frozen=True, slots=True)
class Elasticsearch:
    """The URL of a cluster; where it is empty it comes from the environment, as all else about a connection does."""

    url: str

    @contextmanager
    def connect(self) -> "Iterator[Cluster]":
        """Connect to the cluster and check that it is one that we speak to; hang up at the end."""
        cluster = self.open()
        try:
            yield cluster
        finally:
            cluster.close()

    def open(self) -> "Cluster":
        """Connect to the cluster as `connect` does, for as long as the process runs."""
        from kbtools.indexers.elastic.cluster import Cluster
        from kbtools.indexers.elastic.connection import read_connection

        cluster = Cluster(read_connection(self.url))
        cluster.greet()
        return cluster


def open_home(
    kb: str | Path,
    elasticsearch: Elasticsearch | None,
    *,
    models: Path | None = None,
    tagger: str | None = None,
    lang: str | None = None,
) -> Answerer:
    """Open a knowledge base: a folder, or a name on a cluster."""
    backend = chosen_backend()
    parts: dict[str, Any] = {"tagger": tagger, "device": chosen_device(), "trust_plugins": trusts_files()}
    if elasticsearch is None:
        answerer = open_kb(kb, backend=backend, models=models, **parts)
    elif backend != EMBEDDED:
        raise click.UsageError("--elasticsearch is a backend of its own; leave --backend out")
    else:
        folder = models_folder(models)
        open_cluster = load_class(BACKENDS, "elasticsearch")
        answerer = Answerer(open_cluster(str(kb), elasticsearch.open()), models=folder, **parts)
    return answerer if lang is None else answerer.in_languages(lang)


def open_whole(kb: str | Path, elasticsearch: Elasticsearch | None, **parts: Any) -> Answerer:
    """Open a knowledge base that something is made from; raise KBUnusable for a folder with a damaged file.

    What was learned or measured on damaged files would not tell.
    """
    if elasticsearch is None and chosen_backend() == EMBEDDED:
        require_intact(Path(kb), read_manifest(Path(kb)))
    return open_home(kb, elasticsearch, **parts)


def elasticsearch_options(command: Command) -> Command:
    """Take `--elasticsearch [URL]` as `elasticsearch`, None if it is not given."""
    return cast(Command, connection_option(None)(command))


def cluster_options(command: Command) -> Command:
    """Take the same option where a cluster is always meant."""
    return cast(Command, connection_option("")(command))


def connection_option(default: str | None) -> Callable[[Any], Any]:
    return click.option(
        "--elasticsearch",
        is_flag=False,
        flag_value="",
        default=default,
        show_default=False,
        metavar="[URL]",
        callback=read_url,
        help="The cluster that holds it; KBTOOLS_ELASTICSEARCH_URL or localhost:9200 without a URL. User, password "
        "and certificates come from KBTOOLS_ELASTICSEARCH_*.",
    )


def read_url(context: click.Context, option: click.Parameter, text: str | None) -> Elasticsearch | None:
    """Read the URL of a cluster; raise UsageError for another text, and for a password in it."""
    if not text:
        return None if text is None else Elasticsearch(text)
    is_url = text.startswith(("http://", "https://"))
    # A URL with a user in it, or `user:password@host` without its scheme.
    if "@" in text and (is_url or " " not in text):
        raise click.UsageError(
            "no password on the command line, where others can read it: set KBTOOLS_ELASTICSEARCH_PASSWORD, or name a "
            "file in KBTOOLS_ELASTICSEARCH_PASSWORD_FILE"
        )
    if not is_url:
        mistaken = f", found {text!r}" if " " in text else ""  # one word may be a secret
        raise click.UsageError(
            f"--elasticsearch takes a URL{mistaken}; give it as --elasticsearch=http://host:9200, "
            "or put --elasticsearch behind the other arguments"
        )
    return Elasticsearch(text)
