"""Fingerprints of the stages of a comparison: a stage is computed again exactly when its fingerprint changes.

Code is identified by the version number that its authors give it, models by their files.
"""

import ast
import hashlib
import inspect
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import EntryPoint
from pathlib import Path

from kbtools import version
from kbtools.answering.answerer import Answerer
from kbtools.answering.questions import AnnotatedQuestion
from kbtools.comparison.column_store import digest
from kbtools.comparison.grid import Cell
from kbtools.comparison.weight_search import GRID, SWEEPS
from kbtools.entry_points import (
    PRUNERS,
    RANKERS,
    SCORERS,
    SUBJECT_SCORERS,
    TAGGERS,
    home_of,
    list_plugins,
    load_plugin,
    target,
)
from kbtools.kb.contract import KnowledgeBase
from kbtools.ranking.contracts import ZeroShot
from kbtools.ranking.models import LEXICAL, RELATION, SUBJECT, TAGGER, model_digest, plugin_folder
from kbtools.ranking.system import System
from kbtools.ranking.weights import Weights
from kbtools.text import normaliser

_DISTRIBUTION = "kbtools"
"""The distribution whose plugins are identified only by their own versions, since a release may change none."""

Identity = tuple[str, str, str, str]
"""The fingerprints of a cell's pruner, relation scorers, subject scorer and learned ranker, empty without one."""


def kb_digest(kb: KnowledgeBase) -> str:
    """Return the fingerprint of a knowledge base: its content and the order of its relations."""
    return digest(kb.manifest.digest, list(kb.relations))


def questions_digest(questions: list[AnnotatedQuestion]) -> str:
    """Return the fingerprint of questions with their gold, in order."""
    return digest([(gold.subject, gold.relation, gold.object, gold.text) for gold in questions])


def scorer_identity(names: Iterable[str], models: Path | None) -> str:
    """Return the fingerprint of relation scorers with their models."""
    return digest([plugin_identity(SCORERS, name, part=RELATION, models=models) for name in names])


def _subject_identity(system: System, models: Path | None) -> str:
    """Return the fingerprint of a system's subject scorer."""
    name = system.subject_scorer
    return digest(plugin_identity(SUBJECT_SCORERS, name, part=SUBJECT, models=models) if name else system.subject)


def _ranker_identity(system: System) -> str:
    """Return the fingerprint of a system's learned ranker, empty for the weighted sum."""
    if not system.ranker:
        return ""
    fitted, name = asdict(system), system.ranker.name
    parts = fitted["ranker"], fitted["cascade"], fitted["weights"]
    return digest(*parts, plugin_identity(RANKERS, name), plugin_identity(SCORERS, LEXICAL))


def _pruner_identity(answerer: Answerer, system: System) -> str:
    """Return the fingerprint of a system's pruner: its name and version, and its tagger or vectors."""
    guide: object = None
    kind = answerer.parts.guide_kind(system.pruner)
    if kind == TAGGER:
        guide = plugin_identity(TAGGERS, system.guide or "", part=TAGGER, models=answerer.models)
    if kind == SUBJECT:
        vectors = answerer.kb.vectors()
        guide = [asdict(vectors.origin), vectors.dim, len(vectors)]
    return digest([plugin_identity(PRUNERS, system.pruner), guide])


def tagger_identity(name: str, models: Path | None) -> str:
    """Return the fingerprint of a tagger."""
    return digest(plugin_identity(TAGGERS, name, part=TAGGER, models=models))


def plugin_identity(group: str, name: str, *, part: str = "", models: Path | None = None) -> list[object]:
    """Return the identity of a plugin: its version, its distribution, and its model if it has one."""
    points = list_plugins(group).get(name, [])
    plugin = load_plugin(group, name) if points or ":" in name else None
    folder = plugin_folder(models, part, name, plugin) if models else None
    # The record of a kbtools model holds the digest of its weights, so these need not be read.
    model = model_digest(folder) or _folder_digest(folder) if folder and folder.is_dir() else None
    number = getattr(plugin, "version", 1)  # which its author raises when it answers otherwise
    number = number if isinstance(number, int | str) else 1
    identity: list[object] = [name, number, _foreign_version(plugin, points), model]
    return [*identity, plugin.origin()] if isinstance(plugin, ZeroShot) and model is None else identity


def _foreign_version(plugin: object, points: list[EntryPoint]) -> list[object] | None:
    """Return the distribution and code of a third-party plugin, whose author may not give versions, else None."""
    if any(home_of(point) == _DISTRIBUTION for point in points):
        return None
    offers = [[target(point), point.dist.version if point.dist else ""] for point in points]
    return [*offers, _code_digest(plugin)]


def _code_digest(plugin: object) -> str | None:
    """Return the fingerprint of a plugin's module without comments and layout, None if it has no source."""
    try:
        path = Path(inspect.getfile(plugin))  # type: ignore[arg-type]
        return digest(ast.dump(ast.parse(path.read_bytes())))
    except (TypeError, OSError, SyntaxError):
        return None


def _folder_digest(folder: Path) -> str:
    """Return the fingerprint of the files of a folder."""
    # Sorted, since the file system's order varies.
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return digest([[str(path.relative_to(folder)), hashlib.sha256(path.read_bytes()).hexdigest()] for path in files])


def identify(answerer: Answerer, systems: Mapping[Cell, System]) -> dict[Cell, Identity]:
    """Return the fingerprints of the parts of every cell."""
    models = answerer.models
    return {
        cell: (
            _pruner_identity(answerer, system),
            scorer_identity(system.every_scorer, models),
            _subject_identity(system, models),
            _ranker_identity(system),
        )
        for cell, system in systems.items()
    }


def step_versions() -> list[int]:
    """Return the versions of the steps that all cells share, in order of dependency."""
    return [normaliser.NORMALISER_VERSION, version.LINKING_VERSION, version.POOLS_VERSION, version.SCORE_VERSION]


@dataclass(frozen=True, slots=True)
class Fingerprints:
    """The fingerprints of every stage of a run over one knowledge base and one list of questions.

    The arguments are identities of pruners and scorers.
    """

    kb: str
    questions: str

    def gold(self) -> str:
        return digest("gold", *step_versions()[:2], self.kb, self.questions)

    def pools(self, pruner: str) -> str:
        return digest("pools", self.gold(), version.POOLS_VERSION, pruner)

    def tagger(self, tagger: str) -> str:
        return digest("tagger", self.gold(), tagger)

    def scores(self, pruner: str, scorer: str) -> str:
        return digest("scores", self.pools(pruner), scorer)

    def tuned(self, pruner: str, scorer: str, subject: str) -> str:
        scores = self.scores(pruner, scorer), self.scores(pruner, subject)
        return digest("weights", version.SCORE_VERSION, GRID, SWEEPS, *scores)

    def cell(self, pruner: str, scorer: str, subject: str, ranker: str = "", *, weights: Weights) -> str:
        scores = self.scores(pruner, scorer), self.scores(pruner, subject)
        return digest("cell", version.SCORE_VERSION, *scores, ranker, asdict(weights))
