"""Whether the pages that describe the commands say what the commands say."""

import subprocess
import sys
from pathlib import Path

import click

from kbtools.cli.main import main

ROOT = Path(__file__).resolve().parents[1]
CLI_PAGE = ROOT / "docs" / "cli.md"


def test_every_command_has_its_section() -> None:
    page = CLI_PAGE.read_text(encoding="utf-8")

    commands = main.list_commands(click.Context(main))

    assert commands
    assert [name for name in commands if f"\n## kbtools {name}\n" not in page] == []


def test_the_page_is_what_help_prints() -> None:
    check = [sys.executable, "-m", "cogapp", "--check", "--diff", "--check-fail-msg=run make docs", str(CLI_PAGE)]

    done = subprocess.run(check, capture_output=True, text=True)

    assert done.returncode == 0, done.stdout + done.stderr
