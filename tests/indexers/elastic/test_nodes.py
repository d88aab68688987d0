"""A load and its readers outlive the nodes of a cluster: three of them, killed, stopped and started again."""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from kbtools.answering.answerer import Answerer
from kbtools.indexers.building.build import BuildProgress
from kbtools.indexers.elastic.cluster import Cluster, Patience
from kbtools.indexers.elastic.inventory import cluster_status
from kbtools.indexers.elastic.knowledge import ElasticKB
from kbtools.indexers.elastic.loading import Loaded, LoadOptions, load
from kbtools.indexers.elastic.mapping import IndexSettings
from kbtools.indexers.folder.embedded import EmbeddedKB
from kbtools.kb.contract import KnowledgeBase

QUESTIONS = [
    "who created the character harry potter",
    "what genre is harder.....faster?",
    "frankenstien",
    "who wrote it",
]
PATIENT = Patience(total=180.0, first=0.2, longest=1.0)
SPREAD = IndexSettings(shards=3, replicas=1)


def is_free(port: int) -> bool:
    with socket.socket() as listener:
        return listener.connect_ex(("127.0.0.1", port)) != 0


class Nodes:
    """Three nodes of a cluster of their own."""

    def __init__(self, program: Path, folder: str) -> None:
        self.program, self.folder = program, folder
        ports = range(9500, 9900, 10)
        port = next(port for port in ports if all(is_free(port + at) for at in (0, 1, 2, 100, 101, 102)))
        urls = self.run("start", "--nodes", "3", "--heap", "384m", "--port", str(port))
        self.url = urls.strip().splitlines()[-1]

    def run(self, action: str, *more: object) -> str:
        command = [sys.executable, str(self.program), action, str(self.folder), *map(str, more)]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=240).stdout


@pytest.fixture(scope="module")
def nodes(cluster_program: Path) -> Iterator[Nodes]:
    memory = Path("/dev/shm")  # where there is one: a cluster flushes its state to the disk at every change
    with TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as folder:
        started = Nodes(cluster_program, folder)
        try:
            yield started
        finally:
            started.run("stop")


@pytest.fixture
def patient(nodes: Nodes, connect: Callable[..., Cluster]) -> Cluster:
    return connect(nodes.url, patience=PATIENT, timeout="10")


def pools(kb: KnowledgeBase) -> list[dict[str, Any]]:
    return [Answerer(kb).query(text, top=None).to_json() | {"milliseconds": None} for text in QUESTIONS]


def load_while(kb: EmbeddedKB, cluster: Cluster, name: str, happening: Callable[[], None], tmp_path: Path) -> Loaded:
    """Load while something happens to the cluster once a tenth is confirmed; give what the load came to."""
    thread = threading.Thread(target=happening)
    begun = []

    def progress(role: str, done: int) -> None:
        if role == "entities" and done > 50 and not begun:
            begun.append(True)
            thread.start()

    options = LoadOptions(
        settings=SPREAD, batch=10, in_flight=2, patience=PATIENT, force=True, rejected=tmp_path / "rejected.jsonl"
    )
    loaded = load(kb, cluster, name, options=options, watch=BuildProgress(progress=progress))
    thread.join()
    return loaded


def test_a_node_killed_during_a_load_loses_nothing(
    nodes: Nodes, patient: Cluster, sample_kb: EmbeddedKB, tmp_path: Path
) -> None:
    def happening() -> None:
        nodes.run("kill", 2)
        nodes.run("restart", 2)

    assert load_while(sample_kb, patient, "killed", happening, tmp_path).fresh
    assert pools(ElasticKB("killed", patient)) == pools(sample_kb)


def test_a_cluster_stopped_and_started_during_a_load_loses_nothing(
    nodes: Nodes, patient: Cluster, sample_kb: EmbeddedKB, tmp_path: Path
) -> None:
    def happening() -> None:
        nodes.run("stop")
        for node in (1, 2, 3):
            nodes.run("restart", node)

    assert load_while(sample_kb, patient, "stopped", happening, tmp_path).fresh
    assert pools(ElasticKB("stopped", patient)) == pools(sample_kb)


def test_a_load_is_visible_before_its_copies_are_made(
    nodes: Nodes, patient: Cluster, sample_kb: EmbeddedKB, tmp_path: Path
) -> None:
    def allocate(kind: str | None) -> None:
        setting = {"persistent": {"cluster.routing.allocation.enable": kind}}
        patient.ask("PUT", "/_cluster/settings", setting, to="hold copies back")

    options = LoadOptions(settings=SPREAD, patience=Patience(total=2.0), rejected=tmp_path / "rejected.jsonl")
    allocate("primaries")
    loaded = load(sample_kb, patient, "early", options=options, watch=BuildProgress())
    assert (loaded.fresh, loaded.copies_missing) == (True, 6)
    assert [index.copies_missing for index in cluster_status(patient, "early").versions[0].indexes] == [3, 3]
    assert pools(ElasticKB("early", patient)) == pools(sample_kb)
    allocate(None)
    patient.health("early", until=lambda health: health["status"] == "green", patience=PATIENT)
    assert [index.copies_missing for index in cluster_status(patient, "early").versions[0].indexes] == [0, 0]


def test_queries_answer_while_a_node_is_killed(
    nodes: Nodes, patient: Cluster, sample_kb: EmbeddedKB, tmp_path: Path, connect: Callable[..., Cluster]
) -> None:
    load_while(sample_kb, patient, "queried", lambda: None, tmp_path)
    patient.ask("GET", "/_cluster/health/queried", to="wait", params={"wait_for_status": "green", "timeout": "60s"})
    expected = pools(sample_kb)
    seen, killed = [], threading.Event()

    def kill() -> None:
        nodes.run("kill", 3)
        killed.set()

    thread = threading.Thread(target=kill)
    thread.start()
    while not killed.is_set() or len(seen) < 5:
        seen.append(pools(ElasticKB("queried", connect(nodes.url, patience=PATIENT, timeout="10"))))
    thread.join()
    nodes.run("restart", 3)
    assert seen == [expected] * len(seen)
