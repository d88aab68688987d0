"""Pruners: from a question to the mentions and candidates that are worth scoring."""

from kbtools.pruning.pruners import DEFAULT, UNGUIDED, Pruner, guide_of, make_pruner, prune

__all__ = ["DEFAULT", "UNGUIDED", "Pruner", "guide_of", "make_pruner", "prune"]
