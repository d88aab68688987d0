"""The stages of a run: each is computed once and stored, and a cell joins their results."""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbtools.answering.answerer import Answerer
from kbtools.answering.gold import Gold, GoldScores, find_gold
from kbtools.answering.questions import AnnotatedQuestion
from kbtools.comparison.column_store import Columns, find_columns, read_columns, write_columns
from kbtools.comparison.fingerprints import (
    Fingerprints,
    Identity,
    identify,
    scorer_identity,
    step_versions,
    tagger_identity,
)
from kbtools.comparison.gold_pools import (
    GoldPools,
    ObjectCheck,
    find_linkable,
    find_outcomes,
    gather_gold_pools,
    mark_mentions,
    read_gold_pools,
)
from kbtools.comparison.grid import TUNED, Cell, Weighting, cell_weights, file_name
from kbtools.comparison.lost_questions import remove_examples, write_examples
from kbtools.comparison.run_folder import CELLS, GOLD, POOLS, TAGGERS, WEIGHTS
from kbtools.comparison.weight_search import choose_system
from kbtools.errors import RunUnusable
from kbtools.ranking.evidence import Evidence
from kbtools.ranking.models import RELATION
from kbtools.ranking.opened_system import Compute, OpenedSystem
from kbtools.ranking.score import Progress, as_micro, relation_part

StageProgress = Callable[[str, int, int], None]
"""A function called with a stage, the number of questions done, and the number of all."""


class Stages:
    """The stages of a run over one list of questions; stored results are read, others computed."""

    def __init__(
        self,
        answerer: Answerer,
        out: Path,
        questions: Sequence[AnnotatedQuestion],
        fingerprints: Fingerprints,
        weighting: Weighting,
        watch: StageProgress,
    ) -> None:
        self.answerer, self.out, self.prints, self.watch = answerer, out, fingerprints, watch
        self.weighting = weighting
        self.identities = identify(answerer, weighting.systems)
        self.gold, self.linkable = self.find_gold(questions)

    def find_gold(self, questions: Sequence[AnnotatedQuestion]) -> tuple[Gold, NDArray[np.bool_]]:
        """Return the gold and whether each question is linkable; store what a report needs."""
        path, fingerprint = self.out / GOLD, self.prints.gold()
        gold = find_gold(self.answerer.kb, questions)
        columns = find_columns(path, fingerprint)
        if columns is None:
            self.watch("gold", 0, len(questions))
            _, inverse, count = np.unique(
                [question.relation for question in questions], return_inverse=True, return_counts=True
            )
            linkable = find_linkable(self.answerer.kb, gold)
            arrays = {"fault": gold.fault, "linkable": linkable, "relation_frequency": count[inverse]}
            columns = Columns(fingerprint, arrays)
            write_columns(path, columns)
        return gold, columns["linkable"]

    def drop_outdated(self) -> None:
        """Remove cells of outdated code, models or weights, so that no table mixes them with new ones."""
        now = {
            part: fingerprint
            for cell, identity in self.identities.items()
            for part, fingerprint in _parts_of(cell, identity)
        }
        for path in (self.out / CELLS).glob("*.columns"):
            try:
                facts = read_columns(path).facts
            except RunUnusable:
                path.unlink()
                continue
            before = _parts_of(Cell(*facts["cell"]), facts["identity"])
            renewed = any(now.get(part, identity) != identity for part, identity in before)
            # Cells of models outside this request are kept.
            if renewed or facts["versions"] != step_versions() or facts["weighting"] != self.weighting.kind:
                path.unlink()

    def tune(self, cells: Sequence[Cell]) -> None:
        """Choose and store the weights of the cells of one pruner on these questions."""
        prints = {cell: self.prints.tuned(*self.identities[cell][:3]) for cell in cells}
        on_disk = {cell: find_columns(self.path(WEIGHTS, *cell.names), prints[cell]) for cell in cells}
        systems = self.weighting.systems
        tuned = {cell: systems[cell].weighted(cell_weights(kept.facts)) for cell, kept in on_disk.items() if kept}
        if len(tuned) < len(cells):
            pools = self.pools(cells[0])
            marks = self.gold.pairs(pools.pools)
            for cell in [cell for cell in cells if cell not in tuned]:
                scores = GoldScores(self.evidence(cell, pools), marks)
                progress = self.announce(f"weights of {cell.label}")
                tuned[cell] = choose_system(systems[cell], scores)
                facts = {"weights": asdict(tuned[cell].weights)}
                write_columns(self.path(WEIGHTS, *cell.names), Columns(prints[cell], {}, facts))
                progress(len(self.gold))
        self.weighting = Weighting(TUNED, {**systems, **tuned})

    def fill(self, cells: Sequence[Cell], *, errors: int) -> None:
        """Compute the cells of one pruner, and write `errors` examples of each cause."""
        prints = {cell: self.print_of(cell) for cell in cells}
        on_disk = {cell: find_columns(self.path(CELLS, *cell.names), prints[cell]) for cell in cells}
        if all(on_disk.values()) and not errors:
            return
        pools = self.pools(cells[0])
        objects = ObjectCheck(self.answerer.kb, pools.pools, self.gold)
        for cell, columns in on_disk.items():
            outcomes = columns or self.outcomes(cell, pools, objects)
            if not columns:
                write_columns(self.path(CELLS, *cell.names), outcomes)
                remove_examples(self.out, cell)
            if errors:
                write_examples(self.out, self.linkable, cell, outcomes, pools, self.gold, errors)

    def judge_taggers(self) -> None:
        """Measure the taggers that guide pruners, unless they are on disk."""
        parts = self.answerer.parts
        guided = {system.guide for system in self.weighting.systems.values() if parts.reads_tagger(system)}
        for name in sorted(filter(None, guided)):
            path, fingerprint = self.path(TAGGERS, name), self.prints.tagger(tagger_identity(name, parts.models))
            if find_columns(path, fingerprint) is None:
                tagger, progress = parts.make_tagger(name), self.announce(f"tagger {name}")
                arrays = mark_mentions(self.answerer.kb, tagger, self.gold, progress)
                write_columns(path, Columns(fingerprint, arrays, {"tagger": name}))

    def path(self, stage: str, *names: str) -> Path:
        return self.out / stage / f"{file_name(*names)}.columns"

    def print_of(self, cell: Cell) -> str:
        return self.prints.cell(*self.identities[cell], weights=self.weighting.systems[cell].weights)

    def outcomes(self, cell: Cell, pools: GoldPools, objects: ObjectCheck) -> Columns:
        """Return the outcomes of one cell after ranking its pools."""
        system = self.weighting.systems[cell]
        opened, seconds = self.opened(cell), list[float]()
        evidence = self.evidence(cell, pools, seconds)
        begun = time.perf_counter()
        rating = opened.rate(evidence)
        outcomes = find_outcomes(
            pools,
            self.gold,
            score=rating.scores if rating else np.empty(0, dtype=np.int64),
            relation=as_micro(relation_part(pools.pools, evidence.mean, system.weights)),
            objects=objects,
            relation_ids=list(self.answerer.kb.relations),
        )
        if rating:
            for name in ("confidence", "confidence_without"):
                outcomes[name] = opened.calibrate(rating, outcomes[name])
        # Pruning is timed per question; scoring runs in batches, and its time is shared equally.
        scoring = (time.perf_counter() - begun + sum(seconds)) / len(self.gold)
        outcomes["milliseconds"] = 1000 * (pools.seconds.astype(np.float64) + scoring)
        facts = {
            "cell": list(cell),
            "identity": list(self.identities[cell]),
            "versions": step_versions(),
            "weighting": self.weighting.kind,
            "weights": asdict(system.weights),
        }
        return Columns(self.print_of(cell), outcomes, facts)

    def pools(self, cell: Cell) -> GoldPools:
        """Return the pools of a cell's pruner, from disk if possible."""
        path, fingerprint = self.path(POOLS, cell.pruning), self.prints.pools(self.identities[cell][0])
        columns = find_columns(path, fingerprint)
        if columns is not None:
            return read_gold_pools(columns, self.gold)
        opened, progress = self.opened(cell), self.announce(f"pools of {cell.pruning}")
        pools = gather_gold_pools(opened, self.gold, progress=progress)
        write_columns(path, pools.to_columns(fingerprint))
        return pools

    def opened(self, cell: Cell) -> OpenedSystem:
        return self.answerer.opened(self.weighting.systems[cell])

    def evidence(self, cell: Cell, pools: GoldPools, seconds: list[float] | None = None) -> Evidence:
        """Return the evidence of a cell from stored or computed scores; their seconds are added to the list."""
        keep = partial(self.read_or_compute, cell, [] if seconds is None else seconds)
        return self.opened(cell).evidence(pools.pools, self.gold.texts, keep=keep)

    def read_or_compute(
        self, cell: Cell, seconds: list[float], part: str, name: str, compute: Compute
    ) -> NDArray[np.floating[Any]]:
        """Return the scores of a scorer over a cell's pools, from disk if possible, otherwise computed, timed and
        stored."""
        models = self.answerer.models
        identity = scorer_identity([name], models) if part == RELATION else self.identities[cell][2]
        path = self.path(part, cell.pruning, name)
        fingerprint = self.prints.scores(self.identities[cell][0], identity)
        columns = find_columns(path, fingerprint)
        if columns is None:
            progress, begun = self.announce(f"{name} over {cell.pruning}"), time.perf_counter()
            columns = Columns(fingerprint, {"score": compute(progress)}, {"seconds": time.perf_counter() - begun})
            write_columns(path, columns)
        seconds.append(columns.facts["seconds"])
        return columns["score"]

    def announce(self, stage: str) -> Progress:
        """Announce a stage; return a function that reports the number of questions done."""
        total = len(self.gold)
        self.watch(stage, 0, total)
        return lambda done: self.watch(stage, done, total)


def _parts_of(cell: Cell, identity: Identity) -> list[tuple[object, str]]:
    """Return the parts of a cell with their fingerprints; a ranker belongs to one cell only."""
    names = (*enumerate(cell[:3]), cell)
    return list(zip(names, identity, strict=True))
