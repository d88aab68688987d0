"""Damage to every kind of folder, tested with every command that reads one and every command that writes from it.

    python benchmarks/damage.py --damages 500
    python benchmarks/damage.py --kb fbsq.kb

With a knowledge base, one page is damaged in each of its files above one MiB, with and without updates, and both
commands that write must refuse each.
"""

import argparse
import random
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from children import preload, run_all, verdict
from endurance import EXAMPLES, sample
from fbsq import parse
from figures import show_table
from folders import make, write_sources

PAGE = 4_096
QUESTIONS = ("who wrote hary poter 7", "genre of solaris 12", "who directed avatar 29999", "what is frankenstien 100")
MIB = 1 << 20

Line = tuple[str, list[str]]
WRITES = "writes"
"""The last word in the name of a command that writes from a folder."""


def damage_page(path: Path, rng: random.Random) -> None:
    """Change a page of a file: zeros, noise, one flipped bit, another page of the file."""
    whole = path.read_bytes()
    start = rng.randrange(0, len(whole), PAGE)
    page = whole[start : start + PAGE]
    bit = bytearray(page)
    bit[rng.randrange(len(page))] ^= 1 << rng.randrange(8)
    other = rng.randrange(0, len(whole), PAGE)
    copied = whole[other : other + PAGE].ljust(len(page), b"\0")[: len(page)]
    changed = rng.choice([bytes(len(page)), rng.randbytes(len(page)), bytes(bit), copied])
    if changed == page:
        changed = bytes([page[0] ^ 255]) + page[1:]
    path.unlink()  # it may have another name, in the folder that it is copied from
    path.write_bytes(whole[:start] + changed + whole[start + PAGE :])


def damage(path: Path, rng: random.Random) -> None:
    """Damage a page of a file, cut the file, add to it, or remove it."""
    kind = rng.choice(["page"] * 7 + ["cut", "more", "gone"])
    if kind == "page":
        damage_page(path, rng)
        return
    whole = path.read_bytes()
    path.unlink()
    if kind == "cut":
        path.write_bytes(whole[: rng.randrange(len(whole))])
    elif kind == "more":
        path.write_bytes(whole + rng.randbytes(rng.randrange(1, PAGE)))


def outcome_of(name: str, code: int, printed: str, expected: str) -> str:
    """Return the outcome of a command; a command that writes from a damaged folder must fail."""
    outcome = verdict(code, untimed(printed), untimed(expected))
    if outcome == "another answer" and re.search(r'"missing": ?\[\s*"', printed):
        return "named"  # a report without a cell says so
    if name.endswith(WRITES) and outcome in ("as before", "another answer"):
        return "WRITTEN ON"
    return outcome


def untimed(printed: str) -> str:
    """Remove the times, which differ between runs."""
    return re.sub(r'"(milliseconds|ms|p95|[a-z0-9_]*_ms)": ?(\{[^}]*\}|[\d.]+)', "", printed)


def damages(folder: Path, lines: list[Line], number: int, rng: random.Random) -> dict[str, Counter[str]]:
    """Damage one file of an intact folder at a time, and run every command in its own process."""
    whole = shutil.copytree(folder, folder.with_name(f"{folder.name} whole"))
    preload(lines)
    restore(folder, whole)  # the commands that write have done so
    expected = run_all([line for line in lines if not line[0].endswith(WRITES)])
    written = run_all([line for line in lines if line[0].endswith(WRITES)])
    for name, (code, printed) in (expected | written).items():  # else a command would refuse for another reason
        assert code == 0, f"{name}: {printed}"
    restore(folder, whole)
    files = [path.relative_to(whole) for path in sorted(whole.rglob("*")) if path.is_file() and path.stat().st_size]
    weights = [max(1, (whole / path).stat().st_size // PAGE) ** 0.5 for path in files]
    table: dict[str, Counter[str]] = {name: Counter() for name, _ in lines}
    for _ in range(number):
        (path,) = rng.choices(files, weights)
        damage(folder / path, rng)
        for name, (code, printed) in run_all(lines).items():
            outcome = outcome_of(name, code, printed, expected.get(name, (0, ""))[1])
            table[name][outcome] += 1
            if outcome in ("a traceback", "ended by the system", "WRITTEN ON"):
                print(f"  {path}: {name}: {outcome}: {printed[-300:]!r}", flush=True)
        restore(folder, whole)
    return table


def restore(folder: Path, whole: Path) -> None:
    """Replace a damaged folder with a copy of the intact one, and remove the output of commands."""
    for made in (folder, *folder.parent.glob("made *")):
        shutil.rmtree(made, ignore_errors=True)
    shutil.copytree(whole, folder)


def kb_lines(work: Path, kb: Path) -> list[Line]:
    """Return the commands that read a knowledge base, and those that write from it."""
    questions, changes = work / "questions.txt", work / "changes.jsonl"
    questions.write_text("\n".join(QUESTIONS) + "\n", encoding="utf-8")
    changes.write_text('{"id": "e7", "aliases": ["Another"], "facts": {"r.new": ["e8"]}}\n', encoding="utf-8")
    gold, ids = work / "gold.txt", work / "ids.txt"
    asks = "e7\twritten_by\te8\twho wrote solaris 7\ne7\tgenre\te0\tthe genre of solaris 7\n"
    gold.write_text(asks, encoding="utf-8")
    ids.write_text("e7\ne8\n", encoding="utf-8")
    np.save(work / "vectors.npy", np.eye(2, 16, dtype=np.float32))
    asked = ["--scorer", "lexical", "--questions", str(questions), "--json", "--no-timing"]
    vectors = ["--vectors", str(work / "vectors.npy"), "--ids", str(ids)]
    of_gold = ["--train", str(gold), "--valid", str(gold), "--out", str(work / "made models")]
    return [
        ("check", ["check", str(kb)]),
        ("info", ["info", str(kb)]),
        ("query", ["query", "--kb", str(kb), *asked]),
        ("similar", ["similar", "--kb", str(kb), "e7"]),
        (f"update, which {WRITES}", ["update", "--kb", str(kb), "--add", str(changes)]),
        (f"compact, which {WRITES}", ["compact", "--kb", str(kb)]),
        (f"index vectors, which {WRITES}", ["index", "vectors", "--kb", str(kb), *vectors]),
        (
            f"compare, which {WRITES}",
            ["compare", "--kb", str(kb), "--questions", str(gold), "--out", f"{work}/made run"],
        ),
        (f"train, which {WRITES}", ["train", "tagger", "--kb", str(kb), "--tagger", "crf", *of_gold]),
    ]


def updated(work: Path, kb: Path) -> Path:
    """Copy a knowledge base and update it."""
    folder = shutil.copytree(kb, kb.with_name(f"updated {kb.name}"))
    (_, line) = next(line for line in kb_lines(work, folder) if line[0].startswith("update"))
    code, printed = run_all([("update", line)])["update"]
    assert code == 0, printed
    return folder


def models_of(work: Path, kb: Path) -> tuple[Path, list[Line]]:
    """Train a tagger, a network and a ranking on the sample, and return the commands that read them."""
    models, train, valid = work / "models", EXAMPLES / "sample.train.txt", EXAMPLES / "sample.valid.txt"
    files = ["--kb", str(kb), "--train", str(train), "--valid", str(valid), "--out", str(models)]
    system = ["--kb", str(kb), "--models", str(models), "--pruning", "focused", "--tagger", "crf"]
    ranking = ["ranking", *system, "--scorer", "embed-avg", "--valid", str(valid)]
    for line in (
        ["tagger", "--tagger", "crf", *files],
        ["relation", "--scorer", "embed-avg", "--words", "random", *files],
        ranking,
    ):
        code, printed = run_all([("train", ["train", *line])])["train"]
        assert code == 0, printed
    scorer = ["--scorer", "embed-avg", "--questions"]
    return models, [
        ("query --models", ["query", *system, *scorer, str(EXAMPLES / "questions.txt"), "--json", "--no-timing"]),
        ("compare --models", ["compare", *system, *scorer, str(valid), "--out", str(work / "made run"), "--json"]),
        ("train ranking --models", ["train", *ranking]),
    ]


def run_of(work: Path, kb: Path) -> tuple[Path, list[Line]]:
    """Compare on the sample, and return the commands that read the run: a report and a continued comparison."""
    out = work / "run"
    line = ["compare", "--kb", str(kb), "--questions", str(EXAMPLES / "sample.test.txt"), "--out", str(out)]
    line += ["--scorer", "lexical", "--pruning", "n-gram", "--json", "--quiet"]
    preload([("compare", line)])  # before the first fork that imports as much
    code, printed = run_all([("compare", line)])["compare"]
    assert code == 0, printed
    return out, [("report", ["report", str(out), "--json"]), ("compare again", line)]


def page_by_page(work: Path, kb: Path, rng: random.Random) -> Iterator[tuple[str, Counter[str]]]:
    """Damage a page in each file above one MiB of a knowledge base, and try both commands that write."""
    for folder in (kb, updated(work, kb)):
        table: Counter[str] = Counter()
        lines = [line for line in kb_lines(work, folder) if line[0].startswith(("update", "compact"))]
        names = sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size > MIB)
        # A small segment has no such file: then its largest ones are taken.
        segment = [path for path in (folder / "segment").rglob("*") if path.is_file() and path.stat().st_size]
        names += sorted(segment, key=lambda path: -path.stat().st_size)[:10]
        for path in names:
            whole = path.read_bytes()
            damage_page(path, rng)
            for name, (code, printed) in run_all(lines).items():
                table[outcome_of(name, code, printed, "")] += 1
            path.write_bytes(whole)
        yield f"{len(names)} files of {folder.name}, one page each, `update` and `compact`", table


def in_words(table: Counter[str]) -> str:
    return ", ".join(f"{count} {what}" for what, count in table.most_common())


def areas(work: Path) -> Iterator[tuple[str, Callable[[], tuple[Path, list[Line]]]]]:
    """Yield the name of each area, and a function that makes its folder and returns the commands."""

    def built(entities: int, make_folder: Callable[[Path], Path]) -> tuple[Path, list[Line]]:
        kb = make(write_sources(work / f"sources {entities}", entities), work / f"{entities}.kb", vectors=True)
        folder = make_folder(kb)
        return folder, kb_lines(work, folder)

    yield "built, 300 entities", lambda: built(300, lambda kb: kb)
    yield "built, 30,000 entities", lambda: built(30_000, lambda kb: kb)
    yield "updated, 301 entities", lambda: built(301, lambda kb: updated(work, kb))
    yield "updated, 30,001 entities", lambda: built(30_001, lambda kb: updated(work, kb))
    yield "models", lambda: models_of(work, sample(work))
    yield "runs", lambda: run_of(work, sample(work))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--damages", type=int, default=500, help="Of each area.")
    parser.add_argument("--areas", default="", help="Only areas whose name holds this.")
    parser.add_argument("--kb", type=Path, help="Damage this knowledge base page by page instead; it is copied.")
    options = parse(parser, damages=1, areas="runs", kb=None)
    rng = random.Random(23)
    with tempfile.TemporaryDirectory(prefix="kbtools-reliability-") as folder:
        work = Path(folder)
        if options.kb:
            pages = page_by_page(work, shutil.copytree(options.kb, work / options.kb.name), rng)
            show_table("pages", ("what is damaged", "outcome"), [(title, in_words(table)) for title, table in pages])
            return
        outcomes: dict[str, dict[str, str]] = {}
        for area, make_area in areas(work):
            if options.areas in area:
                made, lines = make_area()
                tables = damages(made, lines, options.damages, rng)
                outcomes[area] = {f"`{name.partition(',')[0]}`": in_words(table) for name, table in tables.items()}
                print(f"{area}: {outcomes[area]}", flush=True)
    of_kbs = {area: own for area, own in outcomes.items() if "entities" in area}
    if of_kbs:
        rows = [(name, *(own[name] for own in of_kbs.values())) for name in next(iter(of_kbs.values()))]
        show_table("commands", ("command", *of_kbs), rows)
    others = [
        (area, name, outcome) for area, own in outcomes.items() if area not in of_kbs for name, outcome in own.items()
    ]
    if others:
        show_table("models", ("what is damaged", "command", "outcome"), others)


if __name__ == "__main__":
    main()
