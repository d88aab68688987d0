"""Measure the cluster backend: loading, linking, fuzzy linking, memory, questions per second, agreement with a folder.

    python benchmarks/cluster_figures.py --kb FBSQ.kb --questions annotated_fb_data_test.txt
    python benchmarks/cluster_figures.py --kb SCALE.kb --only load,memory
    python benchmarks/cluster_figures.py --kb SCALE.kb --variants variants.tsv.gz --only fuzzy --asked 2000
    python benchmarks/cluster_figures.py --kb FBSQ.kb --questions annotated_fb_data_test.txt --only agreement

The cluster is the one in KBTOOLS_ELASTICSEARCH_URL; everything written there is removed at the end.
"""

import argparse
import gzip
import os
import random
import threading
import time
from collections.abc import Callable
from functools import partial
from itertools import zip_longest
from pathlib import Path

import numpy as np
from cluster_loads import NAME, child, estimate, load_figures, memory_figures, said, say, size_of, whole_load
from fbsq import names_file, parse, questions
from figures import show_table

from kbtools.answering.answerer import Answerer
from kbtools.indexers.elastic.cluster import Cluster
from kbtools.indexers.elastic.connection import read_connection
from kbtools.indexers.elastic.knowledge import ElasticKB
from kbtools.indexers.elastic.loading import LoadOptions
from kbtools.indexers.elastic.mapping import ROLES, IndexSettings
from kbtools.indexers.elastic.searches import Cache
from kbtools.indexers.elastic.versions import delete_versions, list_versions
from kbtools.indexers.folder.embedded import EmbeddedKB
from kbtools.kb.contract import SimilarName
from kbtools.kb.vector_index import EntityVectors, ExactVectors, recall
from kbtools.linking.similarity import CLOSE_SIMILARITY
from kbtools.processes import default_jobs
from kbtools.pruning import UNGUIDED
from kbtools.text.ngrams import ngrams
from kbtools.text.normaliser import normal_form
from kbtools.text.question import Question

SHOWN = 30
"""Variants whose lists differ that are shown, those with other first names first."""

SECTIONS = "load,memory,linking,fuzzy,agreement,throughput,vectors"


def spread(seconds: list[float]) -> str:
    milliseconds = 1000 * np.array(seconds)
    p50, p90, p99 = (float(np.percentile(milliseconds, at)) for at in (50, 90, 99))
    return f"p50 {p50:.2f} ms, p90 {p90:.2f} ms, p99 {p99:.2f} ms"


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
        kb.named.matches, kb.named.frequencies, kb.known = Cache(1_000), Cache(1_000), Cache(1_000)

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
            print(f"  {one['question']!r}", *(f"{key}" for key in one if one[key] != other[key]))


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
    small = {"questions": questions("valid"), "variants": names_file("variants.tsv.gz"), "asked": 3, "documents": 20}
    arguments = parse(parser, **small)
    if arguments.child:
        child(arguments.kb, arguments.child)
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
            memory_figures(arguments.kb, min(arguments.facts, kb.manifest.counts["facts"].unique))
        if wanted & {"linking", "fuzzy", "agreement", "throughput", "vectors"}:
            if not arguments.loaded:
                settings = IndexSettings(replicas=0, codec=arguments.codec)
                options = LoadOptions(settings=settings, jobs=arguments.jobs, segments=arguments.segments)
                spent = whole_load(kb, cluster, options)
            name = arguments.loaded or NAME
            opened = ElasticKB(name, cluster)
            sizes = [size_of(cluster, opened.version.indexes[role]) for role in ROLES]
            for role, size in zip(ROLES, sizes, strict=True):
                say(f"size of {role}", f"{size / 1e6:,.1f} MB")
            if not arguments.loaded:
                estimate(kb, *spent, sum(sizes))
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
