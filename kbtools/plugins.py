"""The one door for what can be swapped: entry points by name, or `module:Name` without packaging.

Listing imports nothing. Built-in scorers and backends come in as anyone's do.
"""

from importlib import import_module
from importlib.metadata import EntryPoint, entry_points

from kbtools.errors import BrokenPlugin, UnknownPlugin

SCORERS = "kbtools.scorers"
BACKENDS = "kbtools.backends"


def list_plugins(group: str) -> dict[str, list[EntryPoint]]:
    """List what is offered under each name, without importing any of it."""
    found: dict[str, list[EntryPoint]] = {}
    for point in sorted(entry_points(group=group), key=lambda point: (point.name, point.value)):
        found.setdefault(point.name, []).append(point)
    return found


def load_plugin(group: str, name: str) -> object:
    """Import a plugin by its name or as `module:Name`.

    Raises UnknownPlugin for a name that nothing offers, BrokenPlugin where two distributions offer it or where the
    import fails.
    """
    if ":" in name:
        return import_object(name)
    offers = list_plugins(group)
    if name not in offers:
        known = ", ".join(sorted(offers)) or "none installed"
        raise UnknownPlugin(f"no plugin {name!r} in {group}; known: {known}; or give it as module:Name", name=name)
    targets = {point.value for point in offers[name]}
    if len(targets) > 1:
        homes = " and ".join(sorted({point.dist.name if point.dist else point.value for point in offers[name]}))
        raise BrokenPlugin(f"plugin {name!r} in {group} is offered by {homes}; uninstall one of them", name=name)
    return import_object(offers[name][0].value)


def import_object(path: str) -> object:
    """Import `module:Name`; what goes wrong inside is named with the path."""
    module, _, attribute = path.partition(":")
    try:
        return getattr(import_module(module), attribute)
    except Exception as error:
        raise BrokenPlugin(f"plugin {path!r} cannot be loaded: {error!r}", path=path) from error
