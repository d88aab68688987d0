"""Pruners: from a question to its mentions and their links."""

from kbtools.pruning.pruners import DEFAULT, UNGUIDED, Pruner, guide_of, make_pruner, prune

__all__ = ["DEFAULT", "UNGUIDED", "Pruner", "guide_of", "make_pruner", "prune"]
