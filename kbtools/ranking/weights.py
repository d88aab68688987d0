"""Weights of the parts of a score."""

from dataclasses import dataclass

RUNG = 0.2
"""The cost of each rung in log-probability; 0.1 to 0.4 are equal on FBSQ's validation split."""

POPULARITY = 0.15
"""The gain of the most popular subject; less than a rung, so that facts never outweigh one."""

OF_SUBJECTS = ("subject", "sharpness", "alpha")
"""Weights that have an effect only with a subject scorer."""

_MOST = 1e6
"""The largest weight; a larger one would lose the other parts of a score in rounding."""


@dataclass(frozen=True, slots=True)
class Weights:
    """The weight of each part of a score; `kbtools train ranking` chooses them on a validation split.

    Raises ValueError for a weight that is not a number or is too large.
    """

    relation: float = 1.0
    """The inverse of the temperature of v(r, q)."""

    subject: float = 1.0
    """The paper's beta is 1."""

    sharpness: float = 1.0
    """The inverse of the temperature of u(s, r, q)."""

    alpha: float = 1.0
    """The paper's weight of h(r, s), which only matters in the normaliser since every candidate has s -> r."""

    mention: float = 1.0
    rung: float = RUNG
    similarity: float = 1.0
    popularity: float = POPULARITY

    def __post_init__(self) -> None:
        for name in self.__slots__:
            if not abs(getattr(self, name)) <= _MOST:  # NaN fails too
                raise ValueError(f"the weight {name} is a number from {-_MOST:g} to {_MOST:g}")

    def counting(self, subject: str | None) -> dict[str, float]:
        """Return the weights that have an effect, by name; some need a subject scorer."""
        return {name: getattr(self, name) for name in self.__slots__ if subject or name not in OF_SUBJECTS}


DEFAULT = Weights()
WITH_SUBJECT = Weights(popularity=0.0)
"""Weights with a subject scorer, whose score replaces popularity."""

EQUATION_4 = "equation-4"
PRESETS = {EQUATION_4: Weights(mention=0.0, rung=0.0, similarity=0.0, popularity=0.0)}
"""Named weights: Eq. 4 of the paper is log p(r|q) + log p(s|q, r) alone."""


def default_weights(subject: str | None) -> Weights:
    """Return the default weights with or without a subject scorer."""
    return WITH_SUBJECT if subject else DEFAULT
