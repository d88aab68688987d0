"""kbtools index vectors: builds an index of the nearest entities from their vectors."""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from kbtools.cli.commands import Command
from kbtools.cli.display import echo
from kbtools.cli.homes import Home, kb_argument
from kbtools.cli.options import FILE, chosen_device, models_option, take_options
from kbtools.cli.options import Command as Function
from kbtools.errors import ModelMissing
from kbtools.kb.contract import KnowledgeBase
from kbtools.kb.vector_index import EntityVectors, VectorIndex
from kbtools.text.printable import plural

if TYPE_CHECKING:
    from kbtools.scorers.subjects.vector_files import GivenVectors

ReadVectors = Callable[[KnowledgeBase], "GivenVectors"]


def read_vectors_options(command: Function) -> Function:
    """Pass `--vectors` and `--ids` as one argument `read_vectors`, a function that reads them, or None."""

    @wraps(command)
    def gathered(*args: Any, vectors: Path | None, ids: Path | None, **kwargs: Any) -> object:
        if vectors is None or ids is None:
            if vectors or ids:
                raise click.UsageError("use --vectors and --ids together")
            return command(*args, read_vectors=None, **kwargs)

        def read(kb: KnowledgeBase) -> "GivenVectors":
            from kbtools.scorers.subjects.vector_files import read_array

            return read_array(kb, vectors, ids)

        return command(*args, read_vectors=read, **kwargs)

    options = [
        click.option("--vectors", type=FILE, help="A .npy file of vectors, one row for each id of --ids."),
        click.option("--ids", type=FILE, help="The ids of the rows of --vectors, one per line."),
    ]
    return cast(Function, take_options(gathered, options))


@click.command(
    "vectors",
    cls=Command,
    short_help="Index vectors of entities.",
    examples=(
        "kbtools index vectors sample.kb --models models --subject transe",
        "kbtools index vectors sample.kb --vectors entities.npy --ids entities.txt",
    ),
)
@kb_argument(changed=True)
@models_option
@click.option(
    "--subject", help="Index E(s) of this subject scorer, so that --pruning dense finds subjects with its g(q)."
)
@read_vectors_options
@click.option(
    "--kind",
    default="flat",
    type=click.Choice(["flat", "ivf", "hnsw"]),
    help="How FAISS searches: all vectors, the nearest clusters, or a graph; Elasticsearch uses its own.",
)
@click.option("--shards", default=1, type=click.IntRange(1), help="On Elasticsearch: shards.")
@click.option(
    "--replicas", type=click.IntRange(0, 32), help="On Elasticsearch: copies; by default one if there is a node for it."
)
def command(
    home: Home,
    models: Path | None,
    subject: str | None,
    read_vectors: ReadVectors | None,
    kind: str,
    shards: int,
    replicas: int | None,
) -> None:
    """Index vectors of entities, replacing those of the knowledge base.

    The vectors come from a subject scorer (--models and --subject), from kbtools train transe (--models alone), or from
    a file. kbtools query --pruning dense and kbtools similar use them.
    """
    if subject and read_vectors:
        raise click.UsageError("use --subject or --vectors, not both")
    kb = home.open_intact().kb
    vectors = read_vectors(kb).entity_vectors() if read_vectors else _trained_vectors(kb, models, subject)
    # Loads either the cluster's client or FAISS, not both.
    index: VectorIndex
    if home.elasticsearch:
        from kbtools.indexers.elastic.knowledge import ElasticKB
        from kbtools.indexers.elastic.mapping import IndexSettings

        assert isinstance(kb, ElasticKB)
        index = kb.load_vectors(vectors, settings=IndexSettings(shards=shards, replicas=replicas))
    else:
        from kbtools.indexers.folder.faiss_index import write_vectors

        index = write_vectors(home.path, kb, vectors, kind=kind)
    echo(f"{home.path}: {plural(len(index), 'vector')} of {index.dim} dimensions")


def _trained_vectors(kb: KnowledgeBase, models: Path | None, subject: str | None) -> EntityVectors:
    """Return the vectors of a subject scorer, or of TransE."""
    if models is None:
        raise ModelMissing("name the folder of trained vectors with --models, or use --vectors and --ids")
    if subject:
        from kbtools.ranking.models import subject_vectors

        return subject_vectors(subject, kb, models=models, device=chosen_device())
    from kbtools.scorers.subjects.transe import trained_vectors

    return trained_vectors(kb, models)
