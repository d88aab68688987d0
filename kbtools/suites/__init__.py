"""Contract suites: what a plugin of each kind owes, as claims that its author checks."""

from kbtools.suites.checking import check_plugin

__all__ = ["check_plugin"]
