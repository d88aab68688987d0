"""Contract suites: the claims that each kind of plugin must satisfy."""

from kbtools.suites.checking import check_plugin

__all__ = ["check_plugin"]
