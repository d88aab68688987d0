"""Every option that takes a file is given forty kinds of wrong ones: each is refused in a sentence, or read as text."""

import bz2
import gzip
import io
import json
import lzma
import pickle
import random
import shutil
import socket
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import msgpack
import numpy as np
import pytest
from click.testing import CliRunner

from kbtools.cli.main import main
from kbtools.cli.query import UNSURE
from kbtools.indexers.readers.table_rows import MOST_COLUMNS

pytest.importorskip("torch", reason="training needs torch: pip install 'kbtools[train]'")

LONGEST = 3_000
"""Characters of an error: what is repeated of a file is short."""

NOISE = random.Random(7).randbytes(20_000)


def saved(array: Any, **options: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array, **options)
    return file.getvalue()


def packed(write: Callable[[io.BytesIO], None]) -> bytes:
    file = io.BytesIO()
    write(file)
    return file.getvalue()


def as_zip(file: io.BytesIO) -> None:
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps({"a": 1}))


def as_tar(file: io.BytesIO) -> None:
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        archive.addfile(tarfile.TarInfo("../../etc/passwd"))


ENTITIES = '<?xml version="1.0"?><!DOCTYPE r [<!ENTITY a "aaaaaaaaaa">' + "".join(
    f'<!ENTITY {after} "{f"&{name};" * 10}">' for name, after in zip("abcdefgh", "bcdefghi", strict=True)
)
HUGE = (
    saved(np.zeros((2, 3), dtype=np.float32)).replace(b"(2, 3), }", b"(9999999999999, 3), }").replace(b" " * 13, b"", 1)
)

CONTENTS: dict[str, bytes] = {
    "empty": b"",
    "a line break": b"\n",
    "zeros": bytes(5_000),
    "noise": NOISE,
    "prose": b"It was a dark and stormy night.\nThe rain fell in torrents.\n",
    "UTF-16": "\ufeffsubject\trelation\tobject\na\tb\tc\n".encode("utf-16"),
    "Latin-1": "caf\xe9\tna\xefve\tr\xe9sum\xe9\n".encode("latin-1") * 20,
    "a byte order mark": b"\xef\xbb\xbf",
    "a long line": b"a" * 100_000,
    "many fields": b"\t".join([b"a"] * (MOST_COLUMNS + 1)),
    "control characters": b"\x1b[31m\x07\x08\tb\tc\n" * 50,
    "gzip cut short": gzip.compress(NOISE)[:-100],
    "gzip of noise": gzip.compress(NOISE),
    "gzip and more": gzip.compress(b"a\tb\tc\n") + b"more",
    "bzip2 cut short": bz2.compress(NOISE)[:-100],
    "xz cut short": lzma.compress(NOISE)[:-100],
    "Zstandard": b"\x28\xb5\x2f\xfd" + NOISE,
    "zip": packed(as_zip),
    "tar": packed(as_tar),
    "PNG": b"\x89PNG\r\n\x1a\n" + NOISE,
    "PDF": b"%PDF-1.7\n" + NOISE,
    "a program": b"\x7fELF\x02\x01\x01" + NOISE,
    "a pickle": pickle.dumps({"vectors": [1.0, 2.0]}),
    "an array of one dimension": saved(np.zeros(5, dtype=np.float32)),
    "an array of three dimensions": saved(np.zeros((1, 3, 3), dtype=np.float32)),
    "an array of objects": saved(np.array([{"a": 1}], dtype=object), allow_pickle=True),
    "an array of texts": saved(np.array([["a", "b"]])),
    "an array of complex numbers": saved(np.zeros((2, 2), dtype=np.complex64)),
    "an array cut short": saved(np.zeros((50, 50), dtype=np.float32))[:-9],
    "an array said to be huge": HUGE,
    "several arrays": packed(lambda file: np.savez(file, v=np.zeros((2, 2)))),
    "Parquet": b"PAR1" + NOISE + b"PAR1",
    "Arrow": b"ARROW1\0\0" + NOISE + b"ARROW1",
    "a database": b"SQLite format 3\0" + NOISE,
    "a JSON object": json.dumps({"subject": 1, "relation": None, "facts": [[[]]]}).encode(),
    "deep JSON": b"[" * 100_000,
    "lines of JSON": b'{"id": 5}\n{"id": "a", "names": 7}\n[]\n"\\ud800"\nnull\n1e999\n',
    "XML that grows": f"{ENTITIES}]><r>&i;</r>".encode(),
    "deep XML": b"<a>" * 30_000,
    "HTML": b"<!doctype html><html><body>Not found</body></html>",
    "TOML": b'[project]\nname = "x"\n',
    "a record": msgpack.packb({"format": "other", "version": 99, "record": {}, "checksum": b""}),
    "a header alone": b"subject,relation,object\n",
    "other columns": b"colour\tsize\nred\t5\n",
    "open quotes": b'"a\tb\tc\n' * 200,
}
SPECIAL = ("a folder", "a folder of noise", "nothing", "a link to itself", "a socket")
KINDS = (*CONTENTS, *SPECIAL)


def write_wrong(kind: str, place: Path) -> Path:
    path = place / "wrong"
    if kind in CONTENTS:
        path.write_bytes(CONTENTS[kind])
    elif kind == "a folder":
        path.mkdir()
    elif kind == "a folder of noise":
        path.mkdir()
        for name in ("manifest.msgpack", "run.msgpack", "query.msgpack", "contents.msgpack", "ranking.msgpack"):
            (path / name).write_bytes(NOISE)
    elif kind == "a link to itself":
        path.symlink_to(path)
    elif kind == "a socket":
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(path))
    return path


WRONG, FACTS, OUT, KB, GOLD, CHANGES = "{wrong}", "{facts}", "{out}", "{kb}", "{gold}", "{changes}"
INDEX = ("index", "--facts", FACTS, "--out", OUT)
TRAINED = ("--train", GOLD, "--valid", GOLD, "--out", OUT)
SMALL = tuple("--set words=random --set dim=4 --set words_dim=4 --set hidden=4 --set epochs=1".split())
ASKED = ("--kb", KB, "--scorer", "lexical")


def training_lines(part: str) -> dict[str, tuple[str, ...]]:
    """Write a command line of a part of training for each option, the others right and the models small."""
    first, options = ("train", *part.split()), {"--train": GOLD, "--valid": GOLD, "--out": OUT, "--config": ""}
    small = SMALL if part else (*SMALL, "--profile", "fast")
    lines = {f"{' '.join(first)} --kb": (*first, "--kb", WRONG, *TRAINED)}
    for name in options:
        others = [text for other, value in options.items() if other != name and value for text in (other, value)]
        lines[f"{' '.join(first)} {name}"] = (*first, "--kb", KB, *small, *others, name, WRONG)
    return lines


LINES: dict[str, tuple[str, ...]] = {
    "index files": ("index", WRONG, "--out", OUT),
    "index --facts": ("index", "--facts", WRONG, "--out", OUT),
    **{f"index --{kind}": (*INDEX, f"--{kind}", WRONG) for kind in ("names", "types", "rdf", "relations")},
    **{f"index --{kind}": (*INDEX, f"--{kind}", WRONG) for kind in ("redirects", "counts", "variants")},
    "index --out": ("index", "--facts", FACTS, "--out", WRONG),
    "index table files": ("index", "table", WRONG, "--out", OUT),
    "index table --out": ("index", "table", FACTS, "--out", WRONG),
    "index wikidata files": ("index", "wikidata", WRONG, "--out", OUT),
    "index wikidata --keep-ids": ("index", "wikidata", FACTS, "--keep-ids", WRONG, "--out", OUT),
    "index wikidata --out": ("index", "wikidata", FACTS, "--out", WRONG),
    "index vectors --kb": ("index", "vectors", "--kb", WRONG, "--models", OUT),
    "index vectors --models": ("index", "vectors", "--kb", KB, "--models", WRONG, "--subject", "random"),
    "index vectors --vectors": ("index", "vectors", "--kb", KB, "--vectors", WRONG, "--ids", GOLD),
    "index vectors --ids": ("index", "vectors", "--kb", KB, "--vectors", "{array}", "--ids", WRONG),
    "update --kb": ("update", "--kb", WRONG, "--add", CHANGES),
    **{f"update --{kind}": ("update", "--kb", KB, f"--{kind}", WRONG) for kind in ("add", "facts", "names", "types")},
    **{f"update --{kind}": ("update", "--kb", KB, f"--{kind}", WRONG) for kind in ("rdf", "relations", "redirects")},
    **{f"update --{kind}": ("update", "--kb", KB, f"--{kind}", WRONG) for kind in ("table", "wikidata")},
    "reconcile --kb": ("reconcile", FACTS, "--kb", WRONG, "--column", "a", "--out", OUT),
    "reconcile --out": ("reconcile", FACTS, "--kb", KB, "--column", "a", "--out", WRONG),
    "reconcile FILE": ("reconcile", WRONG, "--kb", KB, "--column", "a", "--out", OUT),
    "teach --kb": ("teach", "--kb", WRONG, "who", "a", "b"),
    "teach --models": ("teach", "--kb", KB, "--models", WRONG),
    "teach FILE": ("teach", "--kb", KB, WRONG),
    "compact --kb": ("compact", "--kb", WRONG),
    "query --kb": ("query", "--kb", WRONG, "--scorer", "lexical", "who"),
    "query --questions": ("query", *ASKED, "--questions", WRONG),
    "query --models": ("query", *ASKED, "--models", WRONG, "who"),
    "query --calibration": ("query", *ASKED, "--abstain", "0.5", "--calibration", WRONG, "who"),
    "lookup --kb": ("lookup", "--kb", WRONG, "a"),
    "link --kb": ("link", "--kb", WRONG, "a"),
    "show --kb": ("show", "--kb", WRONG, "a"),
    "compare --kb": ("compare", "--kb", WRONG, "--questions", GOLD, "--out", OUT),
    "compare --questions": ("compare", *ASKED, "--questions", WRONG, "--out", OUT),
    "compare --out": ("compare", *ASKED, "--questions", GOLD, "--pruning", "n-gram", "--out", WRONG),
    "compare --models": ("compare", *ASKED, "--questions", GOLD, "--models", WRONG, "--out", OUT),
    "compare --valid": ("compare", *ASKED, "--questions", GOLD, "--valid", WRONG, "--out", OUT),
    "report run": ("report", WRONG),
    "info --kb": ("info", "--kb", WRONG),
    "check --kb": ("check", "--kb", WRONG),
    **training_lines("relation"),
    **training_lines("subject"),
    **training_lines("tagger"),
    **training_lines(""),
    "train ranking --kb": ("train", "ranking", "--kb", WRONG, "--valid", GOLD, "--models", OUT),
    "train ranking --valid": ("train", "ranking", *ASKED, "--valid", WRONG, "--models", OUT),
    "train ranking --models": ("train", "ranking", *ASKED, "--valid", GOLD, "--models", WRONG),
    "train transe --kb": ("train", "transe", "--kb", WRONG, "--out", OUT),
    "train transe --out": ("train", "transe", "--kb", KB, "--vectors", GOLD, "--ids", GOLD, "--out", WRONG),
    "train transe --vectors": ("train", "transe", "--kb", KB, "--vectors", WRONG, "--ids", GOLD, "--out", OUT),
    "train transe --ids": ("train", "transe", "--kb", KB, "--vectors", "{array}", "--ids", WRONG, "--out", OUT),
    "train transe --config": ("train", "transe", "--kb", KB, "--config", WRONG, "--out", OUT),
    "similar --kb": ("similar", "--kb", WRONG, "a"),
    "similar --models": ("similar", "--kb", KB, "--models", WRONG, "a"),
    "plugins check --sample": ("plugins", "check", "tsv", "--sample", WRONG),
    "serve --kb": ("serve", "--kb", WRONG),
    "mcp --kb": ("mcp", "--kb", WRONG, "--schema"),
    "mcp --models": ("mcp", "--kb", KB, "--models", WRONG, "--schema"),
}
ELSEWHERE = {"load folder", "load --rejected", "remove --kb", "rollback --kb", "serve --models", "teach --export"}
"""Options that need a cluster, begin to serve, or name a file to replace."""


def file_options(command: click.Command, names: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield every option and argument that takes a file, behind the name of its command."""
    for option in command.params:
        if isinstance(option.type, click.Path):
            yield " ".join((*names, option.opts[0]))
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child
            yield from file_options(child, (*names, name))


def test_every_option_that_takes_a_file_is_tried() -> None:
    assert set(file_options(main)) - ELSEWHERE <= LINES.keys()
    assert len(KINDS) >= 40


@pytest.mark.parametrize("option", LINES)
def test_a_wrong_file_is_refused_in_a_sentence(
    option: str, sample_path: Path, examples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "own.kb"
    changes = option.startswith(("update", "teach"))
    # Where a wrong file is read as text, nothing is trained on it for long.
    monkeypatch.setenv("KBTOOLS_CACHE", str(tmp_path / "cache"))
    (tmp_path / "array.npy").write_bytes(saved(np.ones((2, 2), dtype=np.float32)))
    (tmp_path / "changes.jsonl").write_text('{"id": "m.new", "names": ["New"]}\n')
    (tmp_path / "facts.txt").write_text("m.02paris\tlocation.containedby\tm.03france\n")
    faults = {}
    for number, kind in enumerate(KINDS):
        place = tmp_path / str(number)
        place.mkdir()
        wrong = write_wrong(kind, place)
        if changes and not own.exists():
            shutil.copytree(sample_path, own)
        values = {
            "wrong": wrong,
            "kb": own if changes else sample_path,
            "facts": tmp_path / "facts.txt",
            "gold": examples / "sample.valid.txt",
            "out": place / "out",
            "array": tmp_path / "array.npy",
            "changes": tmp_path / "changes.jsonl",
        }
        line = [text.format(**values) for text in LINES[option]]

        done = CliRunner().invoke(main, line, input="")

        _, is_said, sentence = done.stderr.rpartition("Error: ")  # behind the progress
        refused = done.exit_code in (1, 2) and is_said and len(sentence) < LONGEST
        caught = done.exception is None or isinstance(done.exception, SystemExit)
        kept = kind not in CONTENTS or wrong.read_bytes() == CONTENTS[kind]
        if not (caught and (done.exit_code in (0, UNSURE) or refused) and kept and "Traceback" not in done.output):
            faults[kind] = f"{done.exit_code} {done.exception!r:.300} {done.stderr[:300]} {len(done.stderr)} {kept}"
        shutil.rmtree(place)
        if done.exit_code == 0:
            shutil.rmtree(own, ignore_errors=True)

    assert faults == {}
