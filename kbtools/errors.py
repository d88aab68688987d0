"""The tree of errors, with a class for each case that a caller can handle.

KBToolsError
├── InputError      SourceMissing, SourceEmpty, SourceDamaged, WrongFormat, BadLine, TooManyBadLines
├── BuildError      NothingBuilt, BuildLocked, OutputUnusable, MemoryExhausted, DiskFull
├── ServerError     Unreachable, NotAllowed, WrongServer, BulkFailed, NameTaken
├── KBMissing, KBUnusable, VectorsMissing, IncomingMissing
├── UnknownEntity, UnknownType, UnknownLanguage, UnknownPlugin, BrokenPlugin, UntrustedPlugin, MissingDependency
├── BadArgument, NoIRI
├── ModelError      ModelMissing, ModelUnusable, CheckpointMismatch
├── RequestError    RequestTooLarge, RequestTooSlow, AnswerTooSlow, ServerBusy, RequestForbidden
├── TrainingError   BadQuestions, NothingToLearn, BadVectors, BadSetting, NonFiniteLoss, BadLaunch, UnknownDevice,
│                   DeviceFull
└── RunError        RunMissing, RunUnusable, RunMismatch
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Self


class KBToolsError(Exception):
    """The root of all errors that kbtools raises; `facts` holds the values of the message."""

    def __init__(self, message: str, **facts: object) -> None:
        super().__init__(message)
        self.facts: dict[str, Any] = facts

    @classmethod
    def at(cls, path: object, problem: str, *, line: int | None = None) -> Self:
        """Return an error about a file or a folder, or about a line of a file."""
        if line is None:
            return cls(f"{path}: {problem}", path=str(path))
        return cls(f"{path}:{line}: {problem}", path=str(path), line=line)

    def __reduce__(self) -> tuple[Callable[..., "KBToolsError"], tuple[object, ...]]:
        return partial(type(self), **self.facts), (str(self),)


class InputError(KBToolsError):
    """A source that cannot be used."""


class SourceMissing(InputError):
    """A source that does not exist, or is not a regular file."""


class SourceEmpty(InputError):
    """A source without a single line."""


class SourceDamaged(InputError):
    """A compressed source that is truncated or damaged."""


class WrongFormat(InputError):
    """A source in another format than its option expects."""


class BadLine(InputError):
    """An unreadable line, if the caller wants to stop at the first."""


class TooManyBadLines(InputError):
    """A source with more unreadable lines than allowed."""


class BuildError(KBToolsError):
    """A build that cannot be done."""


class NothingBuilt(BuildError):
    """A stage of a build that produced nothing."""


class BuildLocked(BuildError):
    """A folder that another process is building."""


class OutputUnusable(BuildError):
    """A target that is not a knowledge base, or cannot be written."""


class MemoryExhausted(BuildError):
    """Work tables, vectors or facts that do not fit in the allowed memory."""


class DiskFull(BuildError):
    """A disk that became full during a write."""


class ServerError(KBToolsError):
    """A failed request to a cluster."""


class Unreachable(ServerError):
    """A connection to a cluster that was refused, closed or timed out, or a failure of TLS."""


class NotAllowed(ServerError):
    """Credentials that a cluster rejects, or that lack a privilege."""


class WrongServer(ServerError):
    """A server that is not Elasticsearch, or has an unsupported version."""


class BulkFailed(ServerError):
    """Documents that a cluster rejected: their number, and the first of each kind."""


class NameTaken(ServerError):
    """An existing index of the same name that kbtools did not create."""


class KBMissing(KBToolsError):
    """A path without a knowledge base."""


class KBUnusable(KBToolsError):
    """A knowledge base of another version, damaged, or closed."""


class VectorsMissing(KBToolsError):
    """A knowledge base without entity vectors."""


class IncomingMissing(KBToolsError):
    """A knowledge base without an index from objects to facts."""


class UnknownEntity(KBToolsError):
    """An id that is not in the knowledge base."""


class BadArgument(KBToolsError, ValueError):
    """An argument of another type, or out of range."""


class NoIRI(KBToolsError, ValueError):
    """An id that cannot be written in a SPARQL query."""


class UnknownType(KBToolsError):
    """A type that is not in the knowledge base."""


class UnknownLanguage(KBToolsError):
    """A language without names in the knowledge base."""


class UnknownPlugin(KBToolsError):
    """A name that no plugin has."""


class BrokenPlugin(KBToolsError):
    """A plugin that cannot be loaded or breaks its contract."""


class UntrustedPlugin(KBToolsError):
    """A file that names a class other than an installed plugin."""


class MissingDependency(KBToolsError):
    """An optional package that the request needs."""


class ModelError(KBToolsError):
    """A trained model that cannot be used."""


class ModelMissing(ModelError):
    """A missing folder of models, or one without a model of that name."""


class ModelUnusable(ModelError):
    """A model of another version, or a damaged one."""


class CheckpointMismatch(ModelError):
    """A model trained on other relations or types than the knowledge base has."""


class RequestError(KBToolsError):
    """A request that the server refuses."""


class RequestTooLarge(RequestError):
    """A request beyond the limit of its size."""


class RequestTooSlow(RequestError):
    """A request that does not arrive in time."""


class AnswerTooSlow(RequestError):
    """An answer that takes longer than the server allows."""


class ServerBusy(RequestError):
    """A server whose queue is full."""


class RequestForbidden(RequestError):
    """A request with a host name, or from another site, that the server does not serve."""


class TrainingError(KBToolsError):
    """A training that cannot be done."""


class BadQuestions(TrainingError):
    """Question files without anything to learn."""


class NothingToLearn(TrainingError):
    """A knowledge base or questions without what a model needs."""


class BadVectors(TrainingError):
    """Invalid word or entity vectors."""


class BadSetting(TrainingError):
    """An unknown setting, or an invalid value."""


class NonFiniteLoss(TrainingError):
    """A batch whose loss is not a finite number."""


class BadLaunch(TrainingError):
    """Processes of a launcher with different files."""


class UnknownDevice(TrainingError):
    """A device that this machine or this torch does not have."""


class DeviceFull(TrainingError):
    """A batch that does not fit into the device's memory."""


class RunError(KBToolsError):
    """A comparison that cannot continue, or cannot be read."""


class RunMissing(RunError):
    """A folder without a run of kbtools compare."""


class RunUnusable(RunError):
    """A run that is damaged, or of another version."""


class RunMismatch(RunError):
    """A run over another knowledge base or other questions."""
