"""Answer questions over large knowledge bases: index, prune, rank, answer."""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from kbtools.errors import *
from kbtools.version import __version__

if TYPE_CHECKING:
    from kbtools.answering.answerer import Answerer
    from kbtools.answering.answerer import open_kb as open
    from kbtools.answering.explaining import explain
    from kbtools.answering.frames import to_arrow, to_frame
    from kbtools.answering.records import (
        Entity,
        EntityMatch,
        Fact,
        Facts,
        LinkedMention,
        LinkedText,
        LookupResult,
        Missing,
        Skipped,
        UpdateResult,
    )
    from kbtools.answering.results import Answer, Candidate, Mention, Named, Result
    from kbtools.comparison.comparing import Comparison, compare
    from kbtools.comparison.whole_training import Training, train
    from kbtools.indexing import compact, index, update
    from kbtools.ranking.system import System

_CLONE = Path(__file__).resolve().parents[1]
if (_CLONE / "setup.cfg").is_file():
    # Inside a clone, Python imports this folder; the other folders of the package are beside it.
    __path__.append(str(_CLONE))

__all__ = [
    "Answer", "AnswerTooSlow", "Answerer", "BadArgument", "BadLaunch", "BadLine", "BadQuestions", "BadSetting",
    "BadVectors", "BrokenPlugin", "BuildError", "BuildLocked", "BulkFailed", "Candidate", "CheckpointMismatch",
    "Comparison", "DeviceFull", "DiskFull", "Entity", "EntityMatch", "Fact", "Facts", "IncomingMissing", "InputError",
    "KBMissing", "KBToolsError", "KBUnusable", "LinkedMention", "LinkedText", "LookupResult", "MemoryExhausted",
    "Mention", "Missing", "MissingDependency", "ModelError", "ModelMissing", "ModelUnusable", "NameTaken", "Named",
    "NoIRI", "NonFiniteLoss", "NotAllowed", "NothingBuilt", "NothingToLearn", "OutputUnusable", "RequestError",
    "RequestForbidden", "RequestTooLarge", "RequestTooSlow", "Result", "RunError", "RunMismatch", "RunMissing",
    "RunUnusable", "ServerBusy", "ServerError", "Skipped", "SourceDamaged", "SourceEmpty", "SourceMissing", "System",
    "TooManyBadLines", "Training", "TrainingError", "UnknownDevice", "UnknownEntity", "UnknownLanguage",
    "UnknownPlugin", "UnknownType", "Unreachable", "UntrustedPlugin", "UpdateResult", "VectorsMissing", "WrongFormat",
    "WrongServer", "__version__", "compact", "compare", "explain", "index", "open", "to_arrow", "to_frame", "train",
    "update",
]  # fmt: skip

_HOMES = {
    name: module
    for module, names in {
        "answering.answerer": "Answerer open",
        "answering.explaining": "explain",
        "answering.frames": "to_arrow to_frame",
        "answering.records": "Entity EntityMatch Fact Facts LinkedMention LinkedText LookupResult Missing Skipped "
        "UpdateResult",
        "answering.results": "Answer Candidate Mention Named Result",
        "comparison.comparing": "Comparison compare",
        "comparison.whole_training": "Training train",
        "indexing": "compact index update",
        "ranking.system": "System",
    }.items()
    for name in names.split()
}
"""The module of each lazily imported name."""


def __getattr__(name: str) -> object:
    """Import a name on first use, so that `kbtools --help` loads only what it needs."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"kbtools.{_HOMES[name]}"), "open_kb" if name == "open" else name)


def __dir__() -> list[str]:
    return sorted(__all__)
