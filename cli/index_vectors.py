"""kbtools index vectors: from a table of entity vectors to an index of the nearest, beside the knowledge base."""

from pathlib import Path

import click

from kbtools.cli.display import echo
from kbtools.cli.homes import Elasticsearch, elasticsearch_options, open_home
from kbtools.cli.options import device_option, kb_option, models_option
from kbtools.cli.vector_options import ReadVectors, read_vectors_options
from kbtools.errors import ModelMissing
from kbtools.kb.contract import KnowledgeBase
from kbtools.kb.vector_index import EntityVectors, VectorIndex


@click.command("vectors")
@kb_option
@elasticsearch_options
@models_option
@click.option("--subject", help="Index E(s) of this subject scorer; then --pruning dense finds subjects by its g(q).")
@read_vectors_options
@click.option(
    "--kind",
    default="flat",
    show_default=True,
    type=click.Choice(["flat", "ivf", "hnsw"]),
    help="How FAISS searches: through all, the nearest clusters, or a graph; Elasticsearch has a way of its own.",
)
@click.option("--shards", default=1, show_default=True, type=click.IntRange(1), help="On Elasticsearch: shards.")
@click.option("--replicas", type=click.IntRange(0, 32), help="On Elasticsearch: copies; one if a node can take it.")
@device_option
def command(
    path: Path,
    elasticsearch: Elasticsearch | None,
    models: Path | None,
    subject: str | None,
    read_vectors: ReadVectors | None,
    kind: str,
    shards: int,
    replicas: int | None,
    device: str,
) -> None:
    """Index vectors of entities, in place of those that the knowledge base has.

    They are those of a subject scorer (--models and --subject), those of kbtools train transe (--models alone), or
    made elsewhere. Later questions find them with the knowledge base: kbtools query --pruning dense, kbtools similar.
    """
    if subject and read_vectors:
        raise click.UsageError("give --subject, or vectors made elsewhere, not both")
    kb = open_home(path, elasticsearch).kb
    vectors = read_vectors(kb).entity_vectors() if read_vectors else trained_vectors(kb, models, subject, device)
    # The clients of a cluster and of FAISS are loaded by whoever needs one of them.
    index: VectorIndex
    if elasticsearch:
        from kbtools.indexers.elastic.knowledge import ElasticKB
        from kbtools.indexers.elastic.mapping import IndexSettings

        assert isinstance(kb, ElasticKB)
        index = kb.load_vectors(vectors, settings=IndexSettings(shards=shards, replicas=replicas))
    else:
        from kbtools.indexers.folder.faiss_index import write_vectors

        index = write_vectors(path, kb, vectors, kind=kind)
    echo(f"{path}: {len(index):,} vectors of {index.dim} dimensions")


def trained_vectors(kb: KnowledgeBase, models: Path | None, subject: str | None, device: str) -> EntityVectors:
    """Give the vectors of a subject scorer, or of TransE."""
    if models is None:
        raise ModelMissing("name the folder of trained vectors with --models, or give --vectors and --ids")
    if subject:
        from kbtools.ranking.models import subject_vectors

        return subject_vectors(subject, kb, models=models, device=device)
    from kbtools.scorers.entities.transe import trained_vectors

    return trained_vectors(kb, models)
