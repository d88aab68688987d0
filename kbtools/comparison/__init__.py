"""Comparison: which pruner and which scorers for a knowledge base and its questions, and by how much."""

from kbtools.comparison.experiment import Request, compare
from kbtools.comparison.run_folder import Run, open_run

__all__ = ["Request", "Run", "compare", "open_run"]
