"""Pruners: from a question to the mentions and candidates that are worth scoring."""

from kbtools.pruning.pruners import DEFAULT, FOCUSED, NAMES, PRUNERS, Pruner, make_pruner

__all__ = ["DEFAULT", "FOCUSED", "NAMES", "PRUNERS", "Pruner", "make_pruner"]
