"""The blocks of README and the pages run in order, each page in its own folder, and every command line is valid.

A block with a title is a file for the blocks after it. Files that no page can include, such as dumps, are replaced by
small ones. A comment `<!-- not run: REASON -->` above a block keeps it from being run.
"""

import gzip
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import click
import numpy as np
import pytest
from click.testing import CliRunner

from kbtools.cli.main import main
from kbtools.entry_points import every_point
from kbtools.ranking import models

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"
PLUGIN = ROOT / "docs" / "example-plugin"
BLOCK = re.compile(
    r'^(?:<!-- not run: (?P<reason>.+?) -->\n\n?)?```(?P<language>\w+)(?: title="(?P<title>.+?)")?\n(?P<text>.*?)^```$',
    re.MULTILINE | re.DOTALL,
)
SHELL = ("sh", "bash", "console")
PAGES = ["README.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))]
ELSEWHERE = {"docs/api.md", "docs/cli.md"}
"""Pages that tests/test_docs.py runs or cog writes."""

NOT_RUN = {
    "README.md": 2,
    "docs/backend.md": 3,
    "docs/compare.md": 2,
    "docs/elasticsearch.md": 3,
    "docs/plugins.md": 5,
    "docs/serve.md": 1,
    "docs/training.md": 11,
    "docs/updating.md": 1,
}
"""The number of blocks of each page that are not run."""

LEFT_OUT = re.compile(r"^(pip install|python3 -m venv|\. \.venv/|make |kbtools (serve|mcp \S+ *(#|$)|encoder install))")
"""Lines that install something or wait for requests."""

WITH_SHELL = re.compile(r"[|<>&$*]|^\w+=|^(?!kbtools )")
"""Lines that need a shell; all others run in this process, which saves starting Python."""


def blocks_of(page: str) -> list[re.Match[str]]:
    """Return the blocks of a page that are files or can be run, in order."""
    found = BLOCK.finditer((ROOT / page).read_text(encoding="utf-8"))
    return [block for block in found if block["title"] or block["language"] in (*SHELL, "python")]


PAGES_WITH_BLOCKS = [page for page in PAGES if page not in ELSEWHERE and blocks_of(page)]


FILES = {
    "facts.csv": "head,relation,tail\nQ1,capital,Q2\n",
    "names.jsonl": '{"id": "Q1", "name": "Freedonia"}\n{"id": "Q2", "name": "Freetown"}\n',
    "companies.csv": "id,name,city\n1,Acme,Bonn\n2,Bolt,Tal\n",
    "gone.txt": "m.0kba086\n",
    "more.tsv": "subject\trelation\tobject\nQ1\tP20\tQ2\n",
    "wrong.tsv": "id\tname\nQ1\tAnn\n",
    "merged.tsv": "old\tnew\nQ4\tQ2\n",
    "entities.txt": "m.0kba086\nm.078ffw\n",
    "fragen.tsv": "Q901040\tP19\tQ64\two wurde Edda Leitner geboren\n",
}
"""Small files in place of the reader's own."""

STATEMENT = b'<http://a.example/1> <http://www.w3.org/2000/01/rdf-schema#label> "Ann"@en .\n'
COLOGNE = b'{"type": "item", "id": "Q365", "labels": {"de": {"language": "de", "value": "K\\u00f6ln"}}, "claims": {}}'


def write_stand_ins(folder: Path, sample: Path) -> None:
    """Write the files and knowledge bases that pages name but do not make."""
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "dump.nt.gz").write_bytes(gzip.compress(STATEMENT))
    with closing(sqlite3.connect(folder / "proteins.sqlite")) as database:
        database.executescript("CREATE TABLE proteins AS SELECT 'P1' AS id, 'Insulin' AS label, 'INS' AS gene")
    np.save(folder / "entities.npy", np.eye(2, 8, dtype=np.float32))
    shutil.copy(PLUGIN / "films.pl", folder)
    (folder / "examples").symlink_to(EXAMPLES)
    (folder / "benchmarks").symlink_to(ROOT / "benchmarks")
    for name in ("sample.kb", "build/sample.kb", "fbsq.kb", "fb5m.kb", "wd.kb"):
        shutil.copytree(sample, folder / name)
    for split in ("train", "valid", "test"):
        for name in (f"{split}.txt", f"sample.{split}.txt", f"annotated_fb_data_{split}.txt"):
            shutil.copy(EXAMPLES / f"sample.{split}.txt", folder / name)
    for name, kind in (("freebase-FB5M.txt", "facts"), ("FB5M.name.txt", "names"), ("FB5M.type.txt", "types")):
        shutil.copy(EXAMPLES / f"sample.{kind}.txt", folder / name)
    dump = (EXAMPLES / "sample.wikidata.json").read_bytes().replace(b"[\n", b"[\n" + COLOGNE + b",\n", 1)
    (folder / "latest-all.json.gz").write_bytes(gzip.compress(dump, compresslevel=1))


@pytest.fixture
def example_plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Provide the entry points of docs/example-plugin without installing it; yield its code."""
    project = tomllib.loads((PLUGIN / "pyproject.toml").read_text())["project"]
    folder = tmp_path / "site" / "kbtools_example-1.0.dist-info"
    folder.mkdir(parents=True)
    metadata = "Metadata-Version: 2.1\nName: kbtools-example\nVersion: 1.0\nProvides-Extra: trained\n"
    (folder / "METADATA").write_text(metadata)
    groups = [f"[{group}]\n" + "".join(f"{name} = {target}\n" for name, target in entries.items())
              for group, entries in project["entry-points"].items()]  # fmt: skip
    (folder / "entry_points.txt").write_text("\n".join(groups))
    monkeypatch.setattr(sys, "path", [str(folder.parent), str(PLUGIN / "src"), *sys.path])
    every_point.cache_clear()
    yield "".join(path.read_text(encoding="utf-8") for path in PLUGIN.rglob("*.py"))
    every_point.cache_clear()


def run_shell(text: str, namespace: dict[str, object]) -> str:
    """Run the lines of a block; return the error text."""
    path = f"PATH={shlex.quote(sysconfig.get_path('scripts'))}:$PATH\n"
    for line in text.replace("\\\n", " ").splitlines():
        if not line or LEFT_OUT.match(line) or line.startswith("#"):
            continue
        if WITH_SHELL.search(line):
            done = subprocess.run(["bash", "-ec", path + line], capture_output=True, text=True)
            code, output = done.returncode, done.stdout + done.stderr
        else:
            result = CliRunner().invoke(main, shlex.split(line, comments=True)[1:])
            code, output = result.exit_code, result.output
        if code:
            return f"{line}\nexit code {code}: {output[-800:]}"
    return ""


def run_python(text: str, namespace: dict[str, object]) -> str:
    """Run a block of Python after those above it; return the error text."""
    try:
        exec(compile(text, "a block of a page", "exec"), namespace)
    except Exception as error:
        return f"{text}\n{error!r}"
    return ""


@pytest.mark.parametrize("page", PAGES_WITH_BLOCKS)
def test_the_blocks_of_a_page_run_in_order(
    page: str, sample_path: Path, example_plugin: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_stand_ins(tmp_path, sample_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KBTOOLS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv(models.VARIABLE, models.STATIC)
    namespace: dict[str, object] = {}
    errors = []
    for block in blocks_of(page):
        if block["title"]:
            (tmp_path / block["title"]).write_text(block["text"], encoding="utf-8")
    for block in blocks_of(page):
        # Excerpts of the example plugin have run with it.
        if not (block["title"] or block["reason"] or block["text"].strip() in example_plugin):
            run = run_python if block["language"] == "python" else run_shell
            errors.append(run(block["text"], namespace))

    assert [error for error in errors if error] == []


def test_blocks_that_are_not_run_say_why_and_are_counted() -> None:
    counted = {page: sum(bool(block["reason"]) for block in blocks_of(page)) for page in PAGES_WITH_BLOCKS}

    assert {page: count for page, count in counted.items() if count} == NOT_RUN


def command_lines(page: str) -> list[list[str]]:
    """Return the arguments of each line of a page that calls kbtools, without comments and shell syntax."""
    found = BLOCK.finditer((ROOT / page).read_text(encoding="utf-8"))
    texts = [block["text"].replace("\\\n", " ") for block in found if block["language"] in (*SHELL, "text")]
    lines = [line.strip() for text in texts for line in text.splitlines()]
    called = [line for line in lines if line.startswith("kbtools ") and "..." not in line and "[OPTIONS]" not in line]
    return [shlex.split(re.split(r" [|<>&] | && ", line)[0], comments=True)[1:] for line in called]


@pytest.mark.parametrize("page", [page for page in PAGES if command_lines(page)])
def test_every_command_line_of_a_page_is_one(page: str) -> None:
    refused = []
    for arguments in command_lines(page):
        context = main.make_context("kbtools", [*arguments], resilient_parsing=False)
        name, command, rest = main.resolve_command(context, [*context._protected_args, *context.args])
        try:
            assert command is not None
            command.make_context(name, rest, parent=context).close()
        except (click.ClickException, AssertionError) as error:
            refused.append((arguments, str(error)))

    assert refused == []
