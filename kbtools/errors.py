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
├── ServerError           an Elasticsearch cluster does not do what it was asked
│   ├── Unreachable       refused, cut or timed out, or TLS did not agree
│   ├── NotAllowed        the credentials are missing, wrong, or lack a privilege
│   ├── WrongServer       another product, or a version that this kbtools does not speak to
│   ├── BulkFailed        documents that the cluster rejected
│   └── NameTaken         a name that something else on the cluster has already
├── KBMissing             no knowledge base at that path
├── KBUnusable            another format or normaliser version, or damaged
├── VectorsMissing        a knowledge base without entity vectors was asked for the nearest ones
├── UnknownEntity         an id that the knowledge base does not hold
├── BadArgument           an argument of a call that is of another type or out of range
├── NoIRI                 an id that no SPARQL query can name
├── UnknownPlugin         no plugin of that name
├── BrokenPlugin          a plugin that cannot be loaded or breaks its contract
├── MissingDependency     an optional package that the request needs
├── ModelError            a trained model cannot be used
│   ├── ModelMissing      no model of that name in the folder of models
│   ├── ModelUnusable     another format version, or damaged
│   └── CheckpointMismatch  trained on other relations or types than the knowledge base has
├── RunError              a comparison cannot go on, or cannot be read
│   ├── RunMissing        no run of kbtools compare in that folder
│   ├── RunUnusable       damaged, or of another version
│   └── RunMismatch       results of another knowledge base or other questions
└── TrainingError         a model cannot be trained
    ├── BadQuestions      question files that nothing can be learned from
    ├── NothingToLearn    a knowledge base or questions without what a model learns from
    ├── BadVectors        word or entity vectors that are not what they should be
    ├── BadSetting        a setting that does not exist or cannot be
    ├── NonFiniteLoss     a loss that is no number
    ├── BadLaunch         processes of a launcher that do not do the same
    ├── UnknownDevice     a device that this machine or this torch does not have
    └── DeviceFull        the device's memory does not hold a batch
"""

from collections.abc import Callable
from typing import Any


class KBToolsError(Exception):
    """The root: every error that kbtools raises on purpose; `facts` holds what the message tells."""

    def __init__(self, message: str, **facts: object) -> None:
        super().__init__(message)
        self.facts: dict[str, Any] = facts

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


class ServerError(KBToolsError):
    """An Elasticsearch cluster does not do what it was asked."""


class Unreachable(ServerError):
    """Say that a cluster refused, cut the connection or took too long, or that TLS did not agree."""


class NotAllowed(ServerError):
    """Say that a cluster asks for other credentials, or which privilege they lack."""


class WrongServer(ServerError):
    """Name a server that is no Elasticsearch, or of a version that this kbtools does not speak to."""


class BulkFailed(ServerError):
    """Count the documents that a cluster rejected, with the first of each kind."""


class NameTaken(ServerError):
    """Say that an index which kbtools did not make has the name already."""


class KBMissing(KBToolsError):
    """Say that no knowledge base is at a path."""


class KBUnusable(KBToolsError):
    """Say that a knowledge base has another version, or is damaged."""


class VectorsMissing(KBToolsError):
    """Say that a knowledge base has no entity vectors."""


class UnknownEntity(KBToolsError):
    """Name an id that the knowledge base does not hold."""


class BadArgument(KBToolsError, ValueError):
    """An argument of a call that is of another type or out of range."""


class NoIRI(KBToolsError, ValueError):
    """An id that no SPARQL query can name."""


class UnknownPlugin(KBToolsError):
    """Name a plugin that nothing offers."""


class BrokenPlugin(KBToolsError):
    """Name a plugin that cannot be loaded or breaks its contract."""


class MissingDependency(KBToolsError):
    """Name an optional package that the request needs."""


class ModelError(KBToolsError):
    """A trained model cannot be used."""


class ModelMissing(ModelError):
    """Say that no model of a name lies in the folder of models."""


class ModelUnusable(ModelError):
    """Say that a model has another version, or is damaged."""


class CheckpointMismatch(ModelError):
    """Say that a model knows other relations or types than the knowledge base has."""


class TrainingError(KBToolsError):
    """A model cannot be trained."""


class BadQuestions(TrainingError):
    """Say what keeps question files from being learned from."""


class NothingToLearn(TrainingError):
    """A knowledge base or questions without what a model learns from."""


class BadVectors(TrainingError):
    """Say what is wrong with given vectors."""


class BadSetting(TrainingError):
    """Name a setting that does not exist, or a value that it cannot have."""


class NonFiniteLoss(TrainingError):
    """Name the batch whose loss is no number."""


class BadLaunch(TrainingError):
    """Say that the processes of a launcher see different files."""


class UnknownDevice(TrainingError):
    """Name a device that is not there."""


class DeviceFull(TrainingError):
    """Say that a device's memory does not hold a batch."""


class RunError(KBToolsError):
    """A comparison cannot go on, or cannot be read."""


class RunMissing(RunError):
    """Say that no run of kbtools compare is in a folder."""


class RunUnusable(RunError):
    """Say that a run is damaged, or of another version."""


class RunMismatch(RunError):
    """Say that a run holds results of another knowledge base or of other questions."""
