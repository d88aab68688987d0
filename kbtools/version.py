"""Versions of the package, and of the steps that decide a result.

A step's version is raised by hand when its results change, so that `kbtools compare` computes dependent results again.
Plugins have their own attribute `version`; that of the normal form is `kbtools.text.normaliser.NORMALISER_VERSION`.
"""

__version__ = "0.1.0"

LINKING_VERSION = 7
"""The version of linking: the entities of a mention, their rungs and similarities (kbtools.linking)."""

POOLS_VERSION = 2
"""The version of pools: candidates from a pruner's links, and the mentions that scorers read."""

SCORE_VERSION = 2
"""The version of the score: the sum of its parts, and the resulting figures of a question."""
