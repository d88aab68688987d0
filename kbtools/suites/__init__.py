"""Contract suites: the duties of each kind of plugin, as claims that its author checks."""

from kbtools.suites.checking import check_plugin

__all__ = ["check_plugin"]
