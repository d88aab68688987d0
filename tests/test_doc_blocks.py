"""The blocks of README and the pages: those that need no more than the clone run, and every command line is one."""

import os
import re
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path

import click
import pytest

from kbtools.cli.main import main

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"^```(sh|bash|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TEXT = re.compile(r"^```(?:sh|bash|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = ["README.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))]
RUN = ["README.md", "docs/index.md"]
"""The pages whose blocks run here; `docs/api.md` is run by tests/test_docs.py, the example plugin by a test of its own.

All others need a cluster, Wikidata's dump, files of the reader, a client that asks a server, or trainings of minutes.
"""

NOT_RUN = re.compile(r"pip install|python3 -m venv|/bin/activate|^make |^kbtools (serve|train)|^docker|KBTOOLS_DATA")
"""Lines that install kbtools, wait for requests, or train."""


@pytest.mark.parametrize("page", RUN)
def test_the_blocks_of_a_page_run_as_they_stand(page: str, sample_path: Path, tmp_path: Path) -> None:
    for name in ("examples", "benchmarks"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "sample.kb").symlink_to(sample_path)
    blocks = BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))
    path = f"{sysconfig.get_path('scripts')}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "KBTOOLS_CACHE": str(tmp_path / "cache")}

    outcomes = [
        subprocess.run(
            [sys.executable, "-c", text]
            if language == "python"
            else ["bash", "-ec", "\n".join(line for line in text.splitlines() if not NOT_RUN.search(line))],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
        )
        for language, text in blocks
    ]

    assert blocks
    assert [done.stderr for done in outcomes if done.returncode] == []


def command_lines(page: str) -> list[list[str]]:
    """List the arguments of each line of a page that calls kbtools, without comments and what the shell does."""
    text = (ROOT / page).read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line.strip() for block in TEXT.findall(text) for line in block.splitlines()]
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
