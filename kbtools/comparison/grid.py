"""The grid: pruners by relation scorers by subject scorers by rankers, and the controls beside them.

Weights of its cells are all default, all chosen by training, or all tuned on its questions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import product
from typing import Any, NamedTuple
from urllib.parse import quote

from kbtools.answering.answerer import Answerer
from kbtools.errors import RunUnusable
from kbtools.ranking.system import NO_SUBJECT, POPULARITY, WEIGHTED_SUM, System
from kbtools.ranking.weights import OF_SUBJECTS, Weights, default_weights

CONTROL_PRUNER, CONTROL_SCORER = "n-gram-idf", "lexical"
"""A pruner and a scorer that need no training, and stand in every grid."""

CONTROL_SUBJECTS = (NO_SUBJECT, "type-count", "fact-count")
"""Subject scorers that see nothing or only count; any claim for a subject network stands beside them."""

_DEFAULTS, _CHOSEN, TUNED, GIVEN = "default", "chosen", "tuned", "given"
"""The weights of a run are all of one kind, or its table would set tuned systems beside some that are not."""


class Cell(NamedTuple):
    """The names of one system of the grid."""

    pruning: str
    scorer: str
    subject: str
    ranker: str = WEIGHTED_SUM

    @classmethod
    def of(cls, system: System) -> "Cell":
        """Return the names of a system."""
        return cls(system.pruner, system.scorer, system.subject, system.ranker_name)

    @property
    def learned(self) -> bool:
        """Return whether a learned ranker takes the place of the weighted sum."""
        return self.ranker != WEIGHTED_SUM

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the parts; the weighted sum, which ranks where nothing is said, is left out."""
        return tuple(self) if self.learned else self[:3]

    @property
    def label(self) -> str:
        return " / ".join(self.names)

    @property
    def subject_scorer(self) -> str | None:
        """Return the plugin that scores subjects, if one does."""
        return None if self.subject in (NO_SUBJECT, POPULARITY) else self.subject

    @property
    def file(self) -> str:
        """Return the name of the cell's files."""
        return file_name(*self.names)


@dataclass(frozen=True, slots=True)
class Grid:
    """The axes of a comparison; a name that is repeated counts once.

    Learned rankers stand beside the weighted sum, where something tells subjects apart; None stands for those that
    training fitted.
    """

    pruning: tuple[str, ...]
    scorer: tuple[str, ...] = (CONTROL_SCORER,)
    subject: tuple[str, ...] = (POPULARITY,)
    ranker: tuple[str, ...] | None = None

    def cells(self) -> list[Cell]:
        """Return the cells of the axes in their order, then the controls that are not among them."""
        subjects = (*self.subject, *CONTROL_SUBJECTS)
        cells = [Cell(*names) for names in product(self.pruning, self.scorer, subjects)]
        ranked = [cell for cell in cells if cell.subject in self.subject and cell.subject != NO_SUBJECT]
        learned = [cell._replace(ranker=name) for cell in ranked for name in self.ranker or ()]
        controls = product([CONTROL_PRUNER], [*self.scorer, CONTROL_SCORER], subjects)
        return list(dict.fromkeys([*cells, *learned, *(Cell(*names) for names in controls)]))


def file_name(*names: str) -> str:
    """Return the name of a file for some names: `n-gram~bigru~none`."""
    # A name may be `module:Class`, or hold a slash: then it is no name of a file.
    return "~".join(quote(name, safe="+,") for name in names)


def split_names(text: str) -> tuple[str, ...]:
    """Read names that commas divide; `a&b` names scorers that are averaged, which `kbtools query` spells `a,b`."""
    return tuple(dict.fromkeys(name.strip().replace("&", ",") for name in text.split(",") if name.strip()))


@dataclass(frozen=True, slots=True)
class Weighting:
    """The system of every cell, and where the weights of all of them come from: one of these, or a preset's name."""

    kind: str
    systems: Mapping[Cell, System]


def find_weighting(answerer: Answerer, cells: Sequence[Cell]) -> Weighting:
    """Take the weights that training chose if it did so for every cell, else one kind for all: preset or default."""
    systems = {cell: answerer.system(**cell._asdict()) for cell in cells}
    weighted = {cell: system for cell, system in systems.items() if not cell.learned}
    parts = answerer.parts
    if all(parts.trained.weighted(system) for system in weighted.values()):
        return Weighting(_CHOSEN, systems)
    usual = {cell: system.weighted(parts.usual_weights(system)) for cell, system in weighted.items()}
    return Weighting(parts.preset or _DEFAULTS, systems | usual)


def fitted_cells(answerer: Answerer, cells: Sequence[Cell]) -> list[Cell]:
    """List cells with the learned rankers that training fitted for some cells, in place of the weighted sum."""
    return [
        cell._replace(ranker=name)
        for cell in cells
        if cell.subject != NO_SUBJECT
        for name in answerer.parts.trained.learned(answerer.system(**cell._asdict()).key)
    ]


def weights_text(kind: str, weights: Weights, cell: Cell) -> str:
    """Write the weights of a cell: their kind, and those that differ from the defaults.

    A subject scorer of weight 0 is in the cell's name alone, and this says so.
    """
    if cell.learned:
        return f"learned by {cell.ranker}"
    if kind == _DEFAULTS:
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
    """Read the weights among the facts of a cell on disk; raise RunUnusable for what are none."""
    try:
        return Weights(**facts["weights"])
    except (KeyError, TypeError, ValueError) as error:
        raise RunUnusable(f"a cell of the run has damaged weights ({error}); compare again into a new --out") from error
