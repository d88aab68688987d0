"""Versions: of the package, and of the steps that decide a result.

The latter rise by hand when a step gives other results than before, so that `kbtools compare` computes again what
depends on it. Plugins carry an attribute `version` of their own, and the normal form of names is
`kbtools.text.normaliser.NORMALISER_VERSION`.
"""

__version__ = "0.1.0"

LINKING_VERSION = 1
"""Which entities a mention links to, on which rung and how similar: kbtools.linking."""

POOLS_VERSION = 1
"""Which candidates come of the links of a pruner, and which mentions the scorers are asked about."""

SCORE_VERSION = 1
"""How the parts of a score are added up, and which figures of a question come of it."""
