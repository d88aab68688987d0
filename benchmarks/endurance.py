"""Bad input in large amounts: malformed lines, junk as questions, a million questions, many clients."""

import json
import os
import random
import subprocess
import sysconfig
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from children import run_all, verdict
from folders import make, mark_of, update_records, write_sources

import kbtools
from kbtools.answering.answerer import Answerer, open_kb

KBTOOLS = str(Path(sysconfig.get_path("scripts"), "kbtools"))
EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
DONE = "done"
"""The file that tells readers to end."""

WARM = 10_000
"""Questions after which memory is measured first: by then every page of the sample has been read."""

TYPICAL = {
    "release": "www.freebase.com/m/0{0}\twww.freebase.com/film/film/genre\twww.freebase.com/m/1{0}",
    "n-triples": '<http://x.org/e{0}> <http://x.org/of> "a \\"name\\" {0}"@en .',
    "tsv": 'e{0}\tof\t"a ""quoted"" cell {0}"',
    "csv": 'e{0},of,"a ""quoted"", cell {0}"',
    "jsonl": '{{"subject": "e{0}", "relation": "of", "object": ["a", "b{0}"]}}',
}
"""A line that each reader can read; most of those it gets are spoilt."""

FIRST = {"tsv": "subject\trelation\tobject\n", "csv": "subject,relation,object\n"}
SUFFIXES = {"release": "txt", "n-triples": "nt", "tsv": "tsv", "csv": "csv", "jsonl": "jsonl"}
PIECES = (
    b"\0", b"\xff\xfe", b"\xed\xa0\x80", b"\x1b[2J", "\u202e".encode(), b'"',
    b"\\u12", b"\\", b"\t", b",", b"{", b"]", b"<", b"\r",
    b"\x85", "\u2028".encode(), b"NaN", b"1e999", b"@en-", b"^^<x>", b" .", b"'", b"\xf0\x9f\x98\x80", b"\xc3",
)  # fmt: skip

ALPHABETS = ["".join(map(chr, range(32, 127))), "".join(map(chr, range(0x4E00, 0x4F00))), "\u202e\x1b\0\u2028٣ß😀 "]


def spoil(line: bytes, rng: random.Random) -> bytes:
    """Truncate a line, insert bytes into it, or replace it with noise, without a line break."""
    how = rng.randrange(5)
    at = rng.randrange(len(line) + 1)
    if how == 0:
        line = line[:at]
    elif how == 1:
        line = rng.randbytes(rng.randrange(60))
    else:
        for _ in range(how - 1):
            line = line[:at] + rng.choice(PIECES) + line[at + rng.randrange(3) :]
            at = rng.randrange(len(line) + 1)
    return line.replace(b"\n", b"")


def malformed_lines(work: Path, number: int, rng: random.Random) -> Iterator[tuple[str, str]]:
    """Read a file of malformed lines with each reader, and yield the counts."""
    for reader, typical in TYPICAL.items():
        path, out = work / f"{reader}.{SUFFIXES[reader]}", work / f"{reader}.kb"
        good = [typical.format(row).encode() for row in range(10)]
        lines = good + [spoil(typical.format(row).encode(), rng) for row in range(10, number)]
        path.write_bytes(FIRST.get(reader, "").encode() + b"\n".join(lines) + b"\n")
        names = work / "names.tsv"
        ids = ["m.00", "http://x.org/e0", "e0"]
        names.write_text("id\tname\n" + "".join(f"{entity}\ta name\n" for entity in ids), encoding="utf-8")
        begun = time.monotonic()
        line = ["index", f"--facts={path}", f"--names={names}", "--out", str(out), "--max-bad", "1", "--quiet"]
        yield reader, index_and_count(line, out, path, begun)


def index_and_count(line: list[str], out: Path, path: Path, begun: float) -> str:
    """Build, and return the numbers of lines read and left out."""
    ((code, printed),) = run_all([("index", line)]).values()
    if code:
        return f"{verdict(code, printed, '')}: {printed[-300:]}"
    manifest = open_kb(out).kb.manifest
    (source,) = [source for source in manifest.sources if source.path == str(path)]
    left = sum(count for _, count, _ in source.skipped)
    seconds = time.monotonic() - begun
    return (
        f"{source.lines:,} lines, {manifest.counts['facts'].raw:,} facts, {left:,} left out and named, {seconds:.0f} s"
    )


def sample(work: Path) -> Path:
    """Index the sample."""
    kinds = ("facts", "names", "types")
    files = [f"--{kind}={EXAMPLES / f'sample.{kind}.txt'}" for kind in kinds]
    out = work / "sample.kb"
    run_all([("index", ["index", *files, "--out", str(out), "--quiet"])])
    return out


def sample_questions() -> list[str]:
    lines = (EXAMPLES / "sample.train.txt").read_text(encoding="utf-8").splitlines()
    return [line.rsplit("\t", 1)[-1] for line in lines]


def varied(questions: list[str], rng: random.Random) -> Iterator[str]:
    """Yield varied questions without end: words left out, exchanged, or followed by a number."""
    while True:
        words = rng.choice(questions).split()
        at = rng.randrange(len(words))
        words[at : at + rng.randrange(2)] = [rng.choice([str(rng.randrange(10**6)), words[at][::-1], *words])]
        yield " ".join(words)


def resident() -> float:
    """Return the memory that this process holds, in MiB."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def many_questions(kb: Path, number: int, rng: random.Random, *, until: float) -> str:
    """Ask one answerer many questions, and compare the memory after the first with that after the last."""
    answerer, questions = open_kb(kb), varied(sample_questions(), rng)
    begun, asked, answered, early = time.monotonic(), 0, 0, 0.0
    while asked < number and time.monotonic() < until:
        for result in answerer.query_many([next(questions) for _ in range(1_000)], pruning="n-gram+", scorer="lexical"):
            answered += bool(result.candidates)
        asked += 1_000
        early = resident() if asked == WARM else early
    seconds = time.monotonic() - begun
    return (
        f"{asked:,} questions in {seconds:.0f} s, {answered:,} with candidates; "
        f"{early:.1f} MiB after {WARM:,}, {resident():.1f} MiB after the last"
    )


def query_command(kb: Path) -> list[str]:
    """Return the command that answers the questions of its standard input, the same bytes for the same questions."""
    options = ["--pruning", "n-gram+", "--scorer", "lexical", "--json", "--no-timing"]
    return [KBTOOLS, "query", "--kb", str(kb), *options, "-"]


def junk_lines(kb: Path, work: Path, number: int, rng: random.Random, *, until: float) -> str:
    """Write lines of junk to the standard input of a query until the time is over, and count the records."""
    begun, lines = time.monotonic(), 0
    with (work / "answers").open("w+b") as answers:
        command = query_command(kb)
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=answers, stderr=subprocess.PIPE)
        assert process.stdin
        while lines < number and time.monotonic() < until:
            process.stdin.write(b"".join(junk(rng) for _ in range(100)))
            lines += 100
        _, errors = process.communicate()
        answers.seek(0)
        records = sum(isinstance(json.loads(line), dict) for line in answers)
    ended = f"; exit {process.returncode}: {errors[-300:]!r}" if process.returncode or errors else ""
    return f"{lines:,} lines, {records:,} records of JSON, {time.monotonic() - begun:.0f} s{ended}"


def junk(rng: random.Random) -> bytes:
    """Make a line of random characters of one script, or of random bytes."""
    text = "".join(rng.choices(rng.choice(ALPHABETS), k=rng.randrange(80))).encode()
    return (text if rng.randrange(2) else rng.randbytes(rng.randrange(80))).replace(b"\n", b" ") + b"\n"


def command_lines(kb: Path, number: int, rng: random.Random) -> Counter[str]:
    """Run commands with questions and options of random bytes and characters; count how they end."""
    words = [
        "--json",
        "--explain",
        "--sparql",
        "--top",
        "--answers",
        "--abstain",
        "--pruning",
        "--scorer",
        "--subject",
        "--",
        "-v",
    ]
    lines = []
    for at in range(number):
        noise = rng.randbytes(rng.randrange(1, 40)).replace(b"\0", b"")
        characters = "".join(chr(rng.choice([rng.randrange(1, 0xD800), rng.randrange(1, 128)])) for _ in range(20))
        arguments = [os.fsdecode(noise), characters, rng.choice(words), rng.choice(words), "who wrote it"]
        lines.append(
            (str(at), ["query", "--kb", str(kb), "--scorer", "lexical", *rng.sample(arguments, rng.randrange(1, 5))])
        )
    lines = [line for line in lines if "-" not in line[1] and "--debug" not in line[1]]
    outcomes: Counter[str] = Counter()
    for code, printed in run_all(lines).values():
        outcomes["a traceback or worse" if "Traceback" in printed or code not in (0, 1, 2) else f"exit {code}"] += 1
    return outcomes


def agreement(kb: Path, threads: int) -> str:
    """Ask from threads, forks and processes, and compare every record with those of one process."""
    questions = sample_questions()
    answerer = open_kb(kb)
    expected = records(answerer, questions)
    with ThreadPoolExecutor(threads) as pool:
        by_threads = list(pool.map(lambda _: records(answerer, questions), range(threads)))
    forks = [forked(answerer, questions) for _ in range(threads)]
    by_forks = [read_all(descriptor) for descriptor in forks]
    command = query_command(kb)
    started = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8")
        for _ in range(threads)
    ]
    by_processes = [process.communicate("\n".join(questions) + "\n")[0].splitlines() for process in started]
    alike = [sum(lines == expected for lines in group) for group in (by_threads, by_forks, by_processes)]
    return (
        f"{len(questions)} questions each: {alike[0]} of {threads} threads, {alike[1]} of {threads} forks and "
        f"{alike[2]} of {threads} processes give the same records"
    )


def readers_meanwhile(work: Path, readers: int, updates: int) -> str:
    """Update and compact a folder while processes open it repeatedly."""
    kb = make(write_sources(work / "read meanwhile", 300), work / "read meanwhile.kb")
    pipes = [reading_on(kb) for _ in range(readers)]
    for number in range(1, updates + 1):
        kbtools.update(kb, add=update_records(number))
        if number % 5 == 0:
            kbtools.compact(kb)
    (kb.parent / DONE).touch()
    counts: Counter[str] = Counter()
    for descriptor in pipes:
        counts.update(json.loads("".join(read_all(descriptor))))
    (kb.parent / DONE).unlink()
    return ", ".join(f"{count:,} {what}" for what, count in sorted(counts.items()))


def reading_on(kb: Path) -> int:
    """Open a folder repeatedly in a fork; return the pipe from which its counts can be read."""
    reading, writing = os.pipe()
    if os.fork():
        os.close(writing)
        return reading
    counts: Counter[str] = Counter()
    with os.fdopen(writing, "w", encoding="utf-8") as pipe:
        last, held, first = 0, open_kb(kb), ("written_by", 0)
        while not (kb.parent / DONE).exists():
            try:
                with open_kb(kb) as answerer:
                    mark = mark_of(answerer)
                one = isinstance(mark, tuple) and mark[1] >= last
                last = mark[1] if isinstance(mark, tuple) else last
                counts["openings that saw one version" if one else "MIXTURES OR FORMER VERSIONS"] += 1
                if mark_of(held) != first:
                    counts["ANOTHER VERSION THAN WAS OPENED"] += 1
            except Exception as error:
                counts[f"FAILED: {error!r:.200}"] += 1
        pipe.write(json.dumps(counts))
        pipe.flush()
        os._exit(0)


def records(answerer: Answerer, questions: list[str]) -> list[str]:
    """Return the answers to questions as `kbtools query --json --no-timing` prints them."""
    results = answerer.query_many(questions, pruning="n-gram+", scorer="lexical")
    return [json.dumps(result.to_json() | {"milliseconds": None}, ensure_ascii=False) for result in results]


def forked(answerer: Answerer, questions: list[str]) -> int:
    """Answer in a fork that shares the open knowledge base; return the pipe of the records."""
    reading, writing = os.pipe()
    if not os.fork():
        with os.fdopen(writing, "w", encoding="utf-8") as pipe:
            pipe.write("\n".join(records(answerer, questions)))
            pipe.flush()
            os._exit(0)
    os.close(writing)
    return reading


def read_all(descriptor: int) -> list[str]:
    with os.fdopen(descriptor, encoding="utf-8") as pipe:
        lines = pipe.read().split("\n")
    os.wait()
    return lines
