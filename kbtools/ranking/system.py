"""The system that answers a question, by the names of its parts, and the file where training records its choice."""

from dataclasses import asdict, dataclass
from pathlib import Path

from kbtools.entry_points import PRUNERS, RANKERS, SCORERS, SUBJECT_SCORERS, TAGGERS, require_installed
from kbtools.errors import KBUnusable, ModelUnusable
from kbtools.quick_records import quick_record
from kbtools.ranking.model_store import write_listed
from kbtools.ranking.weights import PRESETS
from kbtools.record_files import read_record

FORMAT_NAME, FORMAT_VERSION = "kbtools-query", 1
FILE = "query.msgpack"


@quick_record
@dataclass(frozen=True, slots=True)
class System:
    """A pruner with the tagger that may guide it, relation scorers and a subject scorer; without one, popularity.

    `weights` names the preset of weights where none were chosen, `ranker` what ranks in place of what training left.
    """

    pruning: str
    scorer: str
    subject: str | None
    tagger: str
    weights: str | None = None
    ranker: str | None = None


def read_system(models: Path | None, *, trust_plugins: bool = False) -> System | None:
    """Read what training chose for a folder of models, None if it did not.

    Raises ModelUnusable for a damaged record, UntrustedPlugin for one that names other than installed plugins.
    """
    if models is None or not (models / FILE).is_file():
        return None
    cure = "choose again with kbtools train"
    try:
        system = System(**read_record(models / FILE, name=FORMAT_NAME, version=FORMAT_VERSION, cure=cure))
        names = {PRUNERS: system.pruning, SCORERS: system.scorer, TAGGERS: system.tagger}
        names |= {SUBJECT_SCORERS: system.subject or "", RANKERS: system.ranker or ""}
        for group, name in names.items():
            require_installed(group, name, file=models / FILE, trusted=trust_plugins)
    except (KBUnusable, TypeError) as error:
        raise ModelUnusable(
            f"{models / FILE}: damaged, or of another version; {cure}", path=str(models / FILE)
        ) from error
    if system.weights not in (None, *PRESETS):
        raise ModelUnusable(f"{models / FILE}: no weights {system.weights!r}; {cure}", path=str(models / FILE))
    return system


def keep_system(models: Path, system: System) -> None:
    """Record what training chose, for later questions over the same models."""
    write_listed(models / FILE, asdict(system), name=FORMAT_NAME, version=FORMAT_VERSION)
