"""Versions: of the package, and of the steps that decide a result.

The latter rise by hand when a step gives other results than before, so that `kbtools compare` computes again what
depends on it. Plugins carry an attribute `version` of their own, and the normal form of names is
`kbtools.text.normaliser.NORMALISER_VERSION`.
"""

__version__ = "0.1.0"

LINKING_VERSION = 5
"""The version of linking: entities of a mention, their rung and similarity (kbtools.linking)."""

POOLS_VERSION = 2
"""The version of pools: candidates of the links of a pruner, and the mentions that scorers read."""

SCORE_VERSION = 2
"""The version of the score: the sum of its parts, and the figures of a question that come of it."""
