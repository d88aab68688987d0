"""What the stages of a comparison depend on: a stage is computed again when its fingerprint changes, and only then."""

import functools
import hashlib
import inspect
from dataclasses import asdict, dataclass
from pathlib import Path

import kbtools
from kbtools.answering import Answerer
from kbtools.comparison.columns import digest
from kbtools.comparison.grid import Cell
from kbtools.kb.contract import KnowledgeBase
from kbtools.plugins import SCORERS, SUBJECT_SCORERS, TAGGERS, list_plugins, load_plugin, target
from kbtools.pruning.pruners import guide_of
from kbtools.questions import AnnotatedQuestion
from kbtools.ranking.joint import Weights
from kbtools.ranking.models import RELATION, SUBJECT, TAGGER, plugin_folder
from kbtools.ranking.ranking import DECIMALS
from kbtools.text.normaliser import NORMALISER_VERSION
from kbtools.version import __version__

STAGES = 1
"""Rises when the code of a stage changes what it gives."""

LINKING = ("text", "linking", "pruning")
"""The packages that decide what a pool holds."""


def kb_digest(kb: KnowledgeBase) -> str:
    """Fingerprint the content of a knowledge base, with the order of its relations."""
    return digest(kb.manifest.digest, NORMALISER_VERSION, list(kb.relations))


def questions_digest(questions: list[AnnotatedQuestion]) -> str:
    """Fingerprint questions with their gold, in order."""
    return digest([(one.subject, one.relation, one.object, one.text) for one in questions])


def scorer_identity(names: str, models: Path | None) -> str:
    """Fingerprint a relation scorer: the plugins it names, their versions, and the files of their models."""
    return digest([plugin_identity(SCORERS, name.strip(), part=RELATION, models=models) for name in names.split(",")])


def subject_identity(cell: Cell, models: Path | None) -> str:
    """Fingerprint the subject scorer of a cell."""
    name = cell.subject_scorer
    return digest(plugin_identity(SUBJECT_SCORERS, name, part=SUBJECT, models=models) if name else cell.subject)


def pruner_identity(answerer: Answerer, name: str) -> str:
    """Fingerprint a pruner: its name, and the tagger or the vectors that guide it."""
    guide: object = None
    pruner = answerer.pruner(name)
    if guide_of(pruner) == "tagger":
        guide = plugin_identity(TAGGERS, answerer.tagger, part=TAGGER, models=answerer.models)
    if guide_of(pruner) == "vectors":
        vectors = answerer.kb.vectors()
        guide = [asdict(vectors.origin), vectors.dim, len(vectors)]
    return digest([name, getattr(pruner, "version", 0), guide])


def tagger_identity(name: str, models: Path | None) -> str:
    """Fingerprint a tagger."""
    return digest(plugin_identity(TAGGERS, name, part=TAGGER, models=models))


def plugin_identity(group: str, name: str, *, part: str, models: Path | None) -> list[object]:
    """Tell one version of a plugin from another: what offers it, its code, and its model, which may be another's."""
    points = list_plugins(group).get(name, [])
    offers = [[target(point), point.dist.version if point.dist else ""] for point in points]
    plugin = load_plugin(group, name) if points or ":" in name else None
    folder = plugin_folder(models, part, name, plugin) if models else None
    return [name, offers, source_digest(plugin), folder_digest(folder) if folder and folder.is_dir() else None]


def source_digest(plugin: object) -> str | None:
    """Fingerprint the file that a plugin is written in, if it is one."""
    try:
        path = Path(inspect.getfile(plugin))  # type: ignore[arg-type]
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except (TypeError, OSError):
        return None


@functools.cache
def pruning_code() -> str:
    """Fingerprint the code that decides what pools hold, so that a changed pruner is not mistaken for the old one."""
    package = Path(kbtools.__file__).parent
    files = [path for name in LINKING for path in sorted((package / name).glob("*.py"))]
    return digest([hashlib.sha256(path.read_bytes()).hexdigest() for path in files])


def folder_digest(folder: Path) -> str:
    """Fingerprint the files of a folder."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return digest([[str(path.relative_to(folder)), hashlib.sha256(path.read_bytes()).hexdigest()] for path in files])


@dataclass(frozen=True, slots=True)
class Fingerprints:
    """The fingerprints of every stage of a run over one knowledge base and one list of questions.

    Pruners and scorers are named by their identities.
    """

    kb: str
    questions: str

    def gold(self) -> str:
        return digest("gold", STAGES, __version__, self.kb, self.questions)

    def pools(self, pruner: str) -> str:
        return digest("pools", self.gold(), pruning_code(), pruner)

    def tagger(self, tagger: str) -> str:
        return digest("tagger", self.gold(), tagger)

    def scores(self, pruner: str, scorer: str) -> str:
        return digest("scores", self.pools(pruner), scorer)

    def cell(self, pruner: str, scorer: str, subject: str, weights: Weights) -> str:
        scores = self.scores(pruner, scorer), self.scores(pruner, subject)
        return digest("cell", *scores, DECIMALS, asdict(weights))
