"""The one door for what can be swapped: entry points by name, or `module:Name` without packaging.

Listing imports nothing. What is built in comes in as anyone's does.
"""

import functools
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import EntryPoint, EntryPoints, PackageNotFoundError, distribution, entry_points
from importlib.util import find_spec
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

from kbtools.errors import BrokenPlugin, KBToolsError, MissingDependency, UnknownPlugin, UntrustedPlugin
from kbtools.storage import is_out_of_memory

SCORERS = "kbtools.scorers"
SUBJECT_SCORERS = "kbtools.subject_scorers"
TAGGERS = "kbtools.taggers"
RANKERS = "kbtools.rankers"
PRUNERS = "kbtools.pruners"
READERS = "kbtools.readers"
BACKENDS = "kbtools.backends"

KINDS = {
    SCORERS: "relation scorer",
    SUBJECT_SCORERS: "subject scorer",
    TAGGERS: "tagger",
    RANKERS: "ranker",
    PRUNERS: "pruner",
    READERS: "reader",
    BACKENDS: "backend",
}
"""The groups of entry points, and what a plugin of each is called."""

TRUST_VARIABLE = "KBTOOLS_TRUST_PLUGINS"
"""The environment variable that lets files name classes as `module:Class`, as `--trust-plugins` does."""

_Answer = TypeVar("_Answer")

EXTRAS = {
    "torch": "train",
    "onnx": "train",
    "faiss": "train",
    "onnxruntime": "models",
    "pycrfsuite": "crf",
    "tokenizers": "minilm",
    "lightgbm": "ranker",
    "starlette": "serve",
    "uvicorn": "serve",
    "prometheus_client": "serve",
    "mcp": "mcp",
}
"""Modules that only some plugins need, and the extra of kbtools that brings each."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A plugin as it is offered; `needs` names the extras of its distribution that bring what it imports."""

    name: str
    kind: str
    distribution: str
    target: str
    needs: tuple[str, ...]


def list_offers() -> list[Offer]:
    """List every plugin of every kind, without importing any."""
    return [
        Offer(
            point.name,
            kind,
            f"{point.dist.name} {point.dist.version}" if point.dist else "unknown",
            target(point),
            needs(point),
        )
        for group, kind in KINDS.items()
        for points in list_plugins(group).values()
        for point in points
    ]


def list_plugins(group: str) -> dict[str, list[EntryPoint]]:
    """List what is offered under each name, without importing any of it."""
    offers: dict[str, list[EntryPoint]] = {}
    for point in sorted(installed_points(group), key=lambda point: (point.name, point.value)):
        offers.setdefault(point.name, []).append(point)
    return offers


def installed_points(group: str) -> EntryPoints:
    """Find the entry points of a group."""
    points: EntryPoints = every_point().select(group=group)
    return points


@functools.cache
def every_point() -> Any:
    """Find the entry points of all groups, once a process: a search of the environment takes twenty milliseconds."""
    return entry_points()


def load_plugin(group: str, name: str) -> object:
    """Import a plugin by its name or as `module:Name`.

    Raises UnknownPlugin for a name that nothing offers, BrokenPlugin where two distributions offer it or where the
    import fails, MissingDependency where it needs a package that is not there.
    """
    if ":" in name:
        return import_object(name)
    offers = list_plugins(group)
    if name not in offers:
        known = ", ".join(sorted(offers)) or "none installed"
        raise UnknownPlugin(f"no {KINDS[group]} {name!r}; known: {known}; or use module:Name", name=name)
    # One distribution that is installed twice, editable and not, offers the same target twice.
    targets = {point.value for point in offers[name]}
    if len(targets) > 1:
        homes = " and ".join(sorted({point.dist.name if point.dist else point.value for point in offers[name]}))
        raise BrokenPlugin(f"plugin {name!r} in {group} is offered by {homes}; uninstall one of them", name=name)
    return import_object(target(offers[name][0]))


def require_installed(group: str, name: str, *, file: object, trusted: bool) -> None:
    """Raise UntrustedPlugin for a name that was read from a file, is `module:Class`, and is not trusted.

    `load_class` imports what `module:Class` names, and a scorer is called with texts of the knowledge base: a file of
    somebody else could run any function that is installed. A person may write such a name, or trust the file.
    """
    if ":" in name and not trusted:
        raise UntrustedPlugin(
            f"{file}: names {name!r} as its {KINDS[group]}, but a file may only name installed plugins; allow "
            f"it with --trust-plugins ({TRUST_VARIABLE}=1, trust_plugins=True in Python) if you trust the file",
            name=name,
        )


def trusts_plugins(argument: bool | None = None) -> bool:
    """Return whether files may name classes as `module:Class`: the argument, else what the environment says."""
    return os.environ.get(TRUST_VARIABLE, "").lower() in ("1", "true", "yes", "on") if argument is None else argument


def load_class(group: str, name: str) -> Any:
    """Import a plugin that is made by a call; raise as `load_plugin`, and BrokenPlugin for what is no class."""
    plugin = load_plugin(group, name)
    if not callable(plugin):
        raise BrokenPlugin(f"{KINDS[group]} {name!r} is no class", name=name)
    return plugin


def construct(name: str, make: Callable[[], Any]) -> Any:
    """Make an object of a plugin; what goes wrong inside is named with the plugin, as `ask_plugin` does."""
    try:
        return make()
    except (KBToolsError, OSError, MemoryError):
        raise
    except (Exception, SystemExit) as error:  # a plugin that calls sys.exit must not end the program in silence
        raise BrokenPlugin(f"plugin {name!r} cannot be made: {error!r}", name=name) from error


def ask_plugin(kind: str, plugin: object, ask: Callable[[], _Answer]) -> _Answer:
    """Ask an object of a plugin; what goes wrong inside is named with its class, also if it ends the program.

    What the system refuses, such as a file or memory, stays what it is.
    """
    name = type(plugin).__name__
    try:
        return ask()
    except (KBToolsError, OSError, MemoryError):
        raise
    except (Exception, SystemExit) as error:
        raise BrokenPlugin(f"{kind} {name} failed: {error!r}", name=name) from error


def needs(point: EntryPoint) -> tuple[str, ...]:
    """List the extras that an entry point asks for, each with its distribution."""
    _, _, extras = point.value.partition("[")
    home = point.dist.name if point.dist else ""
    return tuple(f"{home}[{extra.strip()}]" for extra in extras.rstrip(" ]").split(",") if extra.strip())


def target(point: EntryPoint) -> str:
    """Return the `module:Name` of an entry point, without the extras that may follow it."""
    return point.value.partition("[")[0].strip()


def is_installed(extra: str) -> bool:
    """Return whether all that an extra of kbtools brings is there, without importing any of it."""
    return all(find_spec(module) for module, bringing in EXTRAS.items() if bringing == extra)


def install_command(extra: str) -> str:
    """Return the command that installs an extra of kbtools, from the folder or file that kbtools was installed from."""
    try:
        origin = json.loads(distribution("kbtools").read_text("direct_url.json") or "{}")
    except PackageNotFoundError:
        origin = {}
    url = urlsplit(origin.get("url", ""))
    home = unquote(url.path) if url.scheme == "file" else "kbtools"
    editable = "-e " if origin.get("dir_info", {}).get("editable") else ""
    return f"pip install {editable}'{home}[{extra}]'"


def import_object(path: str) -> Any:
    """Import `module:Name`; what goes wrong inside is named with the path."""
    module, _, attribute = path.partition(":")
    try:
        return getattr(import_module(module), attribute)
    except ModuleNotFoundError as error:
        if error.name in EXTRAS:
            raise MissingDependency(
                f"plugin {path!r} needs {error.name}; install it with {install_command(EXTRAS[error.name])}",
                path=path,
                module=error.name,
            ) from error
        raise BrokenPlugin(f"plugin {path!r} cannot be loaded: {error!r}", path=path) from error
    except Exception as error:
        if is_out_of_memory(error):
            raise MemoryError(str(error)) from error
        raise BrokenPlugin(f"plugin {path!r} cannot be loaded: {error!r}", path=path) from error
