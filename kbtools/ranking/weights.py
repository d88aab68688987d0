"""Choose temperatures and weights of the joint score on questions whose answers are known, and keep them by name."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from kbtools.errors import KBUnusable, ModelUnusable
from kbtools.ranking.joint import DEFAULT, WITH_SUBJECT, Scored, Weights, joint_parts
from kbtools.ranking.ranking import add_parts
from kbtools.storage import read_record, write_record

FORMAT_NAME, FORMAT_VERSION = "kbtools-ranking", 1
FILE = "ranking.msgpack"

GRID: dict[str, tuple[float, ...]] = {
    "relation": (0.4, 0.6, 0.8, 1.0, 1.3),
    "mention": (0.0, 0.25, 0.5, 0.75, 1.0, 1.5),
    "subject": (0.0, 0.25, 0.5, 1.0, 1.5),
    "sharpness": (0.5, 1.0, 2.0, 4.0, 8.0),
    "alpha": (0.0, 1.0, 3.0),
    "rung": (0.0, 0.05, 0.1, 0.2, 0.4),
    "similarity": (1.0, 4.0, 8.0),
    "popularity": (0.0, 0.05, 0.15, 0.3),
}
SWEEPS = 2


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """A scored pool and the rows of its gold fact; -1 where the knowledge base lacks one."""

    scored: Scored
    subject: int
    relation: int
    target: int = -1

    def expected(self, weights: Weights) -> float:
        """Give the probability that the gold pair is drawn from those that share the first place."""
        pool = self.scored.candidates
        scores = add_parts(joint_parts(self.scored, weights))
        first = scores == scores.max()
        gold = (pool.subjects[pool.subject] == self.subject) & (pool.relation == self.relation)
        return float((first & gold).any() / first.sum())


def accuracy(judged: Sequence[Judged], weights: Weights, *, questions: int) -> float:
    """Give the expected share of right pairs, of all questions: those with an empty pool are not among the judged."""
    return sum(one.expected(weights) for one in judged) / questions


def choose_weights(judged: Sequence[Judged], *, subject: bool) -> Weights:
    """Climb the grid one weight at a time, from the defaults; the smaller change wins a tie."""
    best = WITH_SUBJECT if subject else DEFAULT
    reachable = [one for one in judged if has_gold(one)]
    score = accuracy(reachable, best, questions=max(len(reachable), 1))
    skipped = () if subject else ("subject", "sharpness", "alpha")
    for _ in range(SWEEPS):
        before = score
        for name in [name for name in GRID if name not in skipped]:
            for value in GRID[name]:
                tried = replace(best, **{name: value})
                found = accuracy(reachable, tried, questions=max(len(reachable), 1))
                if found > score:
                    best, score = tried, found
        if score == before:
            break
    return best


def has_gold(judged: Judged) -> bool:
    """Tell whether the gold pair is in the pool at all; no weight can help where it is not."""
    pool = judged.scored.candidates
    gold = (pool.subjects[pool.subject] == judged.subject) & (pool.relation == judged.relation)
    return bool(np.any(gold))


def ranking_key(*, pruning: str, scorer: str, subject: str | None) -> str:
    """Name what weights were chosen for."""
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
            f"{models / FILE}: damaged, or of another version; run kbtools train ranking again", path=str(models / FILE)
        ) from error


def keep_weights(models: Path, key: str, weights: Weights) -> None:
    """Add weights to those of a folder of models."""
    models.mkdir(parents=True, exist_ok=True)
    kept = read_weights(models) | {key: weights}
    record = {name: asdict(one) for name, one in sorted(kept.items())}
    write_record(models / FILE, record, name=FORMAT_NAME, version=FORMAT_VERSION)
