"""The check of a plugin against the contract of its kind, on a small knowledge base with questions.

from kbtools.suites import check_plugin

def test_contract():
    assert list(check_plugin("my_package:MyPruner", kind="pruner"))
"""

import inspect
from collections.abc import Iterator
from pathlib import Path

from kbtools.entry_points import (
    BACKENDS,
    KINDS,
    PRUNERS,
    RANKERS,
    READERS,
    SCORERS,
    SUBJECT_SCORERS,
    TAGGERS,
    import_object,
    list_plugins,
)
from kbtools.errors import UnknownPlugin
from kbtools.suites.backend_suite import check_backend
from kbtools.suites.model_suite import (
    check_pruner,
    check_ranker,
    check_relation_scorer,
    check_subject_scorer,
    check_tagger,
)
from kbtools.suites.reader_suite import check_reader

_SUITES = {
    SCORERS: check_relation_scorer,
    SUBJECT_SCORERS: check_subject_scorer,
    TAGGERS: check_tagger,
    RANKERS: check_ranker,
    PRUNERS: check_pruner,
}
"""The suites of plugins that need no sample; readers and backends need one."""

_METHODS = {TAGGERS: "spans", RANKERS: "fit", PRUNERS: "links", READERS: "read", BACKENDS: "lookup"}
"""A method that only one kind of plugin has; both kinds of scorers only have `score`, with `which` for subjects."""


def check_plugin(name: str, *, kind: str | None = None, sample: Path | None = None) -> Iterator[str]:
    """Check a plugin, given by name or as module:Class, and yield each claim that holds.

    `kind` is a kind in `kbtools plugins`, needed if the name is ambiguous; `sample` is a small file for a reader, a
    small knowledge base for a backend.

    Raises BrokenPlugin at the first claim that fails, UnknownPlugin if no kind or several have the name.
    """
    group = group_of(name, kind)
    if group == READERS:
        return check_reader(name, sample)
    return check_backend(name, sample) if group == BACKENDS else _SUITES[group](name)


def group_of(name: str, kind: str | None) -> str:
    """Return the group of entry points of a plugin."""
    if kind:
        groups = [group for group, noun in KINDS.items() if noun == kind]
        if not groups:
            raise UnknownPlugin(f"no kind of plugin {kind!r}; known: {', '.join(KINDS.values())}", name=name)
        return groups[0]
    groups = _groups_of_class(name) if ":" in name else [group for group in KINDS if name in list_plugins(group)]
    if len(groups) == 1:
        return groups[0]
    kinds = " and ".join(f"a {KINDS[group]}" for group in groups)
    status = f"is {kinds}" if groups else "has no method of a plugin" if ":" in name else "is no plugin's name"
    raise UnknownPlugin(f"{name!r} {status}; say which kind: {', '.join(KINDS.values())}", name=name)


def _groups_of_class(name: str) -> list[str]:
    """Return the kinds of plugin that a class may be, by its methods."""
    plugin = import_object(name)
    groups = [group for group, method in _METHODS.items() if hasattr(plugin, method)]
    if hasattr(plugin, "score") and not groups:
        groups.append(SUBJECT_SCORERS if "which" in inspect.signature(plugin.score).parameters else SCORERS)
    return groups
