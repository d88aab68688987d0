"""The grid: pruners by relation scorers by subject scorers by rankers, and the controls beside them."""

from dataclasses import dataclass
from itertools import product
from typing import NamedTuple
from urllib.parse import quote

from kbtools.ranking.system import NO_SUBJECT, POPULARITY, WEIGHTED_SUM, System

CONTROL_PRUNER, CONTROL_SCORER = "n-gram-idf", "lexical"
"""A pruner and a scorer that need no training, and stand in every grid."""

CONTROL_SUBJECTS = (NO_SUBJECT, "type-count", "fact-count")
"""Subject scorers that see nothing or only count; any claim for a subject network stands beside them."""


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
