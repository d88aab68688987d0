"""Learned rankers among trained models: what each was fitted on; a file keeps them by pruner and scorers."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from kbtools.entry_points import RANKERS, construct, load_class
from kbtools.errors import CheckpointMismatch, KBUnusable, ModelUnusable
from kbtools.ranking import features
from kbtools.ranking.cascade import Cascade, Doubt
from kbtools.ranking.confidence import Calibration
from kbtools.ranking.model_store import check_plugin, write_listed
from kbtools.ranking.models import RANKER, TAGGER, model_digest, model_folder, scorer_names
from kbtools.ranking.rankers import LearnedScoring, Ranker
from kbtools.ranking.weights import Weights
from kbtools.record_files import read_record

FORMAT_NAME, FORMAT_VERSION = "kbtools-rankers", 3
WITHOUT_DOUBT = 2
"""The version before, of the same records but for cascades."""

FILE = "rankers.msgpack"
CURE = "run kbtools train ranking again"

FittedRankers = dict[str, "Fitted"]
"""Rankers by their names that were fitted for one pruner and its scorers; the last ranks where nobody chose."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """A ranker as training left it: its plugin, its model and those that it was fitted on, by their digests.

    `confidence` and `correct` are the steps of its calibration. `doubt` tells of the ranker that decides before it, if
    one does: then it ranks what that one leaves in doubt, and its calibration is that of such questions.
    """

    ranker: str
    model: str
    fitted_on: dict[str, str]
    weights: dict[str, float]
    confidence: list[float]
    correct: list[float]
    features: int = features.VERSION
    doubt: Doubt | None = None

    @property
    def calibration(self) -> Calibration:
        return Calibration(np.array(self.confidence), np.array(self.correct))


def ranker_folder(models: Path, name: str, key: str) -> Path:
    """Say where a ranker lies that was fitted for a pruner and its scorers."""
    return model_folder(models, RANKER, name) / quote(key, safe="+, ").replace(" ", "~")


def read_fitted(models: Path | None) -> dict[str, FittedRankers]:
    """Read which rankers a folder of models has, by pruner and scorers; raise ModelUnusable where that is damaged."""
    if models is None or not (models / FILE).is_file():
        return {}
    try:
        record = read_rankers(models / FILE)
        return {key: {one["ranker"]: from_record(one) for one in fitted} for key, fitted in record.items()}
    except (KBUnusable, KeyError, TypeError) as error:
        raise ModelUnusable(
            f"{models / FILE}: damaged, or of another version; delete it, then {CURE}", path=str(models / FILE)
        ) from error


def read_rankers(path: Path) -> dict[str, Any]:
    """Read the record of rankers, of this version or the one before."""
    try:
        return read_record(path, name=FORMAT_NAME, version=FORMAT_VERSION, cure=CURE)
    except KBUnusable as error:
        if error.facts.get("found") != (FORMAT_NAME, WITHOUT_DOUBT):
            raise
    return read_record(path, name=FORMAT_NAME, version=WITHOUT_DOUBT, cure=CURE)


def from_record(record: dict[str, Any]) -> Fitted:
    """Rebuild what is known of a ranker."""
    doubt = record.pop("doubt", None)
    return Fitted(**record, doubt=None if doubt is None else Doubt(**doubt))


def keep_fitted(models: Path, key: str, fitted: Fitted) -> None:
    """Record a ranker that answers for a pruner and its scorers from now on, beside those that did before."""
    before = {name: one for name, one in read_fitted(models).get(key, {}).items() if name != fitted.ranker}
    write_fitted(models, read_fitted(models) | {key: before | {fitted.ranker: fitted}})


def forget_fitted(models: Path, key: str) -> None:
    """Forget the rankers of a pruner and its scorers, so that the weighted sum answers for them."""
    rankers = read_fitted(models)
    if rankers.pop(key, None):
        write_fitted(models, rankers)


def write_fitted(models: Path, rankers: Mapping[str, FittedRankers]) -> None:
    record = {key: [asdict(fitted) for fitted in by_name.values()] for key, by_name in sorted(rankers.items())}
    write_listed(models / FILE, record, name=FORMAT_NAME, version=FORMAT_VERSION)


def check_fitted(models: Path, key: str, fitted: Fitted, *, present: Mapping[str, str]) -> None:
    """Check that a ranker is up to date; `present` holds the digests of the models that it ranks by now.

    Raises CheckpointMismatch where it was fitted on others or on other features.
    """
    folder = ranker_folder(models, fitted.ranker, key)
    changed = {name for name, _ in fitted.fitted_on.items() ^ present.items()}
    # Records of old name scorers alone: what guided the pruner then is not known.
    others = sorted(name for name in changed if name in fitted.fitted_on or not name.startswith(f"{TAGGER}/"))
    if others or fitted.features != features.VERSION:
        reason = f"another training of {', '.join(others)}" if others else "features of another version of kbtools"
        raise CheckpointMismatch(f"{folder}: fitted on {reason}; {CURE}", path=str(folder))


def load_ranker(models: Path, key: str, fitted: Fitted) -> LearnedScoring:
    """Rebuild a ranker; raise as a plugin's `load` does, ModelUnusable where it is another than training left."""
    folder = ranker_folder(models, fitted.ranker, key)
    plugin = load_class(RANKERS, fitted.ranker)
    check_plugin(folder, plugin, name=fitted.ranker)
    ranker: Ranker = construct(fitted.ranker, lambda: plugin.load(folder))
    if model_digest(folder) != fitted.model:
        raise ModelUnusable(f"{folder}: not the ranker that {models / FILE} names; {CURE}", path=str(folder))
    return LearnedScoring(fitted.ranker, ranker, Weights(**fitted.weights), fitted.calibration)


def load_cascade(
    models: Path, key: str, fitted: Fitted, *, scorer: str, first_key: str, first: Fitted | None, doubt: Doubt
) -> Cascade:
    """Rebuild the ranker of the first scorers now, and the one over all when a question is in doubt.

    Raises CheckpointMismatch where the first is another than the one beside which the doubt was measured, and as
    `load_ranker` does.
    """
    if first is None or first.doubt or first.model != doubt.model:
        folder = ranker_folder(models, fitted.ranker, first_key)
        raise CheckpointMismatch(
            f"{folder}: fitted again, or forgotten, since it decides before the ranker of {key!r}; {CURE} with "
            "--in-doubt",
            path=str(folder),
        )
    return Cascade(
        fitted.ranker,
        replace(load_ranker(models, first_key, first), calibration=doubt.calibration),
        lambda: load_ranker(models, key, fitted),
        tuple(scorer_names(scorer)),
        doubt,
        Weights(**fitted.weights),
    )
