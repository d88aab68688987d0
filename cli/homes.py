"""The place of a knowledge base, a folder or a cluster: its options, and the one function that opens it."""

from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from kbtools.answering.answerer import Answerer, models_folder, open_kb
from kbtools.cli.options import EMBEDDED, FILE, Command, chosen_backend, take_options, trusts_files
from kbtools.entry_points import BACKENDS, load_class

if TYPE_CHECKING:
    from kbtools.indexers.elastic.cluster import Cluster

OPTIONS = ("user", "password_file", "api_key_file", "ca_file", "client_cert", "client_key", "timeout")


@dataclass(frozen=True, slots=True)
class Elasticsearch:
    """The command line's part of a connection to a cluster; the rest comes from the environment."""

    options: dict[str, str | None] = field(repr=False)

    def connect(self) -> "Cluster":
        """Connect to the cluster and check that it is one that we speak to."""
        from kbtools.indexers.elastic.cluster import Cluster
        from kbtools.indexers.elastic.connection import read_connection

        cluster = Cluster(read_connection(self.options))
        cluster.greet()
        return cluster


def open_home(
    kb: str | Path,
    elasticsearch: Elasticsearch | None,
    *,
    models: Path | None = None,
    tagger: str | None = None,
    device: str = "cpu",
) -> Answerer:
    """Open a knowledge base: a folder, or a name on a cluster."""
    backend = chosen_backend()
    parts: dict[str, Any] = {"tagger": tagger, "device": device, "trust_plugins": trusts_files()}
    if elasticsearch is None:
        return open_kb(kb, backend=backend, models=models, **parts)
    if backend != EMBEDDED:
        raise click.UsageError("--elasticsearch is a backend of its own; leave --backend out")
    folder = models_folder(models)
    open_cluster = load_class(BACKENDS, "elasticsearch")
    return Answerer(open_cluster(str(kb), elasticsearch.connect()), models=folder, **parts)


def elasticsearch_options(command: Command) -> Command:
    """Take `--elasticsearch [URL]` and what belongs to it as one argument, `elasticsearch`, nothing if not given."""
    return connection_options(
        command,
        default=None,
        help="The knowledge base is on this cluster; without a URL, KBTOOLS_ELASTICSEARCH_URL or localhost:9200.",
    )


def cluster_options(command: Command) -> Command:
    """Take the same options where a cluster is always meant."""
    return connection_options(
        command, default="", help="The cluster; if not given, KBTOOLS_ELASTICSEARCH_URL or localhost:9200."
    )


def connection_options(command: Command, *, default: str | None, help: str) -> Command:
    """Gather the options of a connection into one argument."""

    @wraps(command)
    def gathered(*args: Any, elasticsearch: str | None, **kwargs: Any) -> object:
        options = {name: text_of(kwargs.pop(f"elasticsearch_{name}")) for name in OPTIONS}
        if elasticsearch is None:
            if any(options.values()):
                raise click.UsageError("the --elasticsearch-... options need --elasticsearch")
            return command(*args, elasticsearch=None, **kwargs)
        is_url = elasticsearch.startswith(("http://", "https://"))
        # A URL with a user in it, or `user:password@host` without its scheme.
        if "@" in elasticsearch and (is_url or " " not in elasticsearch):
            raise click.UsageError(
                "no password on the command line, where others can read it: set KBTOOLS_ELASTICSEARCH_PASSWORD, or "
                "name a file with --elasticsearch-password-file"
            )
        if elasticsearch and not is_url:
            mistaken = f", found {elasticsearch!r}" if " " in elasticsearch else ""  # one word may be a secret
            raise click.UsageError(
                f"--elasticsearch takes a URL{mistaken}; give it as --elasticsearch=http://host:9200, "
                "or put --elasticsearch behind the other arguments"
            )
        return command(*args, elasticsearch=Elasticsearch({"url": elasticsearch, **options}), **kwargs)

    options = [
        click.option(
            "--elasticsearch",
            is_flag=False,
            flag_value="",
            default=default,
            metavar="[URL]",
            help=help,
        ),
        click.option("--elasticsearch-user", help="User; the password is KBTOOLS_ELASTICSEARCH_PASSWORD."),
        click.option("--elasticsearch-password-file", type=FILE, help="File that holds the password."),
        click.option(
            "--elasticsearch-api-key-file",
            type=FILE,
            help="File that holds an API key, or KBTOOLS_ELASTICSEARCH_API_KEY.",
        ),
        click.option(
            "--elasticsearch-ca-file", type=FILE, help="Certificate of the authority that signed the cluster's."
        ),
        click.option("--elasticsearch-client-cert", type=FILE, help="Client certificate."),
        click.option("--elasticsearch-client-key", type=FILE, help="Key of the client certificate."),
        click.option("--elasticsearch-timeout", type=float, help="Seconds that a request may take, 30 if not given."),
    ]
    return cast(Command, take_options(gathered, options))


def text_of(value: object) -> str | None:
    return None if value is None else str(value)
