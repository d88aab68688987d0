"""A trained model in a folder: what it is, what it knows, its weights; enough to rebuild it with nothing else."""

import hashlib
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from kbtools.errors import CheckpointMismatch, KBUnusable, ModelMissing, ModelUnusable
from kbtools.ranking.models import RECORD
from kbtools.storage import built_folder, read_record, write_record

FORMAT_NAME, FORMAT_VERSION = "kbtools-model", 1
WEIGHTS = "weights.pt"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A model on disk; `rows` are the relations or types that its table has a row for, in order.

    `made_of` tells one training from another: a digest of its settings and its questions.
    """

    kind: str
    config: dict[str, Any]
    vocabulary: tuple[str, ...]
    rows: tuple[str, ...]
    weights: dict[str, Tensor]
    made_of: str = ""
    figures: dict[str, float] = field(default_factory=dict)


def write_checkpoint(folder: Path, checkpoint: Checkpoint) -> None:
    """Write a model; the folder appears whole or not at all."""
    with built_folder(folder) as building:
        torch.save({name: tensor.detach().cpu() for name, tensor in checkpoint.weights.items()}, building / WEIGHTS)
        record = {
            "kind": checkpoint.kind,
            "config": checkpoint.config,
            "vocabulary": list(checkpoint.vocabulary),
            "rows": list(checkpoint.rows),
            "made_of": checkpoint.made_of,
            "figures": checkpoint.figures,
            "weights": hashlib.sha256((building / WEIGHTS).read_bytes()).hexdigest(),
        }
        write_record(building / RECORD, record, name=FORMAT_NAME, version=FORMAT_VERSION)


def read_checkpoint(folder: Path) -> Checkpoint:
    """Read a model; raise ModelMissing or ModelUnusable."""
    record = read_model_record(folder)
    try:
        data = (folder / WEIGHTS).read_bytes()
    except OSError as error:
        raise ModelUnusable(f"{folder / WEIGHTS}: {error.strerror}; train the model again", path=str(folder)) from error
    if hashlib.sha256(data).hexdigest() != record.get("weights"):
        raise ModelUnusable(f"{folder / WEIGHTS}: not what training wrote; train the model again", path=str(folder))
    weights = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    return Checkpoint(
        record["kind"],
        record["config"],
        tuple(record["vocabulary"]),
        tuple(record["rows"]),
        weights,
        record["made_of"],
        record["figures"],
    )


def read_model_record(folder: Path) -> dict[str, Any]:
    """Read what a model says of itself, without its weights."""
    if not (folder / RECORD).is_file():
        raise ModelMissing(f"{folder}: no trained model here; make it with kbtools train", path=str(folder))
    try:
        return read_record(folder / RECORD, name=FORMAT_NAME, version=FORMAT_VERSION)
    except KBUnusable as error:
        found = error.facts.get("found")
        wrong = f"found format {found}, expected {(FORMAT_NAME, FORMAT_VERSION)}" if found else "damaged"
        raise ModelUnusable(
            f"{folder / RECORD}: {wrong}; use the version of kbtools that trained it, or train it again",
            path=str(folder),
        ) from error


def match_rows(folder: Path, *, trained: Sequence[str], present: Sequence[str], what: str) -> list[int]:
    """Say which row of the model belongs to each relation or type of the knowledge base, whatever their order.

    Refuse a model whose relations or types are others than those of the knowledge base; both are named.
    """
    place = {name: row for row, name in enumerate(trained)}
    if place.keys() == set(present):
        return [place[name] for name in present]
    missing, new = sorted(set(trained) - set(present)), sorted(set(present) - set(trained))
    raise CheckpointMismatch(
        f"{folder}: trained on {len(trained):,} {what} ({digest_rows(trained)}), the knowledge base has "
        f"{len(present):,} ({digest_rows(present)}); only in the model: {sample(missing)}, only in the knowledge "
        f"base: {sample(new)}; train the model again on this knowledge base",
        path=str(folder),
    )


def sample(names: Sequence[str]) -> str:
    return (f"{names[0]!r}" + (f" and {len(names) - 1:,} more" if len(names) > 1 else "")) if names else "none"


def digest_rows(rows: Sequence[str]) -> str:
    """Tell one table from another by a few letters."""
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()[:12]
