"""The grid: pruners by relation scorers by subject scorers by rankers, with controls.

The weights of its cells are all default, all chosen by training, or all tuned on its validation questions.
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
"""A pruner and a scorer that need no training and are in every grid."""

CONTROL_SUBJECTS = (NO_SUBJECT, "type-count", "fact-count")
"""Subject scorers that know nothing or only count, as controls for every subject network."""

_DEFAULTS, _CHOSEN, TUNED, GIVEN = "default", "chosen", "tuned", "given"
"""The kinds of weights; a run has only one kind, so that its systems are comparable."""


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
        """Whether a learned ranker replaces the weighted sum."""
        return self.ranker != WEIGHTED_SUM

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the parts, without the default ranker."""
        return tuple(self) if self.learned else self[:3]

    @property
    def label(self) -> str:
        return " / ".join(self.names)

    @property
    def subject_scorer(self) -> str | None:
        """The plugin that scores subjects, None if there is none."""
        return None if self.subject in (NO_SUBJECT, POPULARITY) else self.subject

    @property
    def file(self) -> str:
        """The name of the cell's files."""
        return file_name(*self.names)


@dataclass(frozen=True, slots=True)
class Grid:
    """The axes of a comparison; repeated names count once.

    Learned rankers are added to the weighted sum in cells that distinguish subjects; None means all fitted rankers.
    """

    pruning: tuple[str, ...]
    scorer: tuple[str, ...] = (CONTROL_SCORER,)
    subject: tuple[str, ...] = (POPULARITY,)
    ranker: tuple[str, ...] | None = None

    def cells(self) -> list[Cell]:
        """Return the cells of the axes in order, then the controls that are not among them."""
        subjects = (*self.subject, *CONTROL_SUBJECTS)
        cells = [Cell(*names) for names in product(self.pruning, self.scorer, subjects)]
        ranked = [cell for cell in cells if cell.subject in self.subject and cell.subject != NO_SUBJECT]
        learned = [cell._replace(ranker=name) for cell in ranked for name in self.ranker or ()]
        controls = product([CONTROL_PRUNER], [*self.scorer, CONTROL_SCORER], subjects)
        return list(dict.fromkeys([*cells, *learned, *(Cell(*names) for names in controls)]))


def file_name(*names: str) -> str:
    """Return a file name for some names: `n-gram~bigru~none`."""
    # Names such as `module:Class` or those with a slash need quoting.
    return "~".join(quote(name, safe="+,") for name in names)


def split_names(text: str) -> tuple[str, ...]:
    """Return names from a comma-separated text; `a&b` means averaged scorers, `a,b` for `kbtools query`."""
    return tuple(dict.fromkeys(name.strip().replace("&", ",") for name in text.split(",") if name.strip()))


@dataclass(frozen=True, slots=True)
class Weighting:
    """The system of every cell, and the kind of weights they share: a kind above or a preset's name."""

    kind: str
    systems: Mapping[Cell, System]


def find_weighting(answerer: Answerer, cells: Sequence[Cell]) -> Weighting:
    """Return systems with the weights that training chose if it did for every cell, else all with preset or default
    ones."""
    systems = {cell: answerer.system(**cell._asdict()) for cell in cells}
    weighted = {cell: system for cell, system in systems.items() if not cell.learned}
    parts = answerer.parts
    if all(parts.trained.weighted(system) for system in weighted.values()):
        return Weighting(_CHOSEN, systems)
    usual = {cell: system.weighted(parts.usual_weights(system)) for cell, system in weighted.items()}
    return Weighting(parts.preset or _DEFAULTS, systems | usual)


def fitted_cells(answerer: Answerer, cells: Sequence[Cell]) -> list[Cell]:
    """Return cells with every learned ranker that training fitted for the given cells."""
    return [
        cell._replace(ranker=name)
        for cell in cells
        if cell.subject != NO_SUBJECT
        for name in answerer.parts.trained.learned(answerer.system(**cell._asdict()).key)
    ]


def weights_text(kind: str, weights: Weights, cell: Cell) -> str:
    """Return the kind of a cell's weights, and those that differ from the defaults."""
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
    """Return the weights in the facts of a stored cell; raise RunUnusable if they are invalid."""
    try:
        return Weights(**facts["weights"])
    except (KeyError, TypeError, ValueError) as error:
        raise RunUnusable(f"a cell of the run has damaged weights ({error}); compare again into a new --out") from error
