"""The server on FBSQ with both backends: the cost of HTTP, questions per second, and batches of names.

python benchmarks/serving.py [--kb build/fbsq.kb] [--requests 4000] [--soak 0]      (about two minutes on two cores)

CPU time is that of the server's processes, which other work on the machine affects less than wall time.
"""

import argparse
import asyncio
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
from fbsq import parse, questions, sources
from figures import show_table
from phases import status_of
from slips import slip

import kbtools
from kbtools.answering.questions import read_annotated
from kbtools.indexers.building.build import BuildProgress, build
from kbtools.indexers.readers.reading import ReadOptions
from kbtools.serve.responses import record_bytes

CLIENTS = 8

PER_CONNECTION = 50
"""Requests of a connection. Workers take new connections when they are free, so that those of eight clients that never
end may lie six to two."""

HEAVY = 4
"""Heavy requests at once beside short questions: as many as there are threads for short ones."""

BESIDE = 400
"""Short questions that are asked beside them, and again while they last."""

NAMES = 10
"""Names of a batch: what OpenRefine sends."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kb", type=Path, default=Path("build/fbsq.kb"))
    parser.add_argument("--requests", type=int, default=4_000)
    parser.add_argument("--soak", type=int, default=20_000, help="requests over which memory is watched")
    arguments = parse(parser, requests=20, soak=20)
    build(sources(), arguments.kb, options=ReadOptions(), watch=BuildProgress())
    texts = [question.text for question in read_annotated(questions("test"))][: arguments.requests]
    line = "GET /api/query?scorer=lexical&question={} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    asked = [line.format(quote(text)).encode() for text in texts]

    with kbtools.open(arguments.kb) as answerer:
        for text in texts[:200]:
            answerer.query(text, scorer="lexical")
        alone = [seconds_alone(answerer, text) for text in texts]
        names = subject_names(answerer, texts)
    misspelt = list(filter(None, (slip(name, random.Random(place)) for place, name in enumerate(names))))
    rows = [("a question and its JSON, the library alone", *percentiles(alone), "")]
    heavy: list[tuple[str, str, str]] = []
    memory: list[tuple[str, str]] = []

    with served(arguments.kb, workers=1) as (port, pid):
        asyncio.run(ask(port, asked[:200], clients=1))
        rows += [
            measure("the same over HTTP, one client, one worker", port, pid, asked, clients=1),
            measure(f"reconciliation, a batch of {NAMES} names", port, pid, name_batches(names), clients=1),
            measure("the same, each name with one slip", port, pid, name_batches(misspelt), clients=1),
        ]
        for what, request in islice(heavy_requests(names), 1 if arguments.small else None):
            heavy.append(asyncio.run(beside(what, request, port, asked[:BESIDE])))
        memory += soak(port, pid, asked, arguments.soak)

    with served(arguments.kb, workers=2) as (port, pid):
        asyncio.run(ask(port, asked[:400], clients=CLIENTS))
        rows.append(measure(f"{CLIENTS} clients at once, 2 workers", port, pid, asked, clients=CLIENTS))
    show_table("requests", ("what", "p50", "p99", "CPU of each"), rows)
    show_table("busy", ("four times", "answered with", "short questions beside them, p50 and p99"), heavy)
    show_table("memory", (f"questions of {CLIENTS} clients to one worker", "its own memory, MB"), memory)


def seconds_alone(answerer: kbtools.Answerer, text: str) -> float:
    """Return the seconds of questions and their JSON, without the server."""
    begun = time.perf_counter()
    record_bytes(answerer.query(text, scorer="lexical"))
    return time.perf_counter() - begun


def subject_names(answerer: kbtools.Answerer, texts: Sequence[str]) -> list[str]:
    """List the names of the first candidates of questions."""
    results = answerer.query_many(texts[:2_000], scorer="lexical", top=1)
    return [result.candidates[0].matched_name for result in results if result.candidates]


def name_batches(names: Sequence[str]) -> list[bytes]:
    """Return requests for the candidates of names."""
    requests = []
    for first in range(0, len(names) - NAMES, NAMES):
        batch = {str(key): {"query": name} for key, name in enumerate(names[first : first + NAMES])}
        body = b"queries=" + quote(json.dumps(batch)).encode()
        requests.append(post("/reconcile", body))
    return requests


def heavy_requests(names: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    """Yield requests that cost much work: refused ones, accepted ones, and long texts."""
    values = [f"{name} {number}" for number, name in enumerate(names[:100])]
    unnamed = {"properties": [{"pid": f"p{number}", "v": values} for number in range(3)]}
    batches: dict[str, dict[str, Any]] = {
        "100 queries with one type 100 times": {"query": names[0], "type": ["film.film"] * 100},
        "100 queries with 100 types": {"query": names[0], "type": [f"film.film{number}" for number in range(100)]},
        "100 queries without a name, 3 properties of 100 values": unnamed,
        "100 queries with 19 types, as many look-ups as are allowed": {"type": [f"t{at}" for at in range(19)]},
    }
    for what, query in batches.items():
        queries = {str(key): {"query": name} | query for key, name in enumerate(names[:100])}
        if query is unnamed:
            queries = dict.fromkeys(queries, unnamed)
        yield what, post("/reconcile", b"queries=" + quote(json.dumps(queries)).encode())
    yield (
        "a question of 10,000 characters",
        post("/api/query", json.dumps({"question": " it's ".join(names)[:10_000], "scorer": "lexical"}).encode()),
    )
    yield (
        "running text of half a MiB",
        post("/api/link", json.dumps({"text": ". ".join([*names] * 100)[: 1 << 19]}).encode()),
    )


def post(path: str, body: bytes) -> bytes:
    kind = "application/json" if body.startswith(b"{") else "application/x-www-form-urlencoded"
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


async def beside(what: str, request: bytes, port: int, short: Sequence[bytes]) -> tuple[str, str, str]:
    """Send heavy requests at once, and short questions as long as these last; format what both took."""

    async def heavy() -> str:
        begun = time.perf_counter()
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 26)
        writer.write(request)
        head = await reader.readuntil(b"\r\n")
        await reader.readuntil(b"\r\n\r\n")
        writer.close()
        return f"{head.split()[1].decode()} after {time.perf_counter() - begun:.1f} s"

    tasks = [asyncio.create_task(heavy()) for _ in range(HEAVY)]
    seconds: list[float] = []
    while not seconds or any(not task.done() for task in tasks):
        seconds += await ask(port, short, clients=1)
    return what, ", ".join(sorted(await asyncio.gather(*tasks))), " and ".join(percentiles(seconds))


def measure(what: str, port: int, pid: int, requests: Sequence[bytes], *, clients: int) -> tuple[str, str, str, str]:
    """Send requests, and format their times."""
    begun, cpu = time.perf_counter(), cpu_seconds(pid)
    seconds = asyncio.run(ask(port, requests, clients=clients))
    cpu, wall = cpu_seconds(pid) - cpu, time.perf_counter() - begun
    return (
        f"{what}: {len(requests) / wall:,.0f} a second",
        *percentiles(seconds),
        f"{1000 * cpu / len(requests):.2f} ms",
    )


def soak(port: int, pid: int, requests: Sequence[bytes], count: int) -> Iterator[tuple[str, str]]:
    """Send requests many times over, and yield the memory of the server as it goes."""
    for sent in range(0, count, len(requests)):
        yield f"{sent:,}", f"{resident(pid):.1f}"
        asyncio.run(ask(port, requests[: count - sent], clients=CLIENTS))
    yield f"{count:,}", f"{resident(pid):.1f}"


def cpu_seconds(pid: int) -> float:
    """Read the CPU seconds of a process and its children."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    ticks = 0
    for process in (str(pid), *children):
        fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


@contextmanager
def served(kb: Path, *, workers: int) -> Iterator[tuple[int, int]]:
    """Run the command without its log; yield its port and process."""
    # The command, not `python -c`: inside the clone that imports the folder kbtools instead of the package.
    program = str(Path(sys.executable).with_name("kbtools"))
    log_path = Path("build/serving.log")
    log_path.parent.mkdir(exist_ok=True)
    command = [program, "serve", "--kb", str(kb), "--port", "0", "--workers", str(workers)]
    with log_path.open("w+") as log:
        process = subprocess.Popen(command, stderr=log)
        try:
            while not (where := re.search(r":(\d+)/", Path(log.name).read_text())):
                if process.poll() is not None:
                    raise SystemExit(Path(log.name).read_text())
                time.sleep(0.1)
            yield int(where[1]), process.pid
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()


async def ask(port: int, requests: Sequence[bytes], *, clients: int) -> list[float]:
    """Send requests over several connections at once; return the seconds of each, in order."""
    seconds = [0.0] * len(requests)
    places = iter(range(len(requests)))

    async def client() -> None:
        while own := list(islice(places, PER_CONNECTION)):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            for place in own:
                begun = time.perf_counter()
                writer.write(requests[place])
                head = await reader.readuntil(b"\r\n\r\n")
                length = re.search(rb"content-length: (\d+)", head)
                assert length is not None
                assert head.startswith(b"HTTP/1.1 200"), head
                await reader.readexactly(int(length[1]))
                seconds[place] = time.perf_counter() - begun
            writer.close()

    await asyncio.gather(*(client() for _ in range(clients)))
    return seconds


def resident(pid: int) -> float:
    """Read the resident memory of a process, files that it maps left out, in megabytes."""
    return status_of(pid, "RssAnon") / 1000


def percentiles(seconds: Sequence[float]) -> tuple[str, str]:
    p50, p99 = np.percentile(seconds, [50, 99]) * 1000
    return f"{p50:.2f} ms", f"{p99:.1f} ms"


if __name__ == "__main__":
    main()
