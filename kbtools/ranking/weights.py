"""Weights of the parts of a score."""

from dataclasses import dataclass

RUNG = 0.2
"""The cost of each rung of the ladder, in log-probability; on FBSQ's validation split 0.1 to 0.4 are level."""

POPULARITY = 0.15
"""The gain of the most popular subject; less than a rung, so that facts alone never lift a namesake over a rung."""

OF_SUBJECTS = ("subject", "sharpness", "alpha")
"""Weights that only a subject scorer gives a meaning."""


_MOST = 1e6
"""The largest weight that counts: with a larger one, the other parts of a score are lost in rounding."""


@dataclass(frozen=True, slots=True)
class Weights:
    """The weight of each part of a score; `kbtools train ranking` chooses them on a validation split.

    Raises ValueError for one that is no number, or too large to rank by.
    """

    relation: float = 1.0
    """The inverse of the temperature of v(r, q)."""

    subject: float = 1.0
    """The paper's beta is 1."""

    sharpness: float = 1.0
    """The inverse of the temperature of u(s, r, q)."""

    alpha: float = 1.0
    """The paper's weight of h(r, s), which counts only in the normaliser: every candidate has s -> r."""

    mention: float = 1.0
    rung: float = RUNG
    similarity: float = 1.0
    popularity: float = POPULARITY

    def __post_init__(self) -> None:
        for name in self.__slots__:
            if not abs(getattr(self, name)) <= _MOST:  # nor is NaN
                raise ValueError(f"the weight {name} is a number from {-_MOST:g} to {_MOST:g}")

    def counting(self, subject: str | None) -> dict[str, float]:
        """Return the weights that count, by name: those of a subject scorer only where there is one."""
        return {name: getattr(self, name) for name in self.__slots__ if subject or name not in OF_SUBJECTS}


DEFAULT = Weights()
WITH_SUBJECT = Weights(popularity=0.0)
"""With a subject scorer, its score takes the place of popularity."""

EQUATION_4 = "equation-4"
PRESETS = {EQUATION_4: Weights(mention=0.0, rung=0.0, similarity=0.0, popularity=0.0)}
"""Weights by a name: log p(r|q) + log p(s|q, r) alone is Eq. 4 of the paper."""


def default_weights(subject: str | None) -> Weights:
    """Return the weights where none were chosen, with a subject scorer or without."""
    return WITH_SUBJECT if subject else DEFAULT
