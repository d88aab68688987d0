"""Measure the cluster backend: loading, linking, fuzzy linking, memory, questions per second, agreement with a folder.

    python benchmarks/cluster_figures.py --kb FBSQ.kb --questions annotated_fb_data_test.txt
    python benchmarks/cluster_figures.py --kb SCALE.kb --only load,memory
    python benchmarks/cluster_figures.py --kb SCALE.kb --variants variants.tsv.gz --only fuzzy --asked 2000
    python benchmarks/cluster_figures.py --kb FBSQ.kb --questions annotated_fb_data_test.txt --only agreement

The cluster is the one in KBTOOLS_ELASTICSEARCH_URL; everything written there is removed at the end.
"""

import argparse
import gzip
import json
import os
import random
import subprocess
import sys
import threading
import time
import uuid
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import islice, zip_longest
from pathlib import Path

import numpy as np
from elasticsearch import Elasticsearch, helpers
from fbsq import names_file, parse, questions
from figures import show_table
from measured import children_cpu

from kbtools.answering.answerer import Answerer
from kbtools.indexers.building.build import BuildProgress
from kbtools.indexers.elastic.bulk import Sender
from kbtools.indexers.elastic.cluster import Cluster, Patience
from kbtools.indexers.elastic.connection import read_connection
from kbtools.indexers.elastic.documents import Document, documents, form_documents
from kbtools.indexers.elastic.folder_contents import FolderEntities, normal_forms
from kbtools.indexers.elastic.knowledge import ElasticKB
from kbtools.indexers.elastic.loading import LoadOptions, load
from kbtools.indexers.elastic.mapping import ENTITIES, ROLES, IndexSettings, index_body, index_name
from kbtools.indexers.elastic.searches import Cache
from kbtools.indexers.elastic.versions import delete_versions, list_versions
from kbtools.indexers.folder.column_files import release_pages
from kbtools.indexers.folder.embedded import EmbeddedKB
from kbtools.kb.contract import SimilarName
from kbtools.kb.vector_index import EntityVectors, ExactVectors, recall
from kbtools.linking.similarity import CLOSE_SIMILARITY
from kbtools.processes import default_jobs
from kbtools.pruning import UNGUIDED
from kbtools.text.ngrams import ngrams
from kbtools.text.normaliser import normal_form
from kbtools.text.question import Question

NAME = f"benchmark-{uuid.uuid4().hex[:8]}"
SHOWN = 30
"""Variants whose lists differ that are shown, those with other first names first."""

SECTIONS = "load,memory,linking,fuzzy,agreement,throughput,vectors"


said: list[tuple[str, str]] = []


def say(label: str, *figures: str) -> None:
    """Print figures, and keep them for the table."""
    print(f"{label:<44}" + "  ".join(figures), flush=True)
    said.append((label, "; ".join(filter(None, figures))))


def spread(seconds: list[float]) -> str:
    milliseconds = 1000 * np.array(seconds)
    p50, p90, p99 = (float(np.percentile(milliseconds, at)) for at in (50, 90, 99))
    return f"p50 {p50:.2f} ms, p90 {p90:.2f} ms, p99 {p99:.2f} ms"


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


def memory_figures(path: Path, facts: int, slowed: float, limit: float) -> None:
    """Load in a process of its own, and print the peak of its memory."""
    command = [sys.executable, __file__, "--kb", str(path), "--child", str(facts), "--slowed", str(slowed)]
    done = subprocess.run([*command, "--limit", str(limit)], check=True, capture_output=True, text=True)
    told = json.loads(done.stdout.splitlines()[-1])
    say(
        f"memory, server at 1/{slowed:.0f} speed" if slowed > 1 else "memory",
        f"peak {told['peak']:.0f} MB, own {told['own']:.0f} MB",
        f"{told['facts']:,} facts in {told['documents']:,} documents, {told['seconds']:.0f} s",
    )


def child(path: Path, facts: int, slowed: float, limit: float) -> None:
    """Load the first facts, on a server that takes `slowed` times as long, and print the peak of memory."""
    kb, cluster = EmbeddedKB(path), Cluster(read_connection())
    entities = kb.manifest.counts["entities"].unique

    def before(row: int) -> int:
        return int(kb.columns["fact.first_object"][int(kb.columns["fact.first"][row])])

    last = bisect_left(range(entities), facts, key=before)
    release_pages(path)
    index = fresh_index(cluster, ENTITIES, 200)
    ask, begun, told = cluster.ask, time.perf_counter(), {"documents": 0, "own": 0.0, "peak": 0.0, "facts": 0}

    def slow(*args: object, **options: object) -> object:
        since = time.perf_counter()
        answer = ask(*args, **options)  # type: ignore[arg-type]
        time.sleep((slowed - 1) * (time.perf_counter() - since))
        return answer

    class Enough(Exception):
        """The time is up."""

    def confirm(sent: object) -> None:
        if told["documents"] % 20_000 < 1_000:
            release_pages(path)
        status = dict(line.split(":\t") for line in Path("/proc/self/status").read_text().splitlines() if ":\t" in line)
        told["documents"] += sent.documents  # type: ignore[attr-defined]
        told["facts"] = before(sent.done)  # type: ignore[attr-defined]
        told["own"] = max(told["own"], int(status["RssAnon"].split()[0]) / 1024)
        told["peak"] = int(status["VmHWM"].split()[0]) / 1024
        if time.perf_counter() - begun > limit:
            raise Enough

    cluster.ask = slow  # type: ignore[method-assign]
    with suppress(Enough):
        Sender(cluster, patience=Patience()).send_all(index, entity_documents(kb, last), confirm)
    cluster.ask = ask  # type: ignore[method-assign]
    cluster.ask("DELETE", f"/{index}", to="remove")
    print(json.dumps(told | {"seconds": time.perf_counter() - begun}))


def cpu_seconds(cluster: Cluster) -> tuple[float, float]:
    """Return the CPU seconds that this process with its children and the nodes of the cluster have spent."""
    told = cluster.ask("GET", "/_nodes/stats/process", to="measure")["nodes"].values()
    nodes = sum(node.get("process", {}).get("cpu", {}).get("total_in_millis", 0) for node in told) / 1000
    return time.process_time() + children_cpu(), nodes


def timed(action: Callable[[], object]) -> float:
    begun = time.perf_counter()
    action()
    return time.perf_counter() - begun


def linking_figures(kb: ElasticKB, questions: list[str]) -> None:
    """Compare one request for a question with a request for each of its n-grams; nothing is remembered.

    All questions are asked once before, since a Java server compiles what it runs often.
    """
    lengths = kb.manifest.lengths
    forms = [[ngram.form for ngram in ngrams(Question.read(text), lengths=lengths)] for text in questions]
    assert kb.relation_rows
    assert kb.type_rows

    def forget() -> None:
        kb.named.matches, kb.named.frequencies = Cache(1_000), Cache(1_000)

    def apart(some: list[str]) -> None:
        for form in dict.fromkeys(some):
            kb.lookup([form])

    once, each = [], []
    for some in forms:
        kb.lookup(some)
    for some in forms:
        forget()
        once.append(timed(lambda some=some: kb.lookup(some)))  # type: ignore[misc]
        forget()
        each.append(timed(lambda some=some: apart(some)))  # type: ignore[misc]
    say("linking, one request a question", spread(once), f"{np.mean([len(some) for some in forms]):.0f} n-grams")
    say("linking, one request an n-gram", spread(each), f"ratio 1/{np.median(each) / np.median(once):.1f}")


def fuzzy_figures(kb: EmbeddedKB, opened: ElasticKB, variants: Path, count: int) -> None:
    """Look up names by their variants, one or two edits away, in both homes, and compare the results."""
    with gzip.open(variants, "rt", encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file]
    pairs = [(normal_form(row[1].replace("_", " ")), normal_form(row[2].replace("_", " "))) for row in rows]
    held = kb.lookup([name for _, name in pairs])
    chosen = random.Random(1).sample([pair for pair in pairs if pair[1] in held], min(count, len(held)))
    answers: dict[str, list[list[SimilarName]]] = {}
    for home, knowledge in (("cluster", opened), ("folder", kb)):
        found, taken = answers.setdefault(home, []), []
        for asked, _ in chosen:
            begun = time.perf_counter()
            found.append(knowledge.similar([asked])[0])
            taken.append(time.perf_counter() - begun)
        first = np.mean([bool(near) and near[0].form == name for near, (_, name) in zip(found, chosen, strict=True)])
        among = np.mean([name in {one.form for one in near} for near, (_, name) in zip(found, chosen, strict=True)])
        say(f"fuzzy, {home}", f"recall@20 {among:.4f}, top-1 {first:.4f}", spread(taken), f"{len(chosen)} variants")
    both = list(zip(*answers.values(), strict=True))
    close = [pair for pair in both if any(near.similarity >= CLOSE_SIMILARITY for found in pair for near in found)]
    names = [[{near.form for near in found} for found in pair] for pair in both]
    shared, either = (sum(len(join(*pair)) for pair in names) for join in (set[str].intersection, set[str].union))
    say(
        "fuzzy, both homes",
        f"the same first for {np.mean([one[:1] == other[:1] for one, other in both]):.4f}",
        f"the same list for {np.mean([one == other for one, other in both]):.4f}",
        f"for {np.mean([one == other for one, other in close]):.4f} of the {len(close)} with a close name"
        if close
        else "",
        f"shared {shared / either:.4f} of the names that either finds",
    )
    unlike = [pair for pair in zip(chosen, both, strict=True) if pair[1][0] != pair[1][1]]
    for (asked, name), (one, other) in sorted(unlike, key=lambda pair: pair[1][0][:1] == pair[1][1][:1])[:SHOWN]:
        start = next(place for place, (own, there) in enumerate(zip_longest(one, other)) if own != there)
        at = slice(start, start + 1)
        print(f"  {asked!r} for {name!r}: place {start + 1}: cluster {one[at]}, folder {other[at]}")


def agreement_figures(kb: EmbeddedKB, opened: ElasticKB, questions: list[str]) -> None:
    """Compare whole answers of both homes as JSON, except for their times."""
    for pruning in UNGUIDED:
        pairs = [
            tuple(result.to_json() | {"milliseconds": 0} for result in pair)
            for pair in zip(
                *(Answerer(home).query_many(questions, pruning=pruning, top=None) for home in (kb, opened)), strict=True
            )
        ]
        fuzzy = [any(one["rung"] == "fuzzy" for result in pair for one in result["candidates"]) for pair in pairs]
        equal = np.array([one == other for one, other in pairs])
        strict = ~np.array(fuzzy)
        say(
            f"agreement, {pruning}",
            f"{equal[strict].mean():.4f} of {strict.sum():,} questions linked strictly",
            f"{equal[~strict].mean():.4f} of {(~strict).sum():,} linked fuzzily" if fuzzy.count(True) else "",
        )
        for one, other in [pair for pair, same in zip(pairs, equal, strict=True) if not same][:5]:
            say(f"  {one['question']!r}", *(f"{key}" for key in one if one[key] != other[key]))


def throughput_figures(cluster: Cluster, name: str, questions: list[str]) -> None:
    """Answer questions by one thread and by several, each with a connection of its own."""
    for threads in (1, 2, 4, 8):
        shares = [questions[at::threads] for at in range(threads)]

        def work(share: list[str]) -> None:
            answerer = Answerer(ElasticKB(name, Cluster(cluster.connection)))
            for text in share:
                answerer.query(text, scorer="lexical")

        workers = [threading.Thread(target=work, args=(share,)) for share in shares]
        begun = time.perf_counter()
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        say(f"questions a second, {threads} threads", f"{len(questions) / (time.perf_counter() - begun):,.0f}")
    answerer = Answerer(ElasticKB(name, Cluster(cluster.connection)))
    seconds = timed(lambda: list(answerer.query_many(questions, scorer="lexical")))
    say("questions a second, 64 together", f"{len(questions) / seconds:,.0f}")
    answerer = Answerer(ElasticKB(name, Cluster(cluster.connection)))
    say(
        "one question, answers included",
        spread([timed(partial(answerer.query, text, scorer="lexical")) for text in questions]),
    )


def vector_figures(kb: ElasticKB, count: int, dim: int, *, searches: int) -> None:
    """Compare the nearest vectors that the cluster finds with the true ones; vectors lie around a thousand centres."""
    drawn = np.random.default_rng(1)
    centres = drawn.normal(size=(1_000, dim))
    vectors = (centres[drawn.integers(0, 1_000, count)] + 0.7 * drawn.normal(size=(count, dim))).astype(np.float32)
    asked = (centres[drawn.integers(0, 1_000, searches)] + 0.7 * drawn.normal(size=(searches, dim))).astype(np.float32)
    rows = np.arange(count, dtype=np.uint32)
    begun = time.perf_counter()
    found = kb.load_vectors(EntityVectors(rows, dim, lambda some: vectors[some]), settings=IndexSettings(replicas=0))
    seconds = time.perf_counter() - begun
    say("load vectors", f"{count:,} of {dim} dimensions in {seconds:.0f} s", f"{count / seconds:,.0f} a second")
    exact = ExactVectors(rows, vectors).nearest(asked, limit=10)
    taken = [timed(lambda one=one: found.nearest(one[None], limit=10)) for one in asked]  # type: ignore[misc]
    share = recall(found.nearest(asked, limit=10), exact)
    say("nearest vectors", f"recall@10 {share:.4f}", spread(taken))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kb", type=Path, default=Path("build/fbsq.kb"), help="an embedded knowledge base")
    parser.add_argument("--loaded", help="the name of the same knowledge base on the cluster, if it is there already")
    parser.add_argument("--questions", type=Path, help="questions in the release's format")
    parser.add_argument("--variants", type=Path, help="edits TAB variant TAB name")
    parser.add_argument("--asked", type=int, default=1_000, help="questions or variants, drawn at random")
    parser.add_argument("--documents", type=int, default=150_000, help="documents of the load")
    parser.add_argument("--jobs", type=int, default=default_jobs(), help="processes of the whole load")
    parser.add_argument("--segments", type=int, help="segments to which the whole load is merged at its end")
    parser.add_argument("--codec", default="default", help="how the cluster compresses the whole load")
    parser.add_argument("--facts", type=int, default=5_000_000, help="facts of the load whose memory is measured")
    parser.add_argument("--only", default=SECTIONS)
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--slowed", type=float, default=1, help=argparse.SUPPRESS)
    parser.add_argument("--limit", type=float, default=1e9, help=argparse.SUPPRESS)
    small = {"questions": questions("valid"), "variants": names_file("variants.tsv.gz"), "asked": 3, "documents": 20}
    arguments = parse(parser, **small, only=SECTIONS.replace(",memory", ""))
    if arguments.child:
        child(arguments.kb, arguments.child, arguments.slowed, arguments.limit)
        return
    wanted, cluster = set(arguments.only.split(",")), Cluster(read_connection())
    server = cluster.greet()["version"]["number"]
    kb = EmbeddedKB(arguments.kb)
    say("machine", f"{os.cpu_count()} cores shared with the server, Elasticsearch {server}")
    say("knowledge base", *(f"{count.unique:,} {kind}" for kind, count in kb.manifest.counts.items()))
    try:
        if "load" in wanted:
            load_figures(kb, cluster, arguments.documents)
        if "memory" in wanted:
            memory_figures(arguments.kb, arguments.facts, 1, 1e9)
            memory_figures(arguments.kb, arguments.facts, 10, 60)
        if wanted & {"linking", "fuzzy", "agreement", "throughput", "vectors"}:
            if not arguments.loaded:
                settings = IndexSettings(replicas=0, codec=arguments.codec)
                options = LoadOptions(settings=settings, jobs=arguments.jobs, segments=arguments.segments)
                begun, spent = time.perf_counter(), cpu_seconds(cluster)
                load(kb, cluster, NAME, options=options, watch=BuildProgress())
                client, nodes = (after - before for before, after in zip(spent, cpu_seconds(cluster), strict=True))
                parts = f"{client:.0f} CPU s of the client, {nodes:.0f} of the server"
                say("load, whole", f"{time.perf_counter() - begun:.0f} s", parts)
            name = arguments.loaded or NAME
            opened = ElasticKB(name, cluster)
            for role in ROLES:
                say(f"size of {role}", f"{size_of(cluster, opened.version.indexes[role]) / 1e6:,.0f} MB")
            if "fuzzy" in wanted and arguments.variants:
                fuzzy_figures(kb, opened, arguments.variants, arguments.asked)
            if "vectors" in wanted:
                count = min(50_000, kb.manifest.counts["entities"].unique)
                vector_figures(opened, count, 100, searches=min(200, arguments.asked))
            if arguments.questions:
                with arguments.questions.open(encoding="utf-8") as file:
                    texts = [line.rstrip("\n").split("\t")[-1] for line in file]
                texts = random.Random(1).sample(texts, min(arguments.asked, len(texts)))
                if "agreement" in wanted:
                    agreement_figures(kb, opened, texts)
                if "linking" in wanted:
                    linking_figures(opened, texts[:300])
                if "throughput" in wanted:
                    throughput_figures(cluster, name, texts)
    finally:
        delete_versions(cluster, list_versions(cluster, NAME))
    show_table("figures", ("what", "figure"), said)


if __name__ == "__main__":
    main()
