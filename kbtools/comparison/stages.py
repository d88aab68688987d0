"""The stages of a run: each is computed once and kept on disk, and a cell is a join over what is there."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbtools.answering.answerer import Answerer
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
from kbtools.comparison.gold import Gold, find_gold, mark_mentions
from kbtools.comparison.gold_pools import GoldPools, gather_gold_pools
from kbtools.comparison.grid import Cell, file_name
from kbtools.comparison.lost_questions import remove_examples, write_examples
from kbtools.comparison.outcomes import ObjectCheck, find_outcomes
from kbtools.comparison.run_folder import CELLS, GOLD, POOLS, RELATION_SCORES, SUBJECT_SCORES, TAGGERS, WEIGHTS
from kbtools.comparison.weighting import Weighting, cell_ranker, cell_weights, tune_cell
from kbtools.errors import RunUnusable
from kbtools.kb.contract import ABSENT
from kbtools.ranking.evidence import Evidence
from kbtools.ranking.models import LEXICAL, scorer_names
from kbtools.ranking.rankers import calibrate_all
from kbtools.ranking.score import Progress, add_parts, as_micro, score_parts, score_relations, score_subjects
from kbtools.ranking.weights import Weights
from kbtools.tuning.weight_search import GoldScores

StageProgress = Callable[[str, int, int], None]
"""Called with a stage, the questions that it is through with, and all there are."""


class Stages:
    """The stages of a run over one list of questions: what is on disk already is read, the rest is computed."""

    def __init__(
        self,
        answerer: Answerer,
        out: Path,
        questions: Sequence[AnnotatedQuestion],
        fingerprints: Fingerprints,
        cells: Iterable[Cell],
        watch: StageProgress,
    ) -> None:
        self.answerer, self.out, self.prints, self.watch = answerer, out, fingerprints, watch
        self.identities = identify(answerer, cells)
        self.gold = self.find_gold(questions)

    def find_gold(self, questions: Sequence[AnnotatedQuestion]) -> Gold:
        """Find the gold, and keep what a report needs of it."""
        path, fingerprint = self.out / GOLD, self.prints.gold()
        columns = find_columns(path, fingerprint)
        if columns is not None:
            return find_gold(self.answerer.kb, questions, linkable=columns["linkable"])
        self.watch("gold", 0, len(questions))
        gold = find_gold(self.answerer.kb, questions)
        _, inverse, count = np.unique(
            [question.relation for question in questions], return_inverse=True, return_counts=True
        )
        arrays = {"fault": gold.fault, "linkable": gold.linkable, "relation_frequency": count[inverse]}
        write_columns(path, Columns(fingerprint, arrays))
        return gold

    def drop_outdated(self, weighting: Weighting) -> None:
        """Remove cells of code, models or a weighting that are others now, so that no table shows two as one."""
        now = {part: own for cell, identity in self.identities.items() for part, own in parts_of(cell, identity)}
        for path in (self.out / CELLS).glob("*.columns"):
            try:
                facts = read_columns(path).facts
            except RunUnusable:
                path.unlink()
                continue
            before = parts_of(Cell(*facts["cell"]), facts["identity"])
            renewed = any(now.get(part, identity) != identity for part, identity in before)
            # A model that this request does not name is not judged: its cells stay.
            if renewed or facts["versions"] != step_versions() or facts["weighting"] != weighting.kind:
                path.unlink()

    def tune(self, cells: Sequence[Cell]) -> dict[Cell, Weights]:
        """Choose the weights of the cells of one pruner on these questions, and keep them."""
        prints = {cell: self.prints.tuned(*self.identities[cell][:3]) for cell in cells}
        on_disk = {cell: find_columns(self.path(WEIGHTS, *cell.names), prints[cell]) for cell in cells}
        chosen = {cell: cell_weights(columns.facts) for cell, columns in on_disk.items() if columns}
        if len(chosen) < len(cells):
            pools = self.pools(cells[0])
            gold = np.zeros(pools.pools.pairs, dtype=np.bool_)
            gold[pools.gold_pair[pools.gold_pair != ABSENT]] = True
            for cell in [cell for cell in cells if cell not in chosen]:
                scores = GoldScores(self.evidence(cell, pools), gold)
                progress = self.announce(f"weights of {cell.label}")
                chosen[cell] = tune_cell(cell, scores)
                facts = {"weights": asdict(chosen[cell])}
                write_columns(self.path(WEIGHTS, *cell.names), Columns(prints[cell], {}, facts))
                progress(len(self.gold))
        return chosen

    def fill(self, cells: Sequence[Cell], weighting: Weighting, *, errors: int) -> None:
        """Fill the cells of one pruner, and write so many examples of each cause."""
        prints = {cell: self.prints.cell(*self.identities[cell], weights=weighting.weights[cell]) for cell in cells}
        on_disk = {cell: find_columns(self.path(CELLS, *cell.names), prints[cell]) for cell in cells}
        if all(on_disk.values()) and not errors:
            return
        pools = self.pools(cells[0])
        objects = ObjectCheck(self.answerer.kb, pools.pools, self.gold)
        for cell, columns in on_disk.items():
            outcomes = columns or self.outcomes(cell, weighting, pools, objects)
            if not columns:
                write_columns(self.path(CELLS, *cell.names), outcomes)
                remove_examples(self.out, cell)
            if errors:
                write_examples(self.out, self.answerer.kb, cell, outcomes, pools, self.gold, errors)

    def judge_tagger(self) -> None:
        """Measure the tagger that guides the focused pruners, unless that is on disk."""
        name = self.answerer.tagger
        path, fingerprint = self.path(TAGGERS, name), self.prints.tagger(tagger_identity(name, self.answerer.models))
        if find_columns(path, fingerprint) is None:
            tagger, progress = self.answerer.make_tagger(), self.announce(f"tagger {name}")
            arrays = mark_mentions(self.answerer.kb, tagger, self.gold, progress)
            write_columns(path, Columns(fingerprint, arrays, {"tagger": name}))

    def path(self, stage: str, *names: str) -> Path:
        return self.out / stage / f"{file_name(*names)}.columns"

    def outcomes(self, cell: Cell, weighting: Weighting, pools: GoldPools, objects: ObjectCheck) -> Columns:
        """Add the scores of one cell up, and find what comes of them."""
        weights, evidence = weighting.weights[cell], self.evidence(cell, pools)
        begun = time.perf_counter()
        parts = score_parts(pools.pools, weights, v=evidence.mean, u=evidence.u)
        ranker = cell_ranker(self.answerer, cell) if cell.learned else None
        rating = ranker.rate(evidence) if ranker else None
        outcomes = find_outcomes(
            pools,
            self.gold,
            score=rating.scores if rating else add_parts(parts),
            relation=as_micro(parts["relation"]),
            objects=objects,
            relation_ids=list(self.answerer.kb.relations),
        )
        if ranker and rating:
            for name in ("confidence", "confidence_without"):
                outcomes[name] = calibrate_all(ranker, rating, outcomes[name])
        seconds = time.perf_counter() - begun + sum(scores.facts["seconds"] for scores in self.scores(cell, pools))
        # Pruning was timed by question; scoring runs in batches, whose time all questions share evenly.
        outcomes["milliseconds"] = 1000 * (pools.seconds + seconds / len(self.gold))
        facts = {
            "cell": list(cell),
            "identity": list(self.identities[cell]),
            "versions": step_versions(),
            "weighting": weighting.kind,
            "weights": asdict(weights),
        }
        return Columns(self.prints.cell(*self.identities[cell], weights=weights), outcomes, facts)

    def pools(self, cell: Cell) -> GoldPools:
        """Read the pools of a cell's pruner, or gather and keep them."""
        path, fingerprint = self.path(POOLS, cell.pruning), self.prints.pools(self.identities[cell][0])
        columns = find_columns(path, fingerprint)
        if columns is not None:
            return GoldPools.from_columns(columns, self.answerer.kb)
        pruner, progress = self.answerer.pruner(cell.pruning), self.announce(f"pools of {cell.pruning}")
        pools = gather_gold_pools(self.answerer.kb, pruner, self.gold, fingerprint=fingerprint, progress=progress)
        write_columns(path, pools.to_columns())
        return pools

    def evidence(self, cell: Cell, pools: GoldPools) -> Evidence:
        """Give the evidence of a cell: v of its relation scorers as one, and for a learned ranker of each alone."""
        u = self.subject_scores(cell, pools)["score"] if cell.subject_scorer else None
        if not cell.learned:
            return Evidence(pools.pools, {cell.scorer: self.relation_scores(cell, cell.scorer, pools)["score"]}, u)
        v = {name: self.relation_scores(cell, name, pools)["score"] for name in read_by_ranker(cell)}
        beside = {} if LEXICAL in scorer_names(cell.scorer) else {LEXICAL: v.pop(LEXICAL)}
        return Evidence(pools.pools, v, u, beside)

    def scores(self, cell: Cell, pools: GoldPools) -> list[Columns]:
        """List the scores that a cell rests on."""
        names = read_by_ranker(cell) if cell.learned else [cell.scorer]
        scores = [self.relation_scores(cell, name, pools) for name in names]
        return [*scores, self.subject_scores(cell, pools)] if cell.subject_scorer else scores

    def relation_scores(self, cell: Cell, scorer: str, pools: GoldPools) -> Columns:
        """Give v of a cell's pools by a relation scorer, or several as one."""
        kb, questions = self.answerer.kb, self.gold.texts
        identity = scorer_identity(scorer, self.answerer.models) if cell.learned else self.identities[cell][1]
        return self.read_or_compute(
            self.path(RELATION_SCORES, cell.pruning, scorer),
            self.prints.scores(self.identities[cell][0], identity),
            f"{scorer} over {cell.pruning}",
            lambda progress: score_relations(kb, pools.pools, questions, self.answerer.scorer(scorer), progress),
        )

    def subject_scores(self, cell: Cell, pools: GoldPools) -> Columns:
        """Give u of a cell's pools."""
        scorer, questions = self.answerer.subject_scorer(cell.subject), self.gold.texts
        pruner, _, subject, _ = self.identities[cell]
        return self.read_or_compute(
            self.path(SUBJECT_SCORES, cell.pruning, cell.subject),
            self.prints.scores(pruner, subject),
            f"{cell.subject} over {cell.pruning}",
            lambda progress: score_subjects(pools.pools, questions, scorer, progress),
        )

    def read_or_compute(
        self, path: Path, fingerprint: str, name: str, compute: Callable[[Progress], NDArray[Any]]
    ) -> Columns:
        """Read scores from disk, or compute them, timed, and keep them."""
        columns = find_columns(path, fingerprint)
        if columns is None:
            progress, begun = self.announce(name), time.perf_counter()
            columns = Columns(
                # As float32, in half the space of the float64 that scorers give.
                fingerprint,
                {"score": compute(progress).astype(np.float32)},
                {"seconds": time.perf_counter() - begun},
            )
            write_columns(path, columns)
        return columns

    def announce(self, stage: str) -> Progress:
        """Announce a stage; give what reports how many questions it is through with."""
        total = len(self.gold)
        self.watch(stage, 0, total)
        return lambda done: self.watch(stage, done, total)


def parts_of(cell: Cell, identity: Identity) -> list[tuple[object, str]]:
    """Pair the parts of a cell with their fingerprints; a ranker belongs to one cell alone."""
    names = (*enumerate(cell[:3]), cell)
    return list(zip(names, identity, strict=True))


def read_by_ranker(cell: Cell) -> list[str]:
    """List the relation scorers whose scores a learned ranker reads: the cell's own, and the words' overlap."""
    return list(dict.fromkeys([*scorer_names(cell.scorer), LEXICAL]))
