"""Weights of the cells of a comparison: all of them default, all chosen by training, or all tuned on its questions."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from kbtools.answering.answerer import Answerer
from kbtools.comparison.grid import Cell
from kbtools.ranking.system import NO_SUBJECT, System
from kbtools.ranking.weights import OF_SUBJECTS, Weights, default_weights

DEFAULTS, CHOSEN, TUNED, GIVEN = "default", "chosen", "tuned", "given"
"""The weights of a run are all of one kind, or its table would set tuned systems beside some that are not."""


@dataclass(frozen=True, slots=True)
class Weighting:
    """The system of every cell, and where the weights of all of them come from: one of these, or a preset's name."""

    kind: str
    systems: Mapping[Cell, System]

    def with_systems(self, kind: str, systems: Mapping[Cell, System]) -> "Weighting":
        """Return the same with other systems in some cells."""
        return Weighting(kind, {**self.systems, **systems})


def find_weighting(answerer: Answerer, cells: Sequence[Cell]) -> Weighting:
    """Take the weights that training chose if it did so for every cell, else one kind for all: preset or default."""
    systems = {cell: cell_system(answerer, cell) for cell in cells}
    weighted = {cell: system for cell, system in systems.items() if not cell.learned}
    parts = answerer.parts
    if all(parts.trained.weighted(system) for system in weighted.values()):
        return Weighting(CHOSEN, systems)
    usual = {cell: system.weighted(parts.usual_weights(system)) for cell, system in weighted.items()}
    return Weighting(parts.preset or DEFAULTS, systems | usual)


def cell_system(answerer: Answerer, cell: Cell) -> System:
    """Return the system that `kbtools query` would ask by the names of a cell; raise as `Answerer.system` does."""
    return answerer.system(**cell._asdict())


def fitted_cells(answerer: Answerer, cells: Sequence[Cell]) -> list[Cell]:
    """List cells with the learned rankers that training fitted for some cells, in place of the weighted sum."""
    return [
        cell._replace(ranker=name)
        for cell in cells
        if cell.subject != NO_SUBJECT
        for name in answerer.parts.trained.learned(cell_system(answerer, cell).key)
    ]


def weights_text(kind: str, weights: Weights, cell: Cell) -> str:
    """Write the weights of a cell: their kind, and those that differ from the defaults.

    A subject scorer of weight 0 is in the cell's name alone, and this says so.
    """
    if cell.learned:
        return f"learned by {cell.ranker}"
    if kind == DEFAULTS:
        return kind
    usual: dict[str, float] = asdict(default_weights(cell.subject_scorer))
    unused = OF_SUBJECTS if not cell.subject_scorer else ()
    unused = (*unused, "popularity") if cell.subject == NO_SUBJECT else unused
    changed = [
        f"{field.name} {getattr(weights, field.name):g}"
        for field in fields(Weights)
        if field.name not in unused and getattr(weights, field.name) != usual[field.name]
    ]
    ignored = " (subject scores do not count)" if cell.subject_scorer and weights.subject == 0 else ""
    return f"{kind}: {', '.join(changed) or 'as the defaults'}{ignored}"


def cell_weights(facts: Mapping[str, Any]) -> Weights:
    """Read the weights among the facts of a cell on disk."""
    return Weights(**facts["weights"])
