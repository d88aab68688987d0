"""Plugins: entry points by name, or `module:Name` without packaging.

Listing imports nothing, and built-in plugins are entry points too.
"""

import functools
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import Distribution, EntryPoint, EntryPoints, PackageNotFoundError, distribution, entry_points
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
"""The groups of entry points, and the kind of plugin in each."""

TRUST_VARIABLE = "KBTOOLS_TRUST_PLUGINS"
"""The environment variable that lets files name classes as `module:Class`, as `--trust-plugins` does."""

_Answer = TypeVar("_Answer")

EXTRAS = {
    "torch": "train", "onnx": "train", "faiss": "train", "onnxruntime": "models", "pycrfsuite": "crf",
    "tokenizers": "minilm", "lightgbm": "ranker", "starlette": "serve", "uvicorn": "serve",
    "h11": "serve", "prometheus_client": "serve", "mcp": "mcp", "pydantic": "mcp",
    "pyoxigraph": "rdf", "python_calamine": "spreadsheets", "matplotlib": "report",
}  # fmt: skip
"""Modules that only some plugins need, and the extra of kbtools that installs each."""


@dataclass(frozen=True, slots=True)
class Offer:
    """An available plugin; `needs` names the extras of its distribution that install its dependencies."""

    name: str
    kind: str
    distribution: str
    target: str
    needs: tuple[str, ...]


def list_offers() -> list[Offer]:
    """Return every plugin of every kind without importing any."""
    return [
        Offer(
            point.name,
            kind,
            _shown(point.dist) if point.dist else "unknown",
            target(point),
            needs(point),
        )
        for group, kind in KINDS.items()
        for points in list_plugins(group).values()
        for point in points
    ]


@functools.cache
def _shown(home: Distribution) -> str:
    """Return the name and version of a distribution, cached since reading them takes a millisecond."""
    return f"{home.name} {home.version}"


def list_plugins(group: str) -> dict[str, list[EntryPoint]]:
    """Return the entry points of a group by name without importing any."""
    offers: dict[str, list[EntryPoint]] = {}
    for point in sorted(installed_points(group), key=lambda point: (point.name, point.value)):
        offers.setdefault(point.name, []).append(point)
    return offers


def installed_points(group: str) -> EntryPoints:
    """Return the entry points of a group."""
    return every_point()[group]


@functools.cache
def every_point() -> dict[str, EntryPoints]:
    """Return the entry points of every group, cached since searching the environment takes 20 ms."""
    points: Any = entry_points()
    return {group: points.select(group=group) for group in KINDS}


def home_of(point: EntryPoint) -> str:
    """Return the name of the distribution that offers an entry point, empty if unknown."""
    return _name(point.dist) if point.dist else ""


@functools.cache
def _name(home: Distribution) -> str:
    """Return the name of a distribution, cached since it is parsed from its file at each access."""
    return home.name


def load_plugin(group: str, name: str) -> object:
    """Import a plugin by its name or as `module:Name`.

    Raises UnknownPlugin for an unknown name, BrokenPlugin if two distributions offer it or its import fails, and
    MissingDependency if it needs a package that is not installed.
    """
    if ":" in name:
        return import_object(name)
    offers = list_plugins(group)
    if name not in offers:
        known = ", ".join(sorted(offers)) or "none installed"
        raise UnknownPlugin(f"no {KINDS[group]} {name!r}; known: {known}; or use module:Name", name=name)
    # A distribution installed twice, editable and not, offers the same target twice.
    targets = {point.value for point in offers[name]}
    if len(targets) > 1:
        homes = " and ".join(sorted({home_of(point) or point.value for point in offers[name]}))
        raise BrokenPlugin(f"plugin {name!r} in {group} is offered by {homes}; uninstall one of them", name=name)
    return import_object(target(offers[name][0]))


def require_installed(group: str, name: str, *, file: object, trusted: bool) -> None:
    """Raise UntrustedPlugin for a `module:Class` from a file that is not trusted.

    `load_class` imports such a class and calls it, so somebody else's file could run any installed function. Users may
    write such a name themselves, or trust the file.
    """
    if ":" in name and not trusted:
        raise UntrustedPlugin(
            f"{file}: names {name!r} as its {KINDS[group]}, but a file may only name installed plugins; allow "
            f"it with --trust-plugins ({TRUST_VARIABLE}=1, trust_plugins=True in Python) if you trust the file",
            name=name,
        )


def trusts_plugins(argument: bool | None = None) -> bool:
    """Return whether files may name classes as `module:Class`, from the argument or else the environment."""
    return os.environ.get(TRUST_VARIABLE, "").lower() in ("1", "true", "yes", "on") if argument is None else argument


def load_class(group: str, name: str) -> Any:
    """Import a plugin class; raise as `load_plugin` does, and BrokenPlugin for anything that cannot be called."""
    plugin = load_plugin(group, name)
    if not callable(plugin):
        raise BrokenPlugin(f"{KINDS[group]} {name!r} is not a class", name=name)
    return plugin


def construct(name: str, make: Callable[[], Any]) -> Any:
    """Return an instance of a plugin; raise BrokenPlugin with its name if that fails, as `ask_plugin` does."""
    return _ask(make, name, f"plugin {name!r} cannot be made")


def ask_plugin(kind: str, plugin: object, ask: Callable[[], _Answer]) -> _Answer:
    """Return the result of a call to a plugin; raise BrokenPlugin with its class if it fails or calls sys.exit.

    Errors of the system, such as for files or memory, are not changed.
    """
    name = type(plugin).__name__
    return _ask(ask, name, f"{kind} {name} failed")


def _ask(ask: Callable[[], _Answer], name: str, problem: str) -> _Answer:
    try:
        return ask()
    except (KBToolsError, OSError, MemoryError):
        raise
    except (Exception, SystemExit) as error:  # sys.exit in a plugin must not end the program silently
        raise BrokenPlugin(f"{problem}: {error!r}", name=name) from error


def needs(point: EntryPoint) -> tuple[str, ...]:
    """Return the extras that an entry point needs, each with its distribution."""
    _, _, extras = point.value.partition("[")
    home = home_of(point)
    return tuple(f"{home}[{extra.strip()}]" for extra in extras.rstrip(" ]").split(",") if extra.strip())


def target(point: EntryPoint) -> str:
    """Return the `module:Name` of an entry point, without extras."""
    return point.value.partition("[")[0].strip()


def is_installed(extra: str) -> bool:
    """Return whether every module of an extra is installed, without importing any."""
    return all(find_spec(module) for module, bringing in EXTRAS.items() if bringing == extra)


def install_command(extra: str) -> str:
    """Return the command that installs an extra of kbtools, from where kbtools was installed."""
    try:
        origin = json.loads(distribution("kbtools").read_text("direct_url.json") or "{}")
    except PackageNotFoundError:
        origin = {}
    url = urlsplit(origin.get("url", ""))
    home = unquote(url.path) if url.scheme == "file" else "kbtools"
    editable = "-e " if origin.get("dir_info", {}).get("editable") else ""
    return f"pip install {editable}'{home}[{extra}]'"


def import_object(path: str) -> Any:
    """Import `module:Name`; raise BrokenPlugin or MissingDependency with the path if that fails."""
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


def import_optional(module: str, needed_for: str, *, more: str = "") -> Any:
    """Import a module of an extra; raise MissingDependency with the command that installs it, followed by `more`."""
    package = module.partition(".")[0]
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingDependency(
            f"{needed_for} needs {package}; install it with {install_command(EXTRAS[package])}{more}", module=package
        ) from error
