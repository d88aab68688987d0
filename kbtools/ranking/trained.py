"""The systems that training chose, stored in one file of a folder of models, and their rankers."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import quote

from kbtools.entry_points import RANKERS, construct, load_class
from kbtools.errors import CheckpointMismatch, KBUnusable, ModelUnusable
from kbtools.ranking import features
from kbtools.ranking.model_store import check_plugin, require_records, write_listed
from kbtools.ranking.models import RANKER, model_digest, model_folder
from kbtools.ranking.rankers import LearnedScoring, Ranker
from kbtools.ranking.system import NO_SUBJECT, POPULARITY, FittedRanker, System
from kbtools.record_files import read_record

FORMAT_NAME, FORMAT_VERSION = "kbtools-systems", 1
FILE = "systems.msgpack"
_CURE = "run kbtools train ranking again"


@dataclass(slots=True, eq=False)
class TrainedSystems:
    """The default system, and the systems chosen for each pruner with its scorers, oldest first.

    Without a folder they are only kept in memory.
    """

    folder: Path | None = None
    default: System | None = None
    systems: list[System] = field(default_factory=list)

    def weighted(self, system: System) -> System | None:
        """Return the weighted sum chosen for the parts of a system; `none` also accepts that of `popularity`."""
        sums = {one.key: one for one in self.systems if not one.ranker}
        subjects = (system.subject, POPULARITY) if system.subject == NO_SUBJECT else (system.subject,)
        keys = (replace(system, subject=subject).key for subject in subjects)
        return next((sums[key] for key in keys if key in sums), None)

    def learned(self, key: str) -> dict[str, System]:
        """Return the systems with learned rankers for a pruner and scorers, by ranker; the last is the default."""
        return {system.ranker.name: system for system in self.systems if system.key == key and system.ranker}

    def choose(self, system: System) -> None:
        """Save a system as the default."""
        self.refresh()
        self.default = system
        self.write()

    def keep(self, system: System) -> None:
        """Save a system, replacing one of the same parts."""
        self.refresh()
        same = (system.key, system.ranker_name)
        self.systems = [*(other for other in self.systems if (other.key, other.ranker_name) != same), system]
        self.write()

    def forget_learned(self, key: str) -> None:
        """Remove the learned rankers of a pruner and its scorers, so that the weighted sum is used."""
        self.refresh()
        self.systems = [system for system in self.systems if system.key != key or not system.ranker]
        self.write()

    def refresh(self) -> None:
        """Read the file again, which another training may have changed."""
        if self.folder:
            newest = read_systems(self.folder)
            self.default, self.systems = newest.default, newest.systems

    def write(self) -> None:
        if self.folder:
            import msgspec

            record = msgspec.to_builtins({"default": self.default, "systems": self.systems})
            self.folder.mkdir(parents=True, exist_ok=True)
            write_listed(self.folder / FILE, record, name=FORMAT_NAME, version=FORMAT_VERSION)


def read_systems(folder: Path | None) -> TrainedSystems:
    """Return the systems of a folder of models, none if it has none; raise ModelUnusable for a damaged file."""
    if folder is not None:
        require_records(folder, [FILE])
    if folder is None or not (folder / FILE).is_file():
        return TrainedSystems(folder)
    import msgspec

    try:
        record = read_record(folder / FILE, name=FORMAT_NAME, version=FORMAT_VERSION, cure=_CURE)
        default = msgspec.convert(record["default"], System | None)
        return TrainedSystems(folder, default, msgspec.convert(record["systems"], list[System]))
    except (KBUnusable, KeyError, msgspec.ValidationError) as error:
        path = folder / FILE
        raise ModelUnusable.at(path, f"damaged, or of another version; delete it, then {_CURE}") from error


def ranker_folder(models: Path, name: str, key: str) -> Path:
    """Return the folder of a ranker that was fitted for a pruner and its scorers."""
    return model_folder(models, RANKER, name) / quote(key, safe="+, ").replace(" ", "~")


def check_fitted(models: Path, system: System, ranker: FittedRanker, *, present: Mapping[str, str]) -> None:
    """Raise CheckpointMismatch if a ranker was fitted on other models or features.

    `present` maps the models that it reads now to their digests.
    """
    folder = ranker_folder(models, ranker.name, system.key)
    others = sorted({name for name, _ in set(ranker.fitted_on) ^ present.items()})
    if others or ranker.features != features.VERSION:
        reason = f"another training of {', '.join(others)}" if others else "features of another version of kbtools"
        raise CheckpointMismatch.at(folder, f"fitted on {reason}; {_CURE}")


def load_ranker(models: Path, system: System, ranker: FittedRanker) -> LearnedScoring:
    """Return a fitted ranker; raise as a plugin's `load` does, ModelUnusable if training wrote a different one."""
    folder = ranker_folder(models, ranker.name, system.key)
    plugin = load_class(RANKERS, ranker.name)
    check_plugin(folder, plugin, name=ranker.name)
    loaded: Ranker = construct(ranker.name, lambda: plugin.load(folder))
    if model_digest(folder) != ranker.digest:
        raise ModelUnusable.at(folder, f"not the ranker that {models / FILE} names; {_CURE}")
    return LearnedScoring(ranker.name, loaded, system.weights, ranker.calibration)


def load_first(models: Path, system: System, first: System) -> LearnedScoring:
    """Return the first ranker of a cascade; raise CheckpointMismatch if it was fitted again later."""
    assert first.ranker  # the first system of a cascade is a learned one
    folder = ranker_folder(models, first.ranker.name, first.key)
    if model_digest(folder) != first.ranker.digest:
        raise CheckpointMismatch.at(
            folder, f"changed since the ranker of {system.key!r} was fitted after it; {_CURE} with --in-doubt"
        )
    return load_ranker(models, first, first.ranker)
