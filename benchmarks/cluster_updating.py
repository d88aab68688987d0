"""Update a knowledge base on a cluster repeatedly: seconds per update, with a reader running meanwhile.

    python benchmarks/cluster_updating.py [FBSQ.kb] [--updates 10] [--entities 12] [--loaded NAME] [--compact]

The cluster is the one in KBTOOLS_ELASTICSEARCH_URL; everything written there is removed at the end, unless the
knowledge base was loaded before. Half of the changes of an update are new entities, the others new names, facts and
types of existing ones.
"""

import argparse
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from fbsq import parse
from figures import show_table
from updating import changes, forms_of, names_of

import kbtools
from kbtools.indexers.building.build import BuildProgress
from kbtools.indexers.elastic.cluster import Cluster
from kbtools.indexers.elastic.connection import read_connection
from kbtools.indexers.elastic.inventory import cluster_status, drop_deleted
from kbtools.indexers.elastic.knowledge import ElasticKB
from kbtools.indexers.elastic.loading import LoadOptions, load
from kbtools.indexers.elastic.mapping import IndexSettings
from kbtools.indexers.elastic.versions import delete_versions, list_versions
from kbtools.indexers.folder.embedded import EmbeddedKB
from kbtools.kb.contract import KnowledgeBase


class Reader(threading.Thread):
    """A reader that opens the knowledge base again and again and looks up names that no update takes away."""

    def __init__(self, name: str, texts: list[list[str]], answers: list[dict[str, list[str]]]) -> None:
        super().__init__(daemon=True)
        self.name_there, self.texts, self.answers = name, texts, answers
        self.stopped = threading.Event()
        self.seconds: list[float] = []
        self.wrong = 0

    def run(self) -> None:
        cluster = Cluster(read_connection())
        while not (self.seconds and self.stopped.is_set()):
            kb = ElasticKB(self.name_there, cluster)
            for forms, answer in list(zip(self.texts, self.answers, strict=True))[:50]:
                begun = time.perf_counter()
                told = names_under(kb, forms)
                self.seconds.append(time.perf_counter() - begun)
                self.wrong += any(set(names) - set(told.get(form, ())) for form, names in answer.items())

    def stop(self) -> str:
        self.stopped.set()
        self.join()
        p50, p99 = (1000 * float(np.percentile(self.seconds, at)) for at in (50, 99))
        return f"{len(self.seconds):,} look-ups, p50 {p50:.1f} ms, p99 {p99:.1f} ms, {self.wrong} without a former name"


def names_under(kb: KnowledgeBase, forms: list[str]) -> dict[str, list[str]]:
    """Look up forms; updates only give further names."""
    return {form: [match.name for match in matches] for form, matches in kb.lookup(forms).items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kb", type=Path, nargs="?", default=Path("build/fbsq.kb"))
    parser.add_argument("--updates", type=int, default=10)
    parser.add_argument("--entities", type=int, default=12, help="entities of an update")
    parser.add_argument("--loaded", help="the name of the same knowledge base on the cluster, if it is there already")
    parser.add_argument("--compact", action="store_true", help="drop the deleted documents at the end")
    parser.add_argument("--seconds", type=float, default=10, help="seconds of the reader before the updates")
    parser.add_argument("--names", type=int, default=300, help="names that the readers look up")
    parser.add_argument("--seed", type=int, default=1)
    asked = parse(parser, updates=1, entities=2, seconds=0, compact=True, names=10)
    cluster, name = Cluster(read_connection()), asked.loaded or f"benchmark-{uuid.uuid4().hex[:8]}"
    kb = EmbeddedKB(asked.kb)
    print(", ".join(f"{count.unique:,} {kind}" for kind, count in kb.manifest.counts.items()))
    try:
        if not asked.loaded:
            begun = time.perf_counter()
            load(kb, cluster, name, options=LoadOptions(settings=IndexSettings(replicas=0)), watch=BuildProgress())
            print(f"load: {time.perf_counter() - begun:.0f} s")
        show_table("updates", ("what", "figure"), measure(kb, cluster, name, asked))
    finally:
        if not asked.loaded:
            delete_versions(cluster, list_versions(cluster, name))


def measure(kb: EmbeddedKB, cluster: Cluster, name: str, asked: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """Update the knowledge base on the cluster, and yield the figures."""
    random = np.random.default_rng(asked.seed)
    texts = [forms_of(name) for name in names_of(kb, random.choice(kb.entity_rows(), asked.names))]
    there = ElasticKB(name, cluster)
    answers = [names_under(there, forms) for forms in texts]
    idle = Reader(name, texts, answers)
    idle.start()
    time.sleep(asked.seconds)
    yield "a reader alone", idle.stop()
    alone = [update(kb, random, name, asked.entities, number=number) for number in range(asked.updates)]
    yield f"{asked.updates} updates of {asked.entities} entities", spread(alone)
    reader = Reader(name, texts, answers)
    reader.start()
    beside = [update(kb, random, name, asked.entities, number=asked.updates + n) for n in range(asked.updates)]
    yield "a reader meanwhile", reader.stop()
    yield f"{asked.updates} updates beside it", spread(beside)
    for version in cluster_status(cluster, name).versions:
        yield f"version {version.version}, {version.state}", f"{version.bytes / 1e6:.0f} MB"
    if asked.compact:
        begun = time.perf_counter()
        dropped = drop_deleted(cluster, name)
        sizes = f", {dropped.before / 1e6:.0f} MB before, {dropped.after / 1e6:.0f} MB after" if dropped else ""
        yield "compact", f"{time.perf_counter() - begun:.0f} s{sizes}"


def update(kb: EmbeddedKB, random: np.random.Generator, name: str, count: int, *, number: int) -> tuple[float, float]:
    """Update once, and return the wall seconds and the CPU seconds of this process."""
    records = changes(kb, random, count, number=number)
    begun, used = time.perf_counter(), time.process_time()
    kbtools.update(name, backend="elasticsearch", add=records)
    return time.perf_counter() - begun, time.process_time() - used


def spread(seconds: list[tuple[float, float]]) -> str:
    walls, used = np.array(seconds).T
    return f"p50 {np.median(walls):.1f} s, slowest {walls.max():.1f} s, CPU of the client {np.median(used):.2f} s"


if __name__ == "__main__":
    main()
