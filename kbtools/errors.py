"""What can go wrong, as one tree: a class per fact that a caller can act on.

KBToolsError
├── InputError            a source file cannot be used
│   ├── SourceMissing     no such file, or not a file
│   ├── SourceEmpty       a file without a single line
│   ├── SourceDamaged     a compressed file that ends early or does not unpack
│   ├── WrongFormat       a file that is not what its option expects
│   ├── BadLine           one line, where the caller asked to stop at the first
│   └── TooManyBadLines   more unreadable lines than --max-bad allows
├── BuildError            a knowledge base cannot be built
│   ├── NothingBuilt      a stage that produced nothing
│   ├── BuildLocked       another process is building the same folder
│   ├── OutputUnusable    the target is not a knowledge base, or cannot be written
│   ├── MemoryExhausted   the work tables do not fit in the memory allowed
│   └── DiskFull          no space left while writing
├── KBMissing             no knowledge base at that path
├── KBUnusable            another format or normaliser version, or damaged
├── UnknownEntity         an id that the knowledge base does not hold
├── UnknownPlugin         no plugin of that name
├── BrokenPlugin          a plugin that cannot be loaded or breaks its contract
└── MissingDependency     an optional package that the request needs
"""

from collections.abc import Callable


class KBToolsError(Exception):
    """The root: every error that kbtools raises on purpose; `facts` holds what the message tells."""

    def __init__(self, message: str, **facts: object) -> None:
        super().__init__(message)
        self.facts = facts

    def __reduce__(self) -> tuple[Callable[..., "KBToolsError"], tuple[object, ...]]:
        return _rebuild, (type(self), str(self), self.facts)


def _rebuild(kind: type[KBToolsError], message: str, facts: dict[str, object]) -> KBToolsError:
    return kind(message, **facts)


class InputError(KBToolsError):
    """A source file cannot be used."""


class SourceMissing(InputError):
    """Name a source that is not there."""


class SourceEmpty(InputError):
    """Name a source that has no line."""


class SourceDamaged(InputError):
    """Name a compressed source that ends early or does not unpack."""


class WrongFormat(InputError):
    """Name a source that is not in the format its option expects."""


class BadLine(InputError):
    """Name one line that cannot be read."""


class TooManyBadLines(InputError):
    """Say that a source has more unreadable lines than allowed."""


class BuildError(KBToolsError):
    """A knowledge base cannot be built."""


class NothingBuilt(BuildError):
    """Say which stage of a build produced nothing."""


class BuildLocked(BuildError):
    """Say that another process is building the same folder."""


class OutputUnusable(BuildError):
    """Say that the target is not a knowledge base, or cannot be written."""


class MemoryExhausted(BuildError):
    """Say that the work tables of a build do not fit in the memory that it may use."""


class DiskFull(BuildError):
    """Say that the disk filled up while a knowledge base was written."""


class KBMissing(KBToolsError):
    """Say that no knowledge base is at a path."""


class KBUnusable(KBToolsError):
    """Say that a knowledge base has another version, or is damaged."""


class UnknownEntity(KBToolsError):
    """Name an id that the knowledge base does not hold."""


class UnknownPlugin(KBToolsError):
    """Name a plugin that nothing offers."""


class BrokenPlugin(KBToolsError):
    """Name a plugin that cannot be loaded or breaks its contract."""


class MissingDependency(KBToolsError):
    """Name an optional package that the request needs."""
