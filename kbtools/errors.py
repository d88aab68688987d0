"""Errors, as one tree: a class for each fact that a caller can act on.

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
        """Return the error of a file or a folder, or of a line of a file."""
        if line is None:
            return cls(f"{path}: {problem}", path=str(path))
        return cls(f"{path}:{line}: {problem}", path=str(path), line=line)

    def __reduce__(self) -> tuple[Callable[..., "KBToolsError"], tuple[object, ...]]:
        return partial(type(self), **self.facts), (str(self),)


class InputError(KBToolsError):
    """A source that cannot be used."""


class SourceMissing(InputError):
    """A source that is not there, or is no file."""


class SourceEmpty(InputError):
    """A source without a single line."""


class SourceDamaged(InputError):
    """A compressed source that ends early or does not unpack."""


class WrongFormat(InputError):
    """A source that is not in the format its option expects."""


class BadLine(InputError):
    """A line that cannot be read, where the caller asked to stop at the first."""


class TooManyBadLines(InputError):
    """A source with more unreadable lines than are allowed."""


class BuildError(KBToolsError):
    """A build that cannot be done."""


class NothingBuilt(BuildError):
    """A stage of a build that produced nothing."""


class BuildLocked(BuildError):
    """A folder that another process is building."""


class OutputUnusable(BuildError):
    """A target that is not a knowledge base, or cannot be written."""


class MemoryExhausted(BuildError):
    """Work tables of a build, vectors or facts that do not fit in the memory that they may use."""


class DiskFull(BuildError):
    """A disk that filled up while something was written."""


class ServerError(KBToolsError):
    """A cluster that does not do what it was asked."""


class Unreachable(ServerError):
    """A cluster that refused, cut the connection or took too long, or whose TLS did not agree."""


class NotAllowed(ServerError):
    """Credentials that a cluster does not take, or that lack a privilege."""


class WrongServer(ServerError):
    """A server that is no Elasticsearch, or of a version that this kbtools does not speak to."""


class BulkFailed(ServerError):
    """Documents that a cluster rejected, counted, with the first of each kind."""


class NameTaken(ServerError):
    """An index that has the name already and that kbtools did not make."""


class KBMissing(KBToolsError):
    """A path without a knowledge base."""


class KBUnusable(KBToolsError):
    """A knowledge base of another version, damaged, or closed."""


class VectorsMissing(KBToolsError):
    """A knowledge base without entity vectors."""


class IncomingMissing(KBToolsError):
    """A knowledge base without an index from objects to facts."""


class UnknownEntity(KBToolsError):
    """An id that the knowledge base does not hold."""


class BadArgument(KBToolsError, ValueError):
    """An argument of a call that is of another type or out of range."""


class NoIRI(KBToolsError, ValueError):
    """An id that no SPARQL query can name."""


class UnknownType(KBToolsError):
    """A type that the knowledge base does not hold."""


class UnknownLanguage(KBToolsError):
    """A language that no name of the knowledge base is in."""


class UnknownPlugin(KBToolsError):
    """A name that no plugin has."""


class BrokenPlugin(KBToolsError):
    """A plugin that cannot be loaded or breaks its contract."""


class UntrustedPlugin(KBToolsError):
    """A file that names a class which is no installed plugin."""


class MissingDependency(KBToolsError):
    """An optional package that the request needs."""


class ModelError(KBToolsError):
    """A trained model that cannot be used."""


class ModelMissing(ModelError):
    """A folder of models that is not there, or holds no model of a name."""


class ModelUnusable(ModelError):
    """A model of another version, or a damaged one."""


class CheckpointMismatch(ModelError):
    """A model that knows other relations or types than the knowledge base has."""


class RequestError(KBToolsError):
    """A request that the server turns away."""


class RequestTooLarge(RequestError):
    """A request beyond the limit of its size."""


class RequestTooSlow(RequestError):
    """A request that does not arrive in time."""


class AnswerTooSlow(RequestError):
    """An answer that takes longer than the server allows."""


class ServerBusy(RequestError):
    """A server that has as many answers to compute as may wait."""


class RequestForbidden(RequestError):
    """A request by a name, or for a page of another site, that the server does not answer."""


class TrainingError(KBToolsError):
    """A training that cannot be done."""


class BadQuestions(TrainingError):
    """Question files that cannot be learned from."""


class NothingToLearn(TrainingError):
    """A knowledge base or questions without what a model learns from."""


class BadVectors(TrainingError):
    """Word or entity vectors that are not what they should be."""


class BadSetting(TrainingError):
    """A setting that does not exist, or a value that it cannot have."""


class NonFiniteLoss(TrainingError):
    """A batch whose loss is no number."""


class BadLaunch(TrainingError):
    """Processes of a launcher that see different files."""


class UnknownDevice(TrainingError):
    """A device that is not there."""


class DeviceFull(TrainingError):
    """A device whose memory does not hold a batch."""


class RunError(KBToolsError):
    """A comparison that cannot go on, or cannot be read."""


class RunMissing(RunError):
    """A folder without a run of kbtools compare."""


class RunUnusable(RunError):
    """A run that is damaged, or of another version."""


class RunMismatch(RunError):
    """A run over another knowledge base or other questions."""
