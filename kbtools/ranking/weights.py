"""Weights of the parts of a score, and the file among trained models that keeps them by pruner and scorers."""

from dataclasses import asdict, dataclass
from pathlib import Path

from kbtools.errors import KBUnusable, ModelUnusable
from kbtools.ranking.model_store import write_listed
from kbtools.record_files import read_record

FORMAT_NAME, FORMAT_VERSION = "kbtools-ranking", 1
FILE = "ranking.msgpack"

RUNG = 0.2
"""The cost of each rung of the ladder, in log-probability; on FBSQ's validation split 0.1 to 0.4 are level."""

POPULARITY = 0.15
"""The gain of the most popular subject; less than a rung, so that facts alone never lift a namesake over a rung."""


OF_SUBJECTS = ("subject", "sharpness", "alpha")
"""Weights that only a subject scorer gives a meaning."""


@dataclass(frozen=True, slots=True)
class Weights:
    """The weight of each part of a score; `kbtools train ranking` chooses them on a validation split."""

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

    def counting(self, subject: str | None) -> dict[str, float]:
        """Give the weights that count, by name: those of a subject scorer only where there is one."""
        return {name: getattr(self, name) for name in self.__slots__ if subject or name not in OF_SUBJECTS}


DEFAULT = Weights()
WITH_SUBJECT = Weights(popularity=0.0)
"""With a subject scorer, its score takes the place of popularity."""


EQUATION_4 = "equation-4"
PRESETS = {EQUATION_4: Weights(mention=0.0, rung=0.0, similarity=0.0, popularity=0.0)}
"""Weights by a name that a folder of models may hold: log p(r|q) + log p(s|q, r) alone is Eq. 4 of the paper."""


def default_weights(subject: str | None, preset: str | None = None) -> Weights:
    """Give the weights where none were chosen: those of a preset, else with a subject scorer or without."""
    if preset is not None:
        return PRESETS[preset]
    return WITH_SUBJECT if subject else DEFAULT


def ranking_key(*, pruning: str, scorer: str, subject: str | None) -> str:
    """Name the pruner and scorers that weights were chosen for."""
    return f"{pruning} {scorer} {subject or '-'}"


def read_weights(models: Path | None) -> dict[str, Weights]:
    """Read the weights that a folder of models keeps, by name; raise ModelUnusable where they are damaged."""
    if models is None or not (models / FILE).is_file():
        return {}
    try:
        record = read_record(models / FILE, name=FORMAT_NAME, version=FORMAT_VERSION, cure="train ranking again")
        return {key: Weights(**weights) for key, weights in record.items()}
    except (KBUnusable, TypeError) as error:
        raise ModelUnusable(
            f"{models / FILE}: damaged, or of another version; delete it, then run kbtools train ranking again",
            path=str(models / FILE),
        ) from error


def keep_weights(models: Path, key: str, weights: Weights) -> None:
    """Add weights to those of a folder of models."""
    models.mkdir(parents=True, exist_ok=True)
    weights_by_key = read_weights(models) | {key: weights}
    record = {name: asdict(weights) for name, weights in sorted(weights_by_key.items())}
    write_listed(models / FILE, record, name=FORMAT_NAME, version=FORMAT_VERSION)
