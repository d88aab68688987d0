"""A trained model in its folder: its plugin, its record, and its weights with their digest."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, TypedDict

from kbtools.errors import KBUnusable, ModelMissing, ModelUnusable
from kbtools.record_files import file_digest, fits, read_record, write_record
from kbtools.storage import built_folder, require_ours
from kbtools.user_cache import identity, matches_digest

RECORD = "model.msgpack"
"""The record of a model."""

_FORMAT_NAME, _FORMAT_VERSION = "kbtools-model", 1
_CURE = "train the model again"

FILES = ("weights.safetensors", "model.crfsuite")
"""The weight files of networks and of the CRF over features."""

_CONTENTS, _CONTENTS_FORMAT, _CONTENTS_VERSION = "contents.msgpack", "kbtools-models", 1
"""The list of the records in a folder of models, which reveals a missing one."""


def write_listed(path: Path, record: dict[str, Any], *, name: str, version: int) -> None:
    """Write a record into a folder of models and list it."""
    write_record(path, record, name=name, version=version)
    listed = _listed_records(path.parent)
    if path.name not in listed:
        contents = {"records": [*listed, path.name]}
        write_record(path.parent / _CONTENTS, contents, name=_CONTENTS_FORMAT, version=_CONTENTS_VERSION)


def _listed_records(models: Path) -> list[str]:
    """Return the names of the records listed in a folder of models; raise ModelUnusable if the list is damaged."""
    if not (models / _CONTENTS).is_file():
        return []
    try:
        record = read_record(models / _CONTENTS, name=_CONTENTS_FORMAT, version=_CONTENTS_VERSION, cure="train again")
        return [str(name) for name in record["records"]]
    except (KBUnusable, KeyError, TypeError) as error:
        raise ModelUnusable(
            f"{models / _CONTENTS}: damaged, or of another version; delete it, then train again", path=str(models)
        ) from error


def require_records(models: Path, names: Sequence[str]) -> None:
    """Raise ModelUnusable if a listed record is missing, since others would silently replace it."""
    listed = _listed_records(models)
    missing = [name for name in listed if not (models / name).is_file()]
    if not listed and any((models / name).is_file() for name in names):
        missing = [_CONTENTS]
    if missing:
        raise ModelUnusable(
            f"{models / missing[0]}: a file of kbtools train is missing; restore it, or train again into "
            "another folder",
            path=str(models),
        )


class _ModelRecord(TypedDict):
    """The record of a model."""

    plugin: str
    made_of: str
    figures: dict[str, Any]
    contents: dict[str, Any]
    file: str
    digest: str


@dataclass(frozen=True, slots=True)
class Stamp:
    """The origin of a model: its plugin, a digest of settings and questions, its validation figures."""

    plugin: str
    made_of: str = ""
    figures: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _StoredModel:
    """A model read from its folder; its plugin loads it from `contents` and the weights."""

    stamp: Stamp
    contents: dict[str, Any]
    weights: Path


def write_model(
    folder: Path, stamp: Stamp, contents: dict[str, Any], *, file: str, write: Callable[[Path], object]
) -> None:
    """Write a model, with its weights in `file`; the folder appears completely or not at all."""
    files = _model_files(folder) | {file}
    with built_folder(folder, ours=lambda path: str(path) in files) as building:
        write(building / file)
        record = {
            **asdict(stamp),
            "contents": contents,
            "file": file,
            "digest": file_digest(building / file),
        }
        write_record(building / RECORD, record, name=_FORMAT_NAME, version=_FORMAT_VERSION)


def _model_files(folder: Path) -> set[str]:
    """Return the names of the files that training writes into the folder of a model."""
    files = {RECORD, *FILES}
    with suppress(ModelMissing, ModelUnusable):
        files.add(_read_model_record(folder)["file"])
    return files


def check_replaceable(folder: Path) -> None:
    """Raise an error if a folder holds other files than training writes; call it before training."""
    files = _model_files(folder)
    require_ours(folder, lambda path: str(path) in files)


def read_model(folder: Path) -> _StoredModel:
    """Return a model after checking its weights' digest; raise ModelMissing or ModelUnusable."""
    record = _read_model_record(folder)
    weights = folder / Path(record["file"]).name  # never a file outside this folder
    try:
        as_written = weights.is_file() and matches_digest(weights, record["digest"])
    except OSError as error:
        raise ModelUnusable(f"{weights}: {error.strerror}; {_CURE}", path=str(folder)) from error
    if not as_written:
        raise ModelUnusable(f"{weights}: not as written by training; {_CURE}", path=str(folder))
    stamp = Stamp(record["plugin"], record["made_of"], record["figures"])
    return _StoredModel(stamp, record["contents"], weights)


def _read_model_record(folder: Path) -> dict[str, Any]:
    """Return the record of a model; raise as `read_model` does."""
    if not (folder / RECORD).is_file():
        raise ModelMissing.at(folder, "no trained model here; make it with kbtools train")
    return _read_record_once(folder, identity((folder / RECORD).stat()))


@lru_cache(1)
def _read_record_once(folder: Path, state: tuple[int, ...]) -> dict[str, Any]:
    """Return a record, cached for consecutive reads: one with a large vocabulary takes 10 ms."""
    try:
        record = read_record(folder / RECORD, name=_FORMAT_NAME, version=_FORMAT_VERSION, cure=_CURE)
        if not fits(record, _ModelRecord):
            raise KBUnusable(f"{folder / RECORD}: a part is of another type")
        return record
    except KBUnusable as error:
        version = error.facts.get("found")
        wrong = f"found format {version}, expected {(_FORMAT_NAME, _FORMAT_VERSION)}" if version else "damaged"
        raise ModelUnusable(
            f"{folder / RECORD}: {wrong}; use the version of kbtools that trained it, or train it again",
            path=str(folder),
        ) from error


def check_plugin(folder: Path, plugin: object, *, name: str) -> None:
    """Raise ModelUnusable if a model was trained by another plugin; ignore folders without a record."""
    try:
        trained = _read_model_record(folder)["plugin"]
    except (ModelMissing, ModelUnusable):  # `load` of the plugin reports the problem, or reads its own format
        return
    if trained not in (name, class_path(plugin)):
        raise ModelUnusable.at(folder, f"trained as {trained!r}, requested as {name!r}; train {name!r} again")


def class_path(plugin: object) -> str:
    """Return the path of a class, `module:Class`."""
    return f"{getattr(plugin, '__module__', '')}:{getattr(plugin, '__qualname__', '')}"
