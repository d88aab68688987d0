"""Index a knowledge base of FB5M's size and query it: wall and CPU seconds, peak memory, bytes on disk, milliseconds.

python benchmarks/scale.py --facts freebase-FB5M.txt --names FB5M.name.txt --types FB5M.type.txt --out build/fb5m.kb \\
    [--questions annotated_fb_data_test.txt] [--times 3] [--jobs 1 2]

With several values of --jobs it indexes once with each. `--times` repeats the files with other ids and names, beside
OUT; below 1 it takes that share of each file.
"""

import argparse
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
from fbsq import KINDS, SAMPLE, SMALL, parse, questions
from figures import show_table
from measured import children_cpu

import kbtools
from kbtools.answering.questions import read_questions
from kbtools.processes import default_jobs
from kbtools.pruning import UNGUIDED
from kbtools.text.ngrams import ngrams
from kbtools.text.question import Question

OPENING = "import time; from kbtools.indexers.folder.embedded import EmbeddedKB; t = time.perf_counter(); EmbeddedKB({path!r}); print(1000 * (time.perf_counter() - t))"  # noqa: E501

ROUNDS = 4
"""Times that each question is asked."""

COPIES = (b"", b"beta", b"gamma", b"delta", b"kappa", b"sigma", b"omega")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for option in ("--facts", "--names", "--types"):
        parser.add_argument(option, type=Path, action="append", default=[])
    parser.add_argument("--out", type=Path, default=Path("build/fb5m.kb"))
    parser.add_argument("--questions", type=Path, help="questions to time, one a line or annotated")
    parser.add_argument("--limit", type=int, default=2000, help="questions to time")
    parser.add_argument("--times", type=float, default=1, help="size of what is indexed, in that of the files")
    parser.add_argument("--jobs", type=int, nargs="+", default=[default_jobs()], help="processes of a build")
    parser.add_argument("--keep", action="store_true", help="time an index that is already there")
    asked = parse(parser, out=SMALL / "scale.kb", questions=questions("test"), limit=3)
    if asked.small:
        asked.facts, asked.names, asked.types = ([SAMPLE / f"sample.{kind}.txt"] for kind in KINDS)
    files = [(kind, path) for kind in ("facts", "names", "types") for path in getattr(asked, kind)]
    rows: list[tuple[str, str]] = []
    if not asked.keep and asked.times != 1:
        files = [(kind, repeated(path, kind, asked.times, asked.out.parent)) for kind, path in files]
    for jobs in () if asked.keep else asked.jobs:
        arguments = [text for kind, path in files for text in (f"--{kind}", str(path))]
        begun, before = time.perf_counter(), children_cpu()
        phases = Path(__file__).with_name("phases.py")
        subprocess.run([sys.executable, phases, *arguments, "--out", asked.out, "--jobs", str(jobs)], check=True)
        wall, cpu = time.perf_counter() - begun, children_cpu() - before
        text = f"{sum(path.stat().st_size for _, path in files) / 1e9:.2f} GB of text"
        rows.append((f"`kbtools index --jobs {jobs}`, {text}", f"{cpu:.0f} CPU s"))
        rows.append((f"the same by the clock, cores busy, jobs {jobs}", f"{wall:.0f} s, {cpu / wall:.2f}"))
    if rows:
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
        rows.append(("peak memory of the largest process, mapped files included", f"{peak / 1e9:.2f} GB"))
    size = sum(path.stat().st_size for path in asked.out.rglob("*"))
    opened = subprocess.run(
        [sys.executable, "-c", OPENING.format(path=str(asked.out))], check=True, capture_output=True, text=True
    )
    rows.append(("on disk", f"{size / 1e9:.2f} GB"))
    rows.append(("opened by a fresh process, libraries included", f"{float(opened.stdout):.0f} ms"))
    if asked.questions:
        rows += time_questions(asked.out, list(islice(read_questions(asked.questions), asked.limit)))
    show_table("size", ("what", "figure"), rows)


def time_questions(path: Path, texts: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Time questions by each pruner, and the look-up of their n-grams."""
    answerer = kbtools.open(path)
    for pruning in UNGUIDED:
        rounds = np.empty((ROUNDS, len(texts)))
        for round_, place in np.ndindex(rounds.shape):
            begun = time.thread_time()
            answerer.query(texts[place], pruning=pruning, scorer="lexical")
            rounds[round_, place] = 1000 * (time.thread_time() - begun)
        # The first round reads pages from the disk; the best of a question's rounds is the least disturbed by others.
        times = rounds.min(axis=0)
        p50, p99 = np.percentile(times, [50, 99])
        yield f"one question, `{pruning}`, p50 / p99", f"{p50:.2f} / {p99:.2f} CPU ms"
    forms = [[ngram.form for ngram in ngrams(Question.read(text), lengths=range(1, 11))] for text in texts]
    seconds = []
    for found in forms:
        begun = time.thread_time()
        answerer.kb.lookup(found)
        seconds.append(time.thread_time() - begun)
    yield "lookup of all n-grams of a question, p50", f"{1e6 * np.percentile(seconds, 50):.0f} CPU µs"


def repeated(path: Path, kind: str, times: float, folder: Path) -> Path:
    """Write a file of the release several times, with other ids and names each time, or the first part of it."""
    copy = folder / f"{path.stem}.{times:g}.txt"
    with copy.open("wb") as out:
        for number in range(max(1, int(times))):
            left = path.stat().st_size * min(1.0, times)
            with path.open("rb") as lines:
                for line in lines:
                    left -= len(line)
                    if left < 0:
                        break
                    out.write(renamed(line, number, is_name=kind == "names") if number else line)
    return copy


def renamed(line: bytes, number: int, *, is_name: bool) -> bytes:
    """Return a line with other ids, and another word after its names."""
    word = COPIES[number % len(COPIES)]
    line = line.replace(b"www.freebase.com/m/", b"www.freebase.com/m/0z" + word).replace(b"<fb:m.", b"<fb:m.0z" + word)
    return line.replace(b'"@', b" " + word + b'"@') if is_name else line


if __name__ == "__main__":
    main()
