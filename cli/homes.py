"""The place of a knowledge base, a folder or a cluster, and the function that opens it."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click
from click.core import ParameterSource

from kbtools.answering.answerer import Answerer, models_folder, open_kb
from kbtools.cli.options import (
    EMBEDDED,
    FILE,
    KB_FIRST,
    Command,
    chosen_backend,
    chosen_device,
    take_options,
    trusts_files,
)
from kbtools.entry_points import BACKENDS, load_class
from kbtools.indexers.folder.kb_folder import read_manifest, require_intact
from kbtools.indexing import find_kb, is_sample

if TYPE_CHECKING:
    from kbtools.indexers.elastic.cluster import Cluster

_SAMPLE_STAYS = (
    "sample comes with kbtools and cannot be changed; index its files in a folder of your own: "
    "kbtools index {files}/sample.{{facts,names,types}}.txt --out {kb}"
)


@dataclass(frozen=True, slots=True)
class Elasticsearch:
    """The URL of a cluster; empty for that of the environment, as for all other connection settings."""

    url: str

    def connect(self) -> "AbstractContextManager[Cluster]":
        """Connect to the cluster, check that its version is supported, and disconnect at the end."""
        from kbtools.indexers.elastic.cluster import connected

        return connected(self.url)


@dataclass(frozen=True, slots=True)
class Home:
    """The place of a knowledge base: a folder or, with a cluster, a name on it."""

    path: Path
    elasticsearch: Elasticsearch | None

    def open(self, *, models: Path | None = None, tagger: str | None = None, lang: str | None = None) -> Answerer:
        """Open the knowledge base with trained models, for questions in some languages."""
        backend = chosen_backend()
        parts: dict[str, Any] = {"tagger": tagger, "device": chosen_device(), "trust_plugins": trusts_files()}
        if self.elasticsearch is None:
            answerer = open_kb(self.path, backend=backend, models=models, **parts)
        elif backend != EMBEDDED:
            raise click.UsageError("--elasticsearch is a backend itself; remove --backend")
        else:
            folder = models_folder(models)
            open_cluster = load_class(BACKENDS, "elasticsearch")
            kb = open_cluster(str(self.path), url=self.elasticsearch.url)
            answerer = Answerer(kb, models=folder, **parts)
        return answerer.in_languages(lang)

    def open_intact(self, **parts: Any) -> Answerer:
        """Open a knowledge base to train or measure on it; raise KBUnusable for a folder with a damaged file.

        Models and measures made from damaged files would not reveal it.
        """
        if self.elasticsearch is None and chosen_backend() == EMBEDDED:
            require_intact(self.path, read_manifest(self.path))
        return self.open(**parts)


def kb_argument(
    words: str = "", *, required: bool = True, cluster: bool = True, joined: bool = True, changed: bool = False
) -> Callable[[Command], Command]:
    """Pass a knowledge base as `home`: from --kb, else the first argument, else KBTOOLS_KB; on a `cluster` too.

    With `words`, the metavar of further arguments, these are passed as `text`, joined by spaces, None if there are
    none; unless `joined` they are passed as a tuple. Without `required`, `home` may be None, and `elasticsearch` is
    passed as well. A command that changes it (`changed`) refuses the sample that comes with kbtools.
    """

    def decorate(command: Command) -> Command:
        @wraps(command)
        def gathered(
            *args: Any,
            path: Path | None,
            elasticsearch: Elasticsearch | None = None,
            arguments: tuple[str, ...],
            **kwargs: Any,
        ) -> object:
            context = click.get_current_context()
            first, *others = arguments or (None,)
            by_option = context.get_parameter_source("path") is ParameterSource.COMMANDLINE
            # With KBTOOLS_KB, a lone argument is text, and the first of several names the knowledge base only if it is
            # a folder.
            by_environment = path and words and (not others or not Path(first or "").is_dir())
            if first is not None and not by_option and not by_environment:
                path, arguments = Path(first), tuple(others)
            if arguments and not words:
                raise click.UsageError(f"unexpected argument {arguments[0]!r}: the knowledge base is {str(path)!r}")
            if path is None and required:
                raise click.UsageError(KB_FIRST)
            if words:
                kwargs["text"] = (" ".join(arguments) if arguments else None) if joined else arguments
            if not required:
                kwargs["elasticsearch"] = elasticsearch
            if path is not None and elasticsearch is None and chosen_backend() == EMBEDDED:
                path = find_folder(path, changed=changed)
            return command(*args, home=None if path is None else Home(path, elasticsearch), **kwargs)

        options = [
            click.option(
                "--kb",
                "path",
                type=FILE,
                envvar="KBTOOLS_KB",
                show_envvar=True,
                help="The knowledge base, instead of the first argument: a folder, or with --elasticsearch its name; "
                "sample comes with kbtools.",
            ),
            click.argument("arguments", nargs=-1, metavar=f"[KB] {words}".strip()),
            *([elasticsearch_options] if cluster else []),
        ]
        return cast(Command, take_options(gathered, options))

    return decorate


def find_folder(path: str | Path, *, changed: bool) -> Path:
    """Return the folder of a knowledge base; raise UsageError if the sample would be changed."""
    if changed and is_sample(path):
        (files,) = import_module("kbtools.examples").__path__
        raise click.UsageError(_SAMPLE_STAYS.format(files=files, kb=f"{path}.kb"))
    return find_kb(path)


def _read_url(context: click.Context, option: click.Parameter, text: str | None) -> Elasticsearch | None:
    """Read the URL of a cluster; raise UsageError for anything else, and for a password in it."""
    if not text:
        return None if text is None else Elasticsearch(text)
    is_url = text.startswith(("http://", "https://"))
    # A URL with a user in it, or `user:password@host` without its scheme.
    if "@" in text and (is_url or " " not in text):
        raise click.UsageError(
            "passwords are not accepted on the command line, where others can read them: set "
            "KBTOOLS_ELASTICSEARCH_PASSWORD, or name a "
            "file in KBTOOLS_ELASTICSEARCH_PASSWORD_FILE"
        )
    if not is_url:
        mistaken = f", found {text!r}" if " " in text else ""  # A single word may be a secret.
        raise click.UsageError(
            f"--elasticsearch takes a URL{mistaken}; use --elasticsearch=http://host:9200, or put "
            "--elasticsearch after the other arguments"
        )
    return Elasticsearch(text)


def _connection_option(default: str | None) -> Callable[[Any], Any]:
    return click.option(
        "--elasticsearch",
        is_flag=False,
        flag_value="",
        default=default,
        show_default=False,
        metavar="[URL]",
        callback=_read_url,
        help="Use a cluster; without a URL, KBTOOLS_ELASTICSEARCH_URL or localhost:9200. User, password "
        "and certificates come from KBTOOLS_ELASTICSEARCH_*.",
    )


elasticsearch_options, cluster_options = _connection_option(None), _connection_option("")
"""Pass `--elasticsearch [URL]` as `elasticsearch`: None without it, empty for commands that always use a cluster."""
