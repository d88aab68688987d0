"""Lines that a reader left out: counted by kind, each kind with its first example."""

from dataclasses import dataclass, field
from math import ceil

from kbtools.errors import TooManyBadLines

SHOWN = 120
"""Characters of a line that an error shows: one line of a terminal."""


FEW = 0.25
"""Share of bad lines up to which an error advises to leave them out: with more, the file is of another format."""


@dataclass(slots=True)
class Skip:
    """A kind of line that was left out: how many, and the first of them."""

    kind: str
    bad: bool
    count: int
    example: str


@dataclass(slots=True)
class Skips:
    """The account of one source: `bad` kinds count against the share that is allowed, the others do not.

    `notes` are for who gave the source: what was understood otherwise than its name says, or not used.
    """

    path: str
    max_bad: float
    lines: int = 0
    kinds: dict[str, Skip] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def add(self, kind: str, *, line: int, text: str, reason: object = "", bad: bool = True, count: int = 1) -> None:
        """Count lines that were left out, one unless told otherwise; the first example of a kind says the reason."""
        if kind in self.kinds:
            self.kinds[kind].count += count
        else:
            because = f" ({shorten(str(reason))})" if reason else ""
            self.kinds[kind] = Skip(kind, bad, count, f"{self.path}:{line}: {shorten(text)}{because}")

    def absorb(self, other: "Skips") -> None:
        """Add the account of lines that follow."""
        self.lines += other.lines
        for kind, skip in other.kinds.items():
            if kind in self.kinds:
                self.kinds[kind].count += skip.count
            else:
                self.kinds[kind] = skip

    def note(self, note: str, *, line: int) -> None:
        """Keep a note of what was noticed first at a line."""
        self.notes.append(f"{self.path}:{line}: {note}")

    @property
    def bad(self) -> int:
        """Count the lines that should have been readable."""
        return sum(skip.count for skip in self.kinds.values() if skip.bad)

    def check(self) -> None:
        """Refuse a source with more bad lines than allowed, naming the most frequent kind."""
        if self.bad <= self.max_bad * self.lines:
            return
        worst = max((skip for skip in self.kinds.values() if skip.bad), key=lambda skip: skip.count)
        advice = "mend the file, or check that it is given to the right option"
        if self.bad <= FEW * self.lines:
            advice = f"mend the file, or leave them out with --max-bad {ceil(1_000 * self.bad / self.lines) / 1_000:g}"
        raise TooManyBadLines(
            f"{self.path}: {self.bad:,} of {self.lines:,} lines cannot be read, more than --max-bad {self.max_bad:g} "
            f"allows; most frequent: {worst.kind}, first at {worst.example}; {advice}",
            path=self.path,
            bad=self.bad,
            lines=self.lines,
        )


def shorten(text: str) -> str:
    """Show a line in an error without its length or its control characters."""
    return repr(text[:SHOWN]) + ("…" if len(text) > SHOWN else "")
