"""The loads of `cluster_figures.py`: compared with a bare client, as a whole, and their memory."""

import json
import subprocess
import sys
import time
import uuid
from bisect import bisect_left
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
from elasticsearch import Elasticsearch, helpers
from measured import children_cpu
from phases import status_of

from kbtools.indexers.building.build import BuildProgress
from kbtools.indexers.elastic.bulk import Sender
from kbtools.indexers.elastic.cluster import Cluster, Patience
from kbtools.indexers.elastic.connection import read_connection
from kbtools.indexers.elastic.documents import Document, documents, form_documents
from kbtools.indexers.elastic.folder_contents import FolderEntities, normal_forms
from kbtools.indexers.elastic.loading import LoadOptions, load
from kbtools.indexers.elastic.mapping import ENTITIES, ROLES, IndexSettings, index_body, index_name
from kbtools.indexers.folder.column_files import release_pages
from kbtools.indexers.folder.embedded import EmbeddedKB

NAME = f"benchmark-{uuid.uuid4().hex[:8]}"

said: list[tuple[str, str]] = []


def say(label: str, *figures: str) -> None:
    """Print figures, and keep them for the table."""
    print(f"{label:<44}" + "  ".join(figures), flush=True)
    said.append((label, "; ".join(filter(None, figures))))


def fresh_index(cluster: Cluster, role: str, version: int) -> str:
    """Create an index as a load does."""
    index = index_name(NAME, version, role)
    body = index_body(role, kb=NAME, version=version, settings=IndexSettings(replicas=0))
    cluster.ask("PUT", f"/{index}", body, to="create an index")
    return index


def size_of(cluster: Cluster, index: str) -> int:
    cluster.ask("POST", f"/{index}/_refresh", to="refresh")
    cluster.ask("POST", f"/{index}/_flush", to="flush")
    told = cluster.ask("GET", f"/{index}/_stats/store", to="measure")
    return int(told["_all"]["primaries"]["store"]["size_in_bytes"])


def read_documents(kb: EmbeddedKB, role: str, count: int) -> Iterator[Document]:
    if role == ENTITIES:
        return entity_documents(kb, min(count, kb.manifest.counts["entities"].unique))
    return islice(form_documents(normal_forms(kb)), count)


def entity_documents(kb: EmbeddedKB, count: int) -> Iterator[Document]:
    reader = FolderEntities(kb)
    return documents(reader.contents(range(count)), reader.language)


def load_figures(kb: EmbeddedKB, cluster: Cluster, count: int) -> None:
    """Compare our loader, reading included, with a bare parallel_bulk of the same documents held in memory."""
    client = Elasticsearch(list(cluster.connection.urls), request_timeout=120)
    version, seconds = 100, np.zeros(2)
    for role in ROLES:
        rates: dict[str, list[float]] = {"kbtools": [], "parallel_bulk": []}
        busy = dict.fromkeys(rates, 0.0)
        held = [(one.key, json.loads(one.source)) for one in read_documents(kb, role, count)]
        size = 0
        for name in ("kbtools", "parallel_bulk", "parallel_bulk", "kbtools"):
            version += 1
            index = fresh_index(cluster, role, version)
            begun, begun_busy = time.perf_counter(), time.process_time()
            if name == "kbtools":
                Sender(cluster, patience=Patience()).send_all(index, read_documents(kb, role, count), lambda sent: None)
            else:
                actions = ({"_index": index, "_id": key, "_source": source} for key, source in held)
                for _ in helpers.parallel_bulk(client, actions):
                    pass
            rates[name].append(len(held) / (time.perf_counter() - begun))
            busy[name] += 1e6 * (time.process_time() - begun_busy) / len(held) / 2
            size = size_of(cluster, index)
            cluster.ask("DELETE", f"/{index}", to="remove")
        ours, bare = (float(np.mean(rates[name])) for name in ("kbtools", "parallel_bulk"))
        spent = {name: f"{microseconds:.0f} CPU µs a document" for name, microseconds in busy.items()}
        size_each = f"{size / len(held):,.0f} bytes a document"
        say(f"load {role}: kbtools", f"{ours:,.0f} documents/s", spent["kbtools"], size_each)
        say(
            f"load {role}: parallel_bulk from memory",
            f"{bare:,.0f} documents/s",
            spent["parallel_bulk"],
            f"ratio {ours / bare:.2f}",
        )
        seconds += [len(held) / ours, len(held) / bare]
    say("load, entities and names together", f"ratio {seconds[1] / seconds[0]:.2f}")


def memory_figures(path: Path, facts: int) -> None:
    """Load the first facts in a process of its own, and print the peak of its memory."""
    command = [
        sys.executable,
        str(Path(__file__).with_name("cluster_figures.py")),
        "--kb",
        str(path),
        "--child",
        str(facts),
    ]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    say("memory of a load", *json.loads(done.stdout.splitlines()[-1]))


def child(path: Path, facts: int) -> None:
    """Load the first facts, and print the peak of memory."""
    kb, cluster = EmbeddedKB(path), Cluster(read_connection())

    def before(row: int) -> int:
        return int(kb.columns["fact.first_object"][int(kb.columns["fact.first"][row])])

    last = bisect_left(range(kb.manifest.counts["entities"].unique), facts, key=before)
    release_pages(path)
    index, begun, own, loaded = fresh_index(cluster, ENTITIES, 200), time.perf_counter(), 0, 0

    def confirm(sent: object) -> None:
        nonlocal own, loaded
        if loaded % 20_000 < 1_000:
            release_pages(path)
        loaded += sent.documents  # type: ignore[attr-defined]
        own = max(own, status_of("self", "RssAnon"))

    Sender(cluster, patience=Patience()).send_all(index, entity_documents(kb, last), confirm)
    cluster.ask("DELETE", f"/{index}", to="remove")
    peak = f"peak {status_of('self', 'VmHWM') / 1024:.0f} MB, own {own / 1024:.0f} MB"
    print(json.dumps([peak, f"{facts:,} facts in {loaded:,} documents, {time.perf_counter() - begun:.0f} s"]))


def cpu_seconds(cluster: Cluster) -> tuple[float, float]:
    """Return the CPU seconds that this process with its children and the nodes of the cluster have spent."""
    told = cluster.ask("GET", "/_nodes/stats/process", to="measure")["nodes"].values()
    nodes = sum(node.get("process", {}).get("cpu", {}).get("total_in_millis", 0) for node in told) / 1000
    return time.process_time() + children_cpu(), nodes


def whole_load(kb: EmbeddedKB, cluster: Cluster, options: LoadOptions) -> tuple[float, float]:
    """Load a knowledge base as the command does; return the CPU seconds of the client and of the nodes."""
    begun, spent = time.perf_counter(), cpu_seconds(cluster)
    load(kb, cluster, NAME, options=options, watch=BuildProgress())
    client, nodes = (after - before for before, after in zip(spent, cpu_seconds(cluster), strict=True))
    parts = f"{client:.0f} CPU s of the client, {nodes:.0f} of the server"
    say("load, whole", f"{time.perf_counter() - begun:.0f} s", parts)
    return client, nodes


def estimate(kb: EmbeddedKB, client: float, nodes: float, size: int) -> None:
    """Estimate a load of a billion facts by the rates of a measured one."""
    times = 1e9 / kb.manifest.counts["facts"].unique
    hours = f"{times * client / 3600:.1f} hours of a core for the client, {times * nodes / 3600:.1f} for the nodes"
    say("a billion facts, estimated", hours, f"{times * size / 1e9:.0f} GB on disk without copies")
