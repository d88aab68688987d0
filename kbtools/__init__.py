"""Answer questions over large knowledge bases: index, prune, rank, answer."""

from importlib import import_module
from typing import TYPE_CHECKING

from kbtools.errors import (
    AnswerTooSlow,
    BadArgument,
    BadLaunch,
    BadLine,
    BadQuestions,
    BadSetting,
    BadVectors,
    BrokenPlugin,
    BuildError,
    BuildLocked,
    BulkFailed,
    CheckpointMismatch,
    DeviceFull,
    DiskFull,
    IncomingMissing,
    InputError,
    KBMissing,
    KBToolsError,
    KBUnusable,
    MemoryExhausted,
    MissingDependency,
    ModelError,
    ModelMissing,
    ModelUnusable,
    NameTaken,
    NoIRI,
    NonFiniteLoss,
    NotAllowed,
    NothingBuilt,
    NothingToLearn,
    OutputUnusable,
    RequestError,
    RequestForbidden,
    RequestTooLarge,
    RequestTooSlow,
    RunError,
    RunMismatch,
    RunMissing,
    RunUnusable,
    ServerBusy,
    ServerError,
    SourceDamaged,
    SourceEmpty,
    SourceMissing,
    TooManyBadLines,
    TrainingError,
    UnknownDevice,
    UnknownEntity,
    UnknownPlugin,
    UnknownType,
    Unreachable,
    VectorsMissing,
    WrongFormat,
    WrongServer,
)
from kbtools.version import __version__

if TYPE_CHECKING:
    from kbtools.answering import Answerer
    from kbtools.answering import open_kb as open
    from kbtools.explaining import explain
    from kbtools.frames import to_arrow, to_frame
    from kbtools.indexing import index
    from kbtools.records import Entity, EntityMatch, Fact, Facts, LinkedMention, LinkedText, LookupResult, Named
    from kbtools.results import Answer, Bearer, Candidate, Mention, Result

__all__ = [
    "Answer",
    "AnswerTooSlow",
    "Answerer",
    "BadArgument",
    "BadLaunch",
    "BadLine",
    "BadQuestions",
    "BadSetting",
    "BadVectors",
    "Bearer",
    "BrokenPlugin",
    "BuildError",
    "BuildLocked",
    "BulkFailed",
    "Candidate",
    "CheckpointMismatch",
    "DeviceFull",
    "DiskFull",
    "Entity",
    "EntityMatch",
    "Fact",
    "Facts",
    "IncomingMissing",
    "InputError",
    "KBMissing",
    "KBToolsError",
    "KBUnusable",
    "LinkedMention",
    "LinkedText",
    "LookupResult",
    "MemoryExhausted",
    "Mention",
    "MissingDependency",
    "ModelError",
    "ModelMissing",
    "ModelUnusable",
    "NameTaken",
    "Named",
    "NoIRI",
    "NonFiniteLoss",
    "NotAllowed",
    "NothingBuilt",
    "NothingToLearn",
    "OutputUnusable",
    "RequestError",
    "RequestForbidden",
    "RequestTooLarge",
    "RequestTooSlow",
    "Result",
    "RunError",
    "RunMismatch",
    "RunMissing",
    "RunUnusable",
    "ServerBusy",
    "ServerError",
    "SourceDamaged",
    "SourceEmpty",
    "SourceMissing",
    "TooManyBadLines",
    "TrainingError",
    "UnknownDevice",
    "UnknownEntity",
    "UnknownPlugin",
    "UnknownType",
    "Unreachable",
    "VectorsMissing",
    "WrongFormat",
    "WrongServer",
    "__version__",
    "explain",
    "index",
    "open",
    "to_arrow",
    "to_frame",
]

RESULTS = ("Answer", "Bearer", "Candidate", "Mention", "Result")
RECORDS = ("Entity", "EntityMatch", "Fact", "Facts", "LinkedMention", "LinkedText", "LookupResult", "Named")
HOMES = {
    "Answerer": "answering",
    "explain": "explaining",
    "index": "indexing",
    "open": "answering",
    "to_arrow": "frames",
    "to_frame": "frames",
    **dict.fromkeys(RESULTS, "results"),
    **dict.fromkeys(RECORDS, "records"),
}


def __getattr__(name: str) -> object:
    """Import what is asked for when it is asked for, so that `kbtools --help` loads no more than it needs."""
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"kbtools.{HOMES[name]}"), "open_kb" if name == "open" else name)


def __dir__() -> list[str]:
    return sorted(__all__)
