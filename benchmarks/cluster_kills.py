"""Loads and updates of a three-node cluster that are killed, and a load that loses a node in the middle."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import cycle
from pathlib import Path

import numpy as np
from children import in_a_child
from folders import Mark, make, mark_of, update_records, write_sources

from kbtools.answering.answerer import Answerer
from kbtools.cli.main import main as kbtools
from kbtools.errors import KBToolsError
from kbtools.indexers.building.build import BuildProgress
from kbtools.indexers.elastic.cluster import Cluster
from kbtools.indexers.elastic.cluster_updates import UpdateOptions, update_on_cluster
from kbtools.indexers.elastic.connection import read_connection
from kbtools.indexers.elastic.knowledge import ElasticKB
from kbtools.indexers.elastic.loading import LoadOptions, load
from kbtools.indexers.elastic.mapping import ENTITIES, IndexSettings
from kbtools.indexers.elastic.versions import delete_versions, list_versions
from kbtools.indexers.folder.embedded import EmbeddedKB
from kbtools.indexers.readers.reading import ReadOptions, Source
from kbtools.indexers.updates.update_sources import UpdateSource
from kbtools.kb.contract import NameMatch
from kbtools.text.normaliser import normal_form

NAME = "reliability"
ROUNDS_OF_A_NODE = 10
"""Rounds after which the node that was gone comes back, and another one is killed."""

AWAY = 60.0
"""Seconds after which a node that is killed during a load comes back."""

COMPARED = 2_000
"""Entities whose names are looked up in the folder and on the cluster after that load."""


def current_mark(cluster: Cluster) -> Mark | str:
    """Open the current version as a reader does, and return its mark."""
    return mark_of(Answerer(ElasticKB(NAME, cluster)))


def read_on(seen: Path) -> None:
    """Write the mark of the current version repeatedly, until this process is killed."""
    with seen.open("a", encoding="utf-8") as lines:
        while True:
            try:
                told: object = current_mark(Cluster(read_connection()))
            except KBToolsError as error:
                told = f"refused: {error}"
            lines.write(json.dumps(told) + "\n")
            lines.flush()


class Nodes:
    """The nodes of a cluster that a program started in a folder."""

    def __init__(self, program: Path, folder: Path) -> None:
        self.program, self.folder = program, folder
        self.gone: int | None = None

    def act(self, action: str, node: int) -> None:
        command = [sys.executable, str(self.program), action, str(self.folder), str(node)]
        subprocess.run(command, check=True, capture_output=True)

    def take_away(self, node: int, cluster: Cluster) -> None:
        """Restart the killed node, wait for all copies, and kill another node."""
        if self.gone is not None:
            self.act("restart", self.gone)
        wait = {"wait_for_nodes": "3", "wait_for_status": "green", "timeout": "180s"}
        cluster.ask("GET", "/_cluster/health", to="wait for the nodes", params=wait)
        self.act("kill", node)
        self.gone = node


def change(work: Path, number: int, kbs: dict[str, Path], before: Mark) -> tuple[Mark, list[str]]:
    """Write the next load or update; return its mark and its command."""
    if number % 2:
        changes = work / f"update {number}.jsonl"
        lines = [json.dumps(record) + "\n" for record in update_records(number)]
        changes.write_text("".join(lines), encoding="utf-8")
        return (before[0], number), ["update", str(changes)]
    relation = next(name for name in kbs if name != before[0])
    return (relation, 0), load_of(kbs[relation])


def act(what: list[str]) -> None:
    """Load or update, without waiting for the lock of the process that was killed."""
    if what[0] == "load":
        kbtools(what)
    sources = [UpdateSource(Source(Path(what[1]), "any"), "changes")]
    update_on_cluster(Cluster(read_connection()), NAME, sources, options=UpdateOptions(ReadOptions(), take_over=True))


def load_of(kb: Path) -> list[str]:
    settings = ["--shards", "2", "--replicas", "1", "--batch", "40", "--quiet"]
    return ["load", str(kb), "--kb", NAME, *settings, "--take-over", "--force"]


def cluster_kills(work: Path, nodes: Nodes, number: int, rng: random.Random) -> dict[str, Counter[str]]:
    """Kill loads and updates in turns, check the cluster, and run each again, while a reader continues."""
    kbs = {
        relation: make(write_sources(work / relation, 300, relation=relation), work / f"{relation}.kb")
        for relation in ("written_by", "of_the_new_one")
    }
    cluster, seen = Cluster(read_connection()), work / "seen"
    delete_versions(cluster, list_versions(cluster, NAME))
    seconds = {}
    mark: Mark = ("written_by", 0)
    for kind, what in (("load", load_of(kbs["written_by"])), ("update", change(work, 1, kbs, mark)[1])):
        begun = time.monotonic()
        code, printed = in_a_child(partial(act, what))
        assert code == 0, printed
        seconds[kind] = time.monotonic() - begun
    mark = (mark[0], 1)
    reader = os.fork()
    if not reader:
        read_on(seen)
    away = cycle((1, 2, 3))
    tables: dict[str, Counter[str]] = {kind: Counter() for kind in ("load", "update", "reader")}
    looked = 0
    try:
        for at in range(2, number + 2):
            if at % ROUNDS_OF_A_NODE == 2:
                nodes.take_away(next(away), cluster)
            after, what = change(work, at, kbs, mark)
            table = tables[what[0]]
            code, _ = in_a_child(partial(act, what), kill_after=rng.uniform(0, 1.2 * seconds[what[0]]))
            table["killed" if code == -signal.SIGKILL else "done before"] += 1
            found = current_mark(cluster)
            table["the version before" if found == mark else "the new one" if found == after else f"LOST: {found}"] += 1
            begun = time.monotonic()
            code, printed = in_a_child(partial(act, what))
            seconds[what[0]] = (seconds[what[0]] + time.monotonic() - begun) / 2
            again = current_mark(cluster)
            table["done by the next run" if (code, again) == (0, after) else f"NOT DONE: {again} {printed[-200:]}"] += 1
            lines = seen.read_text(encoding="utf-8").splitlines()[looked:]
            for line in lines:
                told = json.loads(line)
                ok = isinstance(told, list) and tuple(told) in (mark, after)
                tables["reader"]["one version" if ok else str(told)] += 1
            looked += len(lines)
            mark = after
    finally:
        os.kill(reader, signal.SIGKILL)
        os.waitpid(reader, 0)
        if nodes.gone is not None:
            nodes.act("restart", nodes.gone)
        delete_versions(cluster, list_versions(cluster, NAME))
    return tables


def load_with_lost_node(path: Path, nodes: Nodes, rng: random.Random) -> list[tuple[str, str]]:
    """Load a folder into three shards and kill a node when half of the entities are stored; it comes back later.

    The load itself compares all counts with the folder. Returns what happened and what the cluster then holds.
    """
    kb, cluster = EmbeddedKB(path), Cluster(read_connection())
    count = kb.manifest.counts["entities"].unique
    back = threading.Timer(AWAY, nodes.act, ("restart", 2))

    def progress(role: str, done: int) -> None:
        if role == ENTITIES and done >= count / 2 and nodes.gone is None:
            nodes.gone = 2
            nodes.act("kill", 2)
            back.start()

    try:
        begun = time.monotonic()
        options = LoadOptions(settings=IndexSettings(shards=3, replicas=1), force=True)
        loaded = load(kb, cluster, NAME, options=options, watch=BuildProgress(progress=progress))
        seconds = time.monotonic() - begun
        back.join()
        opened = ElasticKB(NAME, cluster)
        names = [name for name in kb.names(np.array(rng.sample(range(count), COMPARED), np.uint32)) if name]
        forms = sorted({normal_form(name) for name in names})
        pairs = [(_plain(kb.lookup([form])), _plain(opened.lookup([form]))) for form in forms]
        same = sum(own == there for own, there in pairs)
        return [
            ("documents stored, every count as in the folder", f"{loaded.documents:,} in {seconds:.0f} s"),
            ("copies of shards missing at the end", str(loaded.copies_missing)),
            ("names found alike in the folder and on the cluster", f"{same:,} of {len(forms):,}"),
        ]
    finally:
        back.cancel()
        delete_versions(cluster, list_versions(cluster, NAME))


def _plain(matches: Mapping[str, Sequence[NameMatch]]) -> list[tuple[str, object, bool, list[int]]]:
    return [
        (match.name, match.form, match.is_alias, match.entities.tolist()) for own in matches.values() for match in own
    ]
