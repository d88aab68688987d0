"""Answer questions: prune, score, rank, fetch the objects; the Python side of `kbtools query`."""

import os
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Self, Unpack

import numpy as np

from kbtools.answering.answer_options import LookupOptions, QueryOptions, require_options
from kbtools.answering.entity_reader import EntityReader
from kbtools.answering.limits import ANSWERS, TOP, Limits, require_text, require_texts
from kbtools.answering.name_lookup import NameLookup
from kbtools.answering.ranked_pool import RankedPool
from kbtools.answering.records import Entity, Facts, LinkedText, LookupResult
from kbtools.answering.results import Result
from kbtools.answering.running_text import CANDIDATES, THRESHOLD, TextLinker
from kbtools.answering.system_parts import SystemParts
from kbtools.entry_points import BACKENDS, construct, load_class
from kbtools.errors import BadArgument, KBUnusable, ModelMissing, UnknownDevice
from kbtools.kb.contract import KnowledgeBase
from kbtools.kb.language_tags import read_languages
from kbtools.kb.rows import EntityRows
from kbtools.kb.views import BothWays, CalledIn, InLanguages
from kbtools.linking.links import Link, keep_type
from kbtools.linking.trust import LinkTrust
from kbtools.pruning.pruners import EmbedQuestions, guide_of, prune
from kbtools.pruning.tagging import Tagger
from kbtools.quick_records import quick_record
from kbtools.ranking.confidence import calibrate
from kbtools.ranking.contracts import RelationScorer, SubjectScorer
from kbtools.ranking.direction import DirectedScorer, Directions
from kbtools.ranking.models import (
    scorer_names,
)
from kbtools.ranking.order import rank_pools
from kbtools.ranking.pools import Pools, concatenate_pools, gather_pool, order_links
from kbtools.ranking.rankers import WeightedSum
from kbtools.ranking.system import System
from kbtools.text.question import Question

NOBODY = np.empty(0, dtype=np.uint32)

TOGETHER = 64
"""Questions that are answered together: on a cluster their names are looked up in one request."""

MOST_SPEAKERS = 16
"""Choices of languages that are kept at hand, each with what it remembers."""

# Checked without torch, which takes seconds to import; whether the device is there, its network finds out.
DEVICE = re.compile(r"cpu|cuda(:\d+)?|mps")


def open_kb(
    path: str | Path,
    *,
    backend: str = "embedded",
    models: str | Path | None = None,
    tagger: str | None = None,
    device: str = "cpu",
    trust_plugins: bool | None = None,
) -> "Answerer":
    """Open a knowledge base for questions; `models` is the folder that kbtools train made, for trained scorers.

    With `trust_plugins`, files of the knowledge base and the models may name classes as `module:Class`, which are
    imported and called; else only those of installed plugins.

    Raises KBMissing where there is none, KBUnusable for one of another version or a damaged one, ModelMissing for a
    folder of models that is not there, UnknownDevice for a device that no network computes on.
    """
    if not isinstance(path, str | os.PathLike):
        raise BadArgument(f"path is a str or a Path, found {path!r}", name="path")
    folder = models_folder(models)
    if not DEVICE.fullmatch(device):
        raise UnknownDevice(f"no device {device!r}; known: cpu, cuda, cuda:1, mps", name=device)
    make = load_class(BACKENDS, backend)
    kb = construct(backend, lambda: make(path))
    return Answerer(kb, models=folder, tagger=tagger, device=device, trust_plugins=trust_plugins)


def models_folder(models: str | Path | None) -> Path | None:
    """Give the folder of trained models if one is named; raise ModelMissing where there is none."""
    if models is not None and not Path(models).is_dir():
        raise ModelMissing(f"{models}: no folder of models; make one with kbtools train", path=str(models))
    return None if models is None else Path(models)


@quick_record
@dataclass(frozen=True, slots=True, eq=False)
class LinkedPool:
    """The links that a pruner keeps of a question, the better first, and the pool that they open up."""

    links: list[Link]
    pool: Pools


class Answerer(SystemParts):
    """A knowledge base with the pruners and scorers made for it so far; close it, or use it in a `with`.

    A pickled one is opened again from the paths of its knowledge base and models.
    """

    def __init__(
        self,
        kb: KnowledgeBase,
        *,
        models: Path | None = None,
        tagger: str | None = None,
        device: str = "cpu",
        trust_plugins: bool | None = None,
    ) -> None:
        super().__init__(kb, models=models, tagger=tagger, device=device, trust_plugins=trust_plugins)
        self.trust = LinkTrust(kb)
        self.closed = False
        self.reader = EntityReader(kb)
        self.names = NameLookup(self.reader)
        self.linker: TextLinker | None = None
        self.reversible: Answerer | None = None
        self.speakers: dict[tuple[str, ...], Answerer] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[partial["Answerer"], tuple[KnowledgeBase]]:
        parts: dict[str, Any] = {"models": self.models, "tagger": self.tagger, "device": self.device}
        return partial(Answerer, **parts, trust_plugins=self.trust_plugins), (self.kb,)

    def close(self) -> None:
        """Close the knowledge base; questions are refused afterwards."""
        self.kb.close()
        self.closed = True

    def require_open(self) -> None:
        if self.closed:
            raise KBUnusable("the knowledge base is closed; open it again")

    def query(self, text: str, **options: Unpack[QueryOptions]) -> Result:
        """Answer a question; `top` and `answers` limit what is given, 0 or None gives all.

        `pruning`, `scorer`, `subject` and `ranker` name parts in place of those that training chose. With `type`,
        subjects are those that have it. With `lang`, such as `de,en`, names in these languages are found, those in
        others where these lead nowhere. With `inverse`, facts are read backwards too. With `abstain`, answers of a
        result whose confidence is below it are withheld; a `calibration` makes confidence the share that is right. A
        question without candidates, an empty one among them, gives a result without any. Raises BadArgument for what
        is no question or limit, UnknownType for a type that no entity has, UnknownLanguage for a language without a
        name, ModelMissing for a ranker that was not fitted for the parts, IncomingMissing where no fact is read
        backwards.
        """
        (result,) = self.query_many([text], **options)
        return result

    def query_many(self, texts: Iterable[str], **options: Unpack[QueryOptions]) -> Iterator[Result]:
        """Answer questions as `query` does, fetching what some of them need in the same requests."""
        require_texts(texts, "texts", what="questions", single="query")
        self.require_open()
        require_options(options)
        if (lang := options.pop("lang", None)) is not None:
            return self.in_languages(lang).query_many(texts, **options)
        system = self.system(
            pruning=options.get("pruning"),
            scorer=options.get("scorer"),
            subject=options.get("subject"),
            ranker=options.get("ranker"),
        )
        limits = Limits(
            options.get("top", TOP), options.get("answers", ANSWERS), options.get("abstain"), options.get("calibration")
        )
        kind, inverse = options.get("type"), options.get("inverse", False)
        row = None if kind is None else self.reader.type_row(kind)
        return (self.both_ways() if inverse else self).answer_batches(iter(texts), system, limits, row)

    def both_ways(self) -> "Answerer":
        """Give the answerer that reads facts backwards too; raise IncomingMissing where that cannot be."""
        if self.reversible is None:
            self.reversible = ReversibleAnswerer(self)
        return self.reversible

    def in_languages(self, lang: str) -> "Answerer":
        """Give the answerer that finds names in some languages; raise UnknownLanguage where none is in one."""
        require_text(lang, "lang")
        tags = read_languages(lang, self.kb.manifest.languages)
        if tags not in self.speakers:
            if len(self.speakers) == MOST_SPEAKERS:
                self.speakers.pop(next(iter(self.speakers)), None)
            self.speakers[tags] = SpeakingAnswerer(self, ",".join(tags))
        return self.speakers[tags]

    def answer_batches(
        self, texts: Iterator[str], system: System, limits: Limits, type_row: int | None
    ) -> Iterator[Result]:
        """Yield results, a batch of questions at a time."""
        while batch := list(islice(texts, TOGETHER)):
            for text in batch:
                if not isinstance(text, str):
                    raise BadArgument(f"a question is a str, found {text!r}", name="text")
            pools = self.ranked_many(batch, system, top=limits.top, type_row=type_row)
            pairs = list(dict.fromkeys(pair for ranked in pools if (pair := ranked.best_pair)))
            objects = dict(zip(pairs, self.kb.objects_of(pairs), strict=True)) if pairs else {}
            for ranked in pools:
                best = objects[pair] if (pair := ranked.best_pair) else NOBODY
                yield self.result(ranked, best, limits, type_row)

    def lookup(self, name: str, **options: Unpack[LookupOptions]) -> LookupResult:
        """Find the entities that bear a name: strictly, else those whose names resemble it; best first.

        `type` leaves those of a type, `limit` the first ones. With `lang`, names in some languages are found, those in
        others where there are none. Raises UnknownType for a type that no entity has, UnknownLanguage for a language
        without a name, BadArgument for what is no name or no limit.
        """
        self.require_open()
        if (lang := options.pop("lang", None)) is not None:
            return self.in_languages(lang).lookup(name, **options)
        return self.names.lookup(name, **options)  # type: ignore[misc] # `lang` was taken out

    def lookup_many(self, names: Iterable[str], **options: Unpack[LookupOptions]) -> Iterator[LookupResult]:
        """Look names up as they come, as `lookup` does."""
        require_texts(names, "names", what="names", single="lookup")
        return (self.lookup(name, **options) for name in names)

    def link(
        self, text: str, *, threshold: float = THRESHOLD, limit: int | None = CANDIDATES, lang: str | None = None
    ) -> LinkedText:
        """Find the mentions of a running text, apart from each other, each with at most `limit` candidates.

        Mentions that score below the threshold, 0 to 1, are left out. With `lang`, only names in some languages are
        found. Raises UnknownLanguage for a language without a name, BadArgument for what is no text, threshold or
        limit.
        """
        self.require_open()
        if lang is not None:
            return self.in_languages(lang).link(text, threshold=threshold, limit=limit)
        self.linker = self.linker or TextLinker(self.names)
        return self.linker.link(text, threshold=threshold, limit=limit)

    def entity(self, id: str, *, lang: str | None = None) -> Entity:
        """Give names, types and numbers of facts of an entity, with `lang` its names in some languages.

        Raises UnknownEntity where there is none, UnknownLanguage for a language without a name.
        """
        self.require_open()
        if lang is not None:
            return self.in_languages(lang).entity(id)
        return self.reader.entity(id)

    def facts(
        self, id: str, *, reverse: bool = False, limit: int | None = 100, offset: int = 0, lang: str | None = None
    ) -> Facts:
        """List the facts of an entity, or with `reverse` those that it is the object of.

        With `lang`, names are those in some languages. Raises UnknownEntity, UnknownLanguage, BadArgument for no limit
        or offset, and IncomingMissing where the backend has no index from objects to facts.
        """
        self.require_open()
        if lang is not None:
            return self.in_languages(lang).facts(id, reverse=reverse, limit=limit, offset=offset)
        return self.reader.facts(id, reverse=reverse, limit=limit, offset=offset)

    def gather(
        self, questions: Sequence[Question], *, pruning: str, type_row: int | None = None, trusted: bool = False
    ) -> list[LinkedPool]:
        """Prune: link questions, to subjects of a type alone if one is given, and open the links up.

        How far links are to be trusted is found out if that is asked for.
        """
        pools = []
        for start in range(0, len(questions), TOGETHER):
            batch = questions[start : start + TOGETHER]
            for question, kept in zip(batch, prune(self.pruner(pruning), batch), strict=True):
                links = order_links(kept)
                links = links if type_row is None else keep_type(self.kb, links, type_row)
                trust = self.trust.of(question, links) if trusted else None
                pools.append(LinkedPool(links, gather_pool(self.kb, links, trust=trust)))
        return pools

    def ranked_many(
        self, texts: Sequence[str], system: System, *, top: int | None, type_row: int | None = None
    ) -> list[RankedPool]:
        """Prune and rank questions, which every scorer is asked about at once."""
        pruning, scorer, subject = system.pruning, system.scorer, system.subject
        self.pruner(pruning)  # made before the clock starts, as the scorers are
        scoring = self.scoring(pruning=pruning, scorer=scorer, subject=subject, ranker=system.ranker)
        for name in scorer_names(scorer):
            if name not in scoring.in_doubt:
                self.scorer(name)
        if subject:
            self.subject_scorer(subject)
        begun = time.perf_counter()
        questions = [Question.read(text) for text in texts]
        learned = not isinstance(scoring, WeightedSum)
        linked = self.gather(questions, pruning=pruning, type_row=type_row, trusted=learned)
        pools = [one.pool for one in linked]
        evidence = self.evidence(
            pools[0] if len(pools) == 1 else concatenate_pools(pools),
            questions,
            scorer=scorer,
            subject=subject,
            learned=learned,
            in_doubt=scoring.in_doubt,
        )
        rankings = rank_pools(self.kb, pools, evidence, scoring, top=top)
        seconds = (time.perf_counter() - begun) / len(texts)
        return [
            RankedPool(
                question,
                system,
                one.links,
                one.pool,
                ranking,
                ranking.stage.scoring if ranking.stage else scoring,
                seconds,
            )
            for question, one, ranking in zip(questions, linked, rankings, strict=True)
        ]

    def confidence(self, ranked: RankedPool, limits: Limits) -> float | None:
        """Give the confidence in the first candidate: its share of the pool, as far as its link is to be trusted."""
        share = ranked.trust(self.trust) * ranked.ranking.winner_share()
        return limits.confidence(calibrate(ranked.scoring.calibration, share))

    def result(self, ranked: RankedPool, objects: EntityRows, limits: Limits, type_row: int | None = None) -> Result:
        """Write out a ranking, and the objects of its first candidate unless they are withheld."""
        begun = time.perf_counter()
        system, ranking, scoring = ranked.system, ranked.ranking, ranked.scoring
        confidence = None if limits.abstain is None else self.confidence(ranked, limits)
        answered = None if confidence is None else bool(ranking.best) and confidence >= (limits.abstain or 0)
        answers, total = ((), 0) if answered is False else ranked.answers(self.kb, objects, limit=limits.answers)
        return Result(
            question=ranked.question.text,
            unread=ranked.question.unread,
            pruning=system.pruning,
            tagger=system.tagger if guide_of(self.pruner(system.pruning)) == "tagger" else None,
            scorer=system.scorer,
            subject_scorer=system.subject,
            ranker=scoring.name,
            scored_by=ranking.stage.scorer if ranking.stage else None,
            weights=scoring.counting(system.subject),
            type=None if type_row is None else self.kb.types[type_row],
            candidates=ranked.candidates(self.kb),
            tied=ranking.tied,
            without_facts=ranked.without_facts(self.kb, limit=limits.answers),
            answers=answers,
            answers_total=total,
            milliseconds=round(1000 * (ranked.seconds + time.perf_counter() - begun), 3),
            inverse=isinstance(self.kb, BothWays),
            bearers_left_out=ranked.bearers_left_out,
            confidence=confidence,
            answered=answered,
        )


class ViewAnswerer(Answerer):
    """An answerer over a view of the knowledge base of another, with the models of that."""

    def __init__(self, kb: KnowledgeBase, forward: Answerer) -> None:
        super().__init__(
            kb,
            models=forward.models,
            tagger=forward.tagger,
            device=forward.device,
            trust_plugins=forward.trust_plugins,
        )
        self.forward = forward
        self.weights_by_key = forward.weights_by_key

    def require_open(self) -> None:
        self.forward.require_open()

    def make_tagger(self) -> Tagger:
        return self.forward.make_tagger()

    def make_embedder(self) -> EmbedQuestions:
        return self.forward.make_embedder()

    def scorer(self, name: str) -> RelationScorer:
        return self.forward.scorer(name)

    def subject_scorer(self, name: str) -> SubjectScorer:
        return self.forward.subject_scorer(name)


class ReversibleAnswerer(ViewAnswerer):
    """An answerer over the facts of another, read both ways, beside what tells directions."""

    def __init__(self, forward: Answerer) -> None:
        kb = BothWays(forward.kb)
        super().__init__(kb, forward)
        self.directions = Directions(kb)

    def __reduce__(self) -> tuple[type["ReversibleAnswerer"], tuple[Answerer]]:  # type: ignore[override]
        return ReversibleAnswerer, (self.forward,)

    def both_ways(self) -> Answerer:
        return self

    def scorer(self, name: str) -> RelationScorer:
        return DirectedScorer(self.forward.scorer(name), self.directions)


class SpeakingAnswerer(ViewAnswerer):
    """An answerer over the names of another in some languages, and over all where these lead nowhere."""

    def __init__(self, forward: Answerer, languages: str) -> None:
        self.kb: InLanguages
        super().__init__(InLanguages(forward.kb, languages), forward)
        self.any_language = ViewAnswerer(CalledIn(forward.kb, languages), forward)

    def __reduce__(self) -> tuple[type["SpeakingAnswerer"], tuple[Answerer, str]]:  # type: ignore[override]
        return SpeakingAnswerer, (self.forward, ",".join(self.kb.languages))

    def query_many(self, texts: Iterable[str], **options: Unpack[QueryOptions]) -> Iterator[Result]:
        return (self.or_in_any(result, options) for result in super().query_many(texts, **options))

    def or_in_any(self, result: Result, options: QueryOptions) -> Result:
        """Give a result in the languages asked for, in any where it has no candidate."""
        other = None if result.candidates else self.any_language.query(result.question, **options)
        found = bool(other and (other.candidates or (other.without_facts and not result.without_facts)))
        best = other if other and found else result
        return replace(best, languages=self.kb.languages, other_languages=found)

    def lookup(self, name: str, **options: Unpack[LookupOptions]) -> LookupResult:
        result = super().lookup(name, **options)
        other = None if result.matches else self.any_language.lookup(name, **options)
        found = bool(other and other.matches)
        return replace(other if other and found else result, languages=self.kb.languages, other_languages=found)
